//! HyStart++ (RFC 9406): ends slow start when the RTT rises, before the queue overflows.

use cwnd_quantity::Duration;

/// Growth that an ACK permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Grow as in slow start.
    Full,
    /// Grow by that divided by [`HyStart::GROWTH_DIVISOR`].
    Conservative,
    /// Slow start is over: ssthresh = cwnd.
    Exit,
}

/// State of HyStart++, with the names of RFC 9406 § 4.2.
#[derive(Clone, Debug, Default)]
pub(crate) struct HyStart {
    round: Option<u64>,
    last_round_min_rtt: Option<Duration>,
    current_round_min_rtt: Option<Duration>,
    rtt_sample_count: u32,
    css: Option<Css>,
}

/// Conservative slow start.
#[derive(Clone, Debug)]
struct Css {
    baseline_min_rtt: Duration,
    rounds: u32,
}

impl HyStart {
    /// L for a sender that does not pace, in segments (RFC 9406 § 4.3).
    pub(crate) const LIMIT: u32 = 8;
    /// CSS_GROWTH_DIVISOR (RFC 9406 § 4.3).
    pub(crate) const GROWTH_DIVISOR: u64 = 4;

    /// Handles an ACK in slow start. `round` counts round trips: it rises when the RFC's
    /// `windowEnd` is acknowledged. The ACK that ends a round is the first of the next.
    pub(crate) fn on_ack(&mut self, round: u64, rtt: Option<Duration>) -> Step {
        if self.round != Some(round) {
            if self.round.is_some() && self.end_round() {
                return Step::Exit;
            }
            self.round = Some(round);
        }
        // RFC 9406 § 4.2: an ACK raises the window first, then its sample may change the phase.
        let step = if self.css.is_some() { Step::Conservative } else { Step::Full };
        if let Some(rtt) = rtt {
            let min_rtt = self.current_round_min_rtt.map_or(rtt, |min_rtt| min_rtt.min(rtt));
            self.current_round_min_rtt = Some(min_rtt);
            self.rtt_sample_count += 1;
            if self.rtt_sample_count >= N_RTT_SAMPLE {
                self.compare(min_rtt);
            }
        }
        step
    }

    /// Ends a round; `true` if it was the last of conservative slow start.
    fn end_round(&mut self) -> bool {
        self.last_round_min_rtt = self.current_round_min_rtt.take();
        self.rtt_sample_count = 0;
        match &mut self.css {
            // The round in which the phase began counts, however late in it (RFC 9406 § 4.2).
            Some(css) => {
                css.rounds += 1;
                css.rounds >= CSS_ROUNDS
            }
            None => false,
        }
    }

    /// Compares the round's least RTT with the last round's, or in conservative slow start with its
    /// baseline.
    fn compare(&mut self, min_rtt: Duration) {
        match &self.css {
            // The RTT fell again: the rise was spurious, slow start resumes.
            Some(css) if min_rtt < css.baseline_min_rtt => self.css = None,
            Some(_) => {}
            None => {
                let Some(last) = self.last_round_min_rtt else { return };
                let threshold = (last / MIN_RTT_DIVISOR).min(MAX_RTT_THRESH).max(MIN_RTT_THRESH);
                if min_rtt >= last + threshold {
                    self.css = Some(Css { baseline_min_rtt: min_rtt, rounds: 0 });
                }
            }
        }
    }
}

// RFC 9406 § 4.3, all RECOMMENDED values.
/// Least rise of the RTT that counts.
const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
/// Rise of the RTT that always counts.
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
/// Divisor of the last round's RTT that gives the rise which counts, between the two bounds.
const MIN_RTT_DIVISOR: u64 = 8;
/// RTT samples in a round before its RTT is compared.
const N_RTT_SAMPLE: u32 = 8;
/// Rounds of conservative slow start.
const CSS_ROUNDS: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds a round of `acks` ACKs with one RTT; returns the step that the next ACK would get.
    fn round(h: &mut HyStart, number: u64, acks: u32, rtt_ms: u64) -> Step {
        for _ in 0..acks {
            assert_ne!(h.on_ack(number, Some(Duration::from_millis(rtt_ms))), Step::Exit);
        }
        if h.css.is_some() { Step::Conservative } else { Step::Full }
    }

    #[test]
    fn the_ack_that_changes_the_phase_still_counts_for_the_old_one() {
        let mut h = HyStart::default();
        round(&mut h, 0, 10, 80);
        round(&mut h, 1, 7, 100);
        assert_eq!(h.on_ack(1, Some(Duration::from_millis(100))), Step::Full);
        assert_eq!(h.on_ack(1, Some(Duration::from_millis(100))), Step::Conservative);
    }

    #[test]
    fn an_rtt_that_rises_by_an_eighth_begins_conservative_slow_start_at_the_eighth_sample() {
        let mut h = HyStart::default();
        assert_eq!(round(&mut h, 0, 10, 80), Step::Full);
        assert_eq!(round(&mut h, 1, 7, 90), Step::Full, "seven samples judge nothing");
        assert_eq!(round(&mut h, 1, 1, 90), Step::Conservative);
    }

    #[test]
    fn the_threshold_lies_between_4_and_16_milliseconds() {
        // (last RTT, least rise that counts): an eighth of it, but from 4 to 16 ms.
        for (last, rise) in [(8, 4), (32, 4), (80, 10), (128, 16), (400, 16)] {
            let mut below = HyStart::default();
            round(&mut below, 0, 8, last);
            assert_eq!(round(&mut below, 1, 8, last + rise - 1), Step::Full, "{last} + {rise} − 1");
            let mut at = HyStart::default();
            round(&mut at, 0, 8, last);
            assert_eq!(round(&mut at, 1, 8, last + rise), Step::Conservative, "{last} + {rise}");
        }
    }

    #[test]
    fn slow_start_ends_after_five_conservative_rounds_the_first_of_which_may_be_partial() {
        let mut h = HyStart::default();
        round(&mut h, 0, 10, 80);
        assert_eq!(round(&mut h, 1, 9, 100), Step::Conservative, "round 1 of 5, in part");
        for number in 2..=5 {
            assert_eq!(round(&mut h, number, 10, 100), Step::Conservative, "round {number} of 5");
        }
        assert_eq!(h.on_ack(6, None), Step::Exit);
    }

    #[test]
    fn an_rtt_that_falls_again_resumes_slow_start() {
        let mut h = HyStart::default();
        round(&mut h, 0, 10, 80);
        assert_eq!(round(&mut h, 1, 10, 100), Step::Conservative);
        assert_eq!(round(&mut h, 2, 7, 81), Step::Conservative);
        assert_eq!(round(&mut h, 2, 1, 81), Step::Full);
    }

    #[test]
    fn one_low_sample_in_a_round_hides_the_rise() {
        let mut h = HyStart::default();
        round(&mut h, 0, 10, 80);
        round(&mut h, 1, 1, 81);
        assert_eq!(round(&mut h, 1, 20, 200), Step::Full, "the round's least RTT decides");
    }
}
