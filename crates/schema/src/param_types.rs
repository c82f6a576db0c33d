//! Implementations of [`Param`] for the types that parameters may have.

use cwnd_quantity::dist::Shape;
use cwnd_quantity::{
    Bytes, CountDist, Duration, DurationDist, Levels, ParseError, QueueSize, Rate, SizeDist,
    parse_bytes, parse_duration, parse_rate,
};

use crate::bounds::{Bounds, Quantity};
use crate::params::{Param, Value, ValueType, wrong};

impl Param for bool {
    const VALUE_TYPE: ValueType = ValueType::Bool;
    type Bound = Self;
    fn read(value: &Value) -> Result<Self, ParseError> {
        match value {
            Value::Bool(b) => Ok(*b),
            other => Err(wrong(other, "`true` or `false`")),
        }
    }
    fn write(&self) -> Value {
        Value::Bool(*self)
    }
}

macro_rules! integer_param {
    ($($ty:ty, $bounds:expr);*) => {$(
        impl Param for $ty {
            const VALUE_TYPE: ValueType = ValueType::Integer;
            const BOUNDS: Bounds = $bounds;
            type Bound = Self;
            fn quantity(&self) -> Option<Quantity> {
                Some(Quantity::Count(u64::from(*self)))
            }
            fn read(value: &Value) -> Result<Self, ParseError> {
                match value {
                    Value::Integer(i) => <$ty>::try_from(*i).map_err(|_| {
                        let most = <$ty>::MAX;
                        ParseError(format!(
                            "{i} is out of range: a whole number from 0 to {most} is expected"
                        ))
                    }),
                    other => Err(wrong(other, "a whole number")),
                }
            }
            fn write(&self) -> Value {
                // A value that was read came from an i64, so it fits; larger ones saturate.
                Value::Integer(i64::try_from(*self).unwrap_or(i64::MAX))
            }
        }
    )*};
}
// Whole numbers of a scenario have 63 bits: each one that is not negative fits 64.
integer_param!(u32, Bounds::NONE.up_to(Bounds::WORD); u64, Bounds::NONE);

impl Param for f64 {
    const VALUE_TYPE: ValueType = ValueType::Number;
    type Bound = Self;
    fn quantity(&self) -> Option<Quantity> {
        Some(Quantity::Number(*self))
    }
    fn read(value: &Value) -> Result<Self, ParseError> {
        match value {
            Value::Float(x) if x.is_finite() => Ok(*x),
            Value::Integer(i) => Ok(*i as Self),
            other => Err(wrong(other, "a finite number without a unit")),
        }
    }
    fn write(&self) -> Value {
        Value::Float(*self)
    }
}

/// A share of a whole: `"all"`, `"none"`, or a number between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share(pub f64);

impl Share {
    /// The whole.
    pub const ALL: Self = Self(1.0);
}

impl Param for Share {
    const VALUE_TYPE: ValueType = ValueType::Share;
    const BOUNDS: Bounds = Bounds::NONE.from(Quantity::Number(0.0)).up_to(Quantity::Number(1.0));
    type Bound = f64;
    fn quantity(&self) -> Option<Quantity> {
        Some(Quantity::Number(self.0))
    }
    fn read(value: &Value) -> Result<Self, ParseError> {
        match value {
            Value::Text(t) if t == "all" => Ok(Self::ALL),
            Value::Text(t) if t == "none" => Ok(Self(0.0)),
            Value::Text(_) => Err(wrong(value, "\"all\", \"none\" or a share such as 0.01")),
            other => f64::read(other).map(Self),
        }
    }
    fn write(&self) -> Value {
        match self.0 {
            0.0 => Value::Text("none".to_owned()),
            1.0 => Value::Text("all".to_owned()),
            share => Value::Float(share),
        }
    }
}

impl Param for String {
    const VALUE_TYPE: ValueType = ValueType::Text;
    type Bound = Self;
    fn read(value: &Value) -> Result<Self, ParseError> {
        value.text("a text in quotes").map(str::to_owned)
    }
    fn write(&self) -> Value {
        Value::Text(self.clone())
    }
}

