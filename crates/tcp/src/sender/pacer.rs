//! Pacing, spacing and pauses: the earliest time of the next transmission.

use cwnd_cc::Controller as _;
use cwnd_quantity::{Bytes, Duration, Rate, Time};

use super::Sender;

/// Earliest time of the next transmission, and the time of the last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pacer {
    /// Earliest time of the next transmission, window probes aside.
    until: Time,
    last_sent: Time,
    /// Wire bytes of the last segment if its gap is recomputed from the controller's current rate;
    /// otherwise 0.
    paced: u16,
    /// `true` if the last [`Pacer::check`] or [`Pacer::set_holds`] held data back.
    holds: bool,
}

impl Pacer {
    pub const OFF: Self = Self { until: Time::ZERO, last_sent: Time::ZERO, paced: 0, holds: false };

    /// Time of the last transmission.
    #[inline]
    pub const fn last_sent(&self) -> Time {
        self.last_sent
    }

    /// Sets the time of the last transmission to `now`, for a segment sent or an idle period that
    /// ended.
    #[inline]
    pub const fn on_sent(&mut self, now: Time) {
        self.last_sent = now;
    }

    #[inline]
    pub const fn until(&self) -> Time {
        self.until
    }

    /// `true` if nothing may be sent at `now`; keeps that for [`Pacer::holds`].
    #[inline]
    pub fn check(&mut self, now: Time) -> bool {
        self.holds = now < self.until;
        self.holds
    }

    /// `true` if the last [`Pacer::check`] or [`Pacer::set_holds`] held data back.
    #[inline]
    pub const fn holds(&self) -> bool {
        self.holds
    }

    /// Sets whether a wait of this kind holds the next transmission back.
    pub const fn set_holds(&mut self, holds: bool) {
        self.holds = holds;
    }

    /// Paces the next segment after `size` bytes at `rate`. With `anew` above zero, wire bytes,
    /// [`Pacer::pace_anew`] recomputes the gap from later rates.
    pub fn pace(&mut self, now: Time, rate: Rate, size: u16, anew: u16) {
        self.paced = anew;
        self.until = now + gap(rate, size);
    }

    /// `true` if the gap is recomputed from the controller's current rate.
    #[inline]
    pub const fn paces_anew(&self) -> bool {
        self.paced > 0
    }

    /// Recomputes the gap after the last segment at the controller's current `rate`.
    pub fn pace_anew(&mut self, rate: Rate) {
        self.until = self.last_sent + gap(rate, self.paced);
    }

    /// Holds transmissions back until `until`, whatever the controller's rate.
    pub const fn hold_until(&mut self, until: Time) {
        self.paced = 0;
        self.until = until;
    }

    /// Holds transmissions back until the later of `until` and the time set before.
    pub fn hold_longer(&mut self, until: Time) {
        self.hold_until(self.until.max(until));
    }

    /// Sets the next transmission to `spacing` after `from`.
    pub fn space(&mut self, from: Time, spacing: Duration) {
        self.until = from + spacing;
    }
}

/// Gap after a segment of `wire` bytes at `rate`, at least 1 ns.
fn gap(rate: Rate, wire: u16) -> Duration {
    rate.time_for(Bytes(u64::from(wire))).max(Duration(1))
}

/// Spacing of segments by more than a round trip, for a controller whose window may be below one
/// segment ([`cwnd_cc::Controller::spacing`]).
impl Sender {
    /// Delays the next segment by the controller's `spacing`. If data waits, the congestion window
    /// counts as what limits the sender.
    pub(super) fn space(&mut self, now: Time, spacing: Duration) {
        if spacing > Duration::ZERO {
            self.pacer.space(now, spacing);
            self.validation.set_limited(self.seq.nxt() < self.seq.app_end());
        }
    }

    /// Recomputes the time of the next segment from the last transmission, if the controller
    /// spaces segments.
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
