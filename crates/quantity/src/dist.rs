//! Distributions of times, sizes and counts, read from text: `"uniform(20 ms, 200 ms)"`.

use alloc::borrow::ToOwned as _;
use alloc::string::{String, ToString as _};

mod moments;
mod shape;
mod text;

use core::fmt;
use core::str::FromStr;

pub use shape::{Replaced, Shape, Table, Width};
pub use text::FORMS;
use text::Reader;

use crate::parse::{ParseError, parse_bytes, parse_duration};
use crate::rate::Bytes;
use crate::rng::Rng;
use crate::time::Duration;

/// Named distributions of sizes: the name, and the text it stands for.
pub const NAMED_SIZES: &[(&str, &str)] = text::SIZES;

impl Shape {
    /// Returns the mean in whole units (ns or bytes), rounded down.
    fn whole_mean(&self) -> u64 {
        match self {
            Self::Constant(v) => *v,
            Self::Uniform(low, high) => low + (high - low) / 2,
            Self::Exponential(v)
            | Self::Pareto(_, Width::Mean(v))
            | Self::Lomax(_, Width::Mean(v))
            | Self::Weibull(_, Width::Mean(v)) => *v,
            // `as` saturates: a mean beyond 64 bits becomes the largest value.
            other => other.mean() as u64,
        }
    }
}

/// A distribution of durations, in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct DurationDist(pub Shape);

impl DurationDist {
    /// Creates the distribution that always gives `d`.
    #[must_use]
    pub const fn constant(d: Duration) -> Self {
        Self(Shape::Constant(d.0))
    }

    /// Draws a duration.
    pub fn sample(&self, rng: &mut Rng) -> Duration {
        Duration(self.0.sample(rng))
    }

    /// `true` unless it is one constant, which takes no number from a random stream.
    #[must_use]
    pub const fn varies(&self) -> bool {
        !matches!(self.0, Shape::Constant(_))
    }

    /// Returns the mean, rounded down to nanoseconds. Each distribution read from text has one; an
    /// infinite mean becomes [`Duration::MAX`].
    #[must_use]
    pub fn mean(&self) -> Duration {
        Duration(self.0.whole_mean())
    }
}

impl Default for DurationDist {
    /// Zero, always.
    fn default() -> Self {
        Self::constant(Duration::ZERO)
    }
}

/// A distribution of sizes in bytes; a draw is at least one byte.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeDist(pub Shape);

impl Default for SizeDist {
    /// One byte, always.
    fn default() -> Self {
        Self(Shape::Constant(1))
    }
}

impl SizeDist {
    /// Draws a size of at least one byte.
    pub fn sample(&self, rng: &mut Rng) -> Bytes {
        Bytes(self.0.sample(rng).max(1))
    }

    /// Returns the mean in bytes before draws are rounded; infinite if the tail is too heavy for a
    /// finite one.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.0.mean()
    }

    /// Returns the mean number of parts of `part` bytes that a draw divides into, the last perhaps
    /// smaller.
    ///
    /// It is the sum of P(X > k·part) over all k from 0, where the first term is 1. An integral
    /// replaces all but the first 4,096 terms.
    #[must_use]
    pub fn mean_parts(&self, part: Bytes) -> f64 {
        mean_parts(&self.0, part.0)
    }
}

fn mean_parts(shape: &Shape, part: u64) -> f64 {
    const TERMS: u32 = 4_096;
    let part = part.max(1) as f64;
    // Draws are rounded: more than k parts means at least half a unit more.
    let more = |k: u32| shape.ccdf(f64::from(k) * part + 0.5);
    let near: f64 = (1..TERMS).map(more).sum();
    let beyond = (f64::from(TERMS) - 0.5) * part;
    1.0 + near + (shape.mean() - shape.limited_mean(beyond)) / part
}

impl FromStr for DurationDist {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let quantity = |t: &str| parse_duration(t).map(|d| d.0);
        let shape = Reader { quantity: &quantity, example: "\"100 ms\"", named: &[] }.read(text)?;
        if shape.mean().is_finite() {
            return Ok(Self(shape));
        }
        Err(ParseError(format!(
            "`{text}` has no mean, which a time needs: take a shape above 1, \
            or cut it with min({text}, 1 h)"
        )))
    }
}

impl FromStr for SizeDist {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let quantity = |t: &str| parse_bytes(t).map(|b| b.0);
        let reader = Reader { quantity: &quantity, example: "\"30 kB\"", named: NAMED_SIZES };
        match reader.read(text)? {
            Shape::Constant(0) | Shape::Uniform(_, 0) => {
                Err(ParseError("a transfer of 0 bytes sends nothing".to_owned()))
            }
            ok => Ok(Self(ok)),
        }
    }
}

impl fmt::Display for DurationDist {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        text::write(f, &self.0, &|v| Duration(v).to_string())
    }
}

impl fmt::Display for SizeDist {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        text::write(f, &self.0, &|v| Bytes(v).to_string())
    }
}

/// A distribution of counts, such as transfers of a session; a draw is rounded up and at least 1.
///
/// Its unit is a millionth, so that means need not be whole.
#[derive(Clone, Debug, PartialEq)]
pub struct CountDist(pub Shape);

