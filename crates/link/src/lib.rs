//! Links for packets of any type, used by the simulator and by the router on Linux.
//!
//! One [`Line`] serves both: the simulator calls it at its events, the router asks for the time of
//! its next action.
#![forbid(unsafe_code)]

mod acks_first;
mod counters;
mod impairments;
mod line;
mod middlebox;
mod results;
mod settings;
mod timeline;

pub use counters::{Counters, Packet, Tally};
pub use impairments::{Fate, LOSS, LinkImpairments, LossCounts};
pub use line::{Line, Pace, Reader};
pub use middlebox::{Middlebox, MiddleboxCounters};
pub use results::{Capacity, ReasonTable, Summary, sample};
pub use settings::Settings;
pub use timeline::{SLOT_BYTES, Slots, Timeline};
