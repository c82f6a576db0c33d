//! A step: every ECN-capable packet that finds more than a threshold waiting is marked, no other is.

use cwnd_packet::{Ability, Contract, Declares};
use cwnd_quantity::{Limit, LinkFacts, QueueSize, Rng, Time};
use cwnd_schema::{RegistryEntry, Schema};

use crate::mark::mark;
use crate::meter::{Meter, MeterInfo};
use crate::qdisc::{Backlog, Context, Packet, Reason};

/// What it marks for.
pub const STEP: Reason = Reason::named("step");

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry = RegistryEntry::new(
    "step",
    "Marks each packet that finds more than a threshold waiting (DCTCP's router).",
);

/// Marks at a threshold of what waits (RFC 8257 § 3.1; Alizadeh et al. 2010 § 3.1 (1)). The queue
/// beside it drops, and may mark, as it does without.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Params {
    /// K: an ECN-capable packet that makes what waits larger than this is marked.
    #[default(
        QueueSize::MilliBdp(170),
        "Alizadeh et al. 2010 § 3.4 eq. 13: over a seventh of the BDP; RFC 8257 § 4.1"
    )]
    pub threshold: QueueSize,
}

impl MeterInfo for Params {
    fn build<P: Packet>(&self, link: &LinkFacts, _: Rng) -> Option<Box<dyn Meter<P>>> {
        Some(Box::new(Step::new(self, link)))
    }
}

impl Declares for Params {
    fn contract(&self) -> Contract {
        let why = "the meter never marks";
        Contract::new().provides(Ability::Marks).wants(Ability::Ect, why)
    }
}

/// Looks at what waits when a packet comes, as it is then: no average, no lots.
#[derive(Debug)]
pub struct Step {
    threshold: Limit,
}

impl Step {
    /// A threshold at this link.
    #[must_use]
    pub fn new(params: &Params, link: &LinkFacts) -> Self {
        Self { threshold: params.threshold.resolve(link) }
    }
}

impl<P: Packet> Meter<P> for Step {
    // "An arriving packet is marked with the CE codepoint if the queue occupancy is greater than K upon its arrival": itself
    // included, so that a threshold of nothing marks all.
    fn arrives(
        &mut self,
        now: Time,
        packet: &mut P,
        backlog: Backlog,
        context: &mut dyn Context<P>,
    ) {
        let above = match self.threshold {
            Limit::Packets(most) => backlog.packets >= most,
            Limit::Bytes(most) => backlog.bytes + u64::from(packet.wire_bytes()) > most,
        };
        if above {
            mark(now, packet, STEP, context);
        }
    }
}
