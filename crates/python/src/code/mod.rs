//! Parts of a scenario that are classes in Python.
//!
//! A run with such code holds the interpreter from start to end, so that a call costs no lock. The
//! facts of a call are written into objects that the next call overwrites. An exception stops the
//! run, which raises it with the simulated time.

mod calls;
mod controller;
mod limit;
mod names;
mod native;
mod parts;
mod queue;
mod workload;

use core::fmt;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cwnd_quantity::{Duration, Rng, Time};
use cwnd_schema::Value;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3::{IntoPyObjectExt as _, intern};

use limit::Limit;

pub use controller::{Ack, DeliveryRate, Path, Signal, Start};
pub use native::describe;
pub use parts::{Part, load, parts};
pub use queue::{LinkStart, QueuedPacket};
pub use workload::FlowStart;

use crate::error::code_error;

/// The first exception of a run's code, and the limit of its calls.
#[derive(Debug, Default)]
pub struct Failure {
    has_failed: AtomicBool,
    error: Mutex<Option<PyErr>>,
    limit: Limit,
}

impl Failure {
    /// `true` once code has failed.
    pub fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// Lets other threads use the interpreter; `true` once code has raised an exception.
    pub fn pause(&self) -> bool {
        Python::attach(|py| py.detach(|| ()));
        self.has_failed()
    }

    /// Limits the time of calls by this thread.
    ///
    /// # Errors
    /// If they can't be watched.
    pub fn limit(&self, py: Python<'_>) -> PyResult<()> {
        self.limit.begin(py)
    }

    /// Takes the exception, if there was one.
    pub fn take(&self) -> Option<PyErr> {
        self.limit.end();
        self.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn set(&self, py: Python<'_>, error: PyErr, at: &str) {
        let error = self.limit.explained(py, error);
        // Without the note the exception itself still tells what went wrong.
        let _ = error.value(py).call_method1(intern!(py, "add_note"), (at,));
        self.keep(error);
    }

    /// Stops the run for a reason of code that is not Python's.
    fn stop(&self, message: &str) {
        self.keep(Python::attach(|py| code_error(py, message)));
    }

    fn keep(&self, error: PyErr) {
        let mut first = self.error.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(error);
        self.has_failed.store(true, Ordering::Relaxed);
    }
}

/// A class, and the arguments of its constructor, of a part of the scenario.
pub struct Class {
    class: Py<PyAny>,
    arguments: Py<PyDict>,
    /// Place in the scenario, for errors.
    place: String,
    failure: Arc<Failure>,
    /// Seeds of the objects, in the order of their construction.
    seeds: Mutex<Rng>,
}

impl Class {
    /// Prepares the class of a part at `place`; the seeds of its objects follow from the run's.
    fn new(
        class: Bound<'_, PyAny>,
        arguments: &BTreeMap<String, Value>,
        (place, seed): (String, u64),
        failure: Arc<Failure>,
    ) -> PyResult<Arc<Self>> {
        let dict = PyDict::new(class.py());
        for (name, value) in arguments {
            match value {
                Value::Text(text) => dict.set_item(name, text),
                Value::Bool(is_on) => dict.set_item(name, is_on),
                Value::Integer(number) => dict.set_item(name, number),
                Value::Float(number) => dict.set_item(name, number),
            }?;
        }
        let seeds = Mutex::new(Rng::named(seed, &place));
        let (class, arguments) = (class.unbind(), dict.unbind());
        Ok(Arc::new(Self { class, arguments, place, failure, seeds }))
    }

    /// Draws the seed of an object.
    fn seed(&self) -> u64 {
        self.seeds.lock().unwrap_or_else(PoisonError::into_inner).bits()
    }

    /// Constructs an object from the facts that it starts with.
    fn construct<'py>(
        &self,
        py: Python<'py>,
        facts: impl IntoPyObject<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let facts = facts.into_bound_py_any(py)?;
        self.class.bind(py).call((facts,), Some(self.arguments.bind(py)))
    }

    /// Calls into Python. The first exception stops the run; after it nothing is called.
    fn call<T>(&self, moment: Moment, call: impl FnOnce(Python<'_>) -> PyResult<T>) -> Option<T> {
        if self.failure.has_failed() {
            return None;
        }
        let calls = &self.failure.limit.calls;
        calls.during(|| {
            Python::attach(|py| {
                let at = || match moment {
                    Moment::Start => format!("at a start of {}", self.place),
                    Moment::At(now) => format!("at {:.6} s of simulated time", now.as_secs_f64()),
                    Moment::End => format!("at the end of {}", self.place),
                };
                call(py).map_err(|error| self.failure.set(py, error, &at())).ok()
            })
        })
    }

    /// Passes the numbers in an object's dictionary `counters`, if it has one, to `each`, by their
    /// names behind `own_`.
    fn count(&self, object: &Py<PyAny>, each: &mut dyn FnMut(&'static str, u64)) {
        self.call(Moment::End, |py| {
            let Some(counters) = object.bind(py).getattr_opt(intern!(py, "counters"))? else {
                return Ok(());
            };
            for (name, count) in counters.cast_into::<PyDict>().map_err(PyErr::from)? {
                each(names::counter(name.extract()?)?, count.extract()?);
            }
            Ok(())
        });
    }
}

/// Moment of a call, for errors.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// Construction of an object.
    Start,
    /// Time of the run.
    At(Time),
    /// End of the run.
    End,
}

impl fmt::Debug for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Class").field("place", &self.place).finish_non_exhaustive()
    }
}

/// Returns a method of an object that it must have.
fn method(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Py<PyAny>> {
    let message = || PyTypeError::new_err(format!("the class has no method `{name}`"));
    object.getattr(name).map(Bound::unbind).map_err(|_| message())
}

/// Describes a value for an error.
fn shown(value: &Bound<'_, PyAny>) -> String {
    value.repr().map_or_else(|_| "this".to_owned(), |text| text.to_string())
}

fn seconds(span: Option<Duration>) -> Option<f64> {
    span.map(Duration::as_secs_f64)
}
