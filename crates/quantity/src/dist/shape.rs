//! The distributions there are: what each draws.

use std::sync::Arc;

use super::table::Table;
use crate::rng::Rng;

/// The shape of a distribution over a quantity measured in its integer unit (nanoseconds or bytes).
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Always this.
    Constant(u64),
    /// Uniform between these two.
    Uniform(u64, u64),
    /// Exponential with this mean.
    Exponential(u64),
    /// Pareto (type I) with this shape α: P(X > x) = (scale / x)^α from the scale on.
    Pareto(f64, Width),
    /// Pareto of type II (Lomax) with this shape α: P(X > x) = (1 + x / scale)^−α.
    Lomax(f64, Width),
    /// Weibull with this shape k: P(X > x) = exp(−(x / scale)^k).
    Weibull(f64, Width),
    /// Log-normal with this median, and deviation of the logarithm.
    LogNormal(u64, f64),
    /// What was measured: a cumulative distribution as points with straight lines between them.
    Table(Arc<Table>),
    /// One of several, each with its probability; they add up to one.
    Mix(Arc<[(f64, Shape)]>),
    /// At most so much: what is more becomes this.
    AtMost(Arc<Shape>, u64),
    /// Some of its small draws are replaced.
    Replaced(Arc<Replaced>),
}

/// What says how wide a distribution is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// Its mean.
    Mean(u64),
    /// Its scale; for Pareto's the least that it draws.
    Scale(u64),
}

/// Draws of one distribution, of which some of the small ones are replaced by draws of another.
#[derive(Clone, Debug, PartialEq)]
pub struct Replaced {
    /// Where draws come from.
    pub of: Shape,
    /// Draws below this may be replaced.
    pub below: u64,
    /// The probability that such a draw is.
    pub share: f64,
    /// What comes in its place.
    pub by: Shape,
}

impl Shape {
    /// A draw, rounded to the integer unit. A constant draws nothing from `rng`; all others take one uniform number, by
    /// inversion, but log-normal ones, which take two (Box–Muller), and choices between distributions, which take one more.
    pub fn sample(&self, rng: &mut Rng) -> u64 {
        let nearest = |draw: f64| {
            // `as` saturates: a draw beyond 64 bits is as large as can be.
            (draw + 0.5) as u64
        };
        match self {
            Self::Constant(v) => *v,
            Self::Uniform(low, high) => low + rng.below((high - low).saturating_add(1)),
            Self::Exponential(mean) => nearest(rng.exponential(*mean as f64)),
            Self::Pareto(shape, Width::Mean(mean)) => nearest(rng.pareto(*shape, *mean as f64)),
            Self::Pareto(shape, width) => {
                nearest(width.of_pareto(*shape) * libm::pow(1.0 - rng.unit(), -1.0 / shape))
            }
            Self::Lomax(shape, width) => {
                // u^(−1/α) − 1, exact where it is small.
                let above = libm::expm1(-libm::log(1.0 - rng.unit()) / shape);
                nearest(width.of_lomax(*shape) * above)
            }
            Self::Weibull(shape, width) => {
                let power = libm::pow(-libm::log(1.0 - rng.unit()), 1.0 / shape);
                nearest(width.of_weibull(*shape) * power)
            }
            Self::LogNormal(median, sigma) => {
                nearest(rng.lognormal(libm::log(*median as f64), *sigma))
            }
            Self::Table(table) => nearest(table.quantile(rng.unit())),
            Self::Mix(parts) => chosen(parts, rng.unit()).sample(rng),
            Self::AtMost(shape, most) => shape.sample(rng).min(*most),
            Self::Replaced(r) => match r.of.sample(rng) {
                draw if draw < r.below && rng.chance(r.share) => r.by.sample(rng),
                draw => draw,
            },
        }
    }
}

/// The part of a mixture that a uniform number falls into.
fn chosen(parts: &[(f64, Shape)], mut u: f64) -> &Shape {
    let mut last = &Shape::Constant(0);
    for (share, part) in parts {
        last = part;
        if u < *share {
            break;
        }
        u -= share;
    }
    last
}

impl Width {
    /// The scale of a Pareto distribution: its mean is scale·α / (α − 1).
    pub(super) fn of_pareto(self, shape: f64) -> f64 {
        match self {
            Self::Mean(mean) => mean as f64 * (shape - 1.0) / shape,
            Self::Scale(scale) => scale as f64,
        }
    }

    /// The scale of a Lomax distribution: its mean is scale / (α − 1).
    pub(super) fn of_lomax(self, shape: f64) -> f64 {
        match self {
            Self::Mean(mean) => mean as f64 * (shape - 1.0),
            Self::Scale(scale) => scale as f64,
        }
    }

    /// The scale of a Weibull distribution: its mean is scale·Γ(1 + 1/k).
    pub(super) fn of_weibull(self, shape: f64) -> f64 {
        match self {
            Self::Mean(mean) => mean as f64 / libm::tgamma(1.0 + 1.0 / shape),
            Self::Scale(scale) => scale as f64,
        }
    }
}
