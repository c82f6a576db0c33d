//! Functions of a kind's table: each calls a method of [`Controller`], and catches its panics.
#![expect(unsafe_code, reason = "the pointers come from another language")]

use core::ffi::c_void;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use cwnd_cc::{Controller, Request, Start};
use cwnd_quantity::{Duration, Time};
use cwnd_schema::Value;
use cwnd_schema::description::from_json;
use serde_json::{Map, Value as Json};

use crate::kind::{Kind, to_c};
use crate::layout::{
    self, BY_RATE, CountOne, NONE, NativeAck, NativePath, NativeRate, NativeSignal, NativeStart,
    NativeWindow, READS_ECN, Table, VERSION,
};

/// Parameters of the controllers that a table starts.
type Shared<K> = Mutex<K>;

fn shared<'k, K: Kind>(kind: *const c_void) -> &'k Shared<K> {
    // Safety: `table` has made it, and it is never freed.
    unsafe { &*kind.cast::<Shared<K>>() }
}

/// Sets the parameters of the controllers that start from now on.
///
/// # Errors
/// The end of a sentence about the package: a value that the kind refuses.
pub fn configure<K: Kind>(table: &Table, values: &Map<String, Json>) -> Result<(), String> {
    let mut params = K::default();
    for (name, value) in values {
        let value = from_json(value).unwrap_or(Value::Bool(false));
        params.set(name, &value).map_err(|error| format!("refuses `{name}`: {}", error.0))?;
    }
    params.check().map_err(|wrong| format!("refuses `{}`: {}", wrong.key, wrong.message))?;
    table.traits.store(traits(&params), Ordering::Relaxed);
    *shared::<K>(table.kind).lock().unwrap_or_else(PoisonError::into_inner) = params;
    Ok(())
}

/// Returns the properties of the controllers that these parameters start.
fn traits<K: Kind>(params: &K) -> u32 {
    // A connection to ask what holds for all of them.
    let start = Start {
        mss: 1460,
        initial_window: 14_600,
        initial_ssthresh: u64::MAX,
        max_window: u64::MAX,
        delayed_acks: false,
    };
    let traits = catch_unwind(AssertUnwindSafe(|| {
        let controller = params.start(&start);
        u32::from(controller.is_rate_based()) * BY_RATE
            + u32::from(controller.reads_ecn_field()) * READS_ECN
    }));
    traits.unwrap_or_default()
}

/// Returns the table of a kind.
pub fn table<K: Kind>() -> Table {
    let params = K::default();
    let traits = AtomicU32::new(traits(&params));
    let params: &'static Shared<K> = Box::leak(Box::new(Mutex::new(params)));
    Table {
        version: VERSION,
        traits,
        name: to_c(K::ENTRY.name).into_raw(),
        kind: core::ptr::from_ref(params).cast(),
        start: begin::<K>,
        copy: copy::<K::Controller>,
        end: end::<K::Controller>,
        on_ack: on_ack::<K::Controller>,
        on_signal: on_signal::<K::Controller>,
        on_rate: on_rate::<K::Controller>,
        on_sack_rtt: on_sack_rtt::<K::Controller>,
        undo: undo::<K::Controller>,
        window: window::<K::Controller>,
        set_window: set_window::<K::Controller>,
        count: Some(count::<K::Controller>),
    }
}

/// A connection's controller; `None` once it has panicked.
struct Connection<C>(Option<C>);

impl<C> Connection<C> {
    fn boxed(controller: Option<C>) -> *mut c_void {
        Box::into_raw(Box::new(Self(controller))).cast()
    }

    /// Calls the controller; returns `other` if it panics, or has done so before.
    #[inline]
    fn call<T>(&mut self, other: T, call: impl FnOnce(&mut C) -> T) -> T {
        let Some(controller) = &mut self.0 else { return other };
        match catch_unwind(AssertUnwindSafe(|| call(controller))) {
            Ok(returned) => returned,
            Err(_) => {
                // Its parts may be inconsistent.
                core::mem::forget(self.0.take());
                other
            }
        }
    }
}

