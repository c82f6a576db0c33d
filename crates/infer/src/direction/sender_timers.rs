//! Linux's RTT estimator and timer of the sender, replayed from the packets that it is known to
//! have received.
//!
//! A lost ACK makes the sender's next sample longer: it counts from the oldest segment that no
//! received ACK had covered. The timestamps echoed by the sender's later packets show which ACKs
//! were lost.

use std::collections::VecDeque;

use cwnd_quantity::{Duration, Time};

use crate::clock::Sent;
use crate::event::Timer;

/// Maximum number of segments that await their ACK; with more, the sender has other samples.
const MOST: usize = 256;
/// Lower bound of RTTVAR times four, ns (`TCP_RTO_MIN`).
const LEAST: u64 = 200_000_000;

/// SRTT and RTTVAR as computed by Linux (`tcp_rtt_estimator`), ns.
#[derive(Clone, Copy, Debug, Default)]
struct Estimator {
    smoothed: u64,
    /// Mean deviation times four (`mdev_us`).
    deviation: u64,
    /// Largest deviation since the round trip began (`mdev_max_us`).
    most: u64,
    /// Largest deviation, which falls only once per round trip (`rttvar_us`).
    lasting: u64,
    /// Position sent when that round trip began (`rtt_seq`).
    round: u64,
}

impl Estimator {
    fn sample(&mut self, sample: Duration, acked: u64, sent: u64) {
        let sample = sample.0;
        if self.smoothed == 0 {
            self.deviation = sample * 2;
            self.lasting = self.deviation.max(LEAST);
            (self.smoothed, self.most, self.round) = (sample, self.lasting, sent);
            return;
        }
        let off = sample.abs_diff(self.smoothed);
        let change = off.cast_signed() - (self.deviation / 4).cast_signed();
        // As in Linux, a shorter sample raises the deviation by an eighth only.
        let shorter = sample < self.smoothed && change > 0;
        let change = if shorter { change / 8 } else { change };
        self.smoothed = self.smoothed - self.smoothed / 8 + sample / 8;
        self.deviation = self.deviation.saturating_add_signed(change);
        self.most = self.most.max(self.deviation);
        self.lasting = self.lasting.max(self.most);
        if acked > self.round {
            self.lasting -= self.lasting.saturating_sub(self.most) / 4;
            (self.most, self.round) = (LEAST, sent);
        }
    }
}

/// A segment that arrived, and whose ACK the sender is not known to have received.
#[derive(Clone, Copy, Debug)]
struct Came {
    at: Time,
    end: u64,
    /// `true` if it is a retransmission or was retransmitted.
    again: bool,
}

/// Replayed state of the sender's timer.
#[derive(Clone, Debug, Default)]
pub struct Theirs {
    estimator: Estimator,
    /// Number of samples; the first is that of the handshake.
    samples: u32,
    came: VecDeque<Came>,
    /// Send time up to which those packets of the receiver were lost that the sender would echo.
    lost: Time,
    /// Send time up to which the receiver's packets were lost, echoed or not.
    unheard: Time,
    /// Send time of the newest packet of the receiver that the sender received.
    heard: Time,
}

impl Theirs {
    /// Returns the timer; its times are zero if there was no sample.
    pub const fn timer(&self) -> Timer {
        let Estimator { smoothed, lasting, .. } = self.estimator;
        Timer {
            smoothed: Duration(smoothed),
            timeout: Duration(smoothed + lasting),
            first: self.samples < 2,
        }
    }

    /// Returns the send time of the newest packet of the receiver that the sender received.
    pub const fn newest(&self) -> Time {
        self.heard
    }

    /// Records the arrival of a segment.
    pub fn came(&mut self, at: Time, end: u64, again: bool) {
        if again {
            self.came.iter_mut().filter(|came| came.end == end).for_each(|came| came.again = true);
        }
        // Samples are taken from the oldest segments.
        if self.came.len() < MOST {
            self.came.push_back(Came { at, end, again });
        }
    }

    /// Records that the packets of the receiver up to `until` were lost: the sender sent a packet
    /// whose echo was no newer.
    pub fn silent(&mut self, until: Time) {
        self.lost = self.lost.max(until);
    }

    /// Records that the sender received no packet of the receiver up to `before`.
    pub fn unheard(&mut self, before: Time) {
        self.unheard = self.unheard.max(before);
    }

    /// Records that the sender received `said`, and takes its RTT sample. `round` is the RTT
    /// between the capture point and the sender, `sent` the highest position sent.
    pub fn hears(&mut self, said: &Sent, round: Duration, sent: u64) {
        let lost = said.until <= self.unheard || (said.echoes && said.until <= self.lost);
        if lost || said.until <= self.heard {
            return;
        }
        self.heard = said.until;
        let (mut first, mut newest, mut sacked, mut again) = (None, None, None, false);
        while let Some(came) = self.came.front().copied().filter(|came| came.at <= said.until) {
            self.came.pop_front();
            if came.end <= said.acked {
                again |= came.again;
                first = first.or(Some(came.at));
                newest = Some(came.at);
            } else if !came.again {
                sacked = sacked.or(Some(came.at));
            }
        }
        // Karn's algorithm: a retransmission gives no sample, except by SACK or by its echoed
        // timestamp.
        let from = first.filter(|_| !again).or(sacked).or(newest);
        if let Some(from) = from.filter(|_| round > Duration::ZERO) {
            self.samples += 1;
            self.estimator.sample(round + said.until.since(from), said.acked, sent);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(50);

    fn steady() -> Estimator {
        let mut estimator = Estimator::default();
        for round in 0..100 {
            estimator.sample(SHORT, round, round);
        }
        estimator
    }

    #[test]
    fn a_steady_path_has_a_timeout_of_a_round_trip_and_200_ms() {
        let steady = steady();
        let timeout = steady.smoothed + steady.lasting;
        assert!(timeout.abs_diff(250_000_000) < 1_000_000, "{timeout}");
    }

    #[test]
    fn a_long_sample_makes_the_timeout_long_and_it_falls_once_a_round_trip() {
        let mut estimator = steady();
        estimator.sample(Duration::from_millis(850), 100, 200);
        // SRTT is 50 + 800/8 ms, four deviations are the 800 ms.
        let long = estimator.smoothed + estimator.lasting;
        assert!(long.abs_diff(950_000_000) < 5_000_000, "{long}");
        // No data sent since then are acknowledged: only SRTT falls.
        let before = estimator.lasting;
        estimator.sample(SHORT, 150, 250);
        assert_eq!(estimator.lasting, before);
        estimator.sample(SHORT, 201, 300);
        assert!(estimator.lasting < before);
    }
}
