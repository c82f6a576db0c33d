//! Timing of QUIC's ACKs (RFC 9000 § 13.2, draft-ietf-quic-ack-frequency).

use cwnd_packet::Ranges;
use cwnd_quantity::Time;

use super::Params;

/// Decides when an ACK is due.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckPolicy {
    /// Packets received since the last ACK.
    pending: u32,
    /// Time at which an ACK must be sent; `Time::NEVER` if none is due.
    deadline: Time,
    /// Largest number that the last ACK reported.
    reported: Option<u64>,
}

impl AckPolicy {
    pub const NEW: Self = Self { pending: 0, deadline: Time::NEVER, reported: None };

    /// Returns the time at which an ACK must be sent; `Time::NEVER` if none is due.
    pub const fn deadline(self) -> Time {
        self.deadline
    }

    /// Counts a packet, which is already among `received`, and sets the deadline of its ACK, unless
    /// an earlier one is set; `marked` if it carries CE.
    pub fn on_packet(
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
    pub const fn on_ack(&mut self, largest: u64) {
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
