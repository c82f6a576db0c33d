//! Growth and validation of the window: bytes of an ACK that count, use of the window, and the
//! window that is left after an idle time (RFC 7661, RFC 5681 § 4.1, RFC 2861).

use cwnd_cc::Window;
use cwnd_quantity::Duration;
use cwnd_schema::{Choice, Schema};

/// Condition under which the window counts as the sender's limit, so that it may grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum LimitedBy {
    /// The window stopped the last transmission.
    #[name("last")]
    Last,
    /// The window was the limit at any time in the last window of data. In slow start it also
    /// counts while it is less than twice the most data outstanding in that time (Linux,
    /// `tcp_is_cwnd_limited`).
    #[name("round")]
    Round,
    /// Always, used or not, while the window is no larger than the receive window (FreeBSD,
    /// `cc_ack_received`).
    #[name("always")]
    Always,
}

/// Window after an idle time longer than the timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum RestartWindow {
    /// The initial window, at most the old one (RFC 5681 § 4.1).
    #[name("initial")]
    Initial,
    /// Half the window for each timeout that has passed, at least the initial window unless the old
    /// one was smaller; the threshold is at least three quarters of the old window, in whole
    /// segments (Linux, `tcp_cwnd_restart`).
    #[name("halved")]
    Halved,
    /// The initial window, at most the old one; the threshold is at least three quarters of the old
    /// window (FreeBSD, `newreno_cc_after_idle`).
    #[name("threshold")]
    Threshold,
}

/// Bytes of an ACK that count for the growth of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum GrowBy {
    /// All bytes newly acknowledged (RFC 5681 § 3.1, RFC 3465 § 2).
    #[name("acknowledged")]
    Acknowledged,
    /// Data delivered since the previous ACK, with or without SACK (RFC 6937's DeliveredData). Data
    /// that earlier duplicates reported does not count again. An ACK that begins a recovery counts
    /// for nothing (Linux, `tcp_cong_control`).
    #[name("delivered")]
    Delivered,
}

/// Growth and validation of the congestion window.
#[derive(Clone, Debug, PartialEq, Schema)]
#[idle([restart_window], !self.idle_restart, "without the part `idle-restart`")]
pub struct Params {
    /// Bytes of an ACK that count for the growth of the window.
    #[default(GrowBy::Acknowledged, "RFC 5681 § 3.1; Linux: delivered")]
    #[part("delivered-growth")]
    pub grow_by: GrowBy,
    /// `true` if the window also grows with the ACK that ends fast recovery, or that ends the
    /// response to an ECN-echo.
    #[default(
        false,
        "RFC 6582 § 3.2 (3) says no; ns-2's Newreno does (tcp-newreno.cc), ns-3 does \
        (tcp-socket-base.cc), Linux does (tcp_cong_control)"
    )]
    #[part("exit-growth")]
    pub grow_on_exit: bool,
    /// `true` if the window shrinks after an idle time longer than the timeout. Serves experiments
    /// on pauses between transfers, and closed forms of TCP*(n).
    #[default(true, "RFC 5681 § 4.1")]
    pub idle_restart: bool,
    /// Condition under which the window counts as the sender's limit, so that it may grow.
    #[default(
        LimitedBy::Last,
        "RFC 5681 § 3.1 grows in any case; RFC 7661 § 4.3, RFC 9438 § 5.8. Linux: round; FreeBSD: \
        always (net.inet.tcp.newcwv=0)"
    )]
    #[part("cwnd-validation")]
    pub cwnd_limited: LimitedBy,
    /// Window after an idle time longer than the timeout; unchanged without `idle_restart`.
    /// Controllers with their own rule for pauses follow that rule.
    #[default(
        RestartWindow::Initial,
        "RFC 5681 § 4.1. Linux (tcp_cwnd_restart): RFC 2861 § 3.2, halved; FreeBSD: threshold"
    )]
    #[part("idle-restart")]
    pub restart_window: RestartWindow,
}

/// Returns window and threshold after an idle time longer than the timeout (RFC 2861 § 3.2): half
/// for each timeout, in whole segments, down to the initial window; a smaller window stays.
pub fn halved(window: Window, idle: Duration, rto: Duration, initial: u64, mss: u64) -> Window {
    let least = initial.min(window.cwnd);
    let mut cwnd = window.cwnd;
    let mut left = idle;
    while left > rto && cwnd > least {
        left = left - rto;
        cwnd = cwnd / mss / 2 * mss;
    }
    let segments = window.cwnd / mss;
    let three_quarters = (segments / 2 + segments / 4) * mss;
    Window { cwnd: cwnd.max(least), ssthresh: window.ssthresh.max(three_quarters) }
}

