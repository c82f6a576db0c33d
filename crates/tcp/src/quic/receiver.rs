//! Receiver of a QUIC connection: packets received, the ACK frames that report them, and their
//! timing (RFC 9000 § 13.2, § 19.3; draft-ietf-quic-ack-frequency).

use std::sync::Arc;

use cwnd_packet::Ranges;
use cwnd_quantity::Time;

use super::{Ack, AckRange, MAX_ACK_RANGES, Packet, Params};
use crate::counters::ReceiverCounters;

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

/// Decides when an ACK is due.
#[derive(Clone, Copy, Debug)]
struct AckPolicy {
    /// Packets received since the last ACK.
    pending: u32,
    /// Time at which an ACK must be sent; `Time::NEVER` if none is due.
    deadline: Time,
    /// Largest number that the last ACK reported.
    reported: Option<u64>,
}

impl AckPolicy {
    const NEW: Self = Self { pending: 0, deadline: Time::NEVER, reported: None };

    /// Returns the time at which an ACK must be sent; `Time::NEVER` if none is due.
    const fn deadline(self) -> Time {
        self.deadline
    }

    /// Counts a packet, which is already among `received`, and sets the deadline of its ACK, unless
    /// an earlier one is set; `marked` if it carries CE.
    fn on_packet(
        &mut self,
        now: Time,
        number: u64,
        marked: bool,
        received: &Ranges,
        params: &Params,
    ) {
        self.pending += 1;
        let at_once = marked
            || self.pending > params.ack_eliciting_threshold
            || self.is_out_of_order(number, received, params.reordering_threshold);
        let deadline = if at_once { now } else { now + params.max_ack_delay };
        self.deadline = self.deadline.min(deadline);
    }

    /// Resets the state after an ACK with this largest number.
    const fn on_ack(&mut self, largest: u64) {
        *self = Self { reported: Some(largest), ..Self::NEW };
    }

    /// `true` if reordering demands an immediate ACK, by `reordering_threshold`.
    fn is_out_of_order(&self, number: u64, received: &Ranges, threshold: u32) -> bool {
        let largest = received.highest().map_or(number, |range| range.end - 1);
        match threshold {
            0 => false,
            // RFC 9000 § 13.2.1: the number is below another one, or directly above a gap.
            1 => {
                number < largest
                    || received.containing(number).is_some_and(|r| r.start == number)
                        && received.lowest().is_some_and(|range| range.start < number)
            }
            // draft-ietf-quic-ack-frequency § 6.2: the gap from the smallest missing number that
            // the sender cannot have declared lost yet to the largest received.
            _ => {
                let threshold = u64::from(threshold);
                let from =
                    self.reported.map_or(0, |reported| (reported + 1).saturating_sub(threshold));
                let missing = received.hole_from(from, largest);
                missing.is_some_and(|missing| largest - missing.start >= threshold)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use cwnd_quantity::Duration;

    use super::*;
    use crate::quic::AckFrame;

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

    /// Returns the numbers whose arrival is acknowledged at once.
    fn at_once(numbers: &[u64], params: &Params) -> Vec<u64> {
        let (mut policy, mut received) = (AckPolicy::NEW, Ranges::default());
        let mut acknowledged = Vec::new();
        for &number in numbers {
            received.insert(number, number + 1);
            policy.on_packet(Time(7), number, false, &received, params);
            if policy.deadline() == Time(7) {
                acknowledged.push(number);
                policy.on_ack(received.highest().expect("one came").end - 1);
            }
        }
        acknowledged
    }

    #[test]
    fn every_second_packet_is_acknowledged_and_each_out_of_order() {
        let params = Params::default();
        assert_eq!(at_once(&[0, 1, 2, 3, 5, 4, 6, 7], &params), [1, 3, 5, 4, 7]);
        let rare = Params { ack_eliciting_threshold: 9, reordering_threshold: 0, ..params };
        assert_eq!(at_once(&[0, 1, 2, 4, 3, 5, 6, 7, 8, 9, 10], &rare), [9]);
    }

    #[test]
    fn a_reordering_threshold_waits_for_the_packet_that_lets_the_sender_declare_a_loss() {
        // The example of draft-ietf-quic-ack-frequency § 6.2.1, for a threshold of 3.
        let params =
            Params { ack_eliciting_threshold: 99, reordering_threshold: 3, ..Params::default() };
        let numbers = [0, 1, 3, 4, 5, 8, 9, 10];
        assert_eq!(at_once(&numbers, &params), [5, 9, 10]);
    }

    #[test]
    fn a_lone_packet_waits_for_max_ack_delay_and_a_marked_one_does_not() {
        let (params, mut received) = (Params::default(), Ranges::default());
        received.insert(0, 1);
        let mut policy = AckPolicy::NEW;
        policy.on_packet(Time(0), 0, false, &received, &params);
        assert_eq!(policy.deadline(), Time(0) + Duration::from_millis(25));
        policy.on_packet(Time(5), 0, true, &received, &params);
        assert_eq!(policy.deadline(), Time(5));
    }
}
