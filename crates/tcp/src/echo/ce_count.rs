//! Echo of the number of CE marks.

use cwnd_packet::{Ability, Echo, Ecn};
use cwnd_quantity::Time;
use cwnd_schema::RegistryEntry;

use super::{DynEcho, EchoPolicy};
use crate::segment::Segment;

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry = RegistryEntry::new(
    "ce-count",
    "How many data packets came with CE (the counter of RFC 9768 § 3.2, in more bits).",
);

/// Ability that a receiver with this echo provides.
pub const PROVIDES: Option<Ability> = Some(Ability::EchoesCount);

/// Creates the policy of a new receiver.
pub fn policy() -> Option<Box<dyn DynEcho>> {
    Some(Box::new(CeCount::default()))
}

/// A cumulative counter modulo 2^32, so that a lost ACK loses no mark.
#[derive(Clone, Copy, Debug, Default)]
struct CeCount {
    packets: u32,
}

impl EchoPolicy for CeCount {
    fn on_data(&mut self, _: Time, segment: &Segment) -> bool {
        // Every data packet that arrives counts, duplicates too (RFC 9768 § 3.2: retransmissions
        // included).
        self.packets = self.packets.wrapping_add(u32::from(segment.ecn == Ecn::Ce));
        false
    }

    fn take(&mut self) -> Echo {
        Echo::Ce { packets: self.packets }
    }
}
