//! Controllers of compiled code, through the tables of functions of `python/cwnd/c/controller.h`.
//!
//! Compiled code is not checked: it can do all that this process can. So it runs in a process of
//! its own, without root's rights, and a crash ends that process alone. A call that does not return
//! ends it, too.

use core::ffi::{CStr, c_char, c_void};
use core::fmt;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::path::Path as FilePath;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use cwnd_cc::python::Maker;
use cwnd_cc::{
    AckSample, Cause, Controller, DynController, Path, RateSample, Request, Signal, Start, Window,
};
use cwnd_quantity::{Duration, Rate, Time};
use cwnd_schema::Value;
use libloading::Library;

use super::native_layout::{
    NONE, NativeAck, NativePath, NativeRate, NativeSignal, NativeStart, NativeWindow,
};

/// Version of the tables, `CWND_CONTROLLER_VERSION`.
const VERSION: u32 = 1;
/// Function of an object that returns its tables.
const ENTRY_POINT: &CStr = c"cwnd_controllers";
/// Function of an object that sets a variable.
const SET: &CStr = c"cwnd_set";
/// Function of an object that seeds its random numbers.
const SEED: &CStr = c"cwnd_seed";
/// `CWND_NO_VARIABLE`.
const NO_VARIABLE: u32 = 1;
/// `CWND_BY_RATE`.
const BY_RATE: u32 = 1;
/// `CWND_READS_ECN`.
const READS_ECN: u32 = 2;
/// Time after which a call counts as endless.
const CALL_LIMIT: std::time::Duration = std::time::Duration::from_secs(5);
/// Number of checks of a call within that time.
const CHECKS: u32 = 5;

/// `struct cwnd_controller`. A pointer to it is valid while its object is loaded.
#[repr(C)]
struct Table {
    version: u32,
    traits: u32,
    name: *const c_char,
    kind: *const c_void,
    start: unsafe extern "C" fn(*const c_void, *const NativeStart) -> *mut c_void,
    copy: unsafe extern "C" fn(*const c_void) -> *mut c_void,
    end: unsafe extern "C" fn(*mut c_void),
    on_ack: unsafe extern "C" fn(*mut c_void, *const NativePath, *const NativeAck) -> u32,
    on_signal: unsafe extern "C" fn(*mut c_void, *const NativePath, *const NativeSignal),
    on_rate: unsafe extern "C" fn(*mut c_void, *const NativeRate),
    on_sack_rtt: unsafe extern "C" fn(*mut c_void, *const NativePath, u64),
    undo: unsafe extern "C" fn(*mut c_void, *const c_void, u64),
    window: unsafe extern "C" fn(*const c_void, *mut NativeWindow),
    set_window: unsafe extern "C" fn(*mut c_void, *const NativeWindow),
}

/// Counts the begins and ends of calls, so that the number is odd during one.
#[derive(Debug, Default)]
struct Calls(AtomicU64);

impl Calls {
    #[inline]
    fn during<T>(&self, call: impl FnOnce() -> T) -> T {
        self.0.fetch_add(1, Ordering::Relaxed);
        let returned = call();
        self.0.fetch_add(1, Ordering::Relaxed);
        returned
    }

    /// Ends the process once a call has lasted too long, by the signal for that. Ends with the last
    /// other owner of the counter.
    fn watch(self: Arc<Self>) {
        let (mut last, mut checks) = (0, 0);
        while Arc::strong_count(&self) > 1 {
            thread::sleep(CALL_LIMIT / CHECKS);
            let calls = self.0.load(Ordering::Relaxed);
            checks = if calls == last && calls % 2 == 1 { checks + 1 } else { 0 };
            last = calls;
            if checks >= CHECKS {
                end_process();
            }
        }
    }
}

/// Ends this process by the signal for too much processor time, which names the reason.
fn end_process() {
    #[cfg(unix)]
    {
        use rustix::process::{Signal, getpid, kill_process};
        // Without the signal the run waits until its user stops it.
        let _ = kill_process(getpid(), Signal::XCPU);
    }
    #[cfg(not(unix))]
    std::process::abort();
}

/// A copy of a compiled object, which one group of flows of one run uses: its variables start anew.
pub struct Object {
    table: &'static Table,
    calls: Arc<Calls>,
    /// Last, so that nothing refers to it once it is dropped.
    _library: Library,
}

// The table's pointers are to constant data of the library.
#[expect(unsafe_code, reason = "a run calls an object from one thread at a time")]
unsafe impl Send for Object {}
#[expect(unsafe_code, reason = "a run calls an object from one thread at a time")]
unsafe impl Sync for Object {}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Object").finish_non_exhaustive()
    }
}

