//! Growth of windows that controllers share: by counting bytes acknowledged (RFC 3465) or ACKs
//! (RFC 5681 § 3.1, eq. 3), by H-TCP's increase, and below one segment.
//!
//! Any controller with additive increase may use H-TCP's, whose α grows with the time since the
//! last reduction. Any with a real-valued window may use windows below one segment: their growth,
//! and the gap between their segments.

use cwnd_quantity::{Duration, Time};
use cwnd_schema::{Choice, Schema};

use crate::controller::{Start, Window};
use crate::slow_start::{Credit, Growth, GrowthRules};

/// Quantity that growth counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Increase {
    /// Bytes acknowledged: appropriate byte counting (RFC 3465).
    #[name("abc")]
    Abc,
    /// ACKs: one segment each in slow start, SMSS · SMSS / cwnd each above (4.4BSD, ns-2; RFC 5681
    /// eq. 3).
    #[name("per-ack")]
    PerAck,
    /// ACKs, as "per-ack", but each step is cut off to whole bytes, at least one (ns-3's
    /// tcp-congestion-ops.cc).
    #[name("per-ack-whole-bytes")]
    PerAckWholeBytes,
}

/// Growth of a window of whole bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counting {
    /// Growth that an ACK gives in slow start.
    pub(crate) credit: Credit,
    /// Bytes that the window never exceeds.
    pub(crate) max_window: u64,
    /// `true` if each step of growth is cut off to bytes.
    whole_bytes: bool,
    keep_count: bool,
}

impl Counting {
    pub(crate) fn new(
        increase: Increase,
        keep_count: bool,
        growing: &GrowthRules,
        start: &Start,
    ) -> Self {
        Self {
            credit: match increase {
                Increase::Abc => Credit::bytes(growing),
                Increase::PerAck | Increase::PerAckWholeBytes => Credit::Ack,
            },
            max_window: start.max_window(),
            whole_bytes: increase == Increase::PerAckWholeBytes,
            keep_count: keep_count && increase == Increase::Abc,
        }
    }

    /// Grows a window in slow start, by bytes no further than its threshold; returns the bytes left
    /// for congestion avoidance once that is reached. At an exit the threshold becomes the window.
    #[inline]
    pub(crate) fn in_slow_start(&self, window: &mut Window, growth: Growth) -> u64 {
        if growth.exit {
            window.ssthresh = window.cwnd;
            return growth.bytes;
        }
        let step = match self.credit {
            Credit::Bytes { .. } => growth.bytes.min(window.ssthresh - window.cwnd),
            // 4.4BSD and ns-2 step over the threshold by up to a segment.
            Credit::Ack => growth.bytes,
        };
        window.grow(step, self.max_window);
        growth.bytes - step
    }

    /// Grows a window in congestion avoidance: by one segment for each window of data acknowledged,
    /// or by SMSS · SMSS / cwnd for each ACK.
    ///
    /// `carry` counts the bytes acknowledged towards the next segment, or by ACKs the remainder of
    /// the division by the window.
    #[inline]
    pub(crate) fn in_avoidance(&self, window: &mut Window, carry: &mut u64, mss: u32, acked: u64) {
        let mss = u64::from(mss);
        let step = match self.credit {
            // RFC 3465 § 2.1: at most one segment a round trip.
            Credit::Bytes { .. } => {
                *carry += acked;
                let full = *carry >= window.cwnd;
                *carry -= if full { window.cwnd } else { 0 };
                if full { mss } else { 0 }
            }
            // RFC 5681 eq. 3, as it stands.
            Credit::Ack if self.whole_bytes => (mss * mss / window.cwnd).max(1),
            // RFC 5681 eq. 3. Its "at least one byte" is not needed: the remainder is carried.
            Credit::Ack => {
                *carry += mss * mss;
                let step = *carry / window.cwnd;
                *carry -= step * window.cwnd;
                step
            }
        };
        window.grow(step, self.max_window);
    }

    /// Returns what stays of the count where slow start ends.
    pub(crate) fn carry_after_slow_start(&self, carry: u64, cwnd: u64) -> u64 {
        // At most one window of what was counted for a larger one is left: the next ACK then adds
        // one segment (Linux, `tcp_cong_avoid_ai`).
        if self.keep_count { carry.min(cwnd) } else { 0 }
    }
}

