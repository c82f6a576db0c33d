//! Runs on this machine's kernel in real time.

use std::path::PathBuf;
use std::sync::Arc;

use cwnd_scenario::{Diagnostics, Outline, Scenario};
use pyo3::prelude::*;

use crate::capture::OpenCapture;
use crate::run::{Control, Result};

#[cfg(not(target_os = "linux"))]
mod linux {
    use std::env;

    use super::*;
    use crate::error::Unavailable;

    pub fn refused(_outline: &Outline) -> Diagnostics {
        Diagnostics::default()
    }

    pub fn lacks() -> PyResult<()> {
        Err(elsewhere())
    }

    fn elsewhere() -> PyErr {
        Unavailable::new_err(format!("runs on Linux need Linux, and this is {}", env::consts::OS))
    }

    pub const fn needs_kernel_helper(_scenario: &Scenario) -> bool {
        false
    }

    pub fn run(
        _py: Python<'_>,
        _scenario: Arc<Scenario>,
        _control: Control,
        _captures: Vec<OpenCapture>,
        _kernel: (Option<PathBuf>, Vec<PathBuf>),
        _calibrate: bool,
    ) -> PyResult<Result> {
        Err(elsewhere())
    }
}

#[cfg(target_os = "linux")]
mod linux {
    pub use cwnd_testbed::needs_kernel_helper;
    use cwnd_testbed::{CaptureFile, Error, Options};
    use pyo3::exceptions::PyRuntimeError;

    use super::*;
    use crate::capture::Capture;
    use crate::error::{Cancelled, Unavailable, code_error};

    /// Returns what Linux cannot provide of a scenario.
    pub fn refused(outline: &Outline) -> Diagnostics {
        outline.refused(cwnd_testbed::refusals)
    }

    /// Raises `Unavailable` if the machine lacks something that runs need.
    pub fn lacks() -> PyResult<()> {
        cwnd_testbed::lacks().map_err(python_error)
    }

    /// Runs a scenario in real time, with `cwnd-kernel` and the objects that it loads. Other Python
    /// threads keep running.
    pub fn run(
        py: Python<'_>,
        scenario: Arc<Scenario>,
        control: Control,
        captures: Vec<OpenCapture>,
        (kernel_helper, objects): (Option<PathBuf>, Vec<PathBuf>),
        calibrate: bool,
    ) -> PyResult<Result> {
        let options = Options { kernel_helper, objects, calibrate };
        let end = scenario.run.duration.as_secs_f64();
        let split =
            |OpenCapture { capture, output: to, links }| (capture, CaptureFile { to, links });
        let (captures, files): (Vec<Capture>, Vec<_>) = captures.into_iter().map(split).unzip();
        let outcome = py.detach(|| {
            cwnd_testbed::run(&scenario, &options, files, &mut |now| {
                control.report_progress(now.as_secs_f64() / end)
                    && captures.iter().all(Capture::is_ok)
            })
        });
        if let Some(error) = captures.iter().find_map(Capture::failed) {
            return Err(error);
        }
        let outcome = outcome.map_err(|error| match error {
            Error::Code(..) => code_error(py, &error.to_string()),
            error => python_error(error),
        })?;
        Ok(Result::new(outcome.records).with_facts(outcome.facts.to_string()))
    }

    fn python_error(error: Error) -> PyErr {
        match error {
            Error::Cancelled => Cancelled::new_err(()),
            error if error.is_lack() => Unavailable::new_err(error.to_string()),
            error => PyRuntimeError::new_err(error.to_string()),
        }
    }
}

pub use linux::{lacks, needs_kernel_helper, refused, run};
