//! What a link does to packets, whatever they are: the simulator's links and the router's are these.
#![forbid(unsafe_code)]

mod slots;

pub use slots::{SLOT_BYTES, Slots};
