//! Distributions, as text: `"uniform(20 ms, 200 ms)"`.

use cwnd_units::{Bytes, Duration, Rng};

/// The shape of a distribution over a quantity measured in its integer unit (nanoseconds or bytes).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// Always this.
    Constant(u64),
    /// Uniform between these two.
    Uniform(u64, u64),
    /// Exponential with this mean.
    Exponential(u64),
    /// Pareto with this shape α > 1 and mean.
    Pareto(f64, u64),
    /// Log-normal with this median, and deviation of the logarithm.
    LogNormal(u64, f64),
}

impl Shape {
    /// A draw, rounded to the integer unit; a constant draws nothing from `rng`.
    pub fn sample(&self, rng: &mut Rng) -> u64 {
        // `as` saturates: a draw beyond 64 bits is as large as can be.
        match *self {
            Self::Constant(v) => v,
            Self::Uniform(low, high) => low + rng.below((high - low).saturating_add(1)),
            Self::Exponential(mean) => (rng.exponential(mean as f64) + 0.5) as u64,
            Self::Pareto(shape, mean) => (rng.pareto(shape, mean as f64) + 0.5) as u64,
            Self::LogNormal(median, sigma) => {
                (rng.lognormal(libm::log(median as f64), sigma) + 0.5) as u64
            }
        }
    }

    /// The mean of the distribution.
    #[must_use]
    pub fn mean(&self) -> u64 {
        match *self {
            Self::Constant(v) | Self::Exponential(v) | Self::Pareto(_, v) => v,
            Self::Uniform(low, high) => low + (high - low) / 2,
            Self::LogNormal(median, sigma) => {
                (median as f64 * libm::exp(sigma * sigma / 2.0)) as u64
            }
        }
    }
}

/// A distribution over spans of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DurationDist(pub Shape);

impl DurationDist {
    /// Always `d`.
    #[must_use]
    pub const fn constant(d: Duration) -> Self {
        Self(Shape::Constant(d.0))
    }

    /// A draw.
    pub fn sample(&self, rng: &mut Rng) -> Duration {
        Duration(self.0.sample(rng))
    }

    /// The mean.
    #[must_use]
    pub fn mean(&self) -> Duration {
        Duration(self.0.mean())
    }
}

/// A distribution over sizes; a draw is at least one byte.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizeDist(pub Shape);

impl SizeDist {
    /// A draw, at least one byte.
    pub fn sample(&self, rng: &mut Rng) -> Bytes {
        Bytes(self.0.sample(rng).max(1))
    }

    /// The mean.
    #[must_use]
    pub fn mean(&self) -> Bytes {
        Bytes(self.0.mean())
    }
}
