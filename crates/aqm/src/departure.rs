use cwnd_quantity::{Duration, Time};

/// PIE's estimator of the departure rate, as in Linux from 3.14 on (RFC 8033 § 5.2 averages times
/// instead). It counts departing bytes while enough wait to keep the line busy; each full count
/// gives one measurement.
///
/// Departs from Linux in arithmetic: floating point instead of 8 fractional bits of a byte per 64
/// ns, which resolve the rate only to 5 % at 10 Mbit/s.
#[derive(Clone, Debug)]
pub(crate) struct DepartureRate {
    threshold: u64,
    weight: f64,
    /// Average rate, bytes per nanosecond; zero before the first measurement.
    average: f64,
    /// The measurement in progress.
    cycle: Option<Cycle>,
}

#[derive(Clone, Copy, Debug)]
struct Cycle {
    began: Time,
    bytes: u64,
}

impl DepartureRate {
    /// Creates an estimator without a measurement.
    pub(crate) const fn new(threshold: u64, weight: f64) -> Self {
        Self { threshold, weight, average: 0.0, cycle: None }
    }

    /// `true` if a rate is known.
    pub(crate) fn is_known(&self) -> bool {
        self.average > 0.0
    }

    /// Forgets the rate and the measurement in progress.
    pub(crate) const fn reset(&mut self) {
        self.average = 0.0;
        self.cycle = None;
    }

    /// Returns the time that `backlog` bytes take to leave; zero while no rate is known.
    pub(crate) fn delay(&self, backlog: u64) -> Duration {
        if self.is_known() {
            Duration((backlog as f64 / self.average) as u64)
        } else {
            Duration::ZERO
        }
    }

    /// Counts a departed packet, with `backlog` bytes left. Returns the duration of the measurement
    /// that this completes, if any.
    #[inline]
    pub(crate) fn on_departure(
        &mut self,
        now: Time,
        wire_bytes: u32,
        backlog: u64,
    ) -> Option<Duration> {
        if self.cycle.is_none() && backlog >= self.threshold {
            self.cycle = Some(Cycle { began: now, bytes: 0 });
        }
        let cycle = self.cycle.as_mut()?;
        // The packet that begins a count from idle is counted at its start, as in Linux: that rate
        // is too high by a packet.
        cycle.bytes += u64::from(wire_bytes);
        if cycle.bytes < self.threshold {
            return None;
        }
        let took = now.since(cycle.began);
        if took == Duration::ZERO {
            return None;
        }
        let rate = cycle.bytes as f64 / took.as_nanos() as f64;
        if self.average > 0.0 {
            self.average += self.weight * (rate - self.average);
        } else {
            self.average = rate;
        }
        self.cycle =
            if backlog < self.threshold { None } else { Some(Cycle { began: now, bytes: 0 }) };
        Some(took)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets one packet of 1000 B leave each millisecond from `from`, with `backlog` bytes left.
    fn leave(rate: &mut DepartureRate, from: u64, packets: u64, backlog: u64) -> Vec<Duration> {
        (from..from + packets)
            .filter_map(|n| rate.on_departure(Time(n * 1_000_000), 1000, backlog))
            .collect()
    }

    #[test]
    fn a_rate_is_measured_while_enough_waits() {
        let mut rate = DepartureRate::new(10_000, 0.125);
        assert_eq!(leave(&mut rate, 0, 100, 9_999), []);
        assert!(!rate.is_known());
        // The first of ten packets begins the count and takes no time; later counts take the time
        // of ten.
        let took = leave(&mut rate, 100, 30, 10_000);
        assert_eq!(
            took,
            [Duration::from_millis(9), Duration::from_millis(10), Duration::from_millis(10)]
        );
        // 10/9 of a packet per millisecond at first; each later count removes an eighth of the
        // difference.
        let expected = 1e-3 * (1.0 + 0.875 * 0.875 / 9.0);
        assert!((rate.average / expected - 1.0).abs() < 1e-12);
        assert_eq!(rate.delay(5_000), Duration((5_000.0 / expected) as u64));
    }

    #[test]
    fn idle_time_is_not_counted() {
        let mut rate = DepartureRate::new(10_000, 1.0);
        leave(&mut rate, 0, 19, 10_000);
        // The count that ends with a short queue is the last; the next one starts at its own first
        // packet.
        assert_eq!(leave(&mut rate, 19, 1, 500).len(), 1);
        assert_eq!(leave(&mut rate, 5_000, 10, 10_000), [Duration::from_millis(9)]);
    }

    #[test]
    fn a_count_that_took_no_time_goes_on() {
        let mut rate = DepartureRate::new(1_000, 1.0);
        assert_eq!(rate.on_departure(Time(5), 1000, 2_000), None);
        assert_eq!(rate.on_departure(Time(1_000_005), 1000, 2_000), Some(Duration::from_millis(1)));
        assert!((rate.average - 2e-3).abs() < 1e-15);
        rate.reset();
        assert_eq!(rate.delay(1_000), Duration::ZERO);
    }
}
