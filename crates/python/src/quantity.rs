//! Quantities as written in a scenario file, converted to numbers in SI units.

use cwnd_quantity::{Bytes, Duration, Rate, SizeDist};
use cwnd_schema::{Param, Value};
use pyo3::exceptions::PyValueError;
use pyo3::{PyResult, pyfunction};

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
