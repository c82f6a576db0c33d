use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use pyo3::PyErr;

use crate::error::os_error;

/// A capture file, for the thread that supervises the run: its path, and the reason if it could not
/// be written.
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

impl Capture {
    /// Creates the file; returns it with its output.
    pub fn create(path: &Path) -> Result<(Self, Box<dyn Write + Send>), PyErr> {
        Self::into_file(path, File::create(path))
    }

    /// Wraps a file that is open already, or could not be opened.
    pub fn into_file(
        path: &Path,
        file: io::Result<File>,
    ) -> Result<(Self, Box<dyn Write + Send>), PyErr> {
        let failure = Arc::new(OnceLock::new());
        let capture = Self { path: path.to_owned(), failure: Arc::clone(&failure) };
        let file = file.map_err(|error| capture.error(&error))?;
        let file = BufWriter::with_capacity(BUFFER_BYTES, file);
        Ok((capture, Box::new(CaptureOutput { file, failure })))
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
