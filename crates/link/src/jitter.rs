use cwnd_quantity::{Duration, DurationDist, Rng, Time};

/// A stationary random delay with a given distribution and an exponential correlation, like that of
/// a radio link.
///
/// The basis is a standard normal process x with E[x(t) x(t + h)] = exp(−h / τ), the
/// Ornstein–Uhlenbeck process. It is drawn at the times of packets, without discretisation error:
/// x(t + h) = ρ x(t) + √(1 − ρ²) · N(0, 1), ρ = exp(−h / τ) (Gillespie, Exact numerical simulation
/// of the Ornstein–Uhlenbeck process and its integral, 1996, eq. 1.11). The delay is the quantile
/// of the distribution at the same probability as x.
#[derive(Debug)]
pub(crate) struct JitterProcess {
    of: DurationDist,
    /// Correlation time τ; with zero, delays are independent.
    correlation: Duration,
    /// Time and value of the last deviate; `None` before the first, and always with τ = 0.
    last: Option<(Time, f64)>,
    rng: Rng,
}

impl JitterProcess {
    /// Creates a delay process with this distribution and correlation time.
    pub const fn new(of: DurationDist, correlation: Duration, rng: Rng) -> Self {
        Self { of, correlation, last: None, rng }
    }

    /// Draws the delay at `now`, which must not precede the last call.
    pub fn at(&mut self, now: Time) -> Duration {
        if self.correlation == Duration::ZERO {
            return self.of.sample(&mut self.rng);
        }
        let fresh = self.rng.normal();
        let x = match self.last {
            None => fresh,
            Some((then, x)) => {
                let passed = now.since(then).0 as f64 / self.correlation.0 as f64;
                // √(1 − ρ²) by `expm1`: accurate where ρ is close to 1.
                libm::exp(-passed) * x + libm::sqrt(-libm::expm1(-2.0 * passed)) * fresh
            }
        };
        self.last = Some((now, x));
        // `as` saturates: a delay beyond 64 bits becomes the longest one.
        Duration((self.of.0.at_deviate(x).unwrap_or_default() + 0.5) as u64)
    }
}

#[cfg(test)]
mod tests {
    use cwnd_quantity::Rng;
    use cwnd_schema::{Param as _, Value};
    use proptest::prelude::*;

    use super::*;

    fn jitter(of: &str, correlation: Duration, seed: u64) -> JitterProcess {
        let of = DurationDist::read(&Value::Text(of.to_owned())).unwrap();
        JitterProcess::new(of, correlation, Rng::named(seed, "test"))
    }

    /// Delays in milliseconds at equal intervals.
    fn series(mut jitter: JitterProcess, step: Duration, n: u64) -> Vec<f64> {
        (0..n).map(|i| jitter.at(Time::ZERO + step * i).0 as f64 / 1e6).collect()
    }

    fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
        let n = values.len() as f64;
        values.sum::<f64>() / n
    }

    /// Autocorrelation of the values at this lag.
    fn correlation(values: &[f64], lag: usize) -> f64 {
        let m = mean(values.iter().copied());
        let variance = mean(values.iter().map(|v| (v - m) * (v - m)));
        let pairs = values.iter().zip(&values[lag..]);
        mean(pairs.map(|(a, b)| (a - m) * (b - m))) / variance
    }

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn lognormal_delays_forget_as_the_closed_form_says() {
        // With a deviation as large as the mean, σ² = ln 2. The correlation of exp(σ x) at h is
        // (exp(σ² ρ) − 1) / (exp(σ²) − 1) = 2^ρ − 1, ρ = exp(−h / τ).
        let values = series(jitter("lognormal(10 ms, 0.832554611)", MS * 50, 1), MS * 5, 2_000_000);
        for lag in [1, 4, 10, 20, 40] {
            let rho = libm::exp(-5.0 * lag as f64 / 50.0);
            let expected = libm::exp2(rho) - 1.0;
            let found = correlation(&values, lag);
            assert!((found - expected).abs() < 0.01, "{lag}: {found} and {expected}");
        }
    }

    #[test]
    fn uniform_delays_forget_as_the_closed_form_says() {
        // Uniform numbers under a normal copula: 6/π · asin(ρ / 2).
        let values = series(jitter("uniform(0 ms, 30 ms)", MS * 20, 2), MS * 2, 1_000_000);
        for lag in [1, 5, 10, 30] {
            let rho = libm::exp(-2.0 * lag as f64 / 20.0);
            let expected = 6.0 / core::f64::consts::PI * libm::asin(rho / 2.0);
            let found = correlation(&values, lag);
            assert!((found - expected).abs() < 0.01, "{lag}: {found} and {expected}");
        }
    }

    #[test]
    fn the_process_is_the_same_however_often_it_is_looked_at() {
        // The distribution after a time does not depend on the number of packets before.
        let after = |steps: u64| {
            let at_end = (0..4000).map(|seed| {
                let of = jitter("exponential(10 ms)", MS * 100, seed);
                series(of, MS * (200 / steps), steps + 1).pop().unwrap()
            });
            let mut values: Vec<f64> = at_end.collect();
            values.sort_by(f64::total_cmp);
            [400, 2000, 3600].map(|i| values[i])
        };
        for (few, many) in after(1).into_iter().zip(after(50)) {
            assert!((few / many - 1.0).abs() < 0.12, "{few} and {many}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn mean_and_deviation_are_those_asked_for_and_draws_those_of_the_seed(
            mean_ms in 1_u32..60, sigma in 0.1_f64..0.7, tau_ms in 0_u64..40, seed: u64,
        ) {
            let of = format!("lognormal({mean_ms} ms, {sigma})");
            let of = || jitter(&of, MS * tau_ms, seed);
            let values = series(of(), MS * 20, 60_000);
            prop_assert_eq!(&values[..100], &series(of(), MS * 20, 100)[..]);
            let half = sigma * sigma / 2.0;
            let expected = f64::from(mean_ms) * half.exp();
            let found = mean(values.iter().copied());
            prop_assert!((found / expected - 1.0).abs() < 0.05, "mean {} and {}", found, expected);
            let deviation = mean(values.iter().map(|v| (v - found) * (v - found))).sqrt();
            let wanted = expected * (2.0 * half).exp_m1().sqrt();
            let error = (deviation / wanted - 1.0).abs();
            prop_assert!(error < 0.15, "deviation {} and {}", deviation, wanted);
        }
    }
}
