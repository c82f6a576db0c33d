use cwnd_tcp::Segment;
use cwnd_units::{Ecn, Time};

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

/// Where a note begins in the two fields that carry it: 2⁴⁸ B are 281 TB, 2⁴⁸ ns are 78 hours.
const NOTE_SHIFT: u32 = 48;
/// A run that is captured ends before.
pub const LAST_NOTED: Time = Time((1 << NOTE_SHIFT) - 1);

/// A note that travels with a packet where it is captured: nothing between two hosts reads sequence number and timestamp,
/// and their upper bits are zero, so that no packet has to be larger for what only captures want to know.
impl Packet {
    /// Puts a note in; the fields are whole again after [`Packet::take_note`].
    pub fn set_note(&mut self, note: u32) {
        debug_assert!(self.segment.seq >> NOTE_SHIFT == 0 && self.segment.ts <= LAST_NOTED);
        self.segment.seq |= u64::from(note >> 16) << NOTE_SHIFT;
        self.segment.ts.0 |= u64::from(note & 0xffff) << NOTE_SHIFT;
    }

    /// Takes the note out; zero if there is none.
    pub fn take_note(&mut self) -> u32 {
        let note = (self.segment.seq >> NOTE_SHIFT) << 16 | self.segment.ts.0 >> NOTE_SHIFT;
        self.segment.seq &= LAST_NOTED.0;
        self.segment.ts.0 &= LAST_NOTED.0;
        note as u32
    }
}

#[cfg(test)]
impl Packet {
    /// A data packet of this size and number, for tests.
    pub(crate) fn numbered(seq: u64, wire: u16) -> Self {
        let segment = Segment {
            seq,
            ts: Time::ZERO,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_leaves_no_trace() {
        let mut packet = Packet::numbered(0x1234_5678_9abc, 1500);
        packet.segment.ts = LAST_NOTED;
        let before = packet.segment;
        for note in [0, 1, 0x8765_4321, u32::MAX] {
            packet.set_note(note);
            assert_eq!(packet.take_note(), note);
            assert_eq!(packet.segment, before);
        }
        assert_eq!(packet.take_note(), 0);
    }
}
