//! The retransmission timer (RFC 6298 § 5), its backoff, and its expiries in a row.

use cwnd_cc::RtoPolicy;
use cwnd_quantity::{Duration, Time};

/// The retransmission timer; while the receive window is closed, the persist timer's clock, too.
#[derive(Clone, Copy, Debug)]
pub(super) struct RtoTimer {
    /// `Time::NEVER` when it is off.
    deadline: Time,
    /// Time of the first of the expiries in `expired`.
    since: Time,
    /// Expiries since the last valid RTT sample: what the backoff counts (Karn).
    backoff: u32,
    /// Expiries since the last new ACK: the nth of [`cwnd_cc::Signal::Timeout`].
    expired: u32,
}

impl RtoTimer {
    pub const OFF: Self = Self { deadline: Time::NEVER, since: Time::ZERO, backoff: 0, expired: 0 };

    #[inline]
    pub const fn deadline(&self) -> Time {
        self.deadline
    }

    #[inline]
    pub fn is_off(&self) -> bool {
        self.deadline == Time::NEVER
    }

    #[inline]
    pub const fn stop(&mut self) {
        self.deadline = Time::NEVER;
    }

    #[inline]
    pub const fn set(&mut self, deadline: Time) {
        self.deadline = deadline;
    }

    /// Counts an expiry for data; [`RtoTimer::back_off`] follows.
    pub const fn count_expiry(&mut self, now: Time) {
        if self.expired == 0 {
            self.since = now;
        }
        self.expired += 1;
    }

    /// Doubles the timeout, or leaves it undoubled if it `stays`.
    pub const fn back_off(&mut self, stays: bool) {
        self.backoff = if stays { 0 } else { self.backoff + 1 };
    }

    #[inline]
    pub const fn expired(&self) -> u32 {
        self.expired
    }

    /// Time since the first of the expiries in a row.
    pub fn expired_for(&self, now: Time) -> Duration {
        now.since(self.since)
    }

    /// New data is acknowledged: what expires next is the first in a row.
    pub const fn end_expiries(&mut self) {
        self.expired = 0;
    }

    #[inline]
    pub const fn backs_off(&self) -> bool {
        self.backoff > 0
    }

    pub const fn end_backoff(&mut self) {
        self.backoff = 0;
    }

    /// The timeout, backoff included, given SRTT and RTTVAR.
    #[inline]
    pub fn timeout(&self, policy: &RtoPolicy, estimate: Option<(Duration, Duration)>) -> Duration {
        if self.expired > self.backoff {
            return self.timeout_that_stayed(policy, estimate);
        }
        policy.armed(estimate, self.backoff)
    }

    /// The same after expiries in a row after which it stayed because little was outstanding: these
    /// are among the n of TCP*(n).
    #[cold]
    fn timeout_that_stayed(
        &self,
        policy: &RtoPolicy,
        estimate: Option<(Duration, Duration)>,
    ) -> Duration {
        let backoff_after = policy.backoff_after.saturating_sub(self.expired - self.backoff);
        RtoPolicy { backoff_after, ..*policy }.armed(estimate, self.backoff)
    }

    /// The timeout before any sample; expiries in a row do not count.
    pub fn before_samples(&self, policy: &RtoPolicy) -> Duration {
        policy.armed(None, self.backoff)
    }
}
