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
use std::sync::atomic::Ordering;

use cwnd_cc::python::Maker;
use cwnd_cc::{
    AckSample, Controller, DynController, Path, RateSample, Request, Signal, Start, Window,
};
use cwnd_extension::layout::{
    BY_RATE, NONE, NativeAck, NativePath, NativeRate, NativeSignal, NativeStart, NativeWindow,
    READS_ECN, Table, VERSION, requested,
};
use cwnd_quantity::{Duration, Rate, Time};
use cwnd_schema::Value;
use libloading::Library;

use super::calls::{Calls, Watch};
use super::{Failure, names};

/// Function of an object that returns its tables.
const ENTRY_POINT: &CStr = c"cwnd_controllers";
/// Function of an object that sets a variable.
const SET: &CStr = c"cwnd_set";
/// Function of an object that seeds its random numbers.
const SEED: &CStr = c"cwnd_seed";
/// Function of an object that describes its controllers.
const DESCRIBE: &CStr = c"cwnd_describe";
/// Function of an object that sets the parameters of a controller.
const CONFIGURE: &CStr = c"cwnd_configure";
/// Function of an object that returns why a controller failed.
const FAILURE: &CStr = c"cwnd_failure";
/// `CWND_NO_VARIABLE`.
const NO_VARIABLE: u32 = 1;

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
    failure: Arc<Failure>,
    _watch: Watch,
    /// Last, so that nothing refers to it once it is dropped.
    library: Library,
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Object").finish_non_exhaustive()
    }
}