/// Additive increase of a window, by the time since its last reduction.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct HTcpIncrease {
    /// Δ_L: so long after a reduction the window grows by 2 (1 − β) segments per round trip, with β
    /// = 1/2 as Reno's does.
    #[default(
        Duration::from_secs(1),
        "Leith & Shorten 2004: 1 s; draft-leith-tcp-htcp-06, Linux and FreeBSD as well"
    )]
    pub delta_low: Duration,
    /// `true` if α is multiplied by minRTT / 100 ms, 0.1 to 2, so that growth per second does not
    /// depend on the round trip. The factor on 2 (1 − β) is no less than 1.
    #[default(false, "Linux tcp_htcp.c use_rtt_scaling: on; an option of the draft")]
    pub rtt_scaling: bool,
}

/// Time of the window's last reduction; before any, that of the first call of `alpha`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SinceReduction {
    since: Option<Time>,
}

impl SinceReduction {
    /// Notes a reduction at `now`.
    pub(crate) fn reduced(&mut self, now: Time) {
        self.since = Some(now);
    }

    /// Returns α, in segments per round trip, for a sender whose last backoff left the part `beta`.
    /// Before the first reduction, time counts from the first call.
    pub(crate) fn alpha(
        &mut self,
        increase: &HTcpIncrease,
        now: Time,
        min_rtt: Option<Duration>,
        beta: f64,
    ) -> f64 {
        let since = *self.since.get_or_insert(now);
        let beyond = now.since(since).saturating_sub(increase.delta_low).0 as f64 / 1e9;
        // 1 + 10 (Δ − Δ_L) + ((Δ − Δ_L) / 2)².
        let mut factor = 1.0 + 10.0 * beyond + beyond * beyond / 4.0;
        if let (true, Some(min_rtt)) = (increase.rtt_scaling, min_rtt) {
            let scale = (min_rtt.0 as f64 / REFERENCE.0 as f64).clamp(0.1, 2.0);
            factor = (factor * scale).max(1.0);
        }
        // With β = 1/2 and a factor of 1 this is Reno's one segment per round trip; after a smaller
        // backoff growth is less in proportion.
        2.0 * (1.0 - beta) * factor
    }
}

/// RTT at which growth is not scaled.
const REFERENCE: Duration = Duration::from_millis(100);

/// Response of a window below one segment to an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum SubMssGrowth {
    /// No window below one segment: a backoff leaves at least one.
    #[name("never")]
    Never,
    /// Grows by the same amount for each acknowledged segment (Kumar et al. 2020, algorithm 1: for
    /// each ACK).
    #[name("per-ack")]
    PerAck,
    /// Grows by the same fraction of itself for each acknowledged segment, so that any window
    /// doubles after the same number of segments.
    #[name("in-proportion")]
    InProportion,
}

/// Parameters of a window w below one segment, which sends one segment each RTT / w.
#[derive(Clone, Debug, PartialEq, Schema)]
#[idle([below_one_gain, below_one_least], !self.allowed(), "with `below_one = \"never\"`")]
pub struct SubMssWindow {
    /// Growth of a window w below one segment; `never` if the window may not be below one. Such a
    /// window sends one segment each RTT / w, RTT the newest.
    #[default(
        SubMssGrowth::Never,
        "McCullagh 2008 § 3.4.3 suggests to pace; Kumar et al., Swift, SIGCOMM 2020, algorithm 1: \
        cwnd < 1"
    )]
    pub below_one: SubMssGrowth,
    /// Factor on α for growth below one segment: the increase for an acknowledged segment, in
    /// segments or with `in-proportion` as a part of the window. No effect with `never`.
    #[default(
        1.0,
        "Kumar et al. 2020, algorithm 1: the same increase on both sides of one segment"
    )]
    #[bounds(above 0.0, up_to 1.0; "a window below one segment would jump over it")]
    pub below_one_gain: f64,
    /// Least window below one segment, in segments.
    #[default(0.01, "none: a segment in a hundred round trips, so that it is heard again soon")]
    #[bounds(above 0.0, up_to 1.0; "it is below one segment")]
    pub below_one_least: f64,
}

impl SubMssWindow {
    /// `true` if windows may be below one segment.
    pub(crate) fn allowed(&self) -> bool {
        self.below_one != SubMssGrowth::Never
    }

    /// Growth of a window below one segment for `acked` segments, all in segments.
    pub(crate) fn gain(&self, window: f64, alpha: f64, acked: f64) -> f64 {
        let each = match self.below_one {
            SubMssGrowth::Never | SubMssGrowth::PerAck => self.below_one_gain,
            SubMssGrowth::InProportion => self.below_one_gain * window,
        };
        alpha * each * acked
    }
}

/// Gap between the segments of a window in segments: RTT / w if it is below one, otherwise zero.
pub(crate) fn spacing(window: f64, rtt: Duration) -> Duration {
    if window >= 1.0 {
        return Duration::ZERO;
    }
    Duration((rtt.0 as f64 / window) as u64)
}
