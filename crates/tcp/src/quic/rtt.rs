//! RTT estimation and the probe timeout (RFC 9002 § 5, § 6.2).

use cwnd_quantity::{Duration, Time};

use super::{GRANULARITY, Params};
use crate::rtt::{At, RttEstimator};

/// RTT estimate of a path.
#[derive(Clone, Debug)]
pub(super) struct Rtt {
    estimator: RttEstimator,
    /// Smallest sample since the start or since persistent congestion (§ 5.2); `Duration::MAX`
    /// before the first.
    min: Duration,
    initial: Duration,
    /// Time of the first sample; `Time::NEVER` before it.
    first_sample: Time,
}

impl Rtt {
    pub fn new(params: &Params) -> Self {
        Self {
            estimator: RttEstimator::default(),
            min: Duration::MAX,
            initial: params.initial_rtt,
            first_sample: Time::NEVER,
        }
    }

    /// Adds a sample, of which the receiver reports `ack_delay`, at most max_ack_delay, as its own
    /// delay (§ 5.3; UpdateRtt, § A.7).
    ///
    /// The estimator is RFC 6298's, with samples less the ACK delay unless that falls below
    /// min_rtt.
    pub fn update(&mut self, now: Time, latest: Duration, ack_delay: Duration) {
        self.first_sample = self.first_sample.min(now);
        self.min = self.min.min(latest);
        // § 5.3: "only if the resulting RTT sample would be at least min_rtt".
        let explained = latest >= self.min + ack_delay;
        let adjusted = if explained { latest - ack_delay } else { latest };
        self.estimator.sample(adjusted, At::default());
        self.estimator.add_controller_sample(latest);
    }

    /// Resets min_rtt to the latest sample, after persistent congestion (§ 5.2).
    pub fn forget_min(&mut self) {
        self.min = self.latest().unwrap_or(Duration::MAX);
    }

    pub const fn first_sample(&self) -> Time {
        self.first_sample
    }

    /// Returns min_rtt; `None` before the first sample.
    pub fn min(&self) -> Option<Duration> {
        (self.min != Duration::MAX).then_some(self.min)
    }

    /// Returns latest_rtt; `None` before the first sample.
    pub fn latest(&self) -> Option<Duration> {
        self.estimator.last()
    }

    /// Returns smoothed_rtt; `None` before the first sample.
    pub fn smoothed(&self) -> Option<Duration> {
        self.estimator.srtt()
    }

    /// Returns smoothed_rtt and rttvar; `None` before the first sample.
    pub fn estimate(&self) -> Option<(Duration, Duration)> {
        self.estimator.estimate()
    }

    /// Returns the larger of smoothed_rtt and latest_rtt (§ 6.1.2); the initial RTT before the
    /// first sample.
    pub fn larger(&self) -> Duration {
        let smoothed = self.smoothed().unwrap_or(self.initial);
        smoothed.max(self.latest().unwrap_or(self.initial))
    }

    /// Returns smoothed_rtt + max(4 · rttvar, kGranularity), the PTO without max_ack_delay (§
    /// 6.2.1). Before the first sample they are the initial RTT and half of it (§ 6.2.2).
    pub fn probe_base(&self) -> Duration {
        let first = (self.initial, self.initial / 2);
        let (smoothed, variation) = self.estimator.estimate().unwrap_or(first);
        smoothed + (variation * 4).max(GRANULARITY)
    }
}

/// Backoff and probes of the probe timeout (PTO).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProbeTimer {
    /// PTOs in a row (pto_count).
    count: u32,
    /// Probes that may still be sent, regardless of the window.
    probes: u8,
}

/// Probes of one PTO (§ 6.2.4: one, and at most two).
const PROBES: u8 = 2;

impl ProbeTimer {
    /// Returns the number of PTOs in a row.
    pub const fn count(self) -> u32 {
        self.count
    }

    /// Returns the number of probes that may still be sent, regardless of the window.
    pub const fn probes(self) -> u8 {
        self.probes
    }

    /// Returns the time of the next PTO, if the last packet that elicits an ACK was sent at `last`
    /// (§ A.8); `period` is the PTO without backoff.
    pub fn deadline(self, last: Time, period: Duration) -> Time {
        last + period * 1_u64.checked_shl(self.count).unwrap_or(u64::MAX)
    }

    /// Counts an expired PTO, and allows its probes (§ A.9).
    pub const fn on_expiry(&mut self) {
        self.count = self.count.saturating_add(1);
        self.probes = PROBES;
    }

    /// Counts a packet that elicits an ACK as a probe, if one is due.
    pub const fn on_sent(&mut self) {
        self.probes = self.probes.saturating_sub(1);
    }

    /// Ends the backoff, at an ACK of a new packet (§ 6.2.1, § A.7). Probes that are due stay due.
    pub const fn on_ack(&mut self) {
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn the_receivers_delay_is_taken_off_unless_that_falls_below_the_least() {
        let mut rtt = Rtt::new(&Params::default());
        assert_eq!(rtt.probe_base(), MS(999), "§ 6.2.2: 333 ms and 4 · 166.5 ms");
        rtt.update(Time(1), MS(100), MS(20));
        assert_eq!(rtt.smoothed(), Some(MS(100)), "§ 5.3: the first sample is the least");
        rtt.update(Time(2), MS(116), MS(16));
        assert_eq!(rtt.smoothed(), Some(MS(100)));
        rtt.update(Time(3), MS(108), MS(16));
        assert_eq!(rtt.smoothed(), Some(MS(101)), "92 ms would be below 100 ms");
        assert_eq!((rtt.min(), rtt.larger()), (Some(MS(100)), MS(108)));
        rtt.forget_min();
        assert_eq!((rtt.min(), rtt.first_sample()), (Some(MS(108)), Time(1)));
    }

    #[test]
    fn each_expiry_doubles_the_timeout_and_an_acknowledgement_ends_that() {
        let mut timer = ProbeTimer::default();
        let at = |timer: ProbeTimer| timer.deadline(Time(5), Duration(100)).0;
        assert_eq!(at(timer), 105);
        timer.on_expiry();
        timer.on_expiry();
        assert_eq!((at(timer), timer.probes()), (405, 2));
        timer.on_sent();
        timer.on_ack();
        assert_eq!((at(timer), timer.probes(), timer.count()), (105, 1, 0));
        (0..70).for_each(|_| timer.on_expiry());
        assert_eq!(timer.deadline(Time(5), Duration(100)), Time::NEVER);
    }
}
