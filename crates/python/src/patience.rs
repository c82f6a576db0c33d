//! Work that nobody has to wait for: it goes on in a thread of its own, without Python.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

use crate::run::Control;

/// Between two looks at whether to go on waiting.
const LOOK: Duration = Duration::from_millis(20);

/// Work in a thread, of which nothing is used afterwards if it panics.
struct Work<T>(Receiver<thread::Result<T>>);

impl<T: Send + 'static> Work<T> {
    fn begin(work: impl FnOnce() -> T + Send + 'static) -> PyResult<Self> {
        let (done, result) = sync_channel(1);
        thread::Builder::new().spawn(move || {
            // Nobody may wait any more.
            let _gone = done.send(catch_unwind(AssertUnwindSafe(work)));
        })?;
        Ok(Self(result))
    }

    /// Waits a while for the end; `None` if the work goes on.
    fn wait(&mut self) -> Option<thread::Result<T>> {
        self.0.recv_timeout(LOOK).ok()
    }
}

/// Does what may take long. Ctrl-C ends the waiting at once, and the work at its own end.
///
/// # Errors
/// The exception of a signal, or that of a system without threads.
pub fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let mut work = Work::begin(work)?;
    loop {
        match py.detach(|| work.wait()) {
            Some(Ok(result)) => return Ok(result),
            Some(Err(panic)) => resume_unwind(panic),
            None => py.check_signals()?,
        }
    }
}

/// Frees what was run, and no longer waits for that once the run is cancelled: a million flows
/// take seconds.
pub fn free<T: Send + 'static>(run: T, control: &Control) {
    // Without a thread it is freed here.
    let Ok(mut work) = Work::begin(move || drop(run)) else { return };
    while !control.is_cancelled() && work.wait().is_none() {}
}
