//! Distributions, as text: `"uniform(20 ms, 200 ms)"`.

use core::fmt;

use crate::param_kinds::optional_param;
use crate::params::{Kind, Param, Value};
use crate::parse::{ParseError, parse_bytes, parse_duration};
use crate::rate::Bytes;
use crate::rng::Rng;
use crate::time::Duration;

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

    /// Whether draws can differ.
    #[must_use]
    pub const fn varies(&self) -> bool {
        !matches!(self.0, Shape::Constant(_))
    }

    /// The mean.
    #[must_use]
    pub fn mean(&self) -> Duration {
        Duration(self.0.mean())
    }
}

impl Default for DurationDist {
    /// Always no time at all.
    fn default() -> Self {
        Self::constant(Duration::ZERO)
    }
}

/// A distribution over sizes; a draw is at least one byte.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizeDist(pub Shape);

impl Default for SizeDist {
    /// Always one byte.
    fn default() -> Self {
        Self(Shape::Constant(1))
    }
}

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

impl Param for DurationDist {
    const KIND: Kind = Kind::DurationDist;
    type Bound = Self;
    fn read(value: &Value) -> Result<Self, ParseError> {
        match value {
            Value::Text(text) => {
                parse(text, |t| parse_duration(t).map(|d| d.0), "\"100 ms\"").map(Self)
            }
            other => Duration::read(other).map(Self::constant),
        }
    }
    fn write(&self) -> Value {
        Value::Text(self.to_string())
    }
}

impl Param for SizeDist {
    const KIND: Kind = Kind::SizeDist;
    type Bound = Self;
    fn read(value: &Value) -> Result<Self, ParseError> {
        let shape = match value {
            Value::Text(text) => parse(text, |t| parse_bytes(t).map(|b| b.0), "\"30 kB\"")?,
            other => Shape::Constant(Bytes::read(other)?.0),
        };
        match shape {
            Shape::Constant(0) | Shape::Uniform(_, 0) => {
                Err(ParseError("a transfer of 0 bytes sends nothing".to_owned()))
            }
            ok => Ok(Self(ok)),
        }
    }
    fn write(&self) -> Value {
        Value::Text(self.to_string())
    }
}

optional_param!(DurationDist, Kind::OptionalDurationDist);

/// The distributions there are, as they are written.
pub const FORMS: &str =
    "uniform(low, high), exponential(mean), pareto(shape, mean), lognormal(median, sigma)";

/// Reads a constant or a distribution; `quantity` reads its quantities.
fn parse(
    text: &str,
    quantity: impl Fn(&str) -> Result<u64, ParseError>,
    example: &str,
) -> Result<Shape, ParseError> {
    let error = |message: String| Err(ParseError(message));
    let text = text.trim();
    let Some((name, rest)) = text.split_once('(') else {
        if text.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return error(format!(
                "`{text}` is neither a quantity such as {example} nor one of {FORMS}"
            ));
        }
        return quantity(text).map(Shape::Constant);
    };
    let Some(inner) = rest.strip_suffix(')') else {
        return error(format!("`{text}` lacks a closing `)`"));
    };
    let arguments: Vec<&str> = inner.split(',').map(str::trim).collect();
    let mean = |t: &str| match quantity(t)? {
        0 => Err(ParseError(format!("{name} around zero is always zero"))),
        v => Ok(v),
    };
    match (name.trim(), arguments.as_slice()) {
        ("uniform", &[low, high]) => match (quantity(low)?, quantity(high)?) {
            (l, h) if l > h => {
                error(format!("`{low}` is above `{high}`: write the lower bound first"))
            }
            (l, h) => Ok(Shape::Uniform(l, h)),
        },
        ("exponential", &[m]) => Ok(Shape::Exponential(mean(m)?)),
        ("pareto", &[shape, m]) => match number(shape)? {
            a if a <= 1.0 => error(format!(
                "a Pareto distribution of shape {a} has no mean: it needs a shape above 1"
            )),
            a => Ok(Shape::Pareto(a, mean(m)?)),
        },
        ("lognormal", &[median, sigma]) => match number(sigma)? {
            s if s < 0.0 => error(format!("a deviation can't be negative: {s}")),
            s => Ok(Shape::LogNormal(mean(median)?, s)),
        },
        ("uniform" | "exponential" | "pareto" | "lognormal", list) => error(format!(
            "`{}` does not take {} value{}; there are {FORMS}",
            name.trim(),
            list.len(),
            if list.len() == 1 { "" } else { "s" },
        )),
        (other, _) => error(format!("unknown distribution `{other}`; there are {FORMS}")),
    }
}

fn number(text: &str) -> Result<f64, ParseError> {
    match text.parse::<f64>() {
        Ok(x) if x.is_finite() => Ok(x),
        _ => Err(ParseError(format!("`{text}` is not a plain number"))),
    }
}

fn print(
    f: &mut fmt::Formatter<'_>,
    shape: &Shape,
    quantity: impl Fn(u64) -> String,
) -> fmt::Result {
    match *shape {
        Shape::Constant(v) => f.write_str(&quantity(v)),
        Shape::Uniform(low, high) => write!(f, "uniform({}, {})", quantity(low), quantity(high)),
        Shape::Exponential(mean) => write!(f, "exponential({})", quantity(mean)),
        Shape::Pareto(a, mean) => write!(f, "pareto({a}, {})", quantity(mean)),
        Shape::LogNormal(median, sigma) => write!(f, "lognormal({}, {sigma})", quantity(median)),
    }
}

impl fmt::Display for DurationDist {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print(f, &self.0, |v| Duration(v).to_string())
    }
}

impl fmt::Display for SizeDist {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print(f, &self.0, |v| Bytes(v).to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Result<DurationDist, ParseError> {
        DurationDist::read(&Value::Text(text.to_owned()))
    }

    fn size(text: &str) -> Result<SizeDist, ParseError> {
        SizeDist::read(&Value::Text(text.to_owned()))
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
        assert!(why(DurationDist::read(&Value::Integer(3))).contains("bare number 3"));
    }
}
