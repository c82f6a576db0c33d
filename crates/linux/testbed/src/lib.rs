//! Testbed with real Linux endpoints around our router: runs a scenario in separate network
//! namespaces, in real time. Its result has the simulator's tables.
//!
//! ```text
//! ┌ left: namespace, senders, tcp_info ┐─ TUN ─ router ─ TUN ─┌ right: namespace, receivers ┐
//! ```
//! The router has the scenario's links. Namespaces and devices have no names outside and belong to
//! the threads of a run. Runs do not affect each other, and nothing remains when a process ends.
//!
//! Flows are drawn from the simulator's random streams. Values that Linux does not report are null.
#![forbid(unsafe_code)]

mod programs;
mod unsupported;

#[cfg(target_os = "linux")]
mod calibrate;
#[cfg(target_os = "linux")]
mod datagrams;
#[cfg(target_os = "linux")]
mod error;
#[cfg(target_os = "linux")]
mod host;
#[cfg(target_os = "linux")]
mod kernel;
#[cfg(target_os = "linux")]
mod namespace;
#[cfg(target_os = "linux")]
mod records;
#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "linux")]
mod sender;
#[cfg(target_os = "linux")]
mod world;

#[cfg(target_os = "linux")]
pub use calibrate::{Calibration, Row};
#[cfg(target_os = "linux")]
pub use error::{Error, lacks};
#[cfg(target_os = "linux")]
pub use namespace::TcpInfo;
#[cfg(target_os = "linux")]
pub use run::{CaptureFile, Options, Outcome, run};
pub use unsupported::refusals;

/// `true` if a scenario has controllers, timeouts or receivers that need `cwnd-kernel`.
#[cfg(target_os = "linux")]
#[must_use]
pub fn needs_kernel_helper(scenario: &cwnd_scenario::Scenario) -> bool {
    scenario.connections().any(|group| {
        matches!(group.controller, cwnd_cc::ControllerParams::C(_))
            || kernel::kernel_helper_arguments(group).is_some()
            || unsupported::Timeouts::of(&group.endpoint).is_some()
            || programs::misbehaviour_arguments(&group.endpoint).is_some()
    })
}