// Safety of the functions below: `state` is what `begin` or `copy` of the same kind returned, and
// facts are structures of `layout`, which live during the call.
unsafe fn of<'s, C>(state: *mut c_void) -> &'s mut Connection<C> {
    unsafe { &mut *state.cast() }
}

unsafe extern "C" fn begin<K: Kind>(kind: *const c_void, start: *const NativeStart) -> *mut c_void {
    let start = Start::from(unsafe { &*start });
    let made = catch_unwind(|| {
        let params = shared::<K>(kind).lock().unwrap_or_else(PoisonError::into_inner).clone();
        params.start(&start)
    });
    Connection::boxed(made.ok())
}

unsafe extern "C" fn copy<C: Controller + Clone>(state: *const c_void) -> *mut c_void {
    Connection::boxed(unsafe { of::<C>(state.cast_mut()) }.call(None, |c| Some(c.clone())))
}

unsafe extern "C" fn end<C>(state: *mut c_void) {
    let connection = unsafe { Box::from_raw(state.cast::<Connection<C>>()) };
    // A panic here is of a controller that no result depends on any more.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(connection)));
}

unsafe extern "C" fn on_ack<C: Controller>(
    state: *mut c_void,
    path: *const NativePath,
    ack: *const NativeAck,
) -> u32 {
    let (path, ack) = unsafe { ((&*path).into(), (&*ack).into()) };
    match unsafe { of::<C>(state) }.call(Request::Nothing, |c| c.on_ack(&path, &ack)) {
        Request::Nothing => 0,
        Request::Reduce(cause) => layout::cause(cause),
    }
}

unsafe extern "C" fn on_signal<C: Controller>(
    state: *mut c_void,
    path: *const NativePath,
    signal: *const NativeSignal,
) {
    let (path, signal) = unsafe { ((&*path).into(), (&*signal).into()) };
    unsafe { of::<C>(state) }.call((), |c| c.on_signal(&path, signal));
}

unsafe extern "C" fn on_rate<C: Controller>(state: *mut c_void, rate: *const NativeRate) {
    let rate = unsafe { &*rate }.into();
    unsafe { of::<C>(state) }.call((), |c| c.on_rate(&rate));
}

unsafe extern "C" fn on_sack_rtt<C: Controller>(
    state: *mut c_void,
    path: *const NativePath,
    rtt: u64,
) {
    let path = unsafe { &*path }.into();
    unsafe { of::<C>(state) }.call((), |c| c.on_sack_rtt(&path, Duration(rtt)));
}

unsafe extern "C" fn undo<C: Controller + Clone>(
    state: *mut c_void,
    before: *const c_void,
    now: u64,
    after_timeout: u32,
) {
    let before = unsafe { of::<C>(before.cast_mut()) }.call(None, |before| Some(before.clone()));
    let Some(before) = before else { return };
    unsafe { of::<C>(state) }.call((), |c| c.undo(before, Time(now), after_timeout != 0));
}

unsafe extern "C" fn window<C: Controller>(state: *const c_void, window: *mut NativeWindow) {
    let failed = NativeWindow { window: NONE, ssthresh: NONE, pacing: NONE };
    let now = unsafe { of::<C>(state.cast_mut()) }.call(failed, |c| {
        let window = c.window();
        let pacing = c.pacing().map_or(NONE, |rate| rate.0);
        NativeWindow { window: window.cwnd, ssthresh: window.ssthresh, pacing }
    });
    unsafe { window.write(now) };
}

/// The transport only raises the threshold, or adds to the window.
unsafe extern "C" fn set_window<C: Controller>(state: *mut c_void, window: *const NativeWindow) {
    let wanted = unsafe { &*window };
    unsafe { of::<C>(state) }.call((), |c| {
        let now = c.window();
        if wanted.ssthresh > now.ssthresh {
            c.raise_threshold(wanted.ssthresh);
        }
        if wanted.window > now.cwnd {
            c.add_in_flight(wanted.window - now.cwnd);
        }
    });
}

unsafe extern "C" fn count<C: Controller>(state: *const c_void, each: CountOne, to: *mut c_void) {
    unsafe { of::<C>(state.cast_mut()) }.call((), |c| {
        c.count(&mut |name, number| unsafe { each(to, to_c(name).as_ptr(), number) });
    });
}