impl Object {
    /// Loads an object from a file of its own, which it removes, and selects its controller `name`,
    /// or the only one.
    ///
    /// # Errors
    /// Returns the end of a sentence about the source file: no such controller or variable, or
    /// another version.
    pub fn load(
        file: &FilePath,
        name: Option<&str>,
        arguments: &BTreeMap<String, Value>,
        seed: u64,
    ) -> Result<Self, String> {
        let calls = Arc::new(Calls::default());
        let watched = Arc::clone(&calls);
        thread::Builder::new()
            .spawn(move || watched.watch())
            .map_err(|why| format!("can't be watched: {why}"))?;
        let (library, tables) = calls.during(|| tables(file))?;
        let names: Vec<String> = tables.iter().map(Table::name).collect();
        let chosen = match name {
            Some(name) => names.iter().position(|other| other == name),
            None => (names.len() == 1).then_some(0),
        };
        let Some(table) = chosen.map(|place| &tables[place]) else {
            let listed = names.join(", ");
            return Err(match (name, names.is_empty()) {
                (_, true) => "has no complete `tcp_congestion_ops`, with `ssthresh`, `undo_cwnd` \
                              and `cong_avoid` or `cong_control`"
                    .to_owned(),
                (Some(name), _) => format!("has no controller `{name}`; it has {listed}"),
                (None, _) => format!("has several controllers; `name` selects one of {listed}"),
            });
        };
        for (name, value) in arguments {
            set(&library, name, value)?;
        }
        sow(&library, seed);
        Ok(Self { table, calls, _library: library })
    }
}

/// Sets a variable of an object.
#[expect(unsafe_code, reason = "the code of another language")]
fn set(library: &Library, name: &str, value: &Value) -> Result<(), String> {
    let number = match value {
        Value::Integer(number) => *number,
        Value::Bool(is_on) => i64::from(*is_on),
        Value::Float(_) | Value::Text(_) => {
            return Err(format!("takes a whole number for `{name}`"));
        }
    };
    let c_name = CString::new(name).unwrap_or_default();
    // Safety: as in `tables`.
    let answer = unsafe {
        let set = library.get::<unsafe extern "C" fn(*const c_char, i64) -> u32>(SET);
        set.map_or(NO_VARIABLE, |set| set(c_name.as_ptr(), number))
    };
    match answer {
        0 => Ok(()),
        NO_VARIABLE => Err(format!("has no `const volatile` variable `{name}` of whole numbers")),
        _ => Err(format!("has a variable `{name}`, which {number} does not fit")),
    }
}

/// Seeds an object's random numbers, if it has some.
#[expect(unsafe_code, reason = "the code of another language")]
fn sow(library: &Library, seed: u64) {
    // Safety: as in `tables`.
    unsafe {
        if let Ok(sow) = library.get::<unsafe extern "C" fn(u64)>(SEED) {
            sow(seed);
        }
    }
}

/// Loads an object and returns its tables, which live as long as it.
#[expect(unsafe_code, reason = "the code of another language")]
fn tables(file: &FilePath) -> Result<(Library, &'static [Table]), String> {
    // Safety: the user has trusted the code, which was compiled against this version's header.
    unsafe {
        let library = Library::new(file);
        // The same file would not be loaded twice. One that can't be removed only takes space.
        let _ = std::fs::remove_file(file);
        let library = library.map_err(|why| format!("can't be loaded: {why}"))?;
        let entry = library
            .get::<unsafe extern "C" fn(u32, *mut u32) -> *const Table>(ENTRY_POINT)
            .map_err(|why| format!("has no controllers: {why}"))?;
        let mut count = 0;
        let first = entry(VERSION, &raw mut count);
        if first.is_null() || count == 0 {
            return Ok((library, &[]));
        }
        // Tables of another version may have another layout, so nothing else of them is read.
        match (&raw const (*first).version).read() {
            VERSION => Ok((library, core::slice::from_raw_parts(first, count as usize))),
            other => {
                Err(format!("has tables of version {other}, and this cwnd has version {VERSION}"))
            }
        }
    }
}

impl Table {
    #[expect(unsafe_code, reason = "a text of the object")]
    fn name(&self) -> String {
        // Safety: names end with a zero (`is_complete` in `linux.c`), in data that does not change.
        unsafe { CStr::from_ptr(self.name) }.to_string_lossy().into_owned()
    }
}

/// Makes controllers of an object.
#[derive(Debug)]
pub struct Native(Arc<Object>);

impl Native {
    /// Creates the maker of an object's controllers.
    pub fn new(object: Object) -> Self {
        Self(Arc::new(object))
    }
}

impl Maker for Native {
    fn make(&self, start: &Start) -> Box<dyn DynController> {
        Box::new(NativeController::new(Arc::clone(&self.0), *start))
    }
}

/// A controller whose decisions are made in compiled code.
#[derive(Debug)]
struct NativeController {
    state: *mut c_void,
    window: Window,
    pacing: Option<Rate>,
    start: Start,
    /// `true` if it has seen nothing but its start.
    is_new: bool,
    object: Arc<Object>,
}

#[expect(unsafe_code, reason = "its state is of this controller alone")]
unsafe impl Send for NativeController {}
#[expect(unsafe_code, reason = "through a reference, its state is only read")]
unsafe impl Sync for NativeController {}

