//! Parameters that describe themselves, sets of them that are read and written by name, and
//! presets. Implementations of [`Param`] for the types that parameters may have.

use alloc::borrow::ToOwned as _;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use cwnd_quantity::dist::Shape;
use cwnd_quantity::{
    Bytes, CountDist, Duration, DurationDist, Levels, ParseError, QueueSize, Rate, SizeDist,
    parse_bytes, parse_duration, parse_rate,
};

use crate::bounds::{Bounds, Quantity};

/// A parameter's value as written in a scenario.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A string.
    Text(String),
    /// A switch, `true` or `false`.
    Bool(bool),
    /// A whole number, as TOML has it: signed, 64 bits.
    Integer(i64),
    /// A number with a fraction.
    Float(f64),
}

/// Kind of a parameter's values, for messages, JSON Schema and reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// `true` or `false`.
    Bool,
    /// A whole number, not negative.
    Integer,
    /// A plain number without a unit.
    Number,
    /// A string such as `"100 ms"`.
    Duration,
    /// A string such as `"10 Mbit/s"`.
    Rate,
    /// A string such as `"64 kB"`.
    Bytes,
    /// A string such as `"1000 packets"`, `"64 kB"`, `"50 ms"` or `"1 BDP"`.
    QueueSize,
    /// One of these names.
    Choice(&'static [&'static str]),
    /// A value of this kind, or `"none"`.
    Optional(&'static Self),
    /// [`Share`](crate::Share).
    Share,
    /// A duration, or a distribution over durations such as `"uniform(20 ms, 200 ms)"`.
    DurationDist,
    /// A size, or a distribution over sizes such as `"pareto(1.2, 30 kB)"`.
    SizeDist,
    /// A number above 0 and below 1, or several of them as in `"0.8, 0.6, 0.5"`.
    Fractions,
    /// Queue sizes as in `"10 packets, 20 packets"`.
    QueueSizes,
    /// A whole number, or a distribution over them such as `"lomax(1.5, 3)"`.
    CountDist,
    /// A CSV file of recorded arrivals, or its rows.
    Arrivals,
    /// [`SourceFile`](crate::SourceFile).
    SourceFile,
    /// An argument of the user's code.
    Argument,
    /// Free text.
    Text,
}

impl ValueType {
    /// `true` if a value of this kind can turn something off or mark it as absent.
    #[must_use]
    pub const fn can_be_off(self) -> bool {
        matches!(self, Self::Bool | Self::Optional(_))
    }
}

/// Description of one parameter: name, meaning, default's source and range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Field {
    /// Key in the scenario file.
    pub name: &'static str,
    /// Kind of its values.
    pub value_type: ValueType,
    /// Text of the parameter in the reference.
    pub doc: &'static str,
    /// Document that gives the default.
    pub source: &'static str,
    /// Range of its values.
    pub bounds: Bounds,
    /// `true` if a scenario must give it, because no default would be right.
    pub required: bool,
    /// Part of a stack that sets it; `None` for a parameter that is a key of scenarios.
    pub part: Option<&'static str>,
    /// Former name, which files may still use; reading it gives a warning.
    pub was: Option<&'static str>,
    /// `true` if ids of cells count it only where it differs from its default.
    pub later: bool,
}

/// A named set of values for all parameters of a set.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// Name in a scenario: `preset = "…"`.
    pub name: &'static str,
    /// Text of the preset in the reference.
    pub doc: &'static str,
}

/// Error for an invalid value or combination of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// Parameter that the error is reported at.
    pub key: &'static str,
    /// Message that says what is wrong.
    pub message: String,
}

/// A parameter that has no effect, whatever its value, because of the values of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idle {
    /// Key of the parameter.
    pub key: &'static str,
    /// Condition that takes its effect away, as in "without `prr`".
    pub why: &'static str,
}

