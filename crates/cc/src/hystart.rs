//! Ends of slow start before the queue overflows.
//!
//! HyStart++ (RFC 9406) ends it when the RTT rises. Classic HyStart (Ha & Rhee; Linux,
//! tcp_cubic.c) ends it at the first sign that the pipe is full: a train of ACKs has lasted half a
//! round trip, or the delay has risen.

use cwnd_quantity::{Duration, Time};

use crate::controller::{AckSample, Path};

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

/// State of the current round.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// Payload bytes sent when the round began; it lasts until more than that is acknowledged.
    end: u64,
    start: Time,
    /// Time of the last ACK of the train.
    last_ack: Time,
    min_rtt: Duration,
    samples: u32,
}

impl Round {
    fn new(path: &Path, now: Time) -> Self {
        // Value of Linux 6.18 (`~0U`); Linux 3.17 begins with zero, which means "none yet".
        Self { end: path.sent, start: now, last_ack: now, min_rtt: Duration::MAX, samples: 0 }
    }
}

/// Classic HyStart. It counts its own round trips.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HyStartClassic {
    round: Option<Round>,
    delay_min: Option<Duration>,
    variant: Variant,
    /// Time at which ACKs are not judged, and `true` if they may begin a round: an ACK that undoes
    /// a reduction.
    skipped: Option<(Time, bool)>,
}

/// Implementation that is followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Variant {
    #[default]
    Linux618,
    Linux618Paced,
    Linux317,
    Ns3,
}

impl HyStartClassic {
    /// HyStart of Linux 3.17: the clock counts milliseconds, delays count eighths of one. The rise
    /// is a sixteenth, by the first samples of a round. There is no allowance for offloads.
    pub(crate) fn linux_3_17() -> Self {
        Self { variant: Variant::Linux317, ..Self::default() }
    }

    /// HyStart of Linux with pacing: the train must last a whole round trip.
    pub(crate) fn linux_paced() -> Self {
        Self { variant: Variant::Linux618Paced, ..Self::default() }
    }

    /// HyStart of ns-3 (tcp-cubic.cc, `HystartUpdate`): a train must last the whole least delay. A
    /// rise, by the first samples of a round, must exceed that delay (from 4 ms to 1 s).
    pub(crate) fn ns3() -> Self {
        Self { variant: Variant::Ns3, ..Self::default() }
    }

    /// Begins a round at a timeout, only in Linux 6.18 without pacing (`cubictcp_state`:
    /// `bictcp_hystart_reset`).
    pub(crate) fn start_round(&mut self, path: &Path) {
        if self.variant == Variant::Linux618 {
            self.round = Some(Round::new(path, path.now));
        }
    }

    /// Exempts the ACK that undoes a reduction now. Linux has judged it before the undo, at the
    /// reduced window (`pkts_acked`): in a recovery outside slow start, after a timeout below the
    /// least window. `delay_min` replaces the least delay, if given.
    pub(crate) fn skip_sample(
        &mut self,
        now: Time,
        after_timeout: bool,
        delay_min: Option<Duration>,
    ) {
        self.skipped = Some((now, after_timeout));
        self.delay_min = delay_min.or(self.delay_min);
    }

    /// Handles an ACK in slow start at a window of `cwnd` bytes; `true` if slow start is over:
    /// ssthresh = cwnd.
    pub(crate) fn on_ack(&mut self, path: &Path, ack: &AckSample, cwnd: u64) -> bool {
        let Some(rtt) = ack.rtt else { return false };
        let skipped = self.skipped.take().filter(|&(at, _)| at == path.now);
        if skipped.is_some_and(|(_, begins)| !begins) {
            return false;
        }
        // Linux 3.17 keeps `delay` in eighths of a millisecond.
        let is_3_17 = self.variant == Variant::Linux317;
        let rtt = if is_3_17 { rounded(rtt, DELAY_UNIT) } else { rtt };
        let delay_min = self.delay_min.map_or(rtt, |min| min.min(rtt));
        self.delay_min = Some(delay_min);
        let now = if is_3_17 { Time(rounded(Duration(path.now.0), CLOCK_317).0) } else { path.now };
        let round = match &mut self.round {
            Some(round) if path.delivered <= round.end => round,
            slot => slot.insert(Round::new(path, now)),
        };
        if skipped.is_some() || cwnd < LOW_WINDOW * u64::from(path.mss) {
            return false;
        }
        if now.since(round.last_ack) <= ACK_DELTA {
            round.last_ack = now;
            // Without pacing, the train of a full pipe lasts a round trip; half of it is the
            // one-way delay.
            let threshold = match self.variant {
                Variant::Linux618 => (delay_min + ack_delay(path, cwnd)) / 2,
                Variant::Linux618Paced => delay_min + ack_delay(path, cwnd),
                Variant::Linux317 => delay_min / 2,
                Variant::Ns3 => delay_min,
            };
            if now.since(round.start) > threshold {
                return true;
            }
        }
        if round.samples < MIN_SAMPLES
            || matches!(self.variant, Variant::Linux618 | Variant::Linux618Paced)
        {
            round.min_rtt = round.min_rtt.min(rtt);
        }
        if round.samples < MIN_SAMPLES {
            round.samples += 1;
            return false;
        }
        let (part, max) = match self.variant {
            Variant::Linux618 | Variant::Linux618Paced => (delay_min / DELAY_DIVISOR, DELAY_MAX),
            Variant::Linux317 => (delay_min / DELAY_DIVISOR_317, DELAY_MAX),
            Variant::Ns3 => (delay_min, DELAY_MAX_NS3),
        };
        let rise = part.min(max).max(DELAY_MIN);
        round.min_rtt > delay_min + rise
    }
}

