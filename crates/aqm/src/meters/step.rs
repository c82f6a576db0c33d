//! Step marking: an ECN-capable packet is marked if the backlog, with the packet itself, is above a
//! threshold when it arrives.

use alloc::boxed::Box;

use cwnd_packet::{Ability, Contract, HasContract};
use cwnd_quantity::{LinkProperties, QueueLimit, QueueSize, Rng, Time};
use cwnd_schema::{RegistryEntry, Schema};

use crate::meters::{Meter, MeterInfo};
use crate::qdisc::{Backlog, Context, Packet, Reason, mark};

/// Reason of this meter's marks.
pub const STEP: Reason = Reason::named("step");

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry = RegistryEntry::new(
    "step",
    "Marks each packet that finds more than a threshold waiting (DCTCP's router).",
);

/// Marks at a threshold of the backlog (RFC 8257 § 3.1; Alizadeh et al. 2010 § 3.1 (1)). The queue
/// beside it drops, and may mark, as it does without.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Params {
    /// K: an ECN-capable packet that raises the backlog above this is marked.
    #[default(
        QueueSize::MilliBdp(170),
        "Alizadeh et al. 2010 § 3.4 eq. 13: over a seventh of the BDP; RFC 8257 § 4.1"
    )]
    pub threshold: QueueSize,
}

impl MeterInfo for Params {
    fn build<P: Packet>(&self, link: &LinkProperties, _: Rng) -> Option<Box<dyn Meter<P>>> {
        Some(Box::new(Step::new(self, link)))
    }
}

impl HasContract for Params {
    fn contract(&self) -> Contract {
        let why = "the meter never marks";
        Contract::new().provides(Ability::Marks).wants(Ability::Ect, why)
    }
}

/// Comparison of the instantaneous backlog with a threshold at each arrival: no average, no random
/// draw.
#[derive(Debug)]
pub struct Step {
    threshold: QueueLimit,
}

impl Step {
    /// Creates the meter for a link.
    #[must_use]
    pub fn new(params: &Params, link: &LinkProperties) -> Self {
        Self { threshold: params.threshold.resolve(link) }
    }
}

impl<P: Packet> Meter<P> for Step {
    // "An arriving packet is marked with the CE codepoint if the queue occupancy is greater than K
    // upon its arrival": the packet itself counts, so that a threshold of zero marks all.
    fn arrives(
        &mut self,
        now: Time,
        packet: &mut P,
        backlog: Backlog,
        context: &mut dyn Context<P>,
    ) {
        let above = match self.threshold {
            QueueLimit::Packets(threshold) => backlog.packets >= threshold,
            QueueLimit::Bytes(threshold) => {
                backlog.bytes + u64::from(packet.wire_bytes()) > threshold
            }
        };
        if above {
            mark(now, packet, STEP, context);
        }
    }
}
