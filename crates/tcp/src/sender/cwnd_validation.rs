//! Use of the congestion window (RFC 7661): it grows only while it is what limits the sender. Linux
//! looks at the last window of data (tcp_output.c, `tcp_cwnd_validate`).

use cwnd_cc::Window;

use crate::validation::LimitedBy;

/// Limit of the sender.
#[derive(Clone, Debug)]
pub(super) struct CwndValidation {
    /// `true` if the congestion window was what stopped the last transmission, or counts as that.
    limited: bool,
    /// Use of the window, where that is watched over a window of data.
    used: Option<Box<Used>>,
}

/// Use since data up to `until` was sent.
#[derive(Clone, Copy, Debug, Default)]
struct Used {
    /// `true` if the window was full at some time.
    full: bool,
    /// The most that was outstanding, if it was not, bytes.
    most: u64,
    /// The highest byte sent when this was noted.
    until: u64,
    /// The highest byte sent when nothing more could go last.
    sent: u64,
}

/// Facts of the moment at which nothing more goes.
pub(super) struct Stop {
    /// `true` if a segment more does not fit into the window.
    pub full: bool,
    /// `true` if data waits to be sent.
    pub waits: bool,
    /// Bytes outstanding, in whole segments.
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

    /// The window was what stopped a transmission, if it is `limited`.
    #[inline]
    pub const fn set_limited(&mut self, limited: bool) {
        self.limited = limited;
    }

    /// `true` if more is looked at than the last transmission.
    #[inline]
    pub const fn is_watched(&self) -> bool {
        self.used.is_some()
    }

    /// Nothing more goes now, under this window.
    pub fn on_stop(&mut self, stop: &Stop, window: Window) {
        let Some(used) = &mut self.used else { return };
        let sent = used.sent != stop.high;
        used.sent = stop.high;
        let full = stop.full && (sent || stop.waits);
        let more = !used.full && stop.outstanding > used.most;
        if (sent || full) && (stop.una >= used.until || full || more) {
            **used = Used { full, most: stop.outstanding, until: stop.high, sent: stop.high };
        }
        let below = window.cwnd < window.ssthresh && window.cwnd < 2 * used.most;
        self.limited = used.full || below;
    }
}