/// Rounds a time down to whole units.
fn rounded(time: Duration, unit: Duration) -> Duration {
    Duration(time.0 - time.0 % unit.0)
}

/// Time for which offloads may hold ACKs back: that of four of the largest bursts at the rate that
/// slow start would be paced at, two windows per round trip, but at most [`MAX_ACK_DELAY`].
fn ack_delay(path: &Path, cwnd: u64) -> Duration {
    let srtt = path.srtt.unwrap_or(Duration::ZERO);
    let hold = u128::from(4 * MAX_BURST) * u128::from(srtt.0);
    let hold = hold / u128::from(2 * cwnd.max(1));
    Duration(u64::try_from(hold).unwrap_or(u64::MAX)).min(MAX_ACK_DELAY)
}

// Linux, net/ipv4/tcp_cubic.c.
/// Segments below which HyStart does not act (`hystart_low_window`).
const LOW_WINDOW: u64 = 16;
/// Largest gap between ACKs of one train (`hystart_ack_delta_us`).
const ACK_DELTA: Duration = Duration::from_millis(2);
/// Samples of a round before its delay counts (`HYSTART_MIN_SAMPLES`).
const MIN_SAMPLES: u32 = 8;
/// Least rise of the delay that counts (`HYSTART_DELAY_MIN`).
const DELAY_MIN: Duration = Duration::from_millis(4);
/// Rise of the delay that always counts (`HYSTART_DELAY_MAX`).
const DELAY_MAX: Duration = Duration::from_millis(16);
/// The same in ns-3 (`HyStartDelayMax`).
const DELAY_MAX_NS3: Duration = Duration::from_secs(1);
/// Divisor of the least delay that gives the rise which counts, between the two bounds.
const DELAY_DIVISOR: u64 = 8;
/// The same in Linux 3.17 (`HYSTART_DELAY_THRESH(delay_min >> 4)`).
const DELAY_DIVISOR_317: u64 = 16;
/// Resolution of Linux 3.17's clock (`bictcp_clock`).
const CLOCK_317: Duration = Duration::from_millis(1);
/// Unit in which Linux 3.17 counts delays (`(rtt_us << 3) / USEC_PER_MSEC`).
const DELAY_UNIT: Duration = Duration::from_micros(125);
/// Upper bound of the time for which offloads hold ACKs back (`hystart_ack_delay`).
const MAX_ACK_DELAY: Duration = Duration::from_millis(1);
/// Largest burst, bytes (`sk_gso_max_size`).
const MAX_BURST: u64 = 65_536;

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

#[cfg(test)]
mod classic_tests {
    use super::*;
    use crate::controller::Phase;

    const MSS: u64 = 1000;

    /// Slow start at a window of `window` segments, all in flight; each ACK is for one segment.
    struct Flow {
        hystart: HyStartClassic,
        now: Time,
        una: u64,
        window: u64,
    }

    impl Flow {
        fn new(window: u64) -> Self {
            Self { hystart: HyStartClassic::default(), now: Time::ZERO, una: 0, window }
        }

        fn in_3_17(window: u64) -> Self {
            Self { hystart: HyStartClassic::linux_3_17(), ..Self::new(window) }
        }

        fn paced(window: u64) -> Self {
            Self { hystart: HyStartClassic::linux_paced(), ..Self::new(window) }
        }

        fn in_ns3(window: u64) -> Self {
            Self { hystart: HyStartClassic::ns3(), ..Self::new(window) }
        }

        fn ack(&mut self, gap_us: u64, rtt_us: u64) -> bool {
            self.now += Duration::from_micros(gap_us);
            self.una += MSS;
            let path = Path {
                now: self.now,
                mss: 1000,
                srtt: Some(Duration::from_micros(rtt_us)),
                min_rtt: None,
                rtt: None,
                flight_size: self.window * MSS,
                delivered: self.una,
                sent: self.una - MSS + self.window * MSS,
                phase: Phase::Open,
                cwnd_limited: true,
                round: 0,
            };
            let rtt = Some(Duration::from_micros(rtt_us));
            let ack = AckSample { acked_bytes: MSS, rtt, ..Default::default() };
            let over = self.hystart.on_ack(&path, &ack, self.window * MSS);
            self.window += 1;
            over
        }

        /// Returns the number of the ACK that ends slow start, if one of `acks` does.
        fn ends_at(&mut self, acks: u32, gap_us: u64, rtt_us: u64) -> Option<u32> {
            (1..=acks).find(|_| self.ack(gap_us, rtt_us))
        }
    }

