use cwnd_aqm::Reason;

use crate::faults::{LOSS, Losses};
use crate::packet::Packet;

/// What a link counted; everything only grows, so differences count a part of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that came.
    pub arrived: u64,
    /// Packets that left the line; of a whole link, those that were not lost behind it.
    pub delivered: u64,
    /// Those of them with payload.
    pub delivered_data: u64,
    /// Bytes that left the line.
    pub delivered_bytes: u64,
    /// Packets dropped.
    pub drops: Tally,
    /// Packets marked.
    pub marks: Tally,
    /// Packets waiting, integrated over time, packet·ns.
    pub packet_time: u128,
    /// Bytes waiting, integrated over time, B·ns.
    pub byte_time: u128,
}

impl Counters {
    /// A packet has left the line.
    #[inline]
    pub fn leaves(&mut self, packet: &impl Packet) {
        self.delivered += 1;
        self.delivered_data += u64::from(packet.has_payload());
        self.delivered_bytes += u64::from(packet.wire_bytes());
    }

    /// Those of a link whose line counted this, and which then lost so many.
    #[must_use]
    pub fn without(mut self, lost: Losses) -> Self {
        self.delivered -= lost.packets;
        self.delivered_data -= lost.data;
        self.drops.add(LOSS, lost.packets);
        self
    }
}

/// How many packets met each reason that any mechanism gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally(Vec<(Reason, u64)>);

impl Tally {
    /// So many packets more.
    #[inline]
    pub fn add(&mut self, reason: Reason, packets: u64) {
        match self.0.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, count)) => *count += packets,
            None if packets > 0 => self.0.push((reason, packets)),
            None => {}
        }
    }

    /// Packets that met this reason.
    #[must_use]
    pub fn of(&self, reason: Reason) -> u64 {
        self.0.iter().find(|(known, _)| *known == reason).map_or(0, |&(_, count)| count)
    }

    /// Packets of all reasons.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().map(|&(_, count)| count).sum()
    }

    /// The reasons that there were, in the order in which they came.
    pub fn iter(&self) -> impl Iterator<Item = (Reason, u64)> {
        self.0.iter().copied()
    }
}
