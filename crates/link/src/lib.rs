//! Links for packets of any type, used by the simulator and by the router on Linux.
//!
//! One [`Line`] serves both: the simulator calls it at its events, the router asks for the time of
//! its next action.
#![forbid(unsafe_code)]

mod burst_loss;
mod counters;
mod impairments;
mod jitter;
mod line;
mod middlebox;
mod packet;
mod polling;
mod results;
mod settings;
mod slots;
mod timeline;
mod verdicts;

pub use counters::{Counters, Tally};
pub use impairments::{Fate, LOSS, LinkImpairments, LossCounts};
pub use line::{Line, Pace};
pub use middlebox::{Middlebox, MiddleboxCounters};
pub use packet::Packet;
pub use results::{ReasonTable, Summary, sample};
pub use settings::Settings;
pub use slots::{SLOT_BYTES, Slots};
pub use timeline::Timeline;
pub use verdicts::Reader;
