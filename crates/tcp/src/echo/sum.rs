//! Echo of the sum of XCP's feedback.

use cwnd_packet::{Ability, CongestionHeader, Echo};
use cwnd_quantity::Time;
use cwnd_schema::RegistryEntry;

use super::{DynEcho, EchoPolicy};
use crate::segment::Segment;

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry = RegistryEntry::new(
    "sum",
    "The sum of what routers wrote since the last ACK, as XCP's feedback needs it where ACKs \
     are delayed.",
);

/// Ability that a receiver with this echo provides.
pub const PROVIDES: Option<Ability> = Some(Ability::EchoesSum);

/// Creates the policy of a new receiver.
pub fn policy() -> Option<Box<dyn DynEcho>> {
    Some(Box::new(Sum::default()))
}

/// Sum of XCP's feedback since the last ACK (Katabi, Handley, Rohrs 2002, § 3.3), for delayed ACKs:
/// the feedback of every packet counts once.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    delta: i32,
}

impl EchoPolicy for Sum {
    fn on_data(&mut self, _: Time, segment: &Segment) -> bool {
        // Duplicates count, too: a router takes the bandwidth that it grants to a packet from other
        // flows.
        if let Some(CongestionHeader::Xcp { delta, .. }) = segment.header() {
            self.delta = self.delta.saturating_add(delta);
        }
        false
    }

    fn take(&mut self) -> Echo {
        Echo::Delta(core::mem::take(&mut self.delta))
    }
}