// Safety of the calls below: `state` is what `start` or `copy` of the same table returned, and
// `end` is called once, by `drop`.
#[expect(unsafe_code, reason = "the code of another language")]
impl NativeController {
    fn new(object: Arc<Object>, start: Start) -> Self {
        let native = NativeStart {
            initial_window: start.initial_window,
            initial_ssthresh: start.initial_ssthresh,
            max_window: start.max_window,
            mss: start.mss,
            delayed_acks: u32::from(start.delayed_acks),
        };
        let table = object.table;
        let state = object.calls.during(|| unsafe { (table.start)(table.kind, &raw const native) });
        Self::of(object, start, state, true)
    }

    fn of(object: Arc<Object>, start: Start, state: *mut c_void, is_new: bool) -> Self {
        if state.is_null() {
            // As Rust's own allocations do.
            std::process::abort();
        }
        let window = Window { cwnd: start.initial_window, ssthresh: start.initial_ssthresh };
        let mut made = Self { state, window, pacing: None, start, is_new, object };
        made.read();
        made
    }

    /// Reads window, threshold and pacing rate.
    #[inline]
    fn read(&mut self) {
        let mut native = NativeWindow { window: 0, ssthresh: 0, pacing: NONE };
        let table = self.object.table;
        let calls = &self.object.calls;
        calls.during(|| unsafe { (table.window)(self.state, &raw mut native) });
        let least = u64::from(self.start.mss);
        // Half of the range, so that adding to a window cannot overflow.
        let most = self.start.max_window.clamp(least, u64::MAX / 2);
        let cwnd = native.window.clamp(least, most);
        self.window = Window { cwnd, ssthresh: native.ssthresh };
        self.pacing = (native.pacing != NONE && native.pacing > 0).then_some(Rate(native.pacing));
    }

    /// Calls into the code, and reads what it decided.
    #[inline]
    fn call<T>(&mut self, call: impl FnOnce(&Table, *mut c_void) -> T) -> T {
        self.is_new = false;
        let (table, state) = (self.object.table, self.state);
        let returned = self.object.calls.during(|| call(table, state));
        self.read();
        returned
    }

    fn set_window(&mut self, window: Window) {
        let native = NativeWindow { window: window.cwnd, ssthresh: window.ssthresh, pacing: NONE };
        self.call(|table, state| unsafe { (table.set_window)(state, &raw const native) });
    }
}

#[expect(unsafe_code, reason = "the code of another language")]
impl Controller for NativeController {
    fn on_ack(&mut self, path: &Path, ack: &AckSample) -> Request {
        let (path, ack) = (NativePath::from(path), NativeAck::from(ack));
        let asked = self
            .call(|table, state| unsafe { (table.on_ack)(state, &raw const path, &raw const ack) });
        match asked {
            1 => Request::Reduce(Cause::Loss),
            2 => Request::Reduce(Cause::Ecn),
            3 => Request::Reduce(Cause::Delay),
            5 => Request::Reduce(Cause::Load),
            _ => Request::Nothing,
        }
    }

    fn on_signal(&mut self, path: &Path, signal: Signal) {
        let Some(signal) = NativeSignal::of(signal) else { return };
        let path = NativePath::from(path);
        self.call(|table, state| unsafe {
            (table.on_signal)(state, &raw const path, &raw const signal);
        });
    }

    fn window(&self) -> Window {
        self.window
    }

    fn pacing(&self) -> Option<Rate> {
        self.pacing
    }

    fn is_rate_based(&self) -> bool {
        self.object.table.traits & BY_RATE != 0
    }

    fn on_rate(&mut self, sample: &RateSample) {
        let rate = NativeRate::from(sample);
        self.call(|table, state| unsafe { (table.on_rate)(state, &raw const rate) });
    }

    fn reads_ecn_field(&self) -> bool {
        self.object.table.traits & READS_ECN != 0
    }

    fn on_sack_rtt(&mut self, path: &Path, rtt: Duration) {
        let path = NativePath::from(path);
        self.call(|table, state| unsafe { (table.on_sack_rtt)(state, &raw const path, rtt.0) });
    }

    fn undo(&mut self, before: Self, now: Time, _after_timeout: bool) {
        self.call(|table, state| unsafe { (table.undo)(state, before.state, now.0) });
    }

    fn raise_threshold(&mut self, ssthresh: u64) {
        if ssthresh > self.window.ssthresh {
            self.set_window(Window { ssthresh, ..self.window });
        }
    }

    fn add_in_flight(&mut self, bytes: u64) {
        self.set_window(Window { cwnd: self.window.cwnd + bytes, ..self.window });
    }
}

/// A copy of a new controller is another new one, of another connection. A later one is only for
/// [`Controller::undo`].
#[expect(unsafe_code, reason = "the code of another language")]
impl Clone for NativeController {
    fn clone(&self) -> Self {
        let object = Arc::clone(&self.object);
        if self.is_new {
            return Self::new(object, self.start);
        }
        let table = object.table;
        let state = object.calls.during(|| unsafe { (table.copy)(self.state) });
        Self::of(object, self.start, state, false)
    }
}

#[expect(unsafe_code, reason = "the code of another language")]
impl Drop for NativeController {
    fn drop(&mut self) {
        self.object.calls.during(|| unsafe { (self.object.table.end)(self.state) });
    }
}
