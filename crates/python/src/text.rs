//! Texts written by people: files, TOML, and quantities as in a scenario file.

use std::fs::File;
use std::io::{Error, Read as _, Result};
use std::path::{Path, PathBuf};

use cwnd_quantity::{Bytes, Duration, Rate, SizeDist};
use cwnd_scenario::MAX_SCENARIO_BYTES;
use cwnd_schema::{Param, Value, file};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::error::{os_error, scenario_error};
use crate::run::interruptible;

/// Reads a scenario or another text written by people. `OSError` has no number if the file is too
/// large, not UTF-8, a device, or a pipe to which nothing is written.
#[pyfunction]
pub fn read_text(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    let of = path.clone();
    interruptible(py, move || read(&of, MAX_SCENARIO_BYTES))?
        .map_err(|error| os_error(&error, &path))
}

/// Reads a UTF-8 text of at most `most` bytes from a file or a pipe; devices are refused, as they
/// may have no end, and pipes without content.
pub fn read(path: &Path, most: u64) -> Result<String> {
    let file = open(path)?;
    let about = file.metadata()?;
    if about.len() > most {
        return Err(too_large(&about.len().to_string(), most));
    }
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(too_large("more", most));
    }
    if bytes.is_empty() && !about.is_file() {
        return Err(Error::other("it is a pipe that nothing is written to"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Error::other(format!("it is no UTF-8 text (byte {at})"))
    })
}

fn too_large(size: &str, most: u64) -> Error {
    Error::other(format!("it is too large: {size} bytes, and at most {most} are read"))
}

/// Returns the system's error for a directory in place of a file.
#[cfg(unix)]
pub fn is_directory() -> Error {
    rustix::io::Errno::ISDIR.into()
}

/// Returns the error for a directory in place of a file.
#[cfg(not(unix))]
pub fn is_directory() -> Error {
    std::io::ErrorKind::IsADirectory.into()
}

/// Opens a file, or a pipe. Neither opening nor reading waits for a writer of the pipe; reading
/// waits for the data of a writer that is there.
#[cfg(unix)]
fn open(path: &Path) -> Result<File> {
    use std::fs::OpenOptions;
    use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};

    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

    let without_waiting = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(without_waiting).open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_dir() {
        return Err(is_directory());
    }
    if !(kind.is_file() || kind.is_fifo()) {
        return Err(Error::other("it is a device, not a file"));
    }
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}

/// Opens a file. Windows opens no directory, and has its pipes elsewhere.
#[cfg(not(unix))]
fn open(path: &Path) -> Result<File> {
    if path.is_dir() {
        return Err(is_directory());
    }
    File::open(path)
}

/// Reads a TOML text with the reader of scenarios; `ScenarioError` shows syntax errors.
#[pyfunction]
pub fn read_toml<'py>(py: Python<'py>, text: &str, name: &str) -> PyResult<Bound<'py, PyDict>> {
    let found = py.detach(|| file::read_toml(name, text));
    dict(py, &found.map_err(|diagnostics| scenario_error(py, diagnostics))?)
}

fn dict<'py>(py: Python<'py>, table: &file::Table) -> PyResult<Bound<'py, PyDict>> {
    let made = PyDict::new(py);
    let mut entries = table.entries.iter();
    entries.try_for_each(|entry| made.set_item(&entry.key, object(py, &entry.node)?))?;
    Ok(made)
}

fn object<'py>(py: Python<'py>, node: &file::Node) -> PyResult<Bound<'py, PyAny>> {
    Ok(match &node.item {
        file::Item::Value(Value::Text(text)) => text.into_pyobject(py)?.into_any(),
        file::Item::Value(Value::Bool(truth)) => truth.into_pyobject(py)?.to_owned().into_any(),
        file::Item::Value(Value::Integer(number)) => number.into_pyobject(py)?.into_any(),
        file::Item::Value(Value::Float(number)) => number.into_pyobject(py)?.into_any(),
        file::Item::Array(list) => {
            let list = list.iter().map(|each| object(py, each)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, list)?.into_any()
        }
        file::Item::Table(table) => dict(py, table)?.into_any(),
        // Unreachable: `read` reports either as an error.
        file::Item::Datetime | file::Item::Broken => py.None().into_bound(py),
    })
}

/// Returns a rate in bit/s, a time in seconds, a size in bytes, or the mean in bytes of a
/// distribution of sizes.
#[pyfunction]
pub fn read_quantity(kind: &str, text: &str) -> PyResult<f64> {
    let value = Value::Text(text.to_owned());
    let read = match kind {
        "rate" => Rate::read(&value).map(|rate| rate.0 as f64),
        "time" => Duration::read(&value).map(|time| time.0 as f64 / 1e9),
        "bytes" => Bytes::read(&value).map(|bytes| bytes.0 as f64),
        "sizes" => SizeDist::read(&value).map(|sizes| sizes.mean()),
        other => return Err(PyValueError::new_err(format!("no kind of quantity: {other}"))),
    };
    match read {
        Ok(value) if value.is_finite() => Ok(value),
        Ok(_) => Err(PyValueError::new_err(format!(
            "`{text}` has no mean: cut it, as in min({text}, 1 GB)"
        ))),
        Err(refusal) => Err(PyValueError::new_err(refusal.0)),
    }
}
