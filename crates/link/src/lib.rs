//! What a link does to packets, whatever they are: the simulator's links and the router's are these.
#![forbid(unsafe_code)]

mod line;
mod slots;

pub use line::{Counters, Line, Pace, Packet, Verdict};
pub use slots::{SLOT_BYTES, Slots};
