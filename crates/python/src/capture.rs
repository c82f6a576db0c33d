use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use pyo3::PyErr;

use crate::error::os_error;

/// A capture file, and why it could not be written, for the thread that looks after it.
#[derive(Clone, Debug)]
pub struct Capture {
    path: PathBuf,
    failure: Arc<OnceLock<io::Error>>,
}

/// A capture file that is there, and what it is for.
pub struct Opened {
    /// Its name, and what happens to it.
    pub capture: Capture,
    /// What writes into it.
    pub to: Box<dyn Write + Send>,
    /// The links whose packets it gets, by their place in the scenario.
    pub links: Vec<usize>,
}

/// Writes in large pieces: a packet is a hundred bytes.
struct Output {
    file: BufWriter<File>,
    failure: Arc<OnceLock<io::Error>>,
}

const BUFFER_BYTES: usize = 1 << 18;

impl Capture {
    /// Creates the file; returns it with what writes into it.
    pub fn create(path: &Path) -> Result<(Self, Box<dyn Write + Send>), PyErr> {
        Self::into_file(path, File::create(path))
    }

    /// The same for a file that is open already, or could not be opened.
    pub fn into_file(
        path: &Path,
        file: io::Result<File>,
    ) -> Result<(Self, Box<dyn Write + Send>), PyErr> {
        let failure = Arc::new(OnceLock::new());
        let capture = Self { path: path.to_owned(), failure: Arc::clone(&failure) };
        let file = file.map_err(|error| capture.error(&error))?;
        let file = BufWriter::with_capacity(BUFFER_BYTES, file);
        Ok((capture, Box::new(Output { file, failure })))
    }

    /// Whether it is written as it should be.
    pub fn is_fine(&self) -> bool {
        self.failure.get().is_none()
    }

    /// The exception for a file that could not be written.
    pub fn failed(&self) -> Option<PyErr> {
        self.failure.get().map(|error| self.error(error))
    }

    /// As Python itself would raise it: error number, text, file.
    pub fn error(&self, error: &io::Error) -> PyErr {
        os_error(error, &self.path)
    }
}

impl Output {
    fn noted<T>(&self, result: io::Result<T>) -> io::Result<T> {
        result.map_err(|error| {
            let kind = error.kind();
            // The first reason is the one to tell.
            let _ = self.failure.set(error);
            kind.into()
        })
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes);
        self.noted(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.file.flush();
        self.noted(flushed)
    }
}
