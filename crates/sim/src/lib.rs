//! Deterministic discrete-event simulation of a scenario, in integer nanoseconds.
//!
//! The same scenario and seed give the same records, byte for byte, on any machine. Events at equal
//! times run in order of insertion. Each component draws from its own named random stream.
//!
//! - A line schedules only the packet in transmission, a pipe only its first packet. Timers are
//!   lazy: an event that comes too early is rescheduled.
//! - The event queue adapts to its size: a sorted array, a 4-ary min-heap, a calendar queue. Events
//!   at equal times keep their order of insertion.
//! - A segment stays in one cache line from host to host (`segments`); a `Packet` names it.
//! - Losses are recorded where they happen; delivered packets have no overhead for them.
//! - A connection that its client opens has a second `HalfConnection`, and a flow of QUIC has its
//!   ends in a box (`connection_ends`), as have endpoints from outside (`endpoint`). Their packets
//!   have a `FlowId` that finds no flow, so that other flows have no overhead.
//! - Check mode compares two runs by step (`compare`): time, event and random draws.
#![forbid(unsafe_code)]

mod capture;
mod capture_headers;
mod check;
mod connection_ends;
mod datagrams;
mod endpoint;
mod event;
mod flow;
mod journey;
mod network;
mod observers;
mod packet;
mod packet_log;
mod pipe;
mod priority_queues;
mod qlog;
mod queue;
mod record;
mod row_sampling;
mod segments;
mod world;

pub use check::{CheckError, Checked, Divergence, Step, Witness, compare};
pub use endpoint::{Datagram, Endpoint, EndpointStart, Report};
pub use network::Messages;
pub use packet::Packet;
pub use qlog::OpenLog;
pub use world::{Cancelled, Verdicts, World};

/// Data structures of the event queue, public so that tests and fuzz targets can use them
/// alone.
#[cfg(feature = "parts")]
pub mod parts {
    pub use crate::priority_queues::{Calendar, Heap, NO_KEY};
    pub use crate::queue::Queue;
}
