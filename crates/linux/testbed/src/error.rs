//! Why a scenario was not run.

use std::io;

use cwnd_scenario::Refusal;

/// Why a scenario was not run on Linux.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The scenario asks for what Linux can't provide.
    #[error("{}", .0.iter().map(|r| format!("{}: {}", r.key.join("."), r.message)).collect::<Vec<_>>().join("\n"))]
    Refused(Vec<Refusal>),
    /// The machine lacks something.
    #[error("{0}")]
    Lacking(String),
    /// There is no program that loads what Linux does not have itself.
    #[error(
        "a controller, timeouts or receivers that Linux does not have itself need cwnd-kernel, which is not here; `make kernel` builds it"
    )]
    NoKernelHelper,
    /// It did not load something.
    #[error("{0} did not load what it was asked for: {1}")]
    KernelHelper(String, String),
    /// The run was stopped.
    #[error("cancelled")]
    Cancelled,
    /// The system refused something.
    #[error("{0}: {1}")]
    System(String, io::Error),
}

impl Error {
    /// What was tried when the system refused.
    pub fn at(what: &str) -> impl FnOnce(io::Error) -> Self + use<> {
        let what = what.to_owned();
        move |error| Self::System(what, error)
    }

    /// Whether the machine lacks something, rather than the run having failed.
    #[must_use]
    pub const fn is_lack(&self) -> bool {
        matches!(self, Self::Lacking(_) | Self::NoKernelHelper | Self::KernelHelper(..))
    }
}
