//! The timers of the end that sends, as Linux sets them: replayed from what it is known to have heard.
//!
//! An acknowledgement that was lost makes the next sample long: it is taken from when the first segment was sent that nobody had
//! acknowledged to the sender before. Which were lost its next packets say, by the timestamps that they echo.

use std::collections::VecDeque;

use cwnd_quantity::{Duration, Time};

use crate::clock::Sent;
use crate::event::Timer;

/// Segments whose acknowledgement is waited for; with more, the sender has other samples.
const MOST: usize = 256;
/// RTTVAR is no less (`TCP_RTO_MIN`).
const LEAST: u64 = 200_000_000;

/// SRTT and RTTVAR as Linux has them (`tcp_rtt_estimator`), ns.
#[derive(Clone, Copy, Debug, Default)]
struct Estimator {
    smoothed: u64,
    /// Four deviations.
    deviation: u64,
    /// The largest since a round trip began.
    most: u64,
    /// The largest, which falls but once a round trip.
    lasting: u64,
    /// What had been sent when that began.
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
        // What is shorter than before makes the timeout no longer.
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

/// A segment that came, and that the sender has not heard of.
#[derive(Clone, Copy, Debug)]
struct Came {
    at: Time,
    end: u64,
    /// It had been sent before.
    again: bool,
}

/// What is known of the sender's timers.
#[derive(Clone, Debug, Default)]
pub struct Theirs {
    estimator: Estimator,
    /// Samples of data: the first is that of the handshake.
    samples: u32,
    came: VecDeque<Came>,
    /// Up to when nothing but `heard` had been heard: what was said between was lost.
    lost: Time,
    /// … and what would not have been echoed, too.
    unheard: Time,
    /// When the newest packet was said that was heard.
    heard: Time,
}

impl Theirs {
    /// What its timers are; zero if there was no sample.
    pub const fn timer(&self) -> Timer {
        let Estimator { smoothed, lasting, .. } = self.estimator;
        Timer {
            smoothed: Duration(smoothed),
            timeout: Duration(smoothed + lasting),
            first: self.samples < 2,
        }
    }

    /// When the newest packet was said that it heard.
    pub const fn newest(&self) -> Time {
        self.heard
    }

    /// A segment came.
    pub fn came(&mut self, at: Time, end: u64, again: bool) {
        if again {
            self.came.iter_mut().filter(|came| came.end == end).for_each(|came| came.again = true);
        }
        // Of the oldest the samples are taken.
        if self.came.len() < MOST {
            self.came.push_back(Came { at, end, again });
        }
    }

    /// It sent a packet when it had heard nothing newer than before, and so long ago that all said by `until` was lost.
    pub fn silent(&mut self, until: Time) {
        self.lost = self.lost.max(until);
    }

    /// It heard nothing of what was said before.
    pub fn unheard(&mut self, before: Time) {
        self.unheard = self.unheard.max(before);
    }

    /// It heard this, by what it echoes later; a round trip from here to it and back takes `round`, and it had sent so much.
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
        // Karn's rule: of what was sent again there is no sample, but by SACK, or of the packet whose timestamp is echoed.
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
        // Nothing that was sent since is acknowledged: only SRTT falls.
        let before = estimator.lasting;
        estimator.sample(SHORT, 150, 250);
        assert_eq!(estimator.lasting, before);
        estimator.sample(SHORT, 201, 300);
        assert!(estimator.lasting < before);
    }
}
