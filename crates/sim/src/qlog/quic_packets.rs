//! Packets of a QUIC connection, with their own numbers.

use cwnd_tcp::Segment;
use cwnd_tcp::quic::{Ack, Packet, Params, Sender};

use crate::qlog::{ReceivedAck, SentPacket};

/// Parameters of the connection, and what the sender has judged so far.
pub struct QuicPackets {
    params: Params,
    largest_acked: Option<u64>,
    /// One past the last packet that was declared lost. Losses are found in order of the numbers.
    judged: u64,
}

impl QuicPackets {
    /// Creates the state of a new connection.
    pub fn new(params: &Params) -> Self {
        Self { params: params.clone(), largest_acked: None, judged: 0 }
    }

    /// Reads an ACK frame.
    pub fn on_ack(&mut self, segment: &Segment) -> Option<ReceivedAck> {
        let ack = Ack::of(segment)?;
        let frame = ack.frame();
        let ranges: Vec<_> = frame.ranges.iter().map(|range| (range.first, range.last)).collect();
        self.largest_acked = self.largest_acked.max(ranges.first().map(|&(_, last)| last));
        Some(ReceivedAck {
            ranges,
            bytes: Some(self.bytes(segment)),
            delay: Some(frame.delay),
            ce: self.params.ecn.then_some(frame.ce),
            is_syn: false,
        })
    }

    /// Reads a packet that is sent.
    pub fn on_sent(&self, segment: &Segment) -> Option<SentPacket> {
        let Packet { number, start, len, bytes, .. } = Packet::of(segment, &self.params)?;
        Some(SentPacket { number, bytes, data: Some((start, len)) })
    }

    /// Takes the packets that the last event declared lost, with the threshold that they reached
    /// (RFC 9002 § 6.1).
    pub fn take_lost(&mut self, sender: &Sender) -> Vec<(u64, &'static str)> {
        let new = sender.recovery().lost().iter().filter(|packet| packet.number >= self.judged);
        let threshold = u64::from(self.params.packet_threshold);
        let lost: Vec<_> = new
            .map(|packet| {
                let by_order = self.largest_acked >= Some(packet.number + threshold);
                (packet.number, if by_order { "reordering_threshold" } else { "time_threshold" })
            })
            .collect();
        self.judged = lost.last().map_or(self.judged, |&(number, _)| number + 1);
        lost
    }

    fn bytes(&self, segment: &Segment) -> u32 {
        u32::from(segment.wire) - self.params.header.0 as u32
    }
}