    /// delay_min is 40 ms: the train must exceed half of 41 ms. The first ACK begins the round;
    /// with 1 ms between ACKs the twenty-second is 21 ms after it.
    #[test]
    fn a_train_of_half_a_round_trip_ends_slow_start() {
        assert_eq!(Flow::new(30).ends_at(31, 1000, 40_000), Some(22));
    }

    /// delay_min is 20 ms, and offloads may add 1 ms: the twenty-third ACK is 22 ms after the
    /// first.
    #[test]
    fn where_linux_paces_a_train_lasts_a_whole_round_trip() {
        assert_eq!(Flow::paced(30).ends_at(31, 1000, 20_000), Some(23));
        assert_eq!(Flow::paced(30).ends_at(31, 1000, 40_000), None);
    }

    /// The clock has whole milliseconds. ACKs 2.001 ms apart are 2 ms apart, of those 2.4 ms apart
    /// two in five are 3 ms apart. The train exceeds 20 ms with the twelfth, 22 ms after the first.
    #[test]
    fn linux_3_17_takes_gaps_for_what_its_clock_shows() {
        assert_eq!(Flow::in_3_17(30).ends_at(31, 2001, 40_000), Some(12));
        assert_eq!(Flow::in_3_17(30).ends_at(31, 2400, 40_000), None);
    }

    #[test]
    fn linux_3_17_takes_a_sixteenth_for_a_rise_and_counts_eighths_of_a_millisecond() {
        for (least_ms, rise_ms) in [(32, 4), (80, 5), (128, 8), (256, 16), (400, 16)] {
            let us = |ms: u64| ms * 1000;
            let at = |delay_us| {
                let mut flow = Flow::in_3_17(16);
                assert_eq!(flow.ends_at(16, 3000, us(least_ms)), None);
                flow.ends_at(17, 3000, delay_us)
            };
            assert_eq!(at(us(least_ms + rise_ms) + 125), Some(9), "{least_ms} ms");
            assert_eq!(at(us(least_ms + rise_ms) + 124), None, "{least_ms} ms");
        }
    }

    /// The twenty-second ACK of a train is 21 ms after the first, as above. The delay is that of
    /// the first eight samples of a round.
    #[test]
    fn ns3_waits_for_a_train_of_a_round_trip_or_twice_the_delay() {
        assert_eq!(Flow::in_ns3(30).ends_at(31, 1000, 20_000), Some(22));
        assert_eq!(Flow::in_ns3(30).ends_at(31, 1000, 31_000), None);
        for (least_ms, rise_ms) in [(2, 4), (32, 32), (1200, 1000)] {
            let at = |delay_us: u64| {
                let mut flow = Flow::in_ns3(16);
                assert_eq!(flow.ends_at(16, 3000, least_ms * 1000), None);
                flow.ends_at(17, 3000, delay_us)
            };
            assert_eq!(at((least_ms + rise_ms) * 1000 + 1), Some(9), "{least_ms} ms");
            assert_eq!(at((least_ms + rise_ms) * 1000), None, "{least_ms} ms");
        }
    }

    #[test]
    fn acks_more_than_two_milliseconds_apart_are_no_train() {
        assert_eq!(Flow::new(30).ends_at(31, 2000, 40_000), Some(12));
        assert_eq!(Flow::new(30).ends_at(31, 2001, 40_000), None);
        // One larger gap ends the train for the rest of the round.
        let mut flow = Flow::new(40);
        assert_eq!(flow.ends_at(10, 1000, 40_000), None);
        assert_eq!(flow.ends_at(1, 2001, 40_000), None);
        assert_eq!(flow.ends_at(29, 1000, 40_000), None);
    }

    #[test]
    fn a_delay_that_rose_counts_after_eight_samples_of_a_round() {
        // The rise is an eighth of the least delay, bounded to 4–16 ms. The delay must exceed it.
        for (least_ms, rise_ms) in [(8, 4), (32, 4), (80, 10), (128, 16), (400, 16)] {
            let us = |ms: u64| ms * 1000;
            let at = |delay_us: u64| {
                let mut flow = Flow::new(16);
                // The first ACK begins a round of 16 segments, the seventeenth the next one.
                assert_eq!(flow.ends_at(16, 3000, us(least_ms)), None);
                flow.ends_at(17, 3000, delay_us)
            };
            assert_eq!(at(us(least_ms + rise_ms) + 1), Some(9), "{least_ms} ms");
            assert_eq!(at(us(least_ms + rise_ms)), None, "{least_ms} ms");
        }
    }

    #[test]
    fn below_sixteen_segments_nothing_is_looked_at() {
        // The window reaches 16 at the seventh ACK, too late for a train that begins with its
        // round. The next round begins with the eleventh; half of 3 ms is over at the thirteenth.
        assert_eq!(Flow::new(10).ends_at(20, 1000, 2_000), Some(13));
        assert_eq!(Flow::new(5).ends_at(11, 1000, 2_000), None);
    }
}
