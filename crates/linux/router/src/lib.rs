//! Router between two network devices: passes real packets through the simulator's queues, lines
//! and impairments.
//!
//! [`Engine`] is the router without input and output, in virtual time. On Linux, [`start`] runs it
//! between two TUN devices.
//!
//! Packets of a simulated link leave the engine at the same nanosecond as in the simulator
//! (`tests/simulator.rs`): work that is late counts as done when it was due. A privileged process
//! creates a link and drops its rights before COMMAND starts; it accepts requests of a fixed shape
//! and opens no file that they name (`docs/explanation/security.md`).
#![forbid(unsafe_code)]

mod capture;
mod config;
mod delay;
mod direction;
mod engine;
mod live;
mod messages;
mod packet;
mod report;

#[cfg(target_os = "linux")]
pub mod linux;

pub use capture::{Capture, Output, Point};
pub use config::{Config, Direction, Limits, Pacing, Side};
pub use engine::Engine;
pub use live::Live;
pub use packet::{Endpoint, Parsed, parse};
pub use report::{Counters, DirectionReport, Report, Work};

#[cfg(target_os = "linux")]
pub use linux::{Link, Namespace, Running, Stop, Tun, run, start};
