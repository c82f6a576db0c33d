//! What is known of a distribution without drawing: tails and means, in closed form.

use super::shape::{Replaced, Shape};

impl Shape {
    /// The mean; infinite where a tail is too heavy to have one.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.limited_mean(f64::INFINITY)
    }

    /// The probability of more than `x`, before draws are rounded to whole units.
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
                let replaced = r.share * (1.0 - r.of.ccdf(threshold));
                let kept = r.of.ccdf(x) - r.share * (r.of.ccdf(x) - r.of.ccdf(threshold)).max(0.0);
                kept + replaced * r.by.ccdf(x)
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

    /// The mean of the draws, those above `most` counted as `most`: the integral of P(X > x) up to it.
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
    /// Draws are rounded before they are compared: what rounds to less than `below` is less than this.
    fn threshold(&self) -> f64 {
        self.below as f64 - 0.5
    }

    fn limited_mean(&self, most: f64) -> f64 {
        let threshold = self.threshold();
        // Of the draws below the threshold: their mean, limited, times their probability.
        let cut = threshold.min(most);
        let small = self.of.limited_mean(cut) - cut * self.of.ccdf(threshold);
        let replaced = self.share * (1.0 - self.of.ccdf(threshold));
        self.of.limited_mean(most) - self.share * small + replaced * self.by.limited_mean(most)
    }
}

/// The integral of x^−α, times `scale`, from one to `end`.
fn tail(shape: f64, scale: f64, end: f64) -> f64 {
    let power = 1.0 - shape;
    if power == 0.0 {
        return scale * libm::log(end);
    }
    scale * libm::expm1(power * libm::log(end)) / power
}

/// The probability that a normal number of this deviation is above `x`.
fn above(sigma: f64, x: f64) -> f64 {
    if sigma == 0.0 {
        return f64::from(x < 0.0);
    }
    libm::erfc(x / (sigma * core::f64::consts::SQRT_2)) / 2.0
}

/// The regularised lower incomplete gamma function P(a, x): the series of DLMF 8.11.4 below a + 1, above it the continued
/// fraction of DLMF 8.9.2 for what is missing to one.
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
    // Lentz's way of evaluating it.
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

/// The continued fraction has converged long before.
const MOST_STEPS: u32 = 100_000;
