//! Inference of servers' retransmission timers from captures made at their clients.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use cwnd_infer::{Bytes, CaptureError, Error, Found, Inference, Input, Limits, Meter, unpacked};
use cwnd_quantity::Duration;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{Cancelled, os_error};
use crate::run::Control;
use crate::table::Table;
use crate::text::is_directory;

/// Results of an inference from captures.
#[pyclass(frozen, module = "cwnd._core")]
#[derive(Debug)]
pub struct Inferred {
    found: Found,
}

#[pymethods]
impl Inferred {
    #[getter]
    fn connections(&self) -> PyResult<Table> {
        Table::new(self.found.connections.clone())
    }

    #[getter]
    fn silences(&self) -> PyResult<Table> {
        Table::new(self.found.silences.clone())
    }

    #[getter]
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        self.found.counts.iter().try_for_each(|(name, count)| dict.set_item(name, count))?;
        Ok(dict)
    }
}

/// Reason why an inference gives no result.
enum Failure {
    Cancelled,
    System(io::Error, PathBuf),
    Input(String),
}

/// Infers timeouts from captures, which are merged in order of time; `-` is standard input. Other
/// Python threads keep running.
#[pyfunction]
#[pyo3(signature = (files, control=None, *, connections=None, idle_s=None))]
pub fn infer_timeouts(
    py: Python<'_>,
    files: Vec<PathBuf>,
    control: Option<&Bound<'_, Control>>,
    connections: Option<usize>,
    idle_s: Option<f64>,
) -> PyResult<Inferred> {
    let usual = Limits::default();
    let limits = Limits {
        connections: connections.unwrap_or(usual.connections),
        idle: idle_s.map_or(usual.idle, Duration::from_secs_f64),
    };
    let control = control.map(|control| control.get().clone()).unwrap_or_default();
    match py.detach(|| read_all(&files, limits, &control)) {
        Ok(found) => Ok(Inferred { found }),
        Err(Failure::Cancelled) => Err(Cancelled::new_err(())),
        Err(Failure::System(error, path)) => Err(os_error(&error, &path)),
        Err(Failure::Input(text)) => Err(PyValueError::new_err(text)),
    }
}

fn read_all(files: &[PathBuf], limits: Limits, control: &Control) -> Result<Found, Failure> {
    let mut all = 0;
    for path in files {
        all += open(path).map_err(|error| Failure::System(error, path.clone()))?.1;
    }
    let meter = Meter::default();
    let input = |path: &PathBuf| {
        let (path, meter, begun) = (path.clone(), meter.clone(), Cell::new(false));
        Input::new(path.to_string_lossy().into_owned(), move || {
            if begun.replace(true) && path == Path::new("-") {
                return Err(io::Error::other(ONCE));
            }
            unpacked(open(&path)?.0, meter.clone()).map(|bytes| bytes as Bytes<'_>)
        })
    };
    let inputs: Vec<_> = files.iter().map(input).collect();
    let mut inference = Inference::new(limits);
    match inference
        .read(&inputs, || control.report_progress(meter.read() as f64 / (all as f64).max(1.0)))
    {
        Ok(()) => Ok(inference.finish()),
        Err(Error::Cancelled) => Err(Failure::Cancelled),
        Err(Error::Capture { name, error: CaptureError::Read(error) })
            if error.raw_os_error().is_some() =>
        {
            Err(Failure::System(error, name.into()))
        }
        Err(error) => Err(Failure::Input(error.to_string())),
    }
}

/// Error for standard input that would have to be read twice: its packets are not in order of time,
/// or it is one of more than 16 captures.
const ONCE: &str = "it must be read again, since it is not in the order of time or one of many, \
                    and standard input cannot be: save it to a file";

/// Opens a file; returns it with its size in bytes, which is 0 for standard input.
fn open(path: &Path) -> io::Result<(Box<dyn Read + Send>, u64)> {
    if path == Path::new("-") {
        return Ok((Box::new(io::stdin()), 0));
    }
    let file = File::open(path)?;
    let about = file.metadata()?;
    if about.is_dir() {
        return Err(is_directory());
    }
    Ok((Box::new(file), about.len()))
}
