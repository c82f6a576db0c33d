//! What applications send: when they write, how much, and what they wait for.
//!
//! An application is asked at its start, when it wanted to hear of bytes that were delivered or acknowledged, and when its
//! timer is due; each time it says what to [`Do`]. It has no clock and no socket: the simulator and the hosts of the testbed
//! ask the same ones. A kind of workload is one file and one line of the registry; what else is to be known of it, it states
//! as [`Facts`].
#![forbid(unsafe_code)]

mod application;
pub mod arrivals;
pub mod attackers;
mod listed;
mod session;
pub mod users;
pub mod workloads;

pub use application::{Application, Do, Facts, Then, Transport, Volume, Workload};
pub use arrivals::{ArrivalParams, Arriving, PoissonArrivals};
pub use attackers::{Attacker, AttackerInfo, AttackerParams, Forged};
pub use listed::{Listed, Rows};
pub use session::{Heard, Session};
pub use workloads::{AnyApplication, Maker, WorkloadParams};
