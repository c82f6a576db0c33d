//! Segments further apart than a round trip: a controller whose window may be below one segment
//! ([`cwnd_cc::Controller::spacing`]).

use cwnd_cc::Controller as _;
use cwnd_quantity::{Duration, Time};

use super::Sender;

impl Sender {
    /// A segment went out, and its controller spaces segments: the next goes so much later, if more
    /// waits. That it waits is the window's doing.
    pub(super) fn space(&mut self, now: Time, spacing: Duration) {
        if spacing > Duration::ZERO {
            self.pacer.space(now, spacing);
            self.validation.set_limited(self.seq.nxt() < self.seq.app_end());
        }
    }

    /// The window became smaller: the next segment goes so much later than the last went.
    pub(super) fn space_from_last(&mut self) {
        if let Some(spacing) = self.spacing() {
            self.pacer.space(self.pacer.last_sent(), spacing);
        }
    }

    /// `true` if nothing goes because the controller holds it back: then nothing is idle.
    pub(super) fn is_spaced(&self) -> bool {
        self.pacer.holds() && (self.cc.pacing().is_some() || self.spacing().is_some())
    }

    /// The timer expired: RFC 6298 § 5.4 has the first segment go again, whatever came between.
    pub(super) fn end_spacing(&mut self, now: Time) {
        if self.spacing().is_some() {
            self.pacer.space(now, Duration::ZERO);
        }
    }

    /// The least time between segments. A source quench's pause (RFC 1016) has its own.
    fn spacing(&self) -> Option<Duration> {
        let none = !self.config.steering.spaces || self.quenches.pauses();
        if none { None } else { self.cc.spacing() }
    }
}
