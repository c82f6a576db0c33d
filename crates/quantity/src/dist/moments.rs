//! Tail probabilities, means and values at a normal deviate, in closed form.

use core::f64::consts::SQRT_2;

use super::shape::{Replaced, Shape};

impl Shape {
    /// Returns the mean; infinite if the tail is too heavy for a finite one.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.limited_mean(f64::INFINITY)
    }

    /// Returns the probability that a draw exceeds `x`, before rounding to whole units.
    #[must_use]
    pub fn ccdf(&self, x: f64) -> f64 {
        match self {
            Self::Constant(v) => f64::from(x < *v as f64),
            Self::Uniform(low, high) => {
                let (low, values) = (*low as f64, (high - low) as f64 + 1.0);
                1.0 - ((libm::floor(x) - low + 1.0) / values).clamp(0.0, 1.0)
            }
            Self::Table(table) => table.ccdf(x),
            Self::Mix(parts) => parts.iter().map(|(share, part)| share * part.ccdf(x)).sum(),
            Self::AtMost(shape, most) => {
                if x < *most as f64 {
                    shape.ccdf(x)
                } else {
                    0.0
                }
            }
            Self::Replaced(r) => {
                let threshold = r.threshold();
                let replaced = r.probability * (1.0 - r.base.ccdf(threshold));
                let kept = r.base.ccdf(x)
                    - r.probability * (r.base.ccdf(x) - r.base.ccdf(threshold)).max(0.0);
                kept + replaced * r.replacement.ccdf(x)
            }
            _ if x <= 0.0 => 1.0,
            Self::Exponential(mean) => libm::exp(-x / *mean as f64),
            Self::Pareto(shape, width) => {
                let scale = width.of_pareto(*shape);
                if x <= scale { 1.0 } else { libm::pow(scale / x, *shape) }
            }
            Self::Lomax(shape, width) => {
                libm::exp(-shape * libm::log1p(x / width.of_lomax(*shape)))
            }
            Self::Weibull(shape, width) => {
                libm::exp(-libm::pow(x / width.of_weibull(*shape), *shape))
            }
            Self::LogNormal(median, sigma) => above(*sigma, libm::log(x / *median as f64)),
        }
    }

    /// Returns the mean of min(X, most): the integral of P(X > x) from 0 to `most`.
    #[must_use]
    pub fn limited_mean(&self, most: f64) -> f64 {
        match self {
            Self::Constant(v) => (*v as f64).min(most),
            Self::Uniform(low, high) => {
                let (low, high) = (*low as f64, *high as f64);
                let whole = libm::floor(most.clamp(low, high));
                let below = (whole - low + 1.0) * (low + whole) / 2.0;
                let rest = if whole < high { (high - whole) * most } else { 0.0 };
                if most <= low { most } else { (below + rest) / (high - low + 1.0) }
            }
            Self::Exponential(mean) => -(*mean as f64) * libm::expm1(-most / *mean as f64),
            Self::Pareto(shape, width) => {
                let scale = width.of_pareto(*shape);
                if most <= scale { most } else { scale + tail(*shape, scale, most / scale) }
            }
            Self::Lomax(shape, width) => {
                let scale = width.of_lomax(*shape);
                tail(*shape, scale, 1.0 + most / scale)
            }
            Self::Weibull(shape, width) => {
                let scale = width.of_weibull(*shape);
                let power = libm::pow(most / scale, *shape);
                let rest = if most.is_finite() { most * libm::exp(-power) } else { 0.0 };
                let inverse = 1.0 / shape;
                scale * libm::tgamma(1.0 + inverse) * lower_gamma(1.0 + inverse, power) + rest
            }
            Self::LogNormal(median, sigma) => {
                let log = libm::log(most / *median as f64);
                let mean = *median as f64 * libm::exp(sigma * sigma / 2.0);
                let rest = if most.is_finite() { most * above(*sigma, log) } else { 0.0 };
                mean * (1.0 - above(*sigma, log - sigma * sigma)) + rest
            }
            Self::Table(table) => table.limited_mean(most),
            Self::Mix(parts) => {
                parts.iter().map(|(share, part)| share * part.limited_mean(most)).sum()
            }
            Self::AtMost(shape, cut) => shape.limited_mean(most.min(*cut as f64)),
            Self::Replaced(r) => r.limited_mean(most),
        }
    }
}

impl Replaced {
    /// Returns the bound below which draws may be replaced: they are rounded before they are
    /// compared with `bound`.
    fn threshold(&self) -> f64 {
        self.bound as f64 - 0.5
    }

    fn limited_mean(&self, most: f64) -> f64 {
        let threshold = self.threshold();
        // Mean of min(X, cut) over the draws below the threshold, times their probability.
        let cut = threshold.min(most);
        let small = self.base.limited_mean(cut) - cut * self.base.ccdf(threshold);
        let replaced = self.probability * (1.0 - self.base.ccdf(threshold));
        self.base.limited_mean(most) - self.probability * small
            + replaced * self.replacement.limited_mean(most)
    }
}

