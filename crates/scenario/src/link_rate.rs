//! The rate of a link: unlimited, constant or in steps, or a trace.

use cwnd_quantity::{Duration, Rate, Time};

/// Rate of a link.
#[derive(Clone, Debug, PartialEq)]
pub enum LinkRate {
    /// No serialization and no queue: a pure delay.
    Unlimited,
    /// A constant rate, or rates that change in steps.
    Steps {
        /// Rate at the start.
        initial: Rate,
        /// Later rates, sorted by time.
        changes: Vec<(Time, Rate)>,
        /// Time after which the rates repeat, later than the last change; `None` if they never do.
        period: Option<Duration>,
    },
    /// A mahimahi trace: at each of these milliseconds 1500 bytes may pass; it repeats after the
    /// last. Not empty, sorted.
    Trace(Vec<u64>),
}

impl LinkRate {
    /// Creates a rate that never changes.
    #[must_use]
    pub const fn constant(rate: Rate) -> Self {
        Self::steps(rate, Vec::new())
    }

    /// Creates a rate with changes that do not repeat.
    #[must_use]
    pub const fn steps(initial: Rate, changes: Vec<(Time, Rate)>) -> Self {
        Self::Steps { initial, changes, period: None }
    }

    /// Mean rate over a run of this length, bit/s; for a trace, over its period. `None` if
    /// unlimited.
    #[must_use]
    pub fn mean_bit_s(&self, duration: Duration) -> Option<f64> {
        match self {
            Self::Steps { initial, .. } if duration == Duration::ZERO => Some(initial.0 as f64),
            Self::Steps { .. } => self.mean_bit_s_between(Time::ZERO, Time(duration.0)),
            Self::Unlimited | Self::Trace(_) => self.highest_bit_s(),
        }
    }

    /// Mean rate of steps between two instants, bit/s. `None` for other rates, or if `to` is not
    /// later than `from`.
    #[must_use]
    pub fn mean_bit_s_between(&self, from: Time, to: Time) -> Option<f64> {
        let Self::Steps { initial, changes, period } = self else { return None };
        // Unit: 10⁻⁹ bit, since times are in nanoseconds.
        let in_one_period = |until: u64| -> u128 {
            let (mut sum, mut rate, mut since) = (0, initial.0, 0);
            for (at, next) in changes {
                let at = at.0.min(until);
                sum += u128::from(rate) * u128::from(at - since);
                (rate, since) = (next.0, at);
            }
            sum + u128::from(rate) * u128::from(until - since)
        };
        let sent = |until: Time| match period {
            None => in_one_period(until.0),
            Some(Duration(period)) => {
                let whole = u128::from(until.0 / period) * in_one_period(*period);
                whole + in_one_period(until.0 % period)
            }
        };
        (from < to).then(|| (sent(to) - sent(from)) as f64 / to.since(from).0 as f64)
    }

    /// Highest rate in bit/s; for a trace, the mean over its period. `None` if unlimited.
    #[must_use]
    pub fn highest_bit_s(&self) -> Option<f64> {
        match self {
            Self::Unlimited => None,
            Self::Steps { initial, changes, .. } => {
                let rates = changes.iter().map(|(_, rate)| rate.0).chain([initial.0]);
                rates.max().map(|rate| rate as f64)
            }
            Self::Trace(at_ms) => {
                let period_s = at_ms.last().copied().unwrap_or(1).max(1) as f64 / 1000.0;
                Some(at_ms.len() as f64 * TRACE_BITS / period_s)
            }
        }
    }
}

/// Bits of one delivery opportunity of a trace.
const TRACE_BITS: f64 = 1500.0 * 8.0;

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn the_mean_of_a_rate_that_repeats_is_that_of_the_periods_and_parts_between() {
        let changes = vec![(Time(S), Rate(4000))];
        let once = LinkRate::steps(Rate(8000), changes.clone());
        let again = LinkRate::Steps { initial: Rate(8000), changes, period: Some(Duration(4 * S)) };
        let mean = |rate: &LinkRate, from: u64, to: u64| {
            rate.mean_bit_s_between(Time(from * S), Time(to * S)).unwrap()
        };
        assert_eq!([mean(&once, 0, 4), mean(&again, 0, 4)], [5000.0, 5000.0]);
        assert_eq!([mean(&once, 0, 400), mean(&again, 0, 400)], [4010.0, 5000.0]);
        assert_eq!([mean(&once, 4, 5), mean(&again, 4, 5)], [4000.0, 8000.0]);
        assert_eq!(mean(&again, 3, 6), (4000.0 + 8000.0 + 4000.0) / 3.0);
        assert_eq!(again.mean_bit_s_between(Time(S), Time(S)), None);
    }
}
