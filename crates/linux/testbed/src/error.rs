//! Errors of runs on Linux, and the check of the rights and devices that runs need.

use std::io;

use cwnd_scenario::Refusal;
use rustix::fs::{Access, AtFlags, CWD};
use rustix::thread::CapabilitySet;

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
    /// The kernel, or that program, refuses the code of a group's controller: its file, and why.
    #[error("{0}: {1}")]
    Code(String, String),
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

/// Checks that this process can run scenarios on this machine.
///
/// # Errors
/// If it lacks a requirement, with the remedy.
pub fn lacks() -> Result<(), Error> {
    let rights = rustix::thread::capabilities(None).map_or(NONE, |own| own.effective);
    if !rights.contains(NEEDED) {
        let message = "runs on Linux need root: they make network namespaces and TUN devices; \
                       put `sudo \"$(command -v cwnd)\"` in place of `cwnd`";
        return Err(Error::Lacking(message.to_owned()));
    }
    if !std::path::Path::new(TUN).exists() {
        let message = "there is no /dev/net/tun: load it with `modprobe tun`; \
                       in a container pass `--device /dev/net/tun`";
        return Err(Error::Lacking(message.to_owned()));
    }
    if rustix::fs::accessat(CWD, TUN, Access::READ_OK | Access::WRITE_OK, AtFlags::EACCESS).is_err()
    {
        let message = "only root may open /dev/net/tun, and what sudo calls opens it as its \
                       caller: `chmod 666 /dev/net/tun`, as udev does; \
                       it is of no use without CAP_NET_ADMIN";
        return Err(Error::Lacking(message.to_owned()));
    }
    Ok(())
}

const TUN: &str = "/dev/net/tun";
/// Capabilities for network namespaces and TUN devices.
const NEEDED: CapabilitySet = CapabilitySet::NET_ADMIN.union(CapabilitySet::SYS_ADMIN);
const NONE: CapabilitySet = CapabilitySet::empty();
