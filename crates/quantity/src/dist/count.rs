//! Distributions over how many.

use core::fmt;

use super::shape::Shape;
use super::text::{self, Reader};
use crate::bounds::{Bounds, Quantity};
use crate::params::{Kind, Param, Value};
use crate::parse::ParseError;
use crate::rng::Rng;

/// A distribution over how many, in millionths, so that means need not be whole: a draw is rounded up to a whole number, and at least one.
#[derive(Clone, Debug, PartialEq)]
pub struct CountDist(pub Shape);

/// So many parts has one.
const ONE: u64 = 1_000_000;
/// The most that can be written.
const MOST: f64 = 1e12;

impl CountDist {
    /// Always so many.
    #[must_use]
    pub const fn constant(count: u64) -> Self {
        Self(Shape::Constant(count.saturating_mul(ONE)))
    }

    /// A draw, at least one.
    pub fn sample(&self, rng: &mut Rng) -> u64 {
        self.0.sample(rng).div_ceil(ONE).max(1)
    }

    /// The mean of the draws, rounded up as they are; infinite where a tail is too heavy to have one.
    #[must_use]
    pub fn mean(&self) -> f64 {
        super::mean_parts(&self.0, ONE)
    }
}

impl Param for CountDist {
    const KIND: Kind = Kind::CountDist;
    const BOUNDS: Bounds = <u32 as Param>::BOUNDS;
    type Bound = u32;
    fn quantity(&self) -> Option<Quantity> {
        match self.0 {
            Shape::Constant(parts) => Some(Quantity::Count(parts / ONE)),
            _ => None,
        }
    }
    fn read(value: &Value) -> Result<Self, ParseError> {
        match value {
            Value::Text(text) => {
                let reader = Reader { quantity: &millionths, example: "\"3\"", named: &[] };
                reader.read(text).map(Self)
            }
            other => u32::read(other).map(|count| Self::constant(u64::from(count))),
        }
    }
    fn write(&self) -> Value {
        match self.0 {
            Shape::Constant(parts) if parts % ONE == 0 => {
                Value::Integer(i64::try_from(parts / ONE).unwrap_or(i64::MAX))
            }
            _ => Value::Text(self.to_string()),
        }
    }
}

impl Param for Option<CountDist> {
    const KIND: Kind = Kind::OptionalCountDist;
    const BOUNDS: Bounds = <u32 as Param>::BOUNDS;
    type Bound = u32;
    fn quantity(&self) -> Option<Quantity> {
        self.as_ref().and_then(Param::quantity)
    }
    fn read(value: &Value) -> Result<Self, ParseError> {
        match value {
            Value::Text(t) if t == "none" => Ok(None),
            other => CountDist::read(other).map(Some),
        }
    }
    fn write(&self) -> Value {
        self.as_ref().map_or_else(|| Value::Text("none".to_owned()), Param::write)
    }
}

impl fmt::Display for CountDist {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        text::write(f, &self.0, &written)
    }
}

fn millionths(text: &str) -> Result<u64, ParseError> {
    match text.trim().parse::<f64>() {
        Ok(x) if (0.0..=MOST).contains(&x) => Ok(libm::round(x * ONE as f64) as u64),
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
        CountDist::read(&Value::Text(text.to_owned())).unwrap()
    }

    #[test]
    fn counts_are_whole_and_at_least_one() {
        assert_eq!(CountDist::read(&Value::Integer(7)).unwrap(), CountDist::constant(7));
        assert_eq!(CountDist::constant(7).write(), Value::Integer(7));
        for text in
            ["lomax(1.5, 3)", "exponential(2.5)", "uniform(1, 9)", "min(pareto(1.2, 12), 100)"]
        {
            assert_eq!(count(text).to_string(), text);
        }
        let mut rng = Rng::named(1, "counts");
        assert_eq!(CountDist::constant(7).sample(&mut rng), 7);
        assert_eq!(count("uniform(0, 0.5)").sample(&mut rng), 1);
        assert!(CountDist::read(&Value::Text("many".to_owned())).is_err());
        assert!(CountDist::read(&Value::Integer(-1)).is_err());
    }

    #[test]
    fn the_mean_is_that_of_what_is_drawn() {
        let mut rng = Rng::named(2, "counts");
        // Exponential with mean 2, rounded up: 1 / (1 − e^(−1/2)).
        let geometric = 1.0 / (1.0 - libm::exp(-0.5));
        let (dist, draws) = (count("exponential(2)"), 100_000);
        assert!((dist.mean() - geometric).abs() < 1e-5, "{}", dist.mean());
        let sum: u64 = (0..draws).map(|_| dist.sample(&mut rng)).sum();
        // A geometric number deviates by about its mean.
        assert!((sum as f64 / draws as f64 - geometric).abs() < 4.0 * geometric / 316.0);
        assert!((CountDist::constant(3).mean() - 3.0).abs() < 1e-9);
    }
}
