use core::num::NonZeroU64;

use cwnd_quantity::Time;
use cwnd_tcp::Segment;

use crate::event::{FlowId, REQUESTS_BIT};

/// Slot of a segment in [`Segments`](crate::segments::Segments).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentSlot(u32);

impl SegmentSlot {
    /// The slot with this index.
    #[inline]
    pub const fn from_index(index: u32) -> Self {
        Self(index)
    }

    /// Index of the slot.
    #[inline]
    pub const fn index(self) -> u32 {
        self.0
    }
}

/// A packet as queues and pipes handle it: a handle of 16 bytes.
///
/// Its segment stays in one slot from the sending host to the receiving host, or to its loss.
/// The two words stay in registers across calls. Separate fields would be written one by one and
/// copied as a whole, and such a copy waits for the store buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Flow above [`FLOW_SHIFT`], slot of the segment below.
    flow_and_slot: u64,
    /// Next hop above [`HOP_SHIFT`], size above [`WIRE_SHIFT`], flag bits below. [`IS_PACKET`]
    /// keeps it from zero, so that `Option<Packet>` has the same size.
    hop_size_flags: NonZeroU64,
}

const FLOW_SHIFT: u32 = 32;
const HOP_SHIFT: u32 = 32;
const WIRE_SHIFT: u32 = 16;
const HAS_PAYLOAD: u64 = 1;
const IS_ACK: u64 = 1 << 1;
/// Position of the bit that marks packets of a stream of requests, and acknowledgements of
/// requests.
const REQUEST_SHIFT: u32 = 3;
const IS_PACKET: NonZeroU64 = NonZeroU64::new(1 << 2).expect("it is not zero");

impl Packet {
    /// Creates the packet of a segment in `slot`; `hop` is its first hop, an index into the table
    /// of hops.
    #[inline]
    pub fn new(flow: FlowId, hop: u32, slot: SegmentSlot, segment: &Segment) -> Self {
        // An acknowledgement has no payload.
        let kind = match segment.len {
            0 if segment.is_ack() => IS_ACK,
            0 => 0,
            _ => HAS_PAYLOAD,
        };
        let size = u64::from(segment.wire) << WIRE_SHIFT;
        let hop_size_flags = u64::from(hop) << HOP_SHIFT | size | kind;
        let flow_and_slot = u64::from(flow.bits()) << FLOW_SHIFT | u64::from(slot.index());
        Self { flow_and_slot, hop_size_flags: IS_PACKET | hop_size_flags }
    }

    /// Marks the packet as one of a stream of requests: its data goes where the ACKs of responses
    /// go.
    pub fn of_request(self) -> Self {
        Self { hop_size_flags: self.hop_size_flags | 1 << REQUEST_SHIFT, ..self }
    }

    /// `true` for a packet marked by [`of_request`](Self::of_request).
    pub const fn is_of_request(self) -> bool {
        self.hop_size_flags.get() >> REQUEST_SHIFT & 1 != 0
    }

    /// Flow that the packet belongs to.
    #[inline]
    pub const fn flow(self) -> FlowId {
        FlowId::from_bits((self.flow_and_slot >> FLOW_SHIFT) as u32)
    }

    /// Slot of its segment.
    #[inline]
    pub const fn slot(self) -> SegmentSlot {
        SegmentSlot::from_index(self.flow_and_slot as u32)
    }

    /// `true` for an acknowledgement, of TCP or QUIC.
    #[inline]
    pub const fn is_ack(self) -> bool {
        self.hop_size_flags.get() & IS_ACK != 0
    }

    /// Hop at which the packet is. Valid only after [`next_hop`](Self::next_hop).
    pub const fn hop(self) -> u32 {
        (self.hop_size_flags.get() >> HOP_SHIFT) as u32 - 1
    }

    /// Index of the next hop, and the packet advanced by one hop.
    #[inline]
    pub fn next_hop(self) -> (u32, Self) {
        let hop = (self.hop_size_flags.get() >> HOP_SHIFT) as u32;
        (hop, Self { hop_size_flags: self.hop_size_flags.saturating_add(1 << HOP_SHIFT), ..self })
    }
}

impl cwnd_link::Packet for Packet {
    #[inline]
    fn has_payload(&self) -> bool {
        self.hop_size_flags.get() & HAS_PAYLOAD != 0
    }
}

impl cwnd_aqm::Packet for Packet {
    #[inline]
    fn wire_bytes(&self) -> u32 {
        u32::from((self.hop_size_flags.get() >> WIRE_SHIFT) as u16)
    }

