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

/// Ability that a receiver with this echo provides.
pub const PROVIDES: Option<Ability> = Some(Ability::EchoesDelay);

/// Creates the policy of a new receiver.
pub fn policy() -> Option<Box<dyn DynEcho>> {
    Some(Box::new(OneWay::default()))
}

/// LEDBAT's feedback (RFC 6817 § 2.3): arrival time of the newest data less its timestamp, µs;
/// nothing before the first.
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
