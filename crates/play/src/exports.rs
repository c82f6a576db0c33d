//! Exports of the WebAssembly module. A text goes into [`input`]; each other function leaves its
//! answer where [`output`] is and returns the answer's length in bytes.
#![expect(unsafe_code, reason = "names of exports are not mangled; no code here is unsafe")]

use core::cell::RefCell;

use crate::{Playground, edit, json_schema};

#[derive(Default)]
struct State {
    input: Vec<u8>,
    output: Vec<u8>,
    playground: Option<Playground>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

/// Calls a function with the state and the text of the input; its answer is the output.
fn answer(call: impl FnOnce(&mut State, &str) -> Vec<u8>) -> usize {
    STATE.with_borrow_mut(|state| {
        let input = core::mem::take(&mut state.input);
        state.output = call(state, &String::from_utf8_lossy(&input));
        state.output.len()
    })
}

/// Makes room for an input of this length in bytes; returns its address.
#[unsafe(no_mangle)]
extern "C" fn input(length: usize) -> *mut u8 {
    STATE.with_borrow_mut(|state| {
        state.input = vec![0; length];
        state.input.as_mut_ptr()
    })
}

/// Address of the last answer.
#[unsafe(no_mangle)]
extern "C" fn output() -> *const u8 {
    STATE.with_borrow(|state| state.output.as_ptr())
}

/// Answers with the JSON Schema of scenarios.
#[unsafe(no_mangle)]
extern "C" fn schema() -> usize {
    answer(|_, _| json_schema().into_bytes())
}

/// Opens run `index` of the scenario in the input, in place of the run before. Answers with its
/// facts; after an error, which [`is_open`] tells, with its diagnostics.
#[unsafe(no_mangle)]
extern "C" fn open(index: usize) -> usize {
    answer(|state, text| match Playground::open(text, index) {
        Ok((playground, facts)) => {
            state.playground = Some(playground);
            facts.into_bytes()
        }
        Err(diagnostics) => {
            state.playground = None;
            diagnostics.into_bytes()
        }
    })
}

/// Returns `true` if there is a run.
#[unsafe(no_mangle)]
extern "C" fn is_open() -> bool {
    STATE.with_borrow(|state| state.playground.is_some())
}

/// Handles at most so many events; returns `true` while the run goes on.
#[unsafe(no_mangle)]
extern "C" fn advance(events: u32) -> bool {
    let go_on = |state: &mut State| state.playground.as_mut().is_some_and(|p| p.advance(events));
    STATE.with_borrow_mut(go_on)
}

/// Answers with the time series so far.
#[unsafe(no_mangle)]
extern "C" fn series() -> usize {
    answer(|state, _| state.playground.as_ref().map(Playground::series).unwrap_or_default())
}

/// Answers with all tables of the run, and ends it.
#[unsafe(no_mangle)]
extern "C" fn results() -> usize {
    answer(|state, _| state.playground.take().map(Playground::results).unwrap_or_default())
}

/// Answers with the scenario in the input after changes. The input is their JSON, a line break and
/// the scenario. An answer that starts with a zero byte is the error.
#[unsafe(no_mangle)]
extern "C" fn change() -> usize {
    answer(|_, input| {
        let (changes, text) = input.split_once('\n').unwrap_or_default();
        edit(text, changes).unwrap_or_else(|error| format!("\0{error}")).into_bytes()
    })
}