/// Units per count.
const ONE: u64 = 1_000_000;
/// Largest count that can be written.
const MAX_COUNT: f64 = 1e12;

impl CountDist {
    /// Creates the distribution that always gives `count`.
    #[must_use]
    pub const fn constant(count: u64) -> Self {
        Self(Shape::Constant(count.saturating_mul(ONE)))
    }

    /// Draws a count of at least 1.
    pub fn sample(&self, rng: &mut Rng) -> u64 {
        self.0.sample(rng).div_ceil(ONE).max(1)
    }

    /// Returns the mean of the rounded draws; infinite if the tail is too heavy for a finite one.
    #[must_use]
    pub fn mean(&self) -> f64 {
        mean_parts(&self.0, ONE)
    }

    /// Returns the count if it is constant, rounded down, while its draws are rounded up.
    #[must_use]
    pub const fn as_constant(&self) -> Option<u64> {
        match self.0 {
            Shape::Constant(parts) => Some(parts / ONE),
            _ => None,
        }
    }
}

impl FromStr for CountDist {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        Reader { quantity: &millionths, example: "\"3\"", named: &[] }.read(text).map(Self)
    }
}

impl fmt::Display for CountDist {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        text::write(f, &self.0, &written)
    }
}

fn millionths(text: &str) -> Result<u64, ParseError> {
    match text.trim().parse::<f64>() {
        Ok(x) if (0.0..=MAX_COUNT).contains(&x) => Ok(libm::round(x * ONE as f64) as u64),
        _ => Err(ParseError(format!("`{text}` is no number of things: write it like 3 or 2.5"))),
    }
}

fn written(parts: u64) -> String {
    let (whole, rest) = (parts / ONE, parts % ONE);
    if rest == 0 {
        return whole.to_string();
    }
    format!("{whole}.{}", format!("{rest:06}").trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Result<DurationDist, ParseError> {
        text.parse()
    }

    fn size(text: &str) -> Result<SizeDist, ParseError> {
        text.parse()
    }

    #[test]
    fn every_distribution_reads_back_what_it_prints() {
        for text in
            ["100 ms", "uniform(20 ms, 200 ms)", "exponential(100 ms)", "lognormal(5 ms, 0.5)"]
        {
            assert_eq!(time(text).unwrap().to_string(), text);
        }
        for text in ["1 MB", "pareto(1.2, 30 kB)", "lognormal(30 kB, 1.5)"] {
            assert_eq!(size(text).unwrap().to_string(), text);
        }
        assert_eq!(time("uniform(20ms,200ms)").unwrap().0, Shape::Uniform(20_000_000, 200_000_000));
    }

    #[test]
    fn what_is_no_distribution_is_refused_with_the_reason() {
        let why = |r: Result<DurationDist, ParseError>| r.unwrap_err().0;
        assert!(why(time("uniform(200 ms, 20 ms)")).contains("lower bound first"));
        assert!(why(time("pareto(1, 20 ms)")).contains("above 1"));
        assert!(why(time("lognormal(1 ms, -1)")).contains("negative"));
        assert!(why(time("normal(1 ms, 2 ms)")).contains("unknown distribution `normal`"));
        assert!(why(time("uniform(1 ms)")).contains("does not take 1 value"));
        assert!(why(time("uniform(1 ms, 2 ms")).contains("closing"));
        assert!(why(time("exponential(0 ms)")).contains("zero"));
        assert!(why(time("exponential(5)")).contains("unit"));
        assert!(size("0 B").unwrap_err().0.contains("nothing"));
    }

    fn count(text: &str) -> CountDist {
        text.parse().unwrap()
    }

    #[test]
    fn counts_are_whole_and_at_least_one() {
        assert_eq!(count("7"), CountDist::constant(7));
        assert_eq!(count("7.5").as_constant(), Some(7));
        for text in
            ["lomax(1.5, 3)", "exponential(2.5)", "uniform(1, 9)", "min(pareto(1.2, 12), 100)"]
        {
            assert_eq!(count(text).to_string(), text);
        }
        let mut rng = Rng::named(1, "counts");
        assert_eq!(CountDist::constant(7).sample(&mut rng), 7);
        assert_eq!(count("uniform(0, 0.5)").sample(&mut rng), 1);
        assert!("many".parse::<CountDist>().is_err());
    }

    #[test]
    fn the_mean_is_that_of_what_is_drawn() {
        let mut rng = Rng::named(2, "counts");
        // Exponential with mean 2, rounded up: 1 / (1 − e^(−1/2)).
        let geometric = 1.0 / (1.0 - libm::exp(-0.5));
        let (dist, draws) = (count("exponential(2)"), 100_000);
        assert!((dist.mean() - geometric).abs() < 1e-5, "{}", dist.mean());
        let sum: u64 = (0..draws).map(|_| dist.sample(&mut rng)).sum();
        // The standard deviation of a geometric variable is below its mean.
        assert!((sum as f64 / draws as f64 - geometric).abs() < 4.0 * geometric / 316.0);
        assert!((CountDist::constant(3).mean() - 3.0).abs() < 1e-9);
    }
}
