use cwnd_scenario::{Diagnostic, Diagnostics};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A scenario that cannot be run; `str(e)` shows every error with its line.
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

    /// All errors as text; `color` adds ANSI escapes.
    fn rendered(&self, color: bool) -> String {
        self.diagnostics.render(color)
    }

    fn __str__(&self) -> String {
        self.diagnostics.render(false)
    }
}

/// A run that was stopped through its control.
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

/// The Python exception for a scenario that can't be run.
pub fn scenario_error(py: Python<'_>, diagnostics: Diagnostics) -> PyErr {
    match Py::new(py, ScenarioError { diagnostics }) {
        Ok(error) => PyErr::from_value(error.into_bound(py).into_any()),
        Err(error) => error,
    }
}

/// Diagnostics as dictionaries, for `--json` and for editors.
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
