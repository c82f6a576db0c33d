//! The limit of the time that a call into Python may take.

use core::ffi::c_long;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use pyo3::exceptions::{PyKeyboardInterrupt, PyTimeoutError};
use pyo3::prelude::*;
use pyo3::{PyTypeInfo as _, ffi};

use super::calls::{Calls, LIMIT_S, Watch};

/// Interrupts a call that lasts too long, unless a debugger traces it.
#[derive(Debug, Default)]
pub struct Limit {
    pub calls: Arc<Calls>,
    /// `true` once a call was interrupted.
    has_interrupted: Arc<AtomicBool>,
    watched: OnceLock<(c_long, Watch)>,
}

impl Limit {
    /// Begins to watch the calls of this thread.
    pub fn begin(&self, py: Python<'_>) -> PyResult<()> {
        if !py.import("sys")?.call_method0("gettrace")?.is_none() {
            return Ok(());
        }
        let thread: u64 = py.import("threading")?.call_method0("get_ident")?.extract()?;
        let thread = c_long::try_from(thread)?;
        let (calls, has_interrupted) = (Arc::clone(&self.calls), Arc::clone(&self.has_interrupted));
        let watch = self.calls.watch(move |number| {
            Python::try_attach(|py| {
                // The thread may have gone on while this one waited for the interpreter.
                if calls.is_at(number) && !is_traced(py, thread).unwrap_or(true) {
                    has_interrupted.store(true, Ordering::Relaxed);
                    // No code but ours expects it: `except Exception` does not catch it.
                    raise_in(thread, PyKeyboardInterrupt::type_object(py).as_ptr());
                }
            });
        })?;
        // A run begins once.
        let _ = self.watched.set((thread, watch));
        Ok(())
    }

    /// Takes back an exception that a call did not live to see.
    pub fn end(&self) {
        if let Some((thread, _)) = self.watched.get()
            && self.has_interrupted.load(Ordering::Relaxed)
        {
            raise_in(*thread, core::ptr::null_mut());
        }
    }

    /// Replaces the exception of an interrupted call by one that names its method.
    pub fn explained(&self, py: Python<'_>, error: PyErr) -> PyErr {
        if !self.has_interrupted.load(Ordering::Relaxed)
            || !error.is_instance_of::<PyKeyboardInterrupt>(py)
        {
            return error;
        }
        let frames = error.traceback(py);
        // The first frame is that of the method.
        let method = frames.as_ref().and_then(|first| {
            let code = first.getattr("tb_frame").and_then(|frame| frame.getattr("f_code"));
            code.and_then(|code| code.getattr("co_qualname")?.extract::<String>()).ok()
        });
        let method = method.unwrap_or_else(|| "a call".to_owned());
        let explained =
            PyTimeoutError::new_err(format!("`{method}` did not return for {LIMIT_S} s"));
        explained.set_traceback(py, frames);
        explained
    }
}

/// Raises an exception in a thread at its next instruction in Python; none if it is null.
#[expect(unsafe_code, reason = "pyo3 has no function for it")]
fn raise_in(thread: c_long, exception: *mut ffi::PyObject) {
    // Safety: this thread holds the interpreter, and the type lives as long as it.
    unsafe {
        ffi::PyThreadState_SetAsyncExc(thread, exception);
    }
}

/// `true` if a debugger may have stopped a thread.
fn is_traced(py: Python<'_>, thread: c_long) -> PyResult<bool> {
    let sys = py.import("sys")?;
    // Since 3.12.
    if let Some(monitoring) = sys.getattr_opt("monitoring")?
        && !monitoring.call_method1("get_tool", (DEBUGGER_ID,))?.is_none()
    {
        return Ok(true);
    }
    let mut frame = sys.call_method0("_current_frames")?.get_item(thread)?;
    while !frame.is_none() {
        let module = frame.getattr("f_globals")?.get_item("__name__");
        let is_debugger = module.is_ok_and(|name| name.eq("bdb").unwrap_or_default());
        if is_debugger || !frame.getattr("f_trace")?.is_none() {
            return Ok(true);
        }
        frame = frame.getattr("f_back")?;
    }
    Ok(false)
}

/// `sys.monitoring.DEBUGGER_ID`.
const DEBUGGER_ID: u8 = 0;
