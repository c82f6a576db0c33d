use std::io;
use std::path::Path;

use cwnd_scenario::{Diagnostic, Diagnostics};
use cwnd_sim::CheckError;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyOSError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

// The stable ABI of CPython 3.11 has no classes in Rust that derive from an exception.
create_exception!(
    cwnd._core,
    ScenarioError,
    PyException,
    "A scenario that cannot be run; `str(e)` shows at most fifty errors with their lines, and \
     counts the rest."
);
create_exception!(
    cwnd._core,
    Cancelled,
    PyException,
    "A run or inference that was stopped through its `Control`."
);
create_exception!(
    cwnd._core,
    Diverged,
    PyException,
    "Two runs of one scenario differ; `str(e)` shows the first difference."
);
create_exception!(
    cwnd._core,
    Unavailable,
    PyException,
    "This machine lacks something that a run on Linux needs."
);

/// Errors of a scenario, as the argument of its `ScenarioError`.
#[pyclass(frozen, module = "cwnd._core")]
#[derive(Debug)]
struct Errors {
    diagnostics: Diagnostics,
}

#[pymethods]
impl Errors {
    /// Returns the errors as text; `color` adds ANSI escapes.
    fn rendered(&self, color: bool) -> String {
        self.diagnostics.render(color)
    }

    fn __str__(&self) -> String {
        self.diagnostics.render(false)
    }
}

/// Returns the exception for the code of a scenario's part that cannot be loaded.
pub fn code_error(py: Python<'_>, message: &str) -> PyErr {
    let class = py.import("cwnd.errors").and_then(|errors| errors.getattr("CodeError"));
    class.and_then(|class| class.call1((message,))).map_or_else(|error| error, PyErr::from_value)
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
pub fn check_error(error: &CheckError) -> PyErr {
    match error {
        CheckError::Cancelled => Cancelled::new_err(()),
        CheckError::Diverged(divergence) => Diverged::new_err(divergence.to_string()),
    }
}

/// Returns the Python exception for a scenario that cannot be run.
pub fn scenario_error(py: Python<'_>, diagnostics: Diagnostics) -> PyErr {
    try_scenario_error(py, diagnostics).unwrap_or_else(|failed| failed)
}

fn try_scenario_error(py: Python<'_>, diagnostics: Diagnostics) -> PyResult<PyErr> {
    let (shown, total) = (as_dicts(py, &diagnostics)?, diagnostics.total());
    let errors = Bound::new(py, Errors { diagnostics })?;
    let error = ScenarioError::new_err(errors.clone().unbind());
    let value = error.value(py);
    value.setattr("diagnostics", shown)?;
    value.setattr("total", total)?;
    value.setattr("rendered", errors.getattr("rendered")?)?;
    Ok(error)
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
