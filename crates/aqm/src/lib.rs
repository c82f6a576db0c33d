//! Queue disciplines, markers, meters and messengers: what decides which packet waits, which is marked and which is dropped,
//! what routers write into packets, and of what they tell sources.
//!
//! One file each. A discipline is generic over its packet, so the same code serves structs in the simulator and
//! bytes in a router; time and randomness are arguments; every drop and every mark is reported once, with its
//! reason, to a [`Context`].
#![forbid(unsafe_code)]

pub mod capacity;
pub mod codel;
mod departure;
pub mod fifo;
pub mod fq_codel;
pub mod load;
mod mark;
mod messenger;
pub mod messengers;
mod meter;
pub mod meters;
pub mod none;
mod own;
pub mod pie;
mod qdisc;
pub mod red;
mod registry;
mod store;

pub use mark::{congested, mark};
pub use messenger::{Messenger, Outcome, Verdict};
pub use messengers::MessengerParams;
pub use meter::Meter;
pub use meters::MeterParams;
pub use own::OwnQdisc;
pub use qdisc::{Backlog, Context, Packet, Qdisc, Reason};
pub use registry::{AnyQdisc, QueueParams};
