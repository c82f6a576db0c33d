//! Echo of the newest rate that routers wrote.

use cwnd_packet::{Ability, CongestionHeader, Echo, Rate48};
use cwnd_quantity::Time;
use cwnd_schema::RegistryEntry;

use super::{DynEcho, EchoPolicy};
use crate::segment::Segment;

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry =
    RegistryEntry::new("last", "What routers wrote into the newest data, as RCP's rate.");

/// Ability that a receiver with this echo provides.
pub const PROVIDES: Option<Ability> = Some(Ability::EchoesLast);

/// Creates the policy of a new receiver.
pub fn policy() -> Option<Box<dyn DynEcho>> {
    Some(Box::new(Last::default()))
}

/// Echo of RCP's rate in the newest data with a header (Dukkipati et al. 2005, § 3); nothing before
/// it.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    rate: Option<Rate48>,
}

impl EchoPolicy for Last {
    fn on_data(&mut self, _: Time, segment: &Segment) -> bool {
        if let Some(CongestionHeader::Rcp { rate, .. }) = segment.header() {
            self.rate = Some(rate.into());
        }
        false
    }

    fn take(&mut self) -> Echo {
        self.rate.map_or(Echo::None, Echo::Rate)
    }
}
