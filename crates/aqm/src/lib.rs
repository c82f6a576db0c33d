//! Queue disciplines, markers, meters and messengers of routers. They decide which packet waits, is
//! marked or is dropped, what is written into packets, and which sources get a message.
//!
//! One file each. A discipline is generic over its packet, so the same code serves structs in the
//! simulator and bytes in a router. Time and randomness are arguments. Every drop and every mark is
//! reported once, with its reason, to a [`Context`].
//!
//! - Queues hold small handles. The owner of the packets passes the [`Context`], through which
//!   queues and meters read and write ECN fields and headers.
//! - [`congested`] alone chooses between mark and drop. Captures and messengers read the verdicts
//!   from a ring, each at its own position.
//! - A meter wraps its queue ([`AnyQdisc::with_meter`]); lines without a meter have no overhead.
//! - A mechanism names its counters ([`Reason`]). Counters of zero change no digest.
#![forbid(unsafe_code)]

#[macro_use]
mod registry;

use cwnd_packet::{Contract, HasContract};
use cwnd_quantity::{LinkProperties, Rng};

queues! {
    Fifo(fifo),
    Red(red),
    CoDel(codel),
    Pie(pie),
    FqCoDel(fq_codel),
}

mod any;
pub mod capacity;
mod departure;
mod dynamic;
pub mod load;
mod mark;
mod messenger;
pub mod messengers;
mod meter;
pub mod meters;
pub mod none;
mod qdisc;
mod store;

pub use dynamic::DynQdisc;
pub use mark::{congested, mark};
pub use messenger::{Messenger, MessengerInfo, Outcome, Verdict};
pub use messengers::MessengerParams;
pub use meter::{Meter, MeterInfo};
pub use meters::MeterParams;
pub use qdisc::{Backlog, Context, Packet, Qdisc, QueueInfo, Reason};

impl QueueParams {
    /// `true` if the queue reads the flow hash of packets.
    #[must_use]
    pub fn reads_flow_hash(&self) -> bool {
        each_kind!(self, params => params.reads_flow_hash())
    }
}

impl HasContract for QueueParams {
    fn contract(&self) -> Contract {
        each_kind!(self, params => params.contract())
    }
}
