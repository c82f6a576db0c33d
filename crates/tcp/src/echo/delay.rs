//! Echo of the one-way delay of the newest data.

use cwnd_packet::{Ability, Echo};
use cwnd_quantity::Time;
use cwnd_schema::RegistryEntry;

use super::{DynEcho, EchoPolicy};
use crate::segment::Segment;

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry = RegistryEntry::new(
    "delay",
    "How long the newest data took to arrive, by the clocks of both ends (RFC 6817 § 2.3).",
);

/// The ability that it provides.
pub const PROVIDES: Option<Ability> = Some(Ability::EchoesDelay);

/// Returns the policy of a new receiver.
pub fn policy() -> Option<Box<dyn DynEcho>> {
    Some(Box::new(OneWay::default()))
}

/// LEDBAT's feedback: the receiver subtracts the send time in the data from its own time.
#[derive(Clone, Copy, Debug, Default)]
struct OneWay {
    us: Option<u32>,
}

impl EchoPolicy for OneWay {
    fn on_data(&mut self, now: Time, segment: &Segment) -> bool {
        // Modulo 2^32 µs, so that an offset between the clocks does not matter: only differences
        // are read.
        self.us = Some((now.0.wrapping_sub(segment.ts.0) / 1000) as u32);
        false
    }

    fn take(&mut self) -> Echo {
        self.us.map_or(Echo::None, |us| Echo::Delay { us })
    }
}
