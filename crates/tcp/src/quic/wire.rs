//! Conversion of QUIC packets to segments, and their sizes on the wire (RFC 9000 § 17.3, § 19).

use cwnd_packet::Ecn;
use cwnd_quantity::Time;

use super::{Ack, AckBody, Packet, Params};
use crate::segment::{Body, Flags, Segment};

/// Bytes of a packet around its frames: first byte, connection ID of 8 B, packet number of 2 B and
/// tag of 16 B (RFC 9000 § 17.3.1, RFC 9001 § 5.3).
const SHORT_HEADER: u32 = 1 + 8 + 2 + 16;
/// Bytes of a packet that are not stream data: besides its header those of a STREAM frame without
/// length, with type, stream ID of 1 B and offset of 4 B (RFC 9000 § 19.8).
pub const PACKET_OVERHEAD: u32 = SHORT_HEADER + 1 + 1 + 4;

impl Packet {
    /// Returns the datagram with this packet, ECT(0) with `ecn`.
    #[must_use]
    pub fn segment(&self, now: Time, params: &Params) -> Segment {
        Segment {
            seq: self.start,
            ts: now,
            len: self.len,
            wire: params.header.0 as u16 + self.bytes as u16,
            flags: Flags(0),
            ecn: if params.ecn { Ecn::Ect0 } else { Ecn::NotEct },
            body: Body::Quic { number: self.number, again: self.again },
        }
    }

    /// Returns the packet of a datagram; `None` unless it is a QUIC packet with stream data.
    #[must_use]
    pub fn of(segment: &Segment, params: &Params) -> Option<Self> {
        let Body::Quic { number, again } = segment.body else { return None };
        let bytes = u32::from(segment.wire) - params.header.0 as u32;
        Some(Self { number, start: segment.seq, len: segment.len, bytes, again })
    }
}

impl Ack {
    /// Returns the datagram with this frame alone, not ECN-capable.
    #[must_use]
    pub fn segment(&self, now: Time, params: &Params) -> Segment {
        let frame = self.frame();
        let largest = frame.ranges.first().map_or(0, |range| range.last);
        let body = AckBody::of(frame.ranges, frame.delay, frame.ce);
        let bytes = SHORT_HEADER + body.bytes(largest, params.ecn);
        Segment {
            seq: largest,
            ts: now,
            len: 0,
            wire: params.header.0 as u16 + bytes as u16,
            flags: Flags(0),
            ecn: Ecn::NotEct,
            body: Body::QuicAck(body),
        }
    }

    /// Returns the ACK frame of a datagram; `None` if it has none.
    #[must_use]
    pub fn of(segment: &Segment) -> Option<Self> {
        let Body::QuicAck(body) = segment.body else { return None };
        Some(body.ack(segment.seq))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_packet_fills_an_ethernet_frame_and_comes_back_from_its_segment() {
        let packet = Packet { number: 7, start: 500, len: 1439, bytes: 1472, again: false };
        let params = Params::default();
        let segment = packet.segment(Time(3), &params);
        assert_eq!((segment.wire, params.sizes().payload), (1500, 1439));
        assert_eq!((Packet::of(&segment, &params), Ack::of(&segment)), (Some(packet), None));
    }
}
