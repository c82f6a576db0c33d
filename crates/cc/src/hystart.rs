//! HyStart++ (RFC 9406): leaves slow start when the round-trip time rises, before the queue overflows.

use cwnd_units::Duration;

/// What the window may do with this ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Grow as in slow start.
    Full,
    /// Grow by a [`HyStart::GROWTH_DIVISOR`]-th.
    Conservative,
    /// Slow start is over: ssthresh = cwnd.
    Exit,
}

/// The state of RFC 9406 § 4.2, with its names.
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

    /// An ACK in slow start; `round` counts round trips (the RFC's `windowEnd` being acknowledged). The ACK that ends
    /// a round is the first of the next.
    pub(crate) fn on_ack(&mut self, round: u64, rtt: Option<Duration>) -> Step {
        if self.round != Some(round) {
            if self.round.is_some() && self.end_round() {
                return Step::Exit;
            }
            self.round = Some(round);
        }
        if let Some(rtt) = rtt {
            let least = self.current_round_min_rtt.map_or(rtt, |least| least.min(rtt));
            self.current_round_min_rtt = Some(least);
            self.rtt_sample_count += 1;
            if self.rtt_sample_count >= N_RTT_SAMPLE {
                self.compare(least);
            }
        }
        if self.css.is_some() { Step::Conservative } else { Step::Full }
    }

    /// Ends a round; true when it was the last of conservative slow start.
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

    /// Compares the round's least RTT with the last round's, or in conservative slow start with its baseline.
    fn compare(&mut self, least: Duration) {
        match &self.css {
            // The RTT fell again: the rise was spurious, slow start resumes.
            Some(css) if least < css.baseline_min_rtt => self.css = None,
            Some(_) => {}
            None => {
                let Some(last) = self.last_round_min_rtt else { return };
                let threshold = (last / MIN_RTT_DIVISOR).min(MAX_RTT_THRESH).max(MIN_RTT_THRESH);
                if least >= last + threshold {
                    self.css = Some(Css { baseline_min_rtt: least, rounds: 0 });
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
/// Part of the RTT by which it must rise between the two bounds.
const MIN_RTT_DIVISOR: u64 = 8;
/// RTT samples in a round before it is judged.
const N_RTT_SAMPLE: u32 = 8;
/// Rounds of conservative slow start.
const CSS_ROUNDS: u32 = 5;
