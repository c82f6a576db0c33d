//! Echo of the ECN field of the newest data, or of its level of load.

use cwnd_packet::{Ability, CongestionHeader, Echo};
use cwnd_quantity::Time;
use cwnd_schema::RegistryEntry;

use super::{DynEcho, EchoPolicy};
use crate::segment::Segment;

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry = RegistryEntry::new(
    "changes",
    "The ECN field of the newest data, and how often it has changed; a change is acknowledged \
     at once.",
);

/// Ability that a receiver with this echo provides.
pub const PROVIDES: Option<Ability> = Some(Ability::EchoesChanges);

/// Creates the policy of a new receiver.
pub fn policy() -> Option<Box<dyn DynEcho>> {
    Some(Box::new(Changes::default()))
}

/// Newest value that data carried: the ECN field, or a level of load in a header. Every ACK echoes
/// it with the number of its changes; the ACK of a change is sent at once.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Changes {
    /// `true` for levels of load, `false` for the ECN field.
    reads_level: bool,
    /// Newest value; `None` before the first. Data without a level leaves it.
    value: Option<u16>,
    /// Changes so far, modulo 256.
    changes: u8,
}

impl Changes {
    /// Creates the policy for levels of load.
    pub(super) fn of_levels() -> Self {
        Self { reads_level: true, ..Self::default() }
    }
}

impl EchoPolicy for Changes {
    fn on_data(&mut self, _: Time, segment: &Segment) -> bool {
        let value = match segment.header() {
            _ if !self.reads_level => Some(segment.ecn as u16),
            Some(CongestionHeader::Level(level)) => Some(u16::from(level)),
            _ => self.value,
        };
        let changed = self.value.is_some() && value != self.value;
        self.changes = self.changes.wrapping_add(u8::from(changed));
        self.value = value;
        changed
    }

    fn take(&mut self) -> Echo {
        // A level has four bits (MLCP), a code point two.
        let bits = if self.reads_level { 4 } else { 2 };
        self.value.map_or(Echo::None, |value| Echo::Load { value, bits, changes: self.changes })
    }
}
