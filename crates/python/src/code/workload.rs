//! Workloads in Python.

use std::sync::Arc;

use cwnd_apps::workloads::python::Maker;
use cwnd_apps::{Actions, Application};
use cwnd_quantity::{Duration, Rng, Time};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;

use super::{Class, Moment, method, shown};

/// Facts that the workload of a flow starts with.
#[pyclass(frozen, get_all, module = "cwnd._core")]
#[derive(Debug)]
pub struct FlowStart {
    /// Simulated time, seconds.
    now: f64,
    /// Seed for random numbers, of this flow.
    seed: u64,
}

/// Makes the applications of a class.
#[derive(Debug)]
pub struct Workloads(pub Arc<Class>);

impl Maker for Workloads {
    fn make(&self) -> Box<dyn Application> {
        Box::new(PythonWorkload { class: Arc::clone(&self.0), code: None, bytes: 0 })
    }
}

/// A flow that writes what an object's `next` says.
#[derive(Debug)]
struct PythonWorkload {
    class: Arc<Class>,
    /// `None` before the start, and if its constructor failed.
    code: Option<Code>,
    /// Bytes to write when the timer is due.
    bytes: u64,
}

#[derive(Debug)]
struct Code {
    object: Py<PyAny>,
    next: Py<PyAny>,
    /// `true` if the next transfer does not wait for the acknowledgement of the one before.
    is_open_loop: bool,
}

impl PythonWorkload {
    /// Asks for the next transfer and its time, and notes its bytes. `None` if there is none.
    ///
    /// The time is at least 1 ns away, so that no loop runs forever at one instant. Right after a
    /// transfer of an open loop it must be more, or that loop would hardly pass.
    fn next(&mut self, now: Time, is_after_write: bool) -> Option<Time> {
        let code = self.code.as_ref()?;
        let (delay, bytes) = self.class.call(Moment::At(now), |py| {
            let next = code.next.bind(py).call1((now.as_secs_f64(),))?;
            let next = if next.is_none() { None } else { Some(transfer(&next)?) };
            match next {
                Some((Duration::ZERO, _)) if is_after_write => Err(PyValueError::new_err(
                    "`next` returned a delay of 0 s: in an open loop it is longer",
                )),
                next => Ok(next),
            }
        })??;
        self.bytes = bytes;
        Some(now + delay.max(Duration(1)))
    }

    /// Waits for the time of the next transfer. Nothing more is sent if there is none.
    fn wait(&mut self, now: Time) -> Actions {
        self.next(now, false).map_or_else(Actions::stop, Actions::wake)
    }
}

impl Application for PythonWorkload {
    fn start(&mut self, now: Time, rng: &mut Rng) -> Actions {
        let facts = FlowStart { now: now.as_secs_f64(), seed: rng.bits() };
        self.code = self.class.call(Moment::Start, |py| {
            let object = self.class.construct(py, facts)?;
            let open_loop = object.getattr_opt(intern!(py, "open_loop"))?;
            Ok(Code {
                next: method(&object, "next")?,
                is_open_loop: open_loop.map_or(Ok(false), |value| value.is_truthy())?,
                object: object.unbind(),
            })
        });
        self.wait(now)
    }

    fn on_timer(&mut self, now: Time, _: &mut Rng) -> Actions {
        let write = Actions::write(self.bytes);
        if !self.code.as_ref().is_some_and(|code| code.is_open_loop) {
            return write.and_await_acked();
        }
        match self.next(now, true) {
            Some(at) => write.and_wake(at),
            None => write.and_finish(),
        }
    }

    fn on_acked(&mut self, now: Time, _: u64, _: &mut Rng) -> Actions {
        self.wait(now)
    }

    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        if let Some(code) = &self.code {
            self.class.count(&code.object, each);
        }
    }
}

/// Returns delay and bytes of a transfer.
fn transfer(next: &Bound<'_, PyAny>) -> PyResult<(Duration, u64)> {
    let (delay_s, bytes): (f64, f64) = next.extract().map_err(|_| {
        let expected = "a pair of seconds and bytes, or None";
        PyTypeError::new_err(format!("`next` returned {}, not {expected}", shown(next)))
    })?;
    // A time beyond the end of any run is valid.
    let delay = Duration((delay_s * 1e9) as u64).min(Duration(1 << 62));
    if !(delay_s >= 0.0 && bytes >= 1.0 && bytes.is_finite()) {
        let message = format!(
            "`next` returned ({delay_s}, {bytes}): delays are at least 0 s, transfers have a byte"
        );
        return Err(PyValueError::new_err(message));
    }
    Ok((delay, bytes as u64))
}
