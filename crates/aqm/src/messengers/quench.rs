//! Source quenches: the source of a packet that the queue marks or drops gets a message at once
//! (BECN § IV-A).

use alloc::boxed::Box;
use alloc::vec::Vec;

use cwnd_packet::{Ability, Contract, HasContract};
use cwnd_quantity::{Duration, Levels, LinkProperties, QueueLimit, QueueSize, Time};
use cwnd_schema::{Invalid, RegistryEntry, Schema, key};

use crate::messengers::{Messenger, MessengerInfo, Outcome, Verdict};
use crate::qdisc::{Backlog, Context};

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry = RegistryEntry::new(
    "quench",
    "A source quench for each packet that the queue marks or drops (BECN's router).",
);

/// An ICMP source quench (RFC 792) for the queue's decisions about data; one bit distinguishes
/// marked from dropped packets.
#[derive(Clone, Debug, PartialEq, Schema)]
#[schema(check = Self::consistent)]
pub struct Params {
    /// `true` if only sources of ECN-capable packets receive quenches.
    #[default(true, "BECN § IV-A: if the ECT bit is set; RFC 792 tells all")]
    pub ect_only: bool,
    /// Least time between two messages of the router; none is sent for what falls between.
    #[default(None, "BECN § IV-A has no limit; RFC 1812 § 4.3.2.8 wants one")]
    pub interval: Option<Duration>,
    /// Multi-level BECN: queue lengths from which on a message carries level 1, 2, and so on up to
    /// 7; below all, and without, it carries level 0.
    #[default(None, "BECN § VII, future work")]
    pub levels: Option<Levels<QueueSize>>,
}

impl Params {
    /// Checks values together.
    fn consistent(&self) -> Result<(), Invalid> {
        let many = self.levels.is_some_and(|levels| levels.iter().count() > MAX_THRESHOLDS);
        if many {
            let message = format!("a message has room for levels up to {MAX_THRESHOLDS}");
            return Err(Invalid { key: key!(Self: levels), message });
        }
        Ok(())
    }
}

impl MessengerInfo for Params {
    fn build<P>(&self, link: &LinkProperties) -> Option<Box<dyn Messenger<P>>> {
        Some(Box::new(Quench::new(self, link)))
    }
}

impl HasContract for Params {
    fn contract(&self) -> Contract {
        Contract::new()
            .provides(Ability::Quenches)
            .wants(Ability::ObeysQuench, "source quenches change nothing")
    }
}

/// Reports marks, except on packets that already had CE, and drops, with `ect_only` only those of
/// ECN-capable packets; between two messages at least `interval` passes.
#[derive(Debug)]
pub struct Quench {
    /// Queue lengths at which the levels begin.
    levels: Vec<QueueLimit>,
    ect_only: bool,
    interval: Duration,
    /// Time from which the next message may be sent.
    next_allowed: Time,
    withheld: u64,
}

impl Quench {
    /// Creates the messenger at the queue of a link.
    #[must_use]
    pub fn new(params: &Params, link: &LinkProperties) -> Self {
        let Params { ect_only, interval, levels } = *params;
        let interval = interval.unwrap_or(Duration::ZERO);
        let levels = levels.iter().flat_map(Levels::iter).map(|size| size.resolve(link)).collect();
        Self { levels, ect_only, interval, next_allowed: Time::ZERO, withheld: 0 }
    }

    /// Returns the number of the lengths that the backlog reaches.
    fn level(&self, queued: Backlog) -> u8 {
        let reached = |limit: &&QueueLimit| match **limit {
            QueueLimit::Packets(packets) => queued.packets >= packets,
            QueueLimit::Bytes(bytes) => queued.bytes >= bytes,
        };
        self.levels.iter().filter(reached).count() as u8
    }
}

impl<P> Messenger<P> for Quench {
    fn on_verdict(
        &mut self,
        verdict: &Verdict<P>,
        queued: Backlog,
        context: &dyn Context<P>,
    ) -> Option<u8> {
        let reports = match verdict.what {
            // BECN § IV-A: "if packet is not already marked".
            Outcome::Marked { already } => !already,
            Outcome::Dropped => !self.ect_only || context.ecn(&verdict.packet).is_ect(),
        };
        if !reports {
            return None;
        }
        if verdict.at < self.next_allowed {
            self.withheld += 1;
            return None;
        }
        self.next_allowed = verdict.at + self.interval;
        Some(self.level(queued))
    }

    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        each("quenches_withheld", self.withheld);
    }
}

/// Largest number of levels above 0: three bits of the message hold the level.
const MAX_THRESHOLDS: usize = 7;
