//! Inference of servers' retransmission timers from captures made at their clients.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use cwnd_infer::headers::Host;
use cwnd_infer::{
    Bytes, CaptureError, Error, Found, Inference, Input, Limits, Meter, Packets, Selection, Window,
    throughput, unpacked,
};
use cwnd_quantity::{Duration, Time};
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
    fn rates(&self) -> PyResult<Table> {
        Table::new(self.found.rates.clone())
    }

    #[getter]
    fn queues(&self) -> PyResult<Table> {
        Table::new(self.found.queues.clone())
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

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Cancelled => Cancelled::new_err(()),
            Failure::System(error, path) => os_error(&error, &path),
            Failure::Input(text) => PyValueError::new_err(text),
        }
    }
}

/// Infers timeouts from captures, which are merged in order of time; `-` is standard input. With
/// `path` it measures delivery rates and losses, too. Other Python threads keep running.
#[pyfunction]
#[pyo3(signature = (files, control=None, *, connections=None, idle_s=None, path=false))]
pub fn infer_timeouts(
    py: Python<'_>,
    files: Vec<PathBuf>,
    control: Option<&Bound<'_, Control>>,
    connections: Option<usize>,
    idle_s: Option<f64>,
    path: bool,
) -> PyResult<Inferred> {
    let usual = Limits::default();
    let limits = Limits {
        connections: connections.unwrap_or(usual.connections),
        idle: idle_s.map_or(usual.idle, Duration::from_secs_f64),
    };
    let control = control.map(|control| control.get().clone()).unwrap_or_default();
    let read = |inputs: &[Input<'_>], go_on: &mut dyn FnMut() -> bool| {
        let inference = Inference::new(limits);
        let mut inference = if path { inference.measuring_path() } else { inference };
        inference.read(inputs, go_on).map(|()| inference.finish())
    };
    Ok(Inferred { found: py.detach(|| read_all(&files, &control, read))? })
}

/// Reads the packets of a connection from captures in which it was found. Returns their table, and
/// the number of packets behind the last one in it.
///
/// `client` and `server` are address and port, `times_s` bounds the capture times, and `file` is
/// the index of the file with the first packet.
#[pyfunction]
pub fn captured_packets(
    py: Python<'_>,
    files: Vec<PathBuf>,
    control: &Bound<'_, Control>,
    client: (IpAddr, u16),
    server: (IpAddr, u16),
    times_s: (f64, f64),
    file: u32,
) -> PyResult<(Table, u64)> {
    let time = |s: f64| Time::ZERO + Duration::from_secs_f64(s.max(0.0));
    let selection = Selection {
        client: Host::new(client.0, client.1),
        server: Host::new(server.0, server.1),
        times: (time(times_s.0), time(times_s.1)),
        file,
    };
    let control = control.get().clone();
    let read = |inputs: &[Input<'_>], go_on: &mut dyn FnMut() -> bool| {
        Packets::read(inputs, selection, go_on)
    };
    let packets = py.detach(|| read_all(&files, &control, read))?;
    Ok((Table::new(packets.table)?, packets.omitted))
}

/// Counts packets to and from addresses in a capture, in intervals of `width_s` seconds, from
/// `began_s` on for `elapsed_s`. Returns a table and, if the file ends within a packet, the time of
/// the one before, in seconds from `began_s`.
#[pyfunction]
pub fn captured_throughput(
    py: Python<'_>,
    file: PathBuf,
    control: &Bound<'_, Control>,
    addresses: Vec<IpAddr>,
    began_s: f64,
    elapsed_s: f64,
    width_s: f64,
) -> PyResult<(Table, Option<f64>)> {
    let window = Window {
        from: Time::ZERO + Duration::from_secs_f64(began_s.max(0.0)),
        width: Duration::from_secs_f64(width_s).max(Duration(1)),
        length: Duration::from_secs_f64(elapsed_s.max(0.0)),
    };
    let control = control.get().clone();
    let read = |inputs: &[Input<'_>], go_on: &mut dyn FnMut() -> bool| {
        throughput(&inputs[0], &addresses, window, go_on)
    };
    let (table, last) = py.detach(|| read_all(&[file], &control, read))?;
    let last_s = last.map(|last| last.since(window.from).as_secs_f64());
    Ok((Table::new(table)?, last_s))
}

/// Opens files as inputs of `read`, and reports its progress.
fn read_all<T>(
    files: &[PathBuf],
    control: &Control,
    read: impl FnOnce(&[Input<'_>], &mut dyn FnMut() -> bool) -> Result<T, Error>,
) -> Result<T, Failure> {
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
    let mut go_on = || control.report_progress(meter.read() as f64 / (all as f64).max(1.0));
    match read(&inputs, &mut go_on) {
        Ok(found) => Ok(found),
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
