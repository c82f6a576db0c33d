//! Receiver of a QUIC connection: packets received, and the ACK frames that report them (RFC 9000 §
//! 13.2, § 19.3).

use std::sync::Arc;

use cwnd_packet::Ranges;
use cwnd_quantity::{Duration, Time};

use super::ack_policy::AckPolicy;
use super::{AckFrame, AckRange, Packet, Params};
use crate::counters::ReceiverCounters;

/// Ranges that an ACK reports at most (RFC 9000 § 13.2.3 leaves the number to the receiver).
pub const MAX_ACK_RANGES: usize = 7;

/// An ACK frame with its ranges, as an owned value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    pub(super) ranges: [AckRange; MAX_ACK_RANGES],
    pub(super) count: u8,
    pub(super) delay: Duration,
    pub(super) ce: u64,
}

impl Ack {
    /// Returns the frame, which borrows the ranges.
    #[must_use]
    pub fn frame(&self) -> AckFrame<'_> {
        let ranges = &self.ranges[..usize::from(self.count)];
        AckFrame { ranges, delay: self.delay, ce: self.ce }
    }
}

/// Receiver of a stream.
///
/// Call [`Receiver::on_packet`] for each packet. Then, and at [`Receiver::next_timer`], call
/// [`Receiver::poll_ack`].
#[derive(Clone, Debug)]
pub struct Receiver {
    params: Arc<Params>,
    /// Packet numbers received, from `least` on.
    numbers: Ranges,
    /// Smallest number that is not dropped: ACKs report no lower one (RFC 9000 § 13.2.3).
    least: u64,
    /// Stream bytes received.
    data: Ranges,
    /// Arrival time of the largest number.
    largest_at: Time,
    policy: AckPolicy,
    /// Counters but for the bytes delivered.
    counters: ReceiverCounters,
}

impl Receiver {
    /// Creates a receiver that has received nothing.
    #[must_use]
    pub fn new(params: Arc<Params>) -> Self {
        Self {
            params,
            numbers: Ranges::default(),
            least: 0,
            data: Ranges::default(),
            largest_at: Time::ZERO,
            policy: AckPolicy::NEW,
            counters: ReceiverCounters::default(),
        }
    }

    /// Processes a packet, and drops a possible duplicate; `marked` if it carries CE.
    pub fn on_packet(&mut self, now: Time, packet: &Packet, marked: bool) {
        let number = packet.number;
        self.counters.segments += 1;
        self.counters.wire_bytes += self.params.header.0 + u64::from(packet.bytes);
        // § 12.3: a packet that may be a duplicate is dropped.
        if number < self.least || self.numbers.containing(number).is_some() {
            self.counters.duplicates += 1;
            return;
        }
        if self.numbers.highest().is_none_or(|range| range.end <= number) {
            self.largest_at = now;
        }
        self.numbers.insert(number, number + 1);
        if packet.len > 0 {
            let (_, new) = self.data.insert(packet.start, packet.start + u64::from(packet.len));
            self.counters.duplicates += u64::from(new == 0);
        }
        self.counters.ce_segments += u64::from(marked);
        self.policy.on_packet(now, number, marked, &self.numbers, &self.params);
    }

    /// Returns the time at which an ACK must be sent; `Time::NEVER` if none is due.
    #[must_use]
    pub const fn next_timer(&self) -> Time {
        self.policy.deadline()
    }

    /// Returns the ACK to send now, if one is due.
    pub fn poll_ack(&mut self, now: Time) -> Option<Ack> {
        if now < self.policy.deadline() {
            return None;
        }
        let mut ranges = [AckRange { first: 0, last: 0 }; MAX_ACK_RANGES];
        let mut count = 0;
        for (range, slot) in self.numbers.descending().zip(&mut ranges) {
            *slot = AckRange { first: range.start, last: range.end - 1 };
            count += 1;
        }
        let (largest, lowest) = (ranges[0].last, ranges[usize::from(count) - 1].first);
        // § 13.2.3: ranges below the lowest of a full ACK are forgotten.
        if usize::from(count) == MAX_ACK_RANGES {
            self.numbers.remove_below(lowest);
            self.least = lowest;
        }
        self.policy.on_ack(largest);
        self.counters.acks_sent += 1;
        let (delay, ce) = (now.since(self.largest_at), self.counters.ce_segments);
        Some(Ack { ranges, count, delay, ce })
    }

    /// Returns the number of stream bytes received from the start without a gap.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.data.containing(0).map_or(0, |range| range.end)
    }

    /// Returns the counters over the whole run.
    #[must_use]
    pub fn counters(&self) -> ReceiverCounters {
        ReceiverCounters { delivered_bytes: self.delivered(), ..self.counters }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(number: u64) -> Packet {
        Packet { number, start: number * 100, len: 100, bytes: 150, again: false }
    }

    fn receiver() -> Receiver {
        Receiver::new(Arc::new(Params::default()))
    }

    #[test]
    fn an_acknowledgement_reports_ranges_delay_and_marks() {
        let mut receiver = receiver();
        receiver.on_packet(Time(10), &packet(0), false);
        assert_eq!(receiver.poll_ack(Time(10)), None);
        receiver.on_packet(Time(20), &packet(2), true);
        receiver.on_packet(Time(21), &packet(1), false);
        receiver.on_packet(Time(22), &packet(4), false);
        let ack = receiver.poll_ack(Time(30)).expect("packets are missing");
        let range = |first, last| AckRange { first, last };
        let ranges = [range(4, 4), range(0, 2)];
        assert_eq!(ack.frame(), AckFrame { ranges: &ranges, delay: Duration(8), ce: 1 });
        assert_eq!((receiver.next_timer(), receiver.delivered()), (Time::NEVER, 300));
    }

    #[test]
    fn the_oldest_ranges_are_forgotten_and_what_may_be_a_copy_is_dropped() {
        let mut receiver = receiver();
        (0..10).for_each(|n| receiver.on_packet(Time(n), &packet(2 * n), false));
        let ack = receiver.poll_ack(Time(10)).expect("packets are missing");
        assert_eq!(ack.frame().ranges.len(), MAX_ACK_RANGES);
        assert_eq!(ack.frame().ranges[6], AckRange { first: 6, last: 6 });
        receiver.on_packet(Time(11), &packet(1), false);
        receiver.on_packet(Time(11), &packet(18), false);
        assert_eq!((receiver.next_timer(), receiver.delivered()), (Time::NEVER, 100));
    }
}