/// Returns the integral of x^−α, times `scale`, from 1 to `end`.
fn tail(shape: f64, scale: f64, end: f64) -> f64 {
    let power = 1.0 - shape;
    if power == 0.0 {
        return scale * libm::log(end);
    }
    scale * libm::expm1(power * libm::log(end)) / power
}

/// Returns the probability that a normal number with mean 0 and this deviation exceeds `x`.
fn above(sigma: f64, x: f64) -> f64 {
    if sigma == 0.0 {
        return f64::from(x < 0.0);
    }
    libm::erfc(x / (sigma * SQRT_2)) / 2.0
}

/// Returns the regularised lower incomplete gamma function P(a, x).
///
/// Below a + 1 by the series of DLMF 8.11.4; above by the continued fraction of DLMF 8.9.2, which
/// gives 1 − P.
fn lower_gamma(a: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if !x.is_finite() {
        return 1.0;
    }
    let front = libm::exp(a * libm::log(x) - x - libm::lgamma(a));
    if x < a + 1.0 {
        let (mut term, mut sum, mut n) = (1.0 / a, 1.0 / a, a);
        while term > sum * f64::EPSILON {
            n += 1.0;
            term *= x / n;
            sum += term;
        }
        return (front * sum).min(1.0);
    }
    // Evaluation by Lentz's algorithm.
    let mut b = x + 1.0 - a;
    let mut c = 1.0 / f64::MIN_POSITIVE;
    let mut d = 1.0 / b;
    let mut fraction = d;
    for i in 1..MOST_STEPS {
        let step = f64::from(i) * (a - f64::from(i));
        b += 2.0;
        d = 1.0 / (step * d + b);
        c = b + step / c;
        let change = d * c;
        fraction *= change;
        if (change - 1.0).abs() < f64::EPSILON {
            break;
        }
    }
    1.0 - front * fraction
}

/// Upper bound of the steps; the continued fraction converges long before.
const MOST_STEPS: u32 = 100_000;

impl Shape {
    /// Returns the value that is exceeded with the probability that a standard normal deviate
    /// exceeds `x`.
    ///
    /// Correlated deviates become correlated values, each of which has this distribution (NORTA:
    /// Cario and Nelson, Modeling and generating random vectors with arbitrary marginal
    /// distributions, 1997). `None` for mixtures, replacements and `min` of these, which have no
    /// inverse in closed form.
    #[must_use]
    pub fn at_deviate(&self, x: f64) -> Option<f64> {
        // Both tails are computed, so that small probabilities keep their digits.
        let [below, above] = [-x, x].map(|x| libm::erfc(x / SQRT_2) / 2.0);
        Some(match self {
            Self::Constant(v) => *v as f64,
            Self::Uniform(low, high) => *low as f64 + (high - low) as f64 * below,
            Self::Exponential(mean) => -(*mean as f64) * libm::log(above),
            Self::Pareto(shape, width) => width.of_pareto(*shape) * libm::pow(above, -1.0 / shape),
            Self::Lomax(shape, width) => {
                width.of_lomax(*shape) * libm::expm1(-libm::log(above) / shape)
            }
            Self::Weibull(shape, width) => {
                width.of_weibull(*shape) * libm::pow(-libm::log(above), 1.0 / shape)
            }
            Self::LogNormal(median, sigma) => *median as f64 * libm::exp(sigma * x),
            Self::Table(table) => table.quantile(below),
            Self::AtMost(shape, most) => shape.at_deviate(x)?.min(*most as f64),
            Self::Mix(_) | Self::Replaced(_) => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::DurationDist;
    use super::*;

    #[test]
    fn a_value_is_exceeded_as_often_as_its_deviate() {
        let shapes = [
            "uniform(0 s, 2 s)",
            "exponential(1 s)",
            "pareto(2.5, 1 s)",
            "lomax(2.5, 1 s)",
            "weibull(0.7, 1 s)",
            "lognormal(1 s, 0.8)",
            "cdf(0 s: 0, 1 s: 0.25, 3 s: 1)",
            "min(lognormal(1 s, 0.8), 100 s)",
        ];
        for text in shapes {
            let DurationDist(shape) = text.parse().unwrap();
            for tenths in -60..=60 {
                let x = f64::from(tenths) / 10.0;
                let exceeded = libm::erfc(x / SQRT_2) / 2.0;
                let ccdf = shape.ccdf(shape.at_deviate(x).unwrap());
                // Values are within 10⁻⁸ plus a millionth of the probability.
                let near = (ccdf - exceeded).abs() < 1e-8 + 1e-6 * exceeded;
                assert!(near, "{text} at {x}: {ccdf} and {exceeded}");
            }
        }
    }

    #[test]
    fn a_choice_between_distributions_has_no_inverse() {
        for text in ["mix(0.5 1 s, 0.5 2 s)", "replace(exponential(1 s) below 1 s, 0.5 2 s)"] {
            let DurationDist(shape) = text.parse().unwrap();
            assert_eq!(shape.at_deviate(0.3), None, "{text}");
        }
    }
}