    #[inline]
    fn flow_hash(&self) -> u64 {
        // Each direction of a flow hashes as its own flow (RFC 8290 § 4.1: the 5-tuple). Requests
        // share a direction with the ACKs of responses, and responses with the ACKs of requests.
        // Fibonacci hashing separates consecutive keys.
        let request = self.hop_size_flags.get() >> REQUEST_SHIFT & 1;
        let is_ack = u64::from(self.is_ack());
        let flow = u64::from(self.flow().bits()) ^ request << REQUESTS_BIT;
        let key = flow << 1 | is_ack ^ request;
        key.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

/// First bit of a note in each of its two fields: 2⁴⁸ B are 281 TB, 2⁴⁸ ns are 78 hours.
const NOTE_SHIFT: u32 = 48;
/// Last time stamp that leaves room for a note: a captured run ends no later.
pub const LAST_NOTED: Time = Time((1 << NOTE_SHIFT) - 1);

/// Stores a note for captures in the upper bits of `seq` and `ts`.
///
/// Nothing between two hosts reads these fields, and their upper bits are zero. So captures need no
/// larger segment. [`take_note`] restores the fields.
pub fn set_note(segment: &mut Segment, note: u32) {
    debug_assert!(segment.seq >> NOTE_SHIFT == 0 && segment.ts <= LAST_NOTED);
    segment.seq |= u64::from(note >> 16) << NOTE_SHIFT;
    segment.ts.0 |= u64::from(note & 0xffff) << NOTE_SHIFT;
}

/// A copy of the segment without its note.
pub fn without_note(segment: &Segment) -> Segment {
    let mut segment = *segment;
    take_note(&mut segment);
    segment
}

/// Removes the note and restores the fields; returns the note, zero if there is none.
pub fn take_note(segment: &mut Segment) -> u32 {
    let note = (segment.seq >> NOTE_SHIFT) << 16 | segment.ts.0 >> NOTE_SHIFT;
    segment.seq &= LAST_NOTED.0;
    segment.ts.0 &= LAST_NOTED.0;
    note as u32
}

#[cfg(test)]
impl Packet {
    /// Creates a data packet of this wire size, with `number` as its slot, for tests.
    pub(crate) fn numbered(number: u32, wire: u16) -> Self {
        Self::new(FlowId::new(0, 0), 0, SegmentSlot::from_index(number), &data_segment(0, wire))
    }

    /// Number given to [`Packet::numbered`], for tests.
    pub(crate) fn number(self) -> u32 {
        self.slot().index()
    }
}

/// Creates a data segment, for tests.
#[cfg(test)]
pub(crate) fn data_segment(seq: u64, wire: u16) -> Segment {
    Segment {
        seq,
        ts: Time::ZERO,
        len: u32::from(wire),
        wire,
        flags: cwnd_tcp::Flags::default(),
        ecn: cwnd_packet::Ecn::NotEct,
        body: cwnd_tcp::Body::DATA,
    }
}

#[cfg(test)]
mod tests {
    use cwnd_aqm::Packet as _;
    use cwnd_link::Packet as _;

    use super::*;

    #[test]
    fn a_note_leaves_no_trace() {
        let mut segment = data_segment(0x1234_5678_9abc, 1500);
        segment.ts = LAST_NOTED;
        let before = segment;
        for note in [0, 1, 0x8765_4321, u32::MAX] {
            set_note(&mut segment, note);
            assert_eq!(take_note(&mut segment), note);
            assert_eq!(segment, before);
        }
        assert_eq!(take_note(&mut segment), 0);
    }

    #[test]
    fn a_queue_sees_two_directions_of_a_connection_whoever_sends_data() {
        let flow = FlowId::new(5, 1);
        let ack = Segment { len: 0, body: cwnd_tcp::Body::ack(9), ..data_segment(7, 52) };
        let data = data_segment(7, 1500);
        let of_flow = |segment| Packet::new(flow, 2, SegmentSlot::from_index(3), segment);
        let of_request = |segment| {
            Packet::new(flow.requests(), 2, SegmentSlot::from_index(3), segment).of_request()
        };
        assert_eq!(of_request(&data).flow_hash(), of_flow(&ack).flow_hash());
        assert_eq!(of_request(&ack).flow_hash(), of_flow(&data).flow_hash());
        assert_ne!(of_flow(&ack).flow_hash(), of_flow(&data).flow_hash());
        assert_eq!(of_request(&data).flow().of_requests(), flow);
        assert_eq!(of_request(&data).next_hop().0, 2);
    }

    #[test]
    fn a_packet_tells_what_its_segment_would() {
        for (len, body) in [(0, cwnd_tcp::Body::ack(9)), (1460, cwnd_tcp::Body::DATA)] {
            let segment = Segment { len, body, ..data_segment(7, 1500) };
            let packet = Packet::new(FlowId::new(5, 1), 2, SegmentSlot::from_index(3), &segment);
            assert_eq!((packet.wire_bytes(), packet.has_payload()), (1500, len > 0));
        }
    }
}
