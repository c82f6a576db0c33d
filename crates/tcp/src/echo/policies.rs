//! Echo policies that keep one value: sums, counters, and the newest of what data carried.

use cwnd_packet::{CongestionHeader, Echo, Ecn, Rate48};
use cwnd_quantity::Time;

use super::EchoPolicy;
use crate::segment::Segment;

/// Sum of XCP's feedback since the last ACK (Katabi, Handley, Rohrs 2002, § 3.3), for delayed ACKs:
/// the feedback of every packet counts once.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
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

/// Echo of RCP's rate in the newest data with a header (Dukkipati et al. 2005, § 3); nothing before
/// it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Last {
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

/// A policy that echoes nothing. Like every policy it replaces ECE.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Nothing;

impl EchoPolicy for Nothing {
    fn on_data(&mut self, _: Time, _: &Segment) -> bool {
        false
    }

    fn take(&mut self) -> Echo {
        Echo::None
    }
}

/// A cumulative counter modulo 2^32, so that a lost ACK loses no mark.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CeCount {
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

/// LEDBAT's feedback (RFC 6817 § 2.3): arrival time of the newest data less its timestamp, µs;
/// nothing before the first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OneWay {
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
