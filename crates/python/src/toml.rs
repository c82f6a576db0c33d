use cwnd_scenario::Toml;
use cwnd_schema::Value;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::error::scenario_error;

/// Reads a TOML text with the reader of scenarios; `ScenarioError` shows what is no TOML.
#[pyfunction]
pub fn read_toml<'py>(py: Python<'py>, text: &str, name: &str) -> PyResult<Bound<'py, PyDict>> {
    let read = py.detach(|| cwnd_scenario::read_toml(name, text));
    dict(py, &read.map_err(|diagnostics| scenario_error(py, diagnostics))?)
}

fn dict<'py>(py: Python<'py>, entries: &[(String, Toml)]) -> PyResult<Bound<'py, PyDict>> {
    let made = PyDict::new(py);
    entries.iter().try_for_each(|(key, value)| made.set_item(key, object(py, value)?))?;
    Ok(made)
}

fn object<'py>(py: Python<'py>, value: &Toml) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Toml::Value(Value::Text(text)) => text.into_pyobject(py)?.into_any(),
        Toml::Value(Value::Bool(truth)) => truth.into_pyobject(py)?.to_owned().into_any(),
        Toml::Value(Value::Integer(number)) => number.into_pyobject(py)?.into_any(),
        Toml::Value(Value::Float(number)) => number.into_pyobject(py)?.into_any(),
        Toml::List(list) => {
            let list = list.iter().map(|each| object(py, each)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, list)?.into_any()
        }
        Toml::Table(entries) => dict(py, entries)?.into_any(),
    })
}
