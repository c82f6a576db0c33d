//! Packets as links handle them, and counters of a link.

use cwnd_aqm::Reason;

use crate::impairments::{LOSS, LossCounts};

/// A small packet handle as lines store it; its owner keeps the contents elsewhere.
pub trait Packet: cwnd_aqm::Packet + Copy {
    /// `true` if the packet carries payload.
    fn has_payload(&self) -> bool;
}

/// Cumulative counters of a link; differences count a part of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that arrived at the link.
    pub arrived: u64,
    /// Packets that left the line; for a whole link, without those lost behind the line.
    pub delivered: u64,
    /// Packets with payload among `delivered`.
    pub delivered_data: u64,
    /// Bytes that left the line, of packets lost behind it too.
    pub delivered_bytes: u64,
    /// Packets dropped, by reason; for a whole link with those lost behind the line.
    pub drops: Tally,
    /// Packets marked, by reason.
    pub marks: Tally,
    /// Integral of the waiting packets over time, packet·ns.
    pub packet_time: u128,
    /// Integral of the waiting bytes over time, B·ns.
    pub byte_time: u128,
}

impl Counters {
    /// Counts a packet that leaves the line.
    #[inline]
    pub fn count_departure(&mut self, packet: &impl Packet) {
        self.delivered += 1;
        self.delivered_data += u64::from(packet.has_payload());
        self.delivered_bytes += u64::from(packet.wire_bytes());
    }

    /// Counters of a link whose line counted `self`, after the link lost `lost` packets behind the
    /// line.
    #[must_use]
    pub fn without(mut self, lost: LossCounts) -> Self {
        self.delivered -= lost.packets;
        self.delivered_data -= lost.data;
        self.drops.add(LOSS, lost.packets);
        self
    }
}

/// Numbers of packets by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally(Vec<(Reason, u64)>);

impl Tally {
    /// Adds this many packets to a reason.
    #[inline]
    pub fn add(&mut self, reason: Reason, packets: u64) {
        match self.0.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, count)) => *count += packets,
            None if packets > 0 => self.0.push((reason, packets)),
            None => {}
        }
    }

    /// Number of packets with this reason.
    #[must_use]
    pub fn of(&self, reason: Reason) -> u64 {
        self.0.iter().find(|(known, _)| *known == reason).map_or(0, |&(_, count)| count)
    }

    /// Number of packets with any reason.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().map(|&(_, count)| count).sum()
    }

    /// Reasons and their packets, in order of first appearance.
    pub fn iter(&self) -> impl Iterator<Item = (Reason, u64)> {
        self.0.iter().copied()
    }
}