/// Returns window and threshold after an idle time (FreeBSD, cc.c, `newreno_cc_after_idle`): at
/// most the initial window, and a threshold of at least three quarters of the old window.
pub fn initial_with_threshold(window: Window, initial: u64) -> Window {
    let three_quarters = window.cwnd - window.cwnd / 4;
    Window { cwnd: window.cwnd.min(initial), ssthresh: window.ssthresh.max(three_quarters) }
}

/// State of cwnd validation (RFC 7661): the window grows only while it limits the sender. Linux
/// examines the last window of data (tcp_output.c, `tcp_cwnd_validate`).
#[derive(Clone, Debug)]
pub(crate) struct CwndValidation {
    /// `true` if the congestion window stopped the last transmission, or counts as that.
    limited: bool,
    /// Use over a window of data; `None` if only the last transmission counts.
    used: Option<Box<WindowUse>>,
}

/// Use of the window. A stop replaces it if the window is full and data waits or was sent since
/// the last stop. Otherwise it does so if data was sent since then, and all below `until` is
/// acknowledged or, in a window that was not full, more than before is outstanding.
#[derive(Clone, Copy, Debug, Default)]
struct WindowUse {
    /// `true` if the window was full at any time.
    full: bool,
    /// Maximum outstanding, bytes, if the window was not full.
    max_outstanding: u64,
    /// SND.MAX when this use was noted.
    until: u64,
    /// SND.MAX at the last stop.
    sent: u64,
}

/// Facts at a stop, where nothing more can be sent.
pub(crate) struct Stop {
    /// `true` if the window, or PRR, has no room for one more segment, or a TSO chunk waits.
    pub full: bool,
    /// `true` if unsent data waits.
    pub waits: bool,
    /// Bytes outstanding, rounded up to whole segments.
    pub outstanding: u64,
    pub una: u64,
    pub high: u64,
}

impl CwndValidation {
    pub fn new(by: LimitedBy) -> Self {
        Self { limited: false, used: (by != LimitedBy::Last).then(Box::default) }
    }

    /// `true` if the window counts as the sender's limit.
    #[inline]
    pub const fn is_limited(&self) -> bool {
        self.limited
    }

    /// Sets whether the congestion window stopped the last transmission.
    #[inline]
    pub const fn set_limited(&mut self, limited: bool) {
        self.limited = limited;
    }

    /// `true` unless the last transmission alone counts ([`LimitedBy::Last`]).
    #[inline]
    pub const fn tracks_round(&self) -> bool {
        self.used.is_some()
    }

    /// Updates the use of `window` at a stop, and sets by it if the window counts as the limit.
    pub fn on_stop(&mut self, stop: &Stop, window: Window) {
        let Some(used) = &mut self.used else { return };
        let sent = used.sent != stop.high;
        used.sent = stop.high;
        let full = stop.full && (sent || stop.waits);
        let more = !used.full && stop.outstanding > used.max_outstanding;
        if (sent || full) && (stop.una >= used.until || full || more) {
            **used = WindowUse {
                full,
                max_outstanding: stop.outstanding,
                until: stop.high,
                sent: stop.high,
            };
        }
        let below = window.cwnd < window.ssthresh && window.cwnd < 2 * used.max_outstanding;
        self.limited = used.full || below;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 41 segments, a timeout of 300 ms.
    #[test]
    fn the_window_halves_for_each_timeout_down_to_the_initial_one() {
        let after = |idle_ms, ssthresh| {
            let window = Window { cwnd: 41_000, ssthresh };
            let ms = Duration::from_millis;
            halved(window, ms(idle_ms), ms(300), 10_000, 1000)
        };
        let cwnds = [300, 301, 600, 601, 900, 901, 60_000].map(|idle| after(idle, 5000).cwnd);
        assert_eq!(cwnds, [41_000, 20_000, 20_000, 10_000, 10_000, 10_000, 10_000]);
        // 41 / 2 + 41 / 4 in whole segments.
        assert_eq!(after(301, 5000).ssthresh, 30_000);
        assert_eq!(after(301, 31_000).ssthresh, 31_000);
        assert_eq!(after(301, u64::MAX).ssthresh, u64::MAX);
    }

    #[test]
    fn a_window_below_the_initial_one_stays() {
        let window = Window { cwnd: 3000, ssthresh: 2000 };
        let after =
            halved(window, Duration::from_secs(9), Duration::from_millis(300), 10_000, 1000);
        assert_eq!(after, Window { cwnd: 3000, ssthresh: 2000 });
    }
}