macro_rules! text_param {
    ($ty:ty, $kind:expr, $parse:expr, $wanted:literal $(, $quantity:expr)?) => {
        impl Param for $ty {
            const VALUE_TYPE: ValueType = $kind;
            type Bound = Self;
            $( fn quantity(&self) -> Option<Quantity> {
                Some($quantity(*self))
            } )?
            fn read(value: &Value) -> Result<Self, ParseError> {
                $parse(value.text($wanted)?)
            }
            fn write(&self) -> Value {
                Value::Text(self.to_string())
            }
        }
    };
}
text_param!(
    Duration,
    ValueType::Duration,
    parse_duration,
    "a time with its unit, such as \"100 ms\"",
    Quantity::Span
);
text_param!(Rate, ValueType::Rate, parse_rate, "a rate with its unit, such as \"10 Mbit/s\"");
text_param!(
    Bytes,
    ValueType::Bytes,
    parse_bytes,
    "a size with its unit, such as \"64 kB\"",
    Quantity::Size
);
text_param!(
    QueueSize,
    ValueType::QueueSize,
    str::parse,
    "a queue size with its unit, such as \"1000 packets\", \"64 kB\", \"50 ms\" or \"1 BDP\""
);

impl Param for Levels<f64> {
    const VALUE_TYPE: ValueType = ValueType::Fractions;
    type Bound = Self;
    fn read(value: &Value) -> Result<Self, ParseError> {
        match value {
            Value::Text(text) => text.parse(),
            Value::Float(x) => Self::of_fraction(*x),
            Value::Integer(i) => Self::of_fraction(*i as f64),
            Value::Bool(_) => Err(wrong(value, "a number, or several such as \"0.8, 0.6, 0.5\"")),
        }
    }
    fn write(&self) -> Value {
        match (self.at(0), self.iter().count()) {
            (Some(one), 1) => Value::Float(one),
            _ => Value::Text(self.to_string()),
        }
    }
}

impl Param for Levels<QueueSize> {
    const VALUE_TYPE: ValueType = ValueType::QueueSizes;
    type Bound = Self;
    fn read(value: &Value) -> Result<Self, ParseError> {
        value.text("queue sizes, such as \"10 packets, 20 packets\"")?.parse()
    }
    fn write(&self) -> Value {
        Value::Text(self.to_string())
    }
}

impl Param for DurationDist {
    const VALUE_TYPE: ValueType = ValueType::DurationDist;
    type Bound = Self;
    fn read(value: &Value) -> Result<Self, ParseError> {
        match value {
            Value::Text(text) => text.parse(),
            other => Duration::read(other).map(Self::constant),
        }
    }
    fn write(&self) -> Value {
        Value::Text(self.to_string())
    }
}

impl Param for SizeDist {
    const VALUE_TYPE: ValueType = ValueType::SizeDist;
    type Bound = Self;
    fn read(value: &Value) -> Result<Self, ParseError> {
        match value {
            Value::Text(text) => text.parse(),
            other => Bytes::read(other).map(|size| Self(Shape::Constant(size.0))),
        }
    }
    fn write(&self) -> Value {
        Value::Text(self.to_string())
    }
}

impl Param for CountDist {
    const VALUE_TYPE: ValueType = ValueType::CountDist;
    const BOUNDS: Bounds = <u32 as Param>::BOUNDS;
    type Bound = u32;
    fn quantity(&self) -> Option<Quantity> {
        self.as_constant().map(Quantity::Count)
    }
    fn read(value: &Value) -> Result<Self, ParseError> {
        match value {
            Value::Text(text) => text.parse(),
            other => u32::read(other).map(|count| Self::constant(u64::from(count))),
        }
    }
    fn write(&self) -> Value {
        let text = self.to_string();
        text.parse().map_or(Value::Text(text), Value::Integer)
    }
}

/// A value, or "none" for its absence.
impl<T: Param> Param for Option<T> {
    const VALUE_TYPE: ValueType = ValueType::Optional(&T::VALUE_TYPE);
    const BOUNDS: Bounds = T::BOUNDS;
    type Bound = T::Bound;
    fn quantity(&self) -> Option<Quantity> {
        self.as_ref().and_then(Param::quantity)
    }
    fn read(value: &Value) -> Result<Self, ParseError> {
        match value {
            Value::Text(t) if t == "none" => Ok(None),
            other => T::read(other).map(Some),
        }
    }
    fn write(&self) -> Value {
        self.as_ref().map_or_else(|| Value::Text("none".to_owned()), Param::write)
    }
}
