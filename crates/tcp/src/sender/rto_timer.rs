//! The retransmission timer (RFC 6298 § 5), its backoff, and its consecutive expiries.

use cwnd_cc::RtoPolicy;
use cwnd_quantity::{Duration, Time};

/// The retransmission timer, which also clocks zero-window probes.
#[derive(Clone, Copy, Debug)]
pub(super) struct RtoTimer {
    /// Time of expiry; `Time::NEVER` if the timer is off.
    deadline: Time,
    /// Time of the first of the consecutive expiries in `expired`.
    since: Time,
    /// Expiries that count for the backoff, since an RTT sample or another event ended the last one
    /// (Karn's algorithm).
    backoff: u32,
    /// Consecutive expiries since the last ACK of new data: the `nth` of
    /// [`cwnd_cc::Signal::Timeout`].
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

    /// Counts an expiry for data; the caller then calls [`RtoTimer::back_off`].
    pub const fn count_expiry(&mut self, now: Time) {
        if self.expired == 0 {
            self.since = now;
        }
        self.expired += 1;
    }

    /// Counts an expiry for the backoff, or removes the backoff if the timeout `stays`.
    pub const fn back_off(&mut self, stays: bool) {
        self.backoff = if stays { 0 } else { self.backoff + 1 };
    }

    #[inline]
    pub const fn expired(&self) -> u32 {
        self.expired
    }

    /// Time since the first of the consecutive expiries.
    pub fn expired_for(&self, now: Time) -> Duration {
        now.since(self.since)
    }

    /// Ends the row of consecutive expiries, as new data is acknowledged.
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

    /// Timeout with backoff, given SRTT and RTTVAR.
    #[inline]
    pub fn timeout(&self, policy: &RtoPolicy, estimate: Option<(Duration, Duration)>) -> Duration {
        if self.expired > self.backoff {
            return self.timeout_that_stayed(policy, estimate);
        }
        policy.armed(estimate, self.backoff)
    }

    /// Timeout with backoff after expiries that did not double it because little was outstanding;
    /// these count among the n of TCP*(n).
    #[cold]
    fn timeout_that_stayed(
        &self,
        policy: &RtoPolicy,
        estimate: Option<(Duration, Duration)>,
    ) -> Duration {
        let backoff_after = policy.backoff_after.saturating_sub(self.expired - self.backoff);
        RtoPolicy { backoff_after, ..*policy }.armed(estimate, self.backoff)
    }

    /// Timeout with backoff before any RTT sample; consecutive expiries do not count.
    pub fn before_samples(&self, policy: &RtoPolicy) -> Duration {
        policy.armed(None, self.backoff)
    }
}
