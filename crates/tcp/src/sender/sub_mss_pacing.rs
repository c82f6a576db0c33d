//! Spacing of segments by more than a round trip, for a controller whose window may be below one
//! segment ([`cwnd_cc::Controller::spacing`]).

use cwnd_cc::Controller as _;
use cwnd_quantity::{Duration, Time};

use super::Sender;

impl Sender {
    /// Delays the next segment by the controller's `spacing`. If data waits, the congestion window
    /// counts as what limits the sender.
    pub(super) fn space(&mut self, now: Time, spacing: Duration) {
        if spacing > Duration::ZERO {
            self.pacer.space(now, spacing);
            self.validation.set_limited(self.seq.nxt() < self.seq.app_end());
        }
    }

    /// Recomputes the time of the next segment from the last transmission, after a reduction of the
    /// window.
    pub(super) fn space_from_last(&mut self) {
        if let Some(spacing) = self.spacing() {
            self.pacer.space(self.pacer.last_sent(), spacing);
        }
    }

    /// `true` if pacing or spacing by the controller holds data back; the sender is not idle then.
    pub(super) fn is_spaced(&self) -> bool {
        self.pacer.holds() && (self.cc.pacing().is_some() || self.spacing().is_some())
    }

    /// Ends the spacing at an expiry: RFC 6298 § 5.4 retransmits the first segment at once.
    pub(super) fn end_spacing(&mut self, now: Time) {
        if self.spacing().is_some() {
            self.pacer.space(now, Duration::ZERO);
        }
    }

    /// Minimum time between segments; `None` during a source quench's pause (RFC 1016), which sets
    /// its own.
    fn spacing(&self) -> Option<Duration> {
        let none = !self.config.steering.spaces || self.quenches.pauses();
        if none { None } else { self.cc.spacing() }
    }
}