/// A set of parameters, derived by [`Schema`](derive@crate::Schema).
pub trait Params {
    /// Lists the parameters, in order.
    fn fields(&self) -> &'static [Field];
    /// Sets a parameter from its written value.
    ///
    /// # Errors
    /// If there is no such parameter or the value is not one that it takes.
    fn set(&mut self, name: &str, value: &Value) -> Result<(), ParseError>;
    /// Returns a parameter's value; `None` if there is no such parameter.
    fn get(&self, name: &str) -> Option<Value>;
    /// Returns the arguments of the user's code, which any other key is; `None` if the set takes no
    /// other keys.
    fn arguments(&self) -> Option<&BTreeMap<String, Value>> {
        None
    }
    /// Returns the presets of the set.
    fn presets(&self) -> &'static [Preset];
    /// Replaces all values by those of a preset; `false` if there is none of that name.
    fn apply_preset(&mut self, name: &str) -> bool;
    /// Checks the values, each by itself and in combination.
    ///
    /// # Errors
    /// If they contradict each other or lie out of range.
    fn check(&self) -> Result<(), Invalid>;
    /// Returns the parameters without effect, each once with its first reason.
    fn idle(&self) -> Vec<Idle>;
    /// Resets a parameter to its default; does nothing if there is no such parameter.
    fn reset(&mut self, name: &str);
    /// `true` if a parameter has its default value, or there is no such parameter.
    fn is_default(&self, name: &str) -> bool;
}

/// A type that can be a parameter.
pub trait Param: Sized {
    /// Kind of the values.
    const VALUE_TYPE: ValueType;
    /// Range of a parameter of this type, unless its own bounds replace an end.
    const BOUNDS: Bounds = Bounds::NONE;
    /// Type in which bounds are given; the type itself if it has none.
    type Bound;
    /// Returns the number that is compared with the bounds; `None` if the value has none.
    fn quantity(&self) -> Option<Quantity> {
        None
    }
    /// Reads a written value.
    ///
    /// # Errors
    /// If the value is of another kind or out of range, as a sentence for the user.
    fn read(value: &Value) -> Result<Self, ParseError>;
    /// Writes the value in a form that [`Param::read`] accepts.
    fn write(&self) -> Value;
}

impl Value {
    /// Describes the value for messages such as "expected …, found …".
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Text(t) => format!("the text \"{t}\""),
            Self::Bool(b) => format!("`{b}`"),
            Self::Integer(i) => format!("the bare number {i}"),
            Self::Float(x) => format!("the bare number {x}"),
        }
    }

    pub(crate) fn text(&self, wanted: &str) -> Result<&str, ParseError> {
        match self {
            Self::Text(t) => Ok(t),
            other => Err(wrong(other, wanted)),
        }
    }
}

pub(crate) fn wrong(value: &Value, wanted: &str) -> ParseError {
    ParseError(format!("expected {wanted}, found {}", value.describe()))
}

/// Returns the error for a name that is not among `names`.
#[doc(hidden)]
#[must_use]
pub fn not_a_choice(value: &Value, names: &[&str]) -> ParseError {
    wrong(
        value,
        &format!(
            "one of {}",
            names.iter().map(|n| format!("\"{n}\"")).collect::<Vec<_>>().join(", ")
        ),
    )
}

/// Registry entry of one kind of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegistryEntry {
    /// Name in a scenario: `kind = "…"`.
    pub name: &'static str,
    /// Alternative names.
    pub aliases: &'static [&'static str],
    /// Text of JSON Schema and reference.
    pub doc: &'static str,
}

impl RegistryEntry {
    /// Creates an entry with one name.
    #[must_use]
    pub const fn new(name: &'static str, doc: &'static str) -> Self {
        Self { name, aliases: &[], doc }
    }

    /// Adds alternative names.
    #[must_use]
    pub const fn alias(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    /// `true` if the name is the kind's own or an alternative one.
    #[must_use]
    pub fn is(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }
}

/// A preset with the function that makes its values.
#[derive(Clone, Copy, Debug)]
pub struct PresetOf<P> {
    pub(crate) preset: Preset,
    pub(crate) value: fn() -> P,
}

impl<P> PresetOf<P> {
    /// Creates a preset; `doc` is its text in the reference.
    #[must_use]
    pub const fn new(name: &'static str, doc: &'static str, value: fn() -> P) -> Self {
        Self { preset: Preset { name, doc }, value }
    }
}

/// Presets of a set of parameters with `#[schema(presets)]`.
pub trait Presets: Sized + 'static {
    /// All presets, in order.
    const PRESETS: &'static [PresetOf<Self>];
}

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
