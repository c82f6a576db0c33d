//! Work in a separate thread, without Python, for which the caller can stop waiting.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

use crate::run::Control;

/// Interval at which the waiting thread checks whether to go on.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Work that runs in a thread. If it panics, nothing that it touched is used afterwards.
struct Work<T>(Receiver<thread::Result<T>>);

impl<T: Send + 'static> Work<T> {
    fn spawn(work: impl FnOnce() -> T + Send + 'static) -> PyResult<Self> {
        let (done, result) = sync_channel(1);
        thread::Builder::new().spawn(move || {
            // The receiver is gone if the caller stopped waiting.
            let _ = done.send(catch_unwind(AssertUnwindSafe(work)));
        })?;
        Ok(Self(result))
    }

    /// Waits up to one interval for the result; `None` if the work goes on.
    fn wait(&mut self) -> Option<thread::Result<T>> {
        self.0.recv_timeout(POLL_INTERVAL).ok()
    }
}

/// Runs work that may take long. Ctrl-C ends the wait at once; the work itself runs on to its end.
///
/// # Errors
/// Raises the exception of a signal handler, or `OSError` if no thread can be started.
pub fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let mut work = Work::spawn(work)?;
    loop {
        match py.detach(|| work.wait()) {
            Some(Ok(result)) => return Ok(result),
            Some(Err(panic)) => resume_unwind(panic),
            None => py.check_signals()?,
        }
    }
}

/// Frees the memory of a run, and stops waiting for that once the run is cancelled: a million flows
/// take seconds.
pub fn free<T: Send + 'static>(run: T, control: &Control) {
    // Without a thread the failed call has freed it already.
    let Ok(mut work) = Work::spawn(move || drop(run)) else { return };
    while !control.is_cancelled() && work.wait().is_none() {}
}
