//! Real Linux endpoints around our router: a scenario in network namespaces of its own, in real time, with the simulator's
//! tables as its result.
//!
//! ```text
//! ┌ left: namespace, senders, tcp_info ┐── TUN ── router (the scenario's links) ── TUN ──┌ right: namespace, receivers ┐
//! ```
//! Namespaces and devices have no names outside and belong to the threads of a run, so runs never meet, and nothing is
//! left when a process ends, however it ends.
#![forbid(unsafe_code)]

mod refuse;

#[cfg(target_os = "linux")]
mod calibrate;
#[cfg(target_os = "linux")]
mod clock;
#[cfg(target_os = "linux")]
mod error;
#[cfg(target_os = "linux")]
mod facts;
#[cfg(target_os = "linux")]
mod host;
#[cfg(target_os = "linux")]
mod inet_diag;
#[cfg(target_os = "linux")]
mod kernel;
#[cfg(target_os = "linux")]
mod namespace;
#[cfg(target_os = "linux")]
mod plan;
#[cfg(target_os = "linux")]
mod records;
#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "linux")]
mod sender;
#[cfg(target_os = "linux")]
mod world;

#[cfg(target_os = "linux")]
use rustix::fs::{Access, AtFlags, CWD};
#[cfg(target_os = "linux")]
use rustix::thread::CapabilitySet;

#[cfg(target_os = "linux")]
pub use calibrate::{Calibration, Row};
#[cfg(target_os = "linux")]
pub use error::Error;
#[cfg(target_os = "linux")]
pub use inet_diag::TcpInfo;
pub use refuse::refusals;
#[cfg(target_os = "linux")]
pub use run::{Options, Outcome, run};

/// Whether a scenario has controllers that the kernel has not by itself.
#[cfg(target_os = "linux")]
#[must_use]
pub fn needs_kernel_helper(scenario: &cwnd_scenario::Scenario) -> bool {
    scenario.flows.iter().any(|group| kernel::of_our_own(&group.controller).is_some())
}

/// Whether this machine can run scenarios.
///
/// # Errors
/// What it lacks, and how to get it.
#[cfg(target_os = "linux")]
pub fn lacks() -> Result<(), Error> {
    let rights = rustix::thread::capabilities(None).map_or(NONE, |own| own.effective);
    if !rights.contains(NEEDED) {
        let message = "runs on Linux need root: they make network namespaces and TUN devices; \
                       put `sudo \"$(command -v cwnd)\"` in place of `cwnd`";
        return Err(Error::Lacking(message.to_owned()));
    }
    if !std::path::Path::new(TUN).exists() {
        let message = "there is no /dev/net/tun: load it with `modprobe tun`; in a container pass `--device /dev/net/tun`";
        return Err(Error::Lacking(message.to_owned()));
    }
    if rustix::fs::accessat(CWD, TUN, Access::READ_OK | Access::WRITE_OK, AtFlags::EACCESS).is_err()
    {
        let message = "only root may open /dev/net/tun, and what sudo calls opens it as its caller: `chmod 666 /dev/net/tun`, \
                       as udev does; it is of no use without CAP_NET_ADMIN";
        return Err(Error::Lacking(message.to_owned()));
    }
    Ok(())
}

#[cfg(target_os = "linux")]
const TUN: &str = "/dev/net/tun";
/// What namespaces and devices need.
#[cfg(target_os = "linux")]
const NEEDED: CapabilitySet = CapabilitySet::NET_ADMIN.union(CapabilitySet::SYS_ADMIN);
#[cfg(target_os = "linux")]
const NONE: CapabilitySet = CapabilitySet::empty();
