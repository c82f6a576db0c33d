//! Times before which nothing may go: pacing, spacing, pauses.

use cwnd_quantity::{Bytes, Duration, Rate, Time};

/// The time of the next transmission.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pacer {
    /// Before this nothing may go.
    until: Time,
    last_sent: Time,
    /// Wire bytes of the last segment if its gap is recomputed from the controller's current rate;
    /// otherwise 0.
    paced: u16,
    /// `true` if it is why nothing more went out.
    holds: bool,
}

impl Pacer {
    pub const OFF: Self = Self { until: Time::ZERO, last_sent: Time::ZERO, paced: 0, holds: false };

    /// Time of the last transmission.
    #[inline]
    pub const fn last_sent(&self) -> Time {
        self.last_sent
    }

    /// A segment goes, or what was idle is so no more.
    #[inline]
    pub const fn on_sent(&mut self, now: Time) {
        self.last_sent = now;
    }

    #[inline]
    pub const fn until(&self) -> Time {
        self.until
    }

    /// `true` if it holds back what goes at `now`, which it then is said to do.
    #[inline]
    pub fn check(&mut self, now: Time) -> bool {
        self.holds = now < self.until;
        self.holds
    }

    /// `true` if it was why nothing more went out.
    #[inline]
    pub const fn holds(&self) -> bool {
        self.holds
    }

    /// Something else of its kind is why nothing more goes, or nothing is.
    pub const fn set_holds(&mut self, holds: bool) {
        self.holds = holds;
    }

    /// So much leaves at this rate; with `anew` of so many bytes the rate of later counts.
    pub fn pace(&mut self, now: Time, rate: Rate, size: u16, anew: u16) {
        self.paced = anew;
        self.until = now + gap(rate, size);
    }

    /// `true` if the rate of later counts.
    #[inline]
    pub const fn paces_anew(&self) -> bool {
        self.paced > 0
    }

    /// The controller's rate is this one now.
    pub fn pace_anew(&mut self, rate: Rate) {
        self.until = self.last_sent + gap(rate, self.paced);
    }

    /// Nothing goes until then, whatever the controller's rate.
    pub const fn hold_until(&mut self, until: Time) {
        self.paced = 0;
        self.until = until;
    }

    /// Nothing goes until then, and until what was said before.
    pub fn hold_longer(&mut self, until: Time) {
        self.hold_until(self.until.max(until));
    }

    /// The next segment goes so much later than `from`.
    pub fn space(&mut self, from: Time, spacing: Duration) {
        self.until = from + spacing;
    }
}

/// Time for which a segment of this size keeps the next from leaving.
fn gap(rate: Rate, wire: u16) -> Duration {
    rate.time_for(Bytes(u64::from(wire))).max(Duration(1))
}
