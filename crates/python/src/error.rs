use std::io;
use std::path::Path;

use cwnd_scenario::{Diagnostic, Diagnostics};
use cwnd_sim::CheckError;
use pyo3::exceptions::{PyException, PyOSError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A scenario that cannot be run; `str(e)` shows at most fifty errors with their lines, and counts
/// the rest.
#[pyclass(extends = PyException, module = "cwnd._core")]
#[derive(Debug)]
pub struct ScenarioError {
    diagnostics: Diagnostics,
}

#[pymethods]
impl ScenarioError {
    #[getter]
    fn diagnostics<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        as_dicts(py, &self.diagnostics)
    }

    /// Number of errors and warnings, including those that `diagnostics` omits.
    #[getter]
    fn total(&self) -> usize {
        self.diagnostics.total()
    }

    /// Returns the errors as text; `color` adds ANSI escapes.
    fn rendered(&self, color: bool) -> String {
        self.diagnostics.render(color)
    }

    fn __str__(&self) -> String {
        self.diagnostics.render(false)
    }
}

/// A run or inference that was stopped through its `Control`.
#[pyclass(extends = PyException, module = "cwnd._core")]
#[derive(Debug)]
pub struct Cancelled;

#[pymethods]
impl Cancelled {
    #[new]
    const fn new() -> Self {
        Self
    }
}

/// Two runs of one scenario differ; `str(e)` shows the first difference.
#[pyclass(extends = PyException, module = "cwnd._core")]
#[derive(Debug)]
pub struct Diverged {
    report: String,
}

#[pymethods]
impl Diverged {
    #[new]
    const fn new(report: String) -> Self {
        Self { report }
    }

    fn __str__(&self) -> &str {
        &self.report
    }
}

/// Converts an error of the operating system into Python's own `OSError`: number, text, file.
pub fn os_error(error: &io::Error, path: &Path) -> PyErr {
    PyOSError::new_err((error.raw_os_error(), reason(error), path.to_string_lossy().into_owned()))
}

/// Returns the system's text for an error, without its number.
pub fn reason(error: &io::Error) -> String {
    error.to_string().split(" (os error").next().unwrap_or_default().to_owned()
}

/// Returns the Python exception for a checked run that gives no result.
pub fn check_error(py: Python<'_>, error: &CheckError) -> PyErr {
    let made = match error {
        CheckError::Cancelled => Py::new(py, Cancelled).map(|e| e.into_bound(py).into_any()),
        CheckError::Diverged(divergence) => {
            Py::new(py, Diverged::new(divergence.to_string())).map(|e| e.into_bound(py).into_any())
        }
    };
    made.map_or_else(|failed| failed, PyErr::from_value)
}

/// Returns the Python exception for a scenario that cannot be run.
pub fn scenario_error(py: Python<'_>, diagnostics: Diagnostics) -> PyErr {
    match Py::new(py, ScenarioError { diagnostics }) {
        Ok(error) => PyErr::from_value(error.into_bound(py).into_any()),
        Err(error) => error,
    }
}

/// Converts the diagnostics that are shown, at most fifty, into dictionaries, for `--json` and for
/// editors.
pub fn as_dicts<'py>(py: Python<'py>, list: &Diagnostics) -> PyResult<Vec<Bound<'py, PyDict>>> {
    list.iter().map(|d| as_dict(py, d)).collect()
}

fn as_dict<'py>(py: Python<'py>, d: &Diagnostic) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("file", &d.file)?;
    dict.set_item("line", d.line)?;
    dict.set_item("column", d.column)?;
    dict.set_item("key", &d.key)?;
    dict.set_item("message", &d.message)?;
    dict.set_item("help", d.help.as_deref())?;
    dict.set_item("severity", d.severity.name())?;
    Ok(dict)
}
