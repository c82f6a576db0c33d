//! Files that a run writes while it goes on: captures of links, and logs of senders.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use cwnd_scenario::Scenario;
use cwnd_sim::World;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::os_error;

/// A capture file or a directory of logs, for the thread that supervises the run: its path, and the
/// reason if it could not be written.
#[derive(Clone, Debug)]
pub struct Capture {
    path: PathBuf,
    failure: Arc<OnceLock<io::Error>>,
}

/// A capture file that has been created, with the links that it records.
pub struct OpenCapture {
    /// Path and state of the file.
    pub capture: Capture,
    /// Output for the packets.
    pub output: Box<dyn Write + Send>,
    /// Indices in the scenario of the links whose packets are recorded.
    pub links: Vec<usize>,
}

/// Buffered output: a packet of a run takes only about a hundred bytes.
struct CaptureOutput {
    file: BufWriter<File>,
    failure: Arc<OnceLock<io::Error>>,
}

const BUFFER_BYTES: usize = 1 << 18;
/// There may be a thousand logs of connections at a time.
const LOG_BUFFER_BYTES: usize = 1 << 14;

impl Capture {
    /// Creates the file; returns it with its output.
    pub fn create(path: &Path) -> PyResult<(Self, Box<dyn Write + Send>)> {
        Self::into_file(path, File::create(path))
    }

    /// Wraps a file that is open already, or could not be opened.
    pub fn into_file(
        path: &Path,
        file: io::Result<File>,
    ) -> PyResult<(Self, Box<dyn Write + Send>)> {
        let failure = Arc::new(OnceLock::new());
        let capture = Self { path: path.to_owned(), failure: Arc::clone(&failure) };
        let file = file.map_err(|error| capture.error(&error))?;
        Ok((capture, output(file, BUFFER_BYTES, failure)))
    }

    /// Starts the logs of senders in a directory. Each group has the first word of its files; the
    /// second one is a connection's number.
    pub fn begin_logs(
        world: &mut World,
        scenario: &Scenario,
        (directory, groups): (PathBuf, Vec<(String, String)>),
    ) -> PyResult<Self> {
        let index = |(name, stem): (String, String)| {
            let found = scenario.flows.iter().position(|group| group.name == name);
            found
                .map(|index| (index, stem))
                .ok_or_else(|| PyValueError::new_err(format!("there is no flow group `{name}`")))
        };
        let stems = groups.into_iter().map(index).collect::<PyResult<Vec<_>>>()?;
        let groups: Vec<_> = stems.iter().map(|&(index, _)| index).collect();
        let failure = Arc::new(OnceLock::new());
        let logs = Self { path: directory.clone(), failure: Arc::clone(&failure) };
        let open = move |group: usize, number: u32| {
            let (_, stem) = stems.iter().find(|(of, _)| *of == group)?;
            match File::create(directory.join(format!("{stem}-{number}.sqlog"))) {
                Ok(file) => Some(output(file, LOG_BUFFER_BYTES, Arc::clone(&failure))),
                Err(error) => {
                    // Only the first error is kept.
                    let _ = failure.set(error);
                    None
                }
            }
        };
        let begun = world.log_senders(&groups, Box::new(open));
        begun.map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(logs)
    }

    /// `true` if no write has failed so far.
    pub fn is_ok(&self) -> bool {
        self.failure.get().is_none()
    }

    /// Returns the exception for a file that could not be written; `None` if no write failed.
    pub fn failed(&self) -> Option<PyErr> {
        self.failure.get().map(|error| self.error(error))
    }

    /// Converts an error into Python's own `OSError`: number, text, file.
    pub fn error(&self, error: &io::Error) -> PyErr {
        os_error(error, &self.path)
    }
}

fn output(
    file: File,
    buffer_bytes: usize,
    failure: Arc<OnceLock<io::Error>>,
) -> Box<dyn Write + Send> {
    Box::new(CaptureOutput { file: BufWriter::with_capacity(buffer_bytes, file), failure })
}

impl CaptureOutput {
    fn record_failure<T>(&self, result: io::Result<T>) -> io::Result<T> {
        result.map_err(|error| {
            let kind = error.kind();
            // Only the first error is kept: later ones follow from it.
            let _ = self.failure.set(error);
            kind.into()
        })
    }
}

impl Write for CaptureOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes);
        self.record_failure(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.file.flush();
        self.record_failure(flushed)
    }
}
