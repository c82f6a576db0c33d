//! Output of libbpf. Its last warnings are kept for errors that only they explain.

use std::sync::{Mutex, PoisonError};

use libbpf_rs::PrintLevel;

static WARNINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Keeps a warning.
pub fn keep(level: PrintLevel, text: String) {
    if level == PrintLevel::Warn {
        let mut log = WARNINGS.lock().unwrap_or_else(PoisonError::into_inner);
        log.extend(text.lines().map(str::to_owned));
        let extra = log.len().saturating_sub(LINES_KEPT);
        log.drain(..extra);
    }
}

/// Prints any output, and keeps warnings.
pub fn print(level: PrintLevel, text: String) {
    eprint!("{text}");
    keep(level, text);
}

/// Returns the last warnings.
pub fn warnings() -> Vec<String> {
    WARNINGS.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Returns the function that the kernel lacks, if that is why an object was not loaded.
pub fn missing_function() -> Option<String> {
    warnings().iter().find_map(|line| {
        let (_, rest) = line.split_once("extern (func ksym) '")?;
        let (name, _) = rest.split_once("': not found in kernel")?;
        Some(name.to_owned())
    })
}

/// Lines that are kept: the end of a verifier's log names the reason.
const LINES_KEPT: usize = 12;
