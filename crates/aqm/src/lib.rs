//! Queue disciplines, markers and meters: what decides which packet waits, which is marked and which is dropped, and what
//! routers write into packets.
//!
//! One file each. A discipline is generic over its packet, so the same code serves structs in the simulator and
//! bytes in a router; time and randomness are arguments; every drop and every mark is reported once, with its
//! reason, to a [`Context`].
#![forbid(unsafe_code)]

pub mod codel;
mod departure;
pub mod fifo;
pub mod fq_codel;
mod mark;
mod meter;
mod own;
pub mod pie;
mod qdisc;
pub mod red;
mod registry;
mod store;

pub use mark::{congested, mark};
pub use meter::Meter;
pub use own::OwnQdisc;
pub use qdisc::{Backlog, Context, Packet, Qdisc, Reason};
pub use registry::{AnyQdisc, QueueParams};
