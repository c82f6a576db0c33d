use cwnd_aqm::Reason;

use crate::faults::Losses;
use crate::packet::Packet;

/// What a link counted; everything only grows, so differences count a part of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that came.
    pub arrived: u64,
    /// Packets that left the line; of a whole link, those that were not lost behind it.
    pub delivered: u64,
    /// Those of them with payload.
    pub delivered_data: u64,
    /// Bytes that left the line.
    pub delivered_bytes: u64,
    /// Packets dropped, by [`Reason`].
    pub drops: [u64; Reason::ALL.len()],
    /// Packets marked, by [`Reason`].
    pub marks: [u64; Reason::ALL.len()],
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
        self.drops[Reason::LinkLoss as usize] += lost.packets;
        self
    }
}
