//! Congestion window validation (RFC 7661): the window grows only while it limits the sender. Linux
//! examines the last window of data (tcp_output.c, `tcp_cwnd_validate`).

use cwnd_cc::Window;

use crate::cwnd_validation::LimitedBy;

/// State of cwnd validation.
#[derive(Clone, Debug)]
pub(super) struct CwndValidation {
    /// `true` if the congestion window stopped the last transmission, or counts as that.
    limited: bool,
    /// Use over a window of data; `None` if only the last transmission counts.
    used: Option<Box<WindowUse>>,
}

/// Use of the window, kept until all below `until` is acknowledged or more of it is used.
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
pub(super) struct Stop {
    /// `true` if one more segment does not fit into the window.
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

    /// `true` if the window may grow.
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

    /// Updates the use of `window` at a stop.
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
