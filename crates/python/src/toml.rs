use cwnd_schema::Value;
use cwnd_schema::file::{Item, Node, Table, read_toml as read};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::error::scenario_error;

/// Reads a TOML text with the reader of scenarios; `ScenarioError` shows syntax errors.
#[pyfunction]
pub fn read_toml<'py>(py: Python<'py>, text: &str, name: &str) -> PyResult<Bound<'py, PyDict>> {
    let found = py.detach(|| read(name, text));
    dict(py, &found.map_err(|diagnostics| scenario_error(py, diagnostics))?)
}

fn dict<'py>(py: Python<'py>, table: &Table) -> PyResult<Bound<'py, PyDict>> {
    let made = PyDict::new(py);
    let mut entries = table.entries.iter();
    entries.try_for_each(|entry| made.set_item(&entry.key, object(py, &entry.node)?))?;
    Ok(made)
}

fn object<'py>(py: Python<'py>, node: &Node) -> PyResult<Bound<'py, PyAny>> {
    Ok(match &node.item {
        Item::Value(Value::Text(text)) => text.into_pyobject(py)?.into_any(),
        Item::Value(Value::Bool(truth)) => truth.into_pyobject(py)?.to_owned().into_any(),
        Item::Value(Value::Integer(number)) => number.into_pyobject(py)?.into_any(),
        Item::Value(Value::Float(number)) => number.into_pyobject(py)?.into_any(),
        Item::Array(list) => {
            let list = list.iter().map(|each| object(py, each)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, list)?.into_any()
        }
        Item::Table(table) => dict(py, table)?.into_any(),
        // Unreachable: `read` reports either as an error.
        Item::Datetime | Item::Broken => py.None().into_bound(py),
    })
}
