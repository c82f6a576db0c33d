//! Packets of a TCP connection. A packet number counts transmissions: a retransmission has a new
//! one, as in QUIC, so that each packet is acknowledged or lost at most once.

use std::collections::BTreeMap;

use cwnd_cc::Phase;
use cwnd_packet::Echo;
use cwnd_tcp::{Body, Flags, Segment, Sender};

use crate::qlog::{ReceivedAck, Seen, SentPacket};

/// Transmissions in flight.
#[derive(Default)]
pub struct TcpPackets {
    /// Number of the next transmission.
    next: u64,
    /// End of each transmission that is neither acknowledged nor lost, by its first byte and its
    /// number.
    in_flight: BTreeMap<(u64, u64), u64>,
    /// Number of the last SYN until it is acknowledged or lost.
    syn: Option<u64>,
    /// SND.UNA.
    acknowledged: u64,
    /// Expiries of the retransmission timer so far.
    timeouts: u64,
}

/// Bytes that no segment exceeds.
const LONGEST: u64 = u16::MAX as u64;

impl TcpPackets {
    /// Reads an acknowledgement: it is for all transmissions of its bytes that are not lost.
    pub fn on_ack(&mut self, segment: &Segment) -> ReceivedAck {
        let ack = segment.seq;
        let mut numbers = self.take_acknowledged(ack);
        for block in segment.sack().iter().filter(|block| block.len > 0) {
            numbers.extend(self.take(block.start(ack), block.end(ack), true));
        }
        let is_syn = segment.flags.has(Flags::SYN);
        if is_syn {
            numbers.extend(self.syn.take());
        }
        let ce = match segment.body {
            Body::Ack { echo: Echo::Ce { packets }, .. } => Some(packets.into()),
            _ => None,
        };
        ReceivedAck {
            ranges: ranges(numbers),
            bytes: Some(segment.wire.into()),
            delay: None,
            ce,
            is_syn,
        }
    }

    /// Reads the acknowledgement of all below `ack` that data in the other direction may carry;
    /// `None` if nothing is new.
    pub fn on_carried_ack(&mut self, ack: u64) -> Option<ReceivedAck> {
        let is_new = ack > self.acknowledged;
        let ranges = ranges(if is_new { self.take_acknowledged(ack) } else { Vec::new() });
        is_new.then_some(ReceivedAck { ranges, bytes: None, delay: None, ce: None, is_syn: false })
    }

    /// Reads a segment that is sent.
    pub fn on_sent(&mut self, segment: &Segment) -> SentPacket {
        let number = self.next;
        self.next += 1;
        let is_syn = segment.flags.has(Flags::SYN);
        if is_syn {
            self.syn = Some(number);
        }
        if segment.len > 0 {
            self.in_flight.insert((segment.seq, number), segment.end());
        }
        SentPacket {
            number,
            bytes: segment.wire.into(),
            data: (!is_syn).then_some((segment.seq, segment.len)),
        }
    }

    /// Takes the transmissions that the sender takes for lost now: those of bytes that it marked,
    /// and those of lost bytes that it sends again in the same event. A sender without SACK marks
    /// nothing: a segment is lost once it is sent again.
    pub fn take_lost<'a>(
        &mut self,
        seen: impl Iterator<Item = &'a Seen>,
        sender: &Sender,
    ) -> Vec<(u64, &'static str)> {
        let timeouts = sender.counters().timeouts.iter().sum();
        let expired = core::mem::replace(&mut self.timeouts, timeouts) != timeouts;
        // Without SACK, a timeout's segments are sent again one by one until its phase ends.
        let repairs = !sender.has_sack() && sender.phase() == Phase::Loss;
        let trigger = match expired || repairs {
            true => "pto_expired",
            false if sender.finds_losses_by_time() => "time_threshold",
            false => "reordering_threshold",
        };
        let mut lost = Vec::new();
        for range in sender.lost_ranges() {
            lost.extend(self.take(range.start, range.end, false));
        }
        let mut lost_syn = None;
        for seen in seen {
            let Seen::Sent(segment) = seen else { continue };
            if segment.is_retransmission() && sender.is_lost(segment.seq) {
                lost.extend(self.take(segment.seq, segment.end(), false));
            }
            if segment.flags.has(Flags::SYN) {
                lost_syn = self.syn.take();
            }
        }
        lost.sort_unstable();
        let lost = lost.into_iter().map(|number| (number, trigger));
        lost_syn.into_iter().map(|number| (number, "pto_expired")).chain(lost).collect()
    }

    fn take_acknowledged(&mut self, ack: u64) -> Vec<u64> {
        self.acknowledged = self.acknowledged.max(ack);
        self.take(0, ack, true)
    }

    /// Takes the numbers of transmissions in flight: those within `[from, to)`, or if not `whole`
    /// those that share a byte with it.
    fn take(&mut self, from: u64, to: u64, whole: bool) -> Vec<u64> {
        let first = if whole { from } else { from.saturating_sub(LONGEST) };
        let near = self.in_flight.range((first.min(to), 0)..(to, 0));
        let taken: Vec<_> = near
            .filter(|&(_, &end)| if whole { end <= to } else { end > from })
            .map(|(&key, _)| key)
            .collect();
        for key in &taken {
            self.in_flight.remove(key);
        }
        taken.into_iter().map(|(_, number)| number).collect()
    }
}

/// Joins numbers into closed ranges, the largest first.
fn ranges(mut numbers: Vec<u64>) -> Vec<(u64, u64)> {
    numbers.sort_unstable_by(|a, b| b.cmp(a));
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((first, _)) if *first == number + 1 => *first = number,
            _ => ranges.push((number, number)),
        }
    }
    ranges
}
