//! Families of distributions, and the draws from them; a cumulative distribution as points, with
//! straight lines between them.

use alloc::borrow::ToOwned as _;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::rng::Rng;

/// A distribution over a quantity in its integer unit (nanoseconds, bytes, or millionths of a
/// count).
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Always this value.
    Constant(u64),
    /// Uniform between these two, both included.
    Uniform(u64, u64),
    /// Exponential with this mean.
    Exponential(u64),
    /// Pareto (type I) with this shape α: P(X > x) = (scale / x)^α from the scale on.
    Pareto(f64, Width),
    /// Pareto of type II (Lomax) with this shape α: P(X > x) = (1 + x / scale)^−α.
    Lomax(f64, Width),
    /// Weibull with this shape k: P(X > x) = exp(−(x / scale)^k).
    Weibull(f64, Width),
    /// Log-normal with this median, and this deviation of the logarithm.
    LogNormal(u64, f64),
    /// Measured distribution: a cumulative one as points with straight lines between them.
    Table(Arc<Table>),
    /// Mixture of distributions with their probabilities, which add up to 1.
    Mix(Arc<[(f64, Shape)]>),
    /// Distribution cut at a maximum: larger draws become the maximum.
    AtMost(Arc<Shape>, u64),
    /// Distribution of which some small draws are replaced.
    Replaced(Arc<Replaced>),
}

/// Parameter that sets the width of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// Mean of the distribution.
    Mean(u64),
    /// Scale; for Pareto the least value.
    Scale(u64),
}

/// Parameters of a distribution of which some small draws are replaced by draws of another.
#[derive(Clone, Debug, PartialEq)]
pub struct Replaced {
    /// Distribution that is drawn from first.
    pub base: Shape,
    /// Bound in whole units; draws below it may be replaced.
    pub bound: u64,
    /// Probability that such a draw is replaced.
    pub probability: f64,
    /// Distribution of the replacements.
    pub replacement: Shape,
}

impl Shape {
    /// Draws a value, rounded to the integer unit.
    ///
    /// A constant takes no number from `rng`; the others take one uniform number, by inversion,
    /// except log-normal ones, which take two (Box–Muller). A cut distribution takes those of the
    /// whole one. A mixture takes one for its choice, then those of the chosen part. A draw that
    /// may be replaced takes one more for the decision, then those of its replacement, if any.
    pub fn sample(&self, rng: &mut Rng) -> u64 {
        let nearest = |draw: f64| {
            // `as` saturates: a draw beyond 64 bits becomes the largest value.
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
                // u^(−1/α) − 1, accurate where it is small.
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
            Self::Mix(parts) => select(parts, rng.unit()).sample(rng),
            Self::AtMost(shape, most) => shape.sample(rng).min(*most),
            Self::Replaced(r) => match r.base.sample(rng) {
                draw if draw < r.bound && rng.chance(r.probability) => r.replacement.sample(rng),
                draw => draw,
            },
        }
    }
}

/// Returns the part of a mixture that a uniform number selects.
fn select(parts: &[(f64, Shape)], mut u: f64) -> &Shape {
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
    /// Returns the scale of a Pareto distribution: its mean is scale·α / (α − 1).
    pub(super) fn of_pareto(self, shape: f64) -> f64 {
        match self {
            Self::Mean(mean) => mean as f64 * (shape - 1.0) / shape,
            Self::Scale(scale) => scale as f64,
        }
    }

    /// Returns the scale of a Lomax distribution: its mean is scale / (α − 1).
    pub(super) fn of_lomax(self, shape: f64) -> f64 {
        match self {
            Self::Mean(mean) => mean as f64 * (shape - 1.0),
            Self::Scale(scale) => scale as f64,
        }
    }

    /// Returns the scale of a Weibull distribution: its mean is scale·Γ(1 + 1/k).
    pub(super) fn of_weibull(self, shape: f64) -> f64 {
        match self {
            Self::Mean(mean) => mean as f64 / libm::tgamma(1.0 + 1.0 / shape),
            Self::Scale(scale) => scale as f64,
        }
    }
}

/// A measured cumulative distribution: points of a value and the probability of no more than it.
///
/// Values and probabilities never fall; the last probability is 1. Values between two points are
/// equally likely. The first point's probability is that of its value itself. Two points of one
/// value are a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Table(Vec<(u64, f64)>);

impl Table {
    /// Creates a table from points in order.
    ///
    /// # Errors
    /// Fails if they are no cumulative distribution: with the index of the first wrong point, 0
    /// without points, and the reason. The reason quotes no value, as the points may be
    /// confidential.
    pub fn new(points: Vec<(u64, f64)>) -> Result<Self, (usize, String)> {
        let mut before = (0, 0.0);
        for (i, &(value, p)) in points.iter().enumerate() {
            if !(0.0..=1.0).contains(&p) {
                return Err((i, "a probability lies between 0 and 1".to_owned()));
            }
            if i > 0 && value < before.0 {
                return Err((i, "the values must not fall from one point to the next".to_owned()));
            }
            if p < before.1 {
                let why = "a cumulative probability must not fall from one point to the next";
                return Err((i, why.to_owned()));
            }
            before = (value, p);
        }
        match points.last() {
            Some(&(_, 1.0)) => Ok(Self(points)),
            Some(_) => Err((points.len() - 1, "the last probability must be 1".to_owned())),
            None => Err((0, "there is no point".to_owned())),
        }
    }

    /// Returns the points in order.
    #[must_use]
    pub fn points(&self) -> &[(u64, f64)] {
        &self.0
    }

    /// Returns the value that a fraction `u` of the draws does not exceed.
    #[must_use]
    pub fn quantile(&self, u: f64) -> f64 {
        let points = &self.0;
        let i = points.partition_point(|&(_, p)| p <= u).min(points.len() - 1);
        let (high, above) = (points[i].0 as f64, points[i].1);
        let Some(&(low, below)) = i.checked_sub(1).and_then(|before| points.get(before)) else {
            return high;
        };
        if above <= below {
            return high;
        }
        let low = low as f64;
        low + (high - low) * ((u - below) / (above - below))
    }

    /// Returns the probability that a draw exceeds `x`.
    #[must_use]
    pub(super) fn ccdf(&self, x: f64) -> f64 {
        let points = &self.0;
        let i = points.partition_point(|&(value, _)| value as f64 <= x);
        let Some(&(low, below)) = i.checked_sub(1).and_then(|before| points.get(before)) else {
            return 1.0;
        };
        let Some(&(high, above)) = points.get(i) else { return 0.0 };
        let (low, high) = (low as f64, high as f64);
        1.0 - (below + (above - below) * ((x - low) / (high - low)))
    }

    /// Returns the mean of min(X, most).
    #[must_use]
    pub(super) fn limited_mean(&self, most: f64) -> f64 {
        let points = &self.0;
        // The integral of P(X > x): 1 up to the first point, then a trapezium between each two.
        let mut sum = (points[0].0 as f64).min(most);
        for pair in points.windows(2) {
            let (low, high) = (pair[0].0 as f64, (pair[1].0 as f64).min(most));
            if high > low {
                // Value just below the upper end: a step there is not part of the line that leads
                // to it.
                let end = if pair[1].0 as f64 > most { self.ccdf(high) } else { 1.0 - pair[1].1 };
                sum += (high - low) * ((1.0 - pair[0].1) + end) / 2.0;
            }
        }
        sum
    }
}
