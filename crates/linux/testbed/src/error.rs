//! Errors of runs on Linux.

use std::io;

use cwnd_scenario::Refusal;

/// Reason why a scenario was not run on Linux.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The scenario has keys that Linux cannot provide.
    #[error(
        "{}",
        .0.iter()
            .map(|r| format!("{}: {}", r.key.join("."), r.message))
            .collect::<Vec<_>>()
            .join("\n")
    )]
    Refused(Vec<Refusal>),
    /// The machine lacks a requirement.
    #[error("{0}")]
    Lacking(String),
    /// The program that loads controllers, timeouts and receivers into the kernel is missing.
    #[error(
        "a controller, timeouts or receivers that Linux does not have itself need cwnd-kernel, \
         which is not here; `make kernel` builds it"
    )]
    NoKernelHelper,
    /// That program failed to load something: its path and its message.
    #[error("{0} did not load what it was asked for: {1}")]
    KernelHelper(String, String),
    /// The run was stopped.
    #[error("cancelled")]
    Cancelled,
    /// A system call failed: the attempt, and the error.
    #[error("{0}: {1}")]
    System(String, io::Error),
}

impl Error {
    /// Returns a function that turns a system's error into one of the attempt `what`.
    pub fn at(what: &str) -> impl FnOnce(io::Error) -> Self + use<> {
        let what = what.to_owned();
        move |error| Self::System(what, error)
    }

    /// `true` if the machine lacks a requirement or `cwnd-kernel` did not load a program; `false`
    /// for other errors.
    #[must_use]
    pub const fn is_lack(&self) -> bool {
        matches!(self, Self::Lacking(_) | Self::NoKernelHelper | Self::KernelHelper(..))
    }
}
