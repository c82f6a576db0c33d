//! Windows below one segment: their growth, and the gap between their segments. Any controller with
//! a real-valued window may use it.

use cwnd_quantity::Duration;
use cwnd_schema::{Choice, Schema};

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
