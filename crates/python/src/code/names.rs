//! Names of counters and reasons that Python code chooses. Results take names that last as long as
//! the program, so each is kept once; a process has only a few.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Names in use.
static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
/// Greatest number of names.
const MOST: usize = 256;

/// Returns the name of a counter.
pub fn counter(name: &str) -> PyResult<&'static str> {
    named("counter", name, &format!("own_{name}"))
}

/// Returns the name of a reason of drops or marks.
pub fn reason(name: &str) -> PyResult<&'static str> {
    named("reason", name, name)
}

fn named(what: &str, name: &str, full: &str) -> PyResult<&'static str> {
    let is_good = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.len() <= 40
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if !is_good {
        let message = format!("the {what} `{name}` is no name of lower-case letters, digits and _");
        return Err(PyValueError::new_err(message));
    }
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(full) {
        return Ok(known);
    }
    if names.len() == MOST {
        return Err(PyValueError::new_err(format!(
            "there are more than {MOST} names of counters and reasons in one process"
        )));
    }
    let kept: &'static str = Box::leak(full.to_owned().into_boxed_str());
    names.insert(kept);
    Ok(kept)
}
