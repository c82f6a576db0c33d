//! Bursts that Linux hands down as one and ends with PSH (tcp_output.c): its receivers acknowledge them at once.

use cwnd_cc::Controller as _;
use cwnd_quantity::{Duration, Time};

use super::{FastRecovery, Sender, State};

/// The burst that is being sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Burst {
    /// Segments of it that are still to go.
    left: u32,
    /// Whether it is more than one segment.
    several: bool,
}

impl Sender {
    /// New data goes out; says whether it ends a burst of several segments.
    #[inline]
    pub(super) fn ends_burst(&mut self, now: Time) -> bool {
        if self.burst.left == 0 || self.pacer.last_sent() != now {
            let size = self.burst_size();
            self.burst = Burst { left: size, several: size > 1 };
        }
        self.burst.left -= 1;
        self.burst.left == 0 && self.burst.several
    }

    /// Segments of a burst that begins now: what may go, but no more than half of the window (`tcp_cwnd_test`), and what
    /// the rate passes in a millisecond, but two (`tcp_tso_autosize`).
    fn burst_size(&self) -> u32 {
        let cwnd = self.cc.window().cwnd;
        let allowed = match (&self.recovery, &self.cwr) {
            (State::Recovery(FastRecovery { prr: Some(prr), .. }), _)
            | (State::Open, Some(prr)) => prr.quota(),
            _ => cwnd.saturating_sub(self.in_flight()),
        };
        let ready = allowed.min(cwnd / 2).min(self.seq.unsent());
        let most = self.largest_burst(cwnd);
        let (segments, _) = self.config.segments.divide(ready);
        u32::try_from(segments.clamp(1, most)).unwrap_or(1)
    }

    /// 200 % of the window a round trip in the first half of slow start, then 120 % (`tcp_pacing_ss_ratio`, `_ca_`).
    pub(super) fn percent_of_rate(&self, cwnd: u64) -> u64 {
        if cwnd < self.cc.window().ssthresh / 2 { 200 } else { 120 }
    }

    /// A millisecond (2⁻¹⁰ s) at the rate that would be paced, and more where the round trip is short.
    pub(super) fn largest_burst(&self, cwnd: u64) -> u64 {
        let Some(srtt) = self.rtt.srtt() else { return LEAST_SEGMENTS };
        let least_us = self.rtt.min().unwrap_or(Duration::ZERO).0 / 1000;
        let halvings = least_us >> RTT_LOG;
        let near = if halvings < 32 { LARGEST >> halvings } else { 0 };
        // What saturates is a window of 9 GB, far above the largest burst.
        let window = cwnd.saturating_mul(self.percent_of_rate(cwnd) * 10_000_000);
        let is_below = |bytes: u64| window < (bytes << 10).saturating_mul(srtt.0.max(1));
        // Most rates are so low, or so high, that nothing need be divided.
        let more = (LEAST_SEGMENTS + 1) * self.config.mss;
        if near < more && is_below(more - near) {
            return LEAST_SEGMENTS;
        }
        let bytes = match LARGEST.saturating_sub(near) {
            room if is_below(room) => ((window / srtt.0.max(1)) >> 10) + near,
            _ => LARGEST,
        };
        self.config.segments.divide(bytes).0.max(LEAST_SEGMENTS)
    }
}

// Linux, net/ipv4/tcp_output.c and its sysctls.
/// `sk_gso_max_size`, bytes.
const LARGEST: u64 = 65_536;
/// `tcp_min_tso_segs`.
const LEAST_SEGMENTS: u64 = 2;
/// `tcp_tso_rtt_log`: microseconds of the round trip are halved so often.
const RTT_LOG: u32 = 9;
