//! The sum of what routers wrote.

use cwnd_packet::{Ability, Echo, Header};
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

/// The ability that it provides.
pub const PROVIDES: Option<Ability> = Some(Ability::EchoesSum);

/// The policy of a new receiver.
pub fn policy() -> Option<Box<dyn DynEcho>> {
    Some(Box::new(Sum::default()))
}

/// Katabi, Handley, Rohrs 2002, § 3.3, for receivers that delay ACKs: every packet's feedback
/// counts once.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    delta: i32,
}

impl EchoPolicy for Sum {
    fn on_data(&mut self, _: Time, segment: &Segment) -> bool {
        // A duplicate's too: what a router gives, it takes from what it gives others.
        if let Some(Header::Xcp { delta, .. }) = segment.header() {
            self.delta = self.delta.saturating_add(delta);
        }
        false
    }

    fn take(&mut self) -> Echo {
        Echo::Delta(core::mem::take(&mut self.delta))
    }
}