/// Values that a scenario gives an object.
#[derive(Clone, Copy, Debug)]
pub enum Settings<'a> {
    /// Values of its variables.
    Variables(&'a BTreeMap<String, Value>),
    /// Parameters of its controller, as a JSON object.
    Parameters(&'a str),
}

/// Returns the description of an object's controllers, as JSON; it stays loaded.
///
/// # Errors
/// Returns the end of a sentence about the file: no such object, or another version.
#[expect(unsafe_code, reason = "the code of another language")]
pub fn describe(file: &FilePath) -> Result<String, String> {
    let library = open(file)?;
    tables(&library)?;
    // Safety: as in `tables`.
    unsafe {
        let describe = library.get::<unsafe extern "C" fn() -> *const c_char>(DESCRIBE);
        let describe = describe.map_err(|_| "does not describe its controllers".to_owned())?;
        text(describe()).ok_or_else(|| "does not describe its controllers".to_owned())
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
        settings: Settings<'_>,
        seed: u64,
        failure: &Arc<Failure>,
    ) -> Result<Self, String> {
        let calls = Arc::new(Calls::default());
        let watch = calls.watch(|_| end_process());
        let watch = watch.map_err(|why| format!("can't be watched: {why}"))?;
        let library = calls.during(|| open(file));
        // The same file would not be loaded twice. One that can't be removed only takes space.
        let _ = std::fs::remove_file(file);
        let library = library?;
        let tables = calls.during(|| tables(&library))?;
        let names: Vec<String> = tables.iter().map(name_of).collect();
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
        calls.during(|| {
            match settings {
                Settings::Variables(variables) => {
                    for (name, value) in variables {
                        set(&library, name, value)?;
                    }
                }
                Settings::Parameters(json) => configure(&library, &name_of(table), json)?,
            }
            sow(&library, seed);
            Ok::<_, String>(())
        })?;
        Ok(Self { table, calls, failure: Arc::clone(failure), _watch: watch, library })
    }

    /// Stops the run with the reason that the code gives.
    #[cold]
    #[expect(unsafe_code, reason = "the code of another language")]
    fn fail(&self, now: Option<Time>) {
        let Self { library, table, .. } = self;
        // Safety: as in `tables`.
        let why = unsafe {
            let failure = library.get::<unsafe extern "C" fn() -> *const c_char>(FAILURE);
            failure.ok().and_then(|failure| text(failure()))
        };
        let at = now.map_or_else(
            || "at the start of a connection".to_owned(),
            |now| format!("at {:.6} s of simulated time", now.as_secs_f64()),
        );
        let (name, why) = (name_of(table), why.unwrap_or_else(|| "it says no reason".into()));
        self.failure.stop(&format!("the controller `{name}` failed {at}: {why}"));
    }
}

/// Sets the parameters of a controller.
#[expect(unsafe_code, reason = "the code of another language")]
fn configure(library: &Library, name: &str, parameters: &str) -> Result<(), String> {
    type Configure = unsafe extern "C" fn(*const c_char, *const c_char) -> *const c_char;
    let [name, parameters] = [name, parameters].map(|text| CString::new(text).unwrap_or_default());
    // Safety: as in `tables`.
    let refused = unsafe {
        let configure = library.get::<Configure>(CONFIGURE);
        let configure = configure.map_err(|_| "takes no parameters".to_owned())?;
        text(configure(name.as_ptr(), parameters.as_ptr()))
    };
    refused.map_or(Ok(()), Err)
}

/// Copies a text of an object; `None` if the pointer is null.
#[expect(unsafe_code, reason = "a text of another language")]
unsafe fn text(pointer: *const c_char) -> Option<String> {
    if pointer.is_null() {
        return None;
    }
    // Safety: the header demands texts that end with a zero.
    Some(unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned())
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

/// Loads an object.
#[expect(unsafe_code, reason = "the code of another language")]
fn open(file: &FilePath) -> Result<Library, String> {
    // Safety: the user has trusted the code, or installed it.
    unsafe { Library::new(file) }.map_err(|why| format!("can't be loaded: {why}"))
}

/// Returns the tables of an object, which live as long as it.
#[expect(unsafe_code, reason = "the code of another language")]
fn tables(library: &Library) -> Result<&'static [Table], String> {
    // Safety: functions of these names have the types of the header.
    unsafe {
        let entry = library
            .get::<unsafe extern "C" fn(u32, *mut u32) -> *const Table>(ENTRY_POINT)
            .map_err(|why| format!("has no controllers: {why}"))?;
        let mut count = 0;
        let first = entry(VERSION, &raw mut count);
        if first.is_null() || count == 0 {
            return Ok(&[]);
        }
        // Tables of another version may have another layout, so nothing else of them is read.
        match (&raw const (*first).version).read() {
            VERSION => Ok(core::slice::from_raw_parts(first, count as usize)),
            other => Err(format!(
                "has tables of version {other}, and this cwnd has version {VERSION}: build it \
                     again, as by `pip install --force-reinstall FOLDER`"
            )),
        }
    }
}

#[expect(unsafe_code, reason = "a text of the object")]
fn name_of(table: &Table) -> String {
    // Safety: names end with a zero (`is_complete` in `linux.c`), in data that does not change.
    unsafe { CStr::from_ptr(table.name) }.to_string_lossy().into_owned()
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
    /// Time of the last call, for an error.
    now: Option<Time>,
    /// `true` once its code has failed; it is not called again.
    has_failed: bool,
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
        let native = NativeStart::from(&start);
        let table = object.table;
        let state = object.calls.during(|| unsafe { (table.start)(table.kind, &raw const native) });
        Self::of(object, start, state, true, None)
    }

    fn of(
        object: Arc<Object>,
        start: Start,
        state: *mut c_void,
        is_new: bool,
        now: Option<Time>,
    ) -> Self {
        if state.is_null() {
            // As Rust's own allocations do.
            std::process::abort();
        }
        let window = Window { cwnd: start.initial_window, ssthresh: start.initial_ssthresh };
        let mut made =
            Self { state, window, pacing: None, start, is_new, now, has_failed: false, object };
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
        if native.window == NONE {
            self.has_failed = true;
            return self.object.fail(self.now);
        }
        let least = u64::from(self.start.mss);
        // Half of the range, so that adding to a window cannot overflow.
        let most = self.start.max_window.clamp(least, u64::MAX / 2);
        let cwnd = native.window.clamp(least, most);
        self.window = Window { cwnd, ssthresh: native.ssthresh };
        self.pacing = (native.pacing != NONE && native.pacing > 0).then_some(Rate(native.pacing));
    }

    /// Calls into the code, and reads what it decided.
    #[inline]
    fn call<T: Default>(&mut self, call: impl FnOnce(&Table, *mut c_void) -> T) -> T {
        if self.has_failed {
            return T::default();
        }
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
        self.now = Some(path.now);
        let (path, ack) = (NativePath::from(path), NativeAck::from(ack));
        let asked = self
            .call(|table, state| unsafe { (table.on_ack)(state, &raw const path, &raw const ack) });
        requested(asked)
    }

    fn on_signal(&mut self, path: &Path, signal: Signal) {
        let Some(signal) = NativeSignal::of(signal) else { return };
        self.now = Some(path.now);
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
        self.object.table.traits.load(Ordering::Relaxed) & BY_RATE != 0
    }

    fn on_rate(&mut self, sample: &RateSample) {
        let rate = NativeRate::from(sample);
        self.call(|table, state| unsafe { (table.on_rate)(state, &raw const rate) });
    }

    fn reads_ecn_field(&self) -> bool {
        self.object.table.traits.load(Ordering::Relaxed) & READS_ECN != 0
    }

    fn on_sack_rtt(&mut self, path: &Path, rtt: Duration) {
        self.now = Some(path.now);
        let path = NativePath::from(path);
        self.call(|table, state| unsafe { (table.on_sack_rtt)(state, &raw const path, rtt.0) });
    }

    fn undo(&mut self, before: Self, now: Time, after_timeout: bool) {
        self.now = Some(now);
        let after_timeout = u32::from(after_timeout);
        self.call(|table, state| unsafe {
            (table.undo)(state, before.state, now.0, after_timeout);
        });
    }

    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        if let Some(count) = self.object.table.count {
            let mut each = each;
            let to = (&raw mut each).cast();
            self.object.calls.during(|| unsafe { count(self.state, count_one, to) });
        }
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

/// Passes a counter on to the function that `to` points to. A name that is none is left out.
#[expect(unsafe_code, reason = "the code of another language")]
unsafe extern "C" fn count_one(to: *mut c_void, name: *const c_char, number: u64) {
    // Safety: `to` is what `count` gave to the same call.
    unsafe {
        let each = &mut *to.cast::<&mut dyn FnMut(&'static str, u64)>();
        if let Some(name) = text(name).and_then(|name| names::counter(&name).ok()) {
            each(name, number);
        }
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
        Self::of(object, self.start, state, false, self.now)
    }
}

#[expect(unsafe_code, reason = "the code of another language")]
impl Drop for NativeController {
    fn drop(&mut self) {
        self.object.calls.during(|| unsafe { (self.object.table.end)(self.state) });
    }
}
