//! Applications: they decide when a flow sends, how much, and what it waits for.
//!
//! An application is called at its start, when bytes that it waits for are delivered or
//! acknowledged, when a whole request is at the server, and when its timer is due. Each call
//! returns [`Actions`]. An application has no clock and no socket, so the simulator and the hosts
//! of the testbed use the same ones. A kind of workload is one file and one line of the registry.
//! Its [`Facts`] state what generic code must know.
//!
//! Both worlds carry out [`Actions`] by a [`Session`]. For arrivals, `cwnd_scenario` turns a load
//! into a mean interval.
#![forbid(unsafe_code)]

mod application;
pub mod arrivals;
pub mod attackers;
mod session;
pub mod users;
pub mod workloads;

pub use application::{Actions, Application, Continuation, Facts, Transport, Volume, Workload};
pub use arrivals::{ArrivalParams, Arriving, PoissonArrivals, RecordedArrival, RecordedArrivals};
pub use attackers::{Attacker, AttackerInfo, AttackerParams, Forged};
pub use session::{Delivery, Session};
pub use workloads::{AnyApplication, Maker, WorkloadParams};
