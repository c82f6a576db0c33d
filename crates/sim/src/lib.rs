//! The simulated world: a deterministic discrete-event simulation in integer nanoseconds, built from a scenario.
//!
//! Same scenario and same seed give the same bytes of records, on any machine. Ties in time are broken by the order of
//! insertion; every component draws from its own named random stream.
#![forbid(unsafe_code)]

mod calendar;
mod capture;
mod capture_headers;
mod check;
mod datagrams;
mod delays;
mod event;
mod fairness;
mod flow;
mod half_connection;
mod heap;
mod losses;
mod network;
mod packet;
mod pipe;
mod place;
mod queue;
mod quic_ends;
mod record;
mod requests;
mod segments;
mod sparse;
mod timeouts;
mod watch;
mod world;

pub use check::{CheckError, Checked, Divergence, Step, Witness, compare};
pub use network::Messages;
pub use packet::Packet;
pub use world::{Cancelled, Verdicts, World};

/// What orders events, for who tries it alone.
#[cfg(feature = "parts")]
pub mod parts {
    pub use crate::calendar::Calendar;
    pub use crate::heap::{Heap, NOTHING};
    pub use crate::queue::Queue;
}
