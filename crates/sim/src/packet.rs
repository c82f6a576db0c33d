use cwnd_tcp::Segment;
use cwnd_units::Ecn;

use crate::event::FlowId;

/// A segment on its way: 64 bytes, one cache line.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// Whose it is.
    pub flow: FlowId,
    /// Where it goes next: an index into the network's table of hops.
    pub hop: u32,
    /// What it carries.
    pub segment: Segment,
}

const _: () = assert!(size_of::<Packet>() <= 64, "a packet must fit one cache line");

impl cwnd_aqm::Packet for Packet {
    #[inline]
    fn wire_bytes(&self) -> u32 {
        u32::from(self.segment.wire)
    }

    #[inline]
    fn ecn(&self) -> Ecn {
        self.segment.ecn
    }

    #[inline]
    fn set_ce(&mut self) {
        self.segment.ecn = Ecn::Ce;
    }

    fn flow_hash(&self) -> u64 {
        // A direction of a flow is a flow of its own (RFC 8290 § 4.1: the 5-tuple). Fibonacci hashing spreads neighbours.
        let key = u64::from(self.flow.bits()) << 1 | u64::from(self.segment.is_ack());
        key.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

#[cfg(test)]
impl Packet {
    /// A data packet of this size and number, for tests.
    pub(crate) fn numbered(seq: u64, wire: u16) -> Self {
        let segment = Segment {
            seq,
            ts: cwnd_units::Time::ZERO,
            len: u32::from(wire),
            window: 0,
            feedback: 0,
            wire,
            flags: cwnd_tcp::Flags::default(),
            ecn: Ecn::NotEct,
            sack: [cwnd_tcp::SackBlock::default(); cwnd_tcp::MAX_SACK_BLOCKS],
        };
        Self { flow: FlowId::new(0, 0), hop: 0, segment }
    }
}
