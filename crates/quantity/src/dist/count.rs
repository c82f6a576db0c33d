//! Distributions of counts.

use core::fmt;
use core::str::FromStr;

use super::shape::Shape;
use super::text::{self, Reader};
use crate::parse::ParseError;
use crate::rng::Rng;

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
        super::mean_parts(&self.0, ONE)
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
