use std::fs::{File, OpenOptions};
use std::io::{Error, Read as _, Result};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use cwnd_scenario::MAX_SCENARIO_BYTES;
use pyo3::prelude::*;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use crate::error::os_error;
use crate::interruptible::interruptible;

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
    if bytes.is_empty() && about.file_type().is_fifo() {
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

/// Opens a file, or a pipe. Neither opening nor reading waits for a writer of the pipe; reading
/// waits for the data of a writer that is there.
fn open(path: &Path) -> Result<File> {
    let without_waiting = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(without_waiting).open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_dir() {
        return Err(rustix::io::Errno::ISDIR.into());
    }
    if !(kind.is_file() || kind.is_fifo()) {
        return Err(Error::other("it is a device, not a file"));
    }
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}
