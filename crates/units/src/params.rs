//! Parameters that describe themselves: one definition gives the struct, its defaults with their sources, reading and
//! printing, the reference documentation and the schema.

use crate::dist::DurationDist;
use crate::parse::{ParseError, parse_bytes, parse_duration, parse_rate};
use crate::queue_size::QueueSize;
use crate::rate::{Bytes, Rate};
use crate::time::Duration;

/// A parameter's value as it is written in a scenario.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A string.
    Text(String),
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// A number with a fraction.
    Float(f64),
}

/// What kind of value a parameter takes: drives the schema and the reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
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
    /// A duration or `"none"`.
    OptionalDuration,
    /// A size or `"none"`.
    OptionalBytes,
    /// A number or `"none"`.
    OptionalNumber,
    /// A duration, or a distribution over durations such as `"uniform(20 ms, 200 ms)"`.
    DurationDist,
    /// A size, or a distribution over sizes such as `"pareto(1.2, 30 kB)"`.
    SizeDist,
    /// A duration, a distribution over durations, or `"none"`.
    OptionalDurationDist,
    /// Free text.
    Text,
}

/// One parameter: its name, what it means, what it is by default and who says so.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Key in the scenario file.
    pub name: &'static str,
    /// What values it takes.
    pub kind: Kind,
    /// What it means.
    pub doc: &'static str,
    /// Where the default comes from.
    pub source: &'static str,
    /// Whether it must be given, because no default would be right.
    pub required: bool,
}

/// A named set of values for several parameters at once.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// Its name in a scenario: `preset = "…"`.
    pub name: &'static str,
    /// What it stands for.
    pub doc: &'static str,
}

/// A rejected combination of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// The parameter to point at.
    pub key: &'static str,
    /// A sentence that says what is wrong and how to mend it.
    pub message: String,
}

/// A set of parameters, made by [`params!`](crate::params!).
pub trait Params {
    /// What parameters there are, in order.
    fn fields(&self) -> &'static [Field];
    /// Sets one.
    ///
    /// # Errors
    /// If there is no such parameter or the value is not one that it takes.
    fn set(&mut self, name: &str, value: &Value) -> Result<(), ParseError>;
    /// Reads one; `None` if there is no such parameter.
    fn get(&self, name: &str) -> Option<Value>;
    /// The presets there are.
    fn presets(&self) -> &'static [Preset];
    /// Applies a preset over the present values; `false` if there is none of that name.
    fn apply_preset(&mut self, name: &str) -> bool;
    /// Looks at the values together.
    ///
    /// # Errors
    /// If they contradict each other or lie out of range.
    fn check(&self) -> Result<(), Invalid>;
}

/// A type that can be a parameter.
pub trait Param: Sized {
    /// What values it takes.
    const KIND: Kind;
    /// Reads it.
    ///
    /// # Errors
    /// If the value is of another kind or out of range, as a sentence for the user.
    fn read(value: &Value) -> Result<Self, ParseError>;
    /// Writes it so that [`Param::read`] gives it back.
    fn write(&self) -> Value;
}

impl Value {
    fn text(&self, wanted: &str) -> Result<&str, ParseError> {
        match self {
            Self::Text(t) => Ok(t),
            other => Err(wrong(other, wanted)),
        }
    }
}

fn wrong(value: &Value, wanted: &str) -> ParseError {
    let found = match value {
        Value::Text(t) => format!("the text \"{t}\""),
        Value::Bool(b) => format!("`{b}`"),
        Value::Integer(i) => format!("the bare number {i}"),
        Value::Float(x) => format!("the bare number {x}"),
    };
    ParseError(format!("expected {wanted}, found {found}"))
}

impl Param for bool {
    const KIND: Kind = Kind::Bool;
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
    ($($ty:ty),*) => {$(
        impl Param for $ty {
            const KIND: Kind = Kind::Integer;
            fn read(value: &Value) -> Result<Self, ParseError> {
                match value {
                    Value::Integer(i) => <$ty>::try_from(*i).map_err(|_| {
                        ParseError(format!("{i} is out of range: a whole number from 0 to {} is expected", <$ty>::MAX))
                    }),
                    other => Err(wrong(other, "a whole number")),
                }
            }
            fn write(&self) -> Value {
                // What was read from an i64 fits one.
                Value::Integer(i64::try_from(*self).unwrap_or(i64::MAX))
            }
        }
    )*};
}
integer_param!(u32, u64);

impl Param for f64 {
    const KIND: Kind = Kind::Number;
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

impl Param for String {
    const KIND: Kind = Kind::Text;
    fn read(value: &Value) -> Result<Self, ParseError> {
        value.text("a text in quotes").map(str::to_owned)
    }
    fn write(&self) -> Value {
        Value::Text(self.clone())
    }
}

macro_rules! text_param {
    ($ty:ty, $kind:expr, $parse:expr, $wanted:literal) => {
        impl Param for $ty {
            const KIND: Kind = $kind;
            fn read(value: &Value) -> Result<Self, ParseError> {
                $parse(value.text($wanted)?)
            }
            fn write(&self) -> Value {
                Value::Text(self.to_string())
            }
        }
    };
}
text_param!(Duration, Kind::Duration, parse_duration, "a time with its unit, such as \"100 ms\"");
text_param!(Rate, Kind::Rate, parse_rate, "a rate with its unit, such as \"10 Mbit/s\"");
text_param!(Bytes, Kind::Bytes, parse_bytes, "a size with its unit, such as \"64 kB\"");
text_param!(
    QueueSize,
    Kind::QueueSize,
    str::parse,
    "a queue size with its unit, such as \"1000 packets\", \"64 kB\", \"50 ms\" or \"1 BDP\""
);

/// The word for "there is no such value".
const NONE: &str = "none";

macro_rules! optional_param {
    ($ty:ty, $kind:expr) => {
        impl Param for Option<$ty> {
            const KIND: Kind = $kind;
            fn read(value: &Value) -> Result<Self, ParseError> {
                match value {
                    Value::Text(t) if t == NONE => Ok(None),
                    other => <$ty>::read(other).map(Some),
                }
            }
            fn write(&self) -> Value {
                self.as_ref().map_or_else(|| Value::Text(NONE.to_owned()), Param::write)
            }
        }
    };
}
optional_param!(Duration, Kind::OptionalDuration);
optional_param!(Bytes, Kind::OptionalBytes);
optional_param!(u32, Kind::OptionalNumber);
optional_param!(f64, Kind::OptionalNumber);
optional_param!(DurationDist, Kind::OptionalDurationDist);

/// An enum whose variants are written as names in a scenario.
///
/// ```
/// cwnd_units::param_enum! {
///     /// How a thing is counted.
///     pub enum Mode {
///         /// In packets.
///         Packets = "packets",
///         /// In bytes.
///         Bytes = "bytes",
///     }
/// }
/// assert_eq!(Mode::NAMES, ["packets", "bytes"]);
/// ```
#[macro_export]
macro_rules! param_enum {
    (
        $(#[doc = $edoc:literal])*
        pub enum $name:ident { $( $(#[doc = $doc:literal])+ $variant:ident = $text:literal, )+ }
    ) => {
        $(#[doc = $edoc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $( $(#[doc = $doc])+ $variant, )+ }

        impl $name {
            /// The names of the variants, as they are written.
            pub const NAMES: &'static [&'static str] = &[$($text),+];
        }

        impl $crate::Param for $name {
            const KIND: $crate::Kind = $crate::Kind::Choice(Self::NAMES);
            fn read(value: &$crate::Value) -> ::core::result::Result<Self, $crate::ParseError> {
                match value {
                    $( $crate::Value::Text(t) if t == $text => Ok(Self::$variant), )+
                    other => Err($crate::not_a_choice(other, Self::NAMES)),
                }
            }
            fn write(&self) -> $crate::Value {
                $crate::Value::Text(match self { $( Self::$variant => $text, )+ }.to_owned())
            }
        }
    };
}

/// The error for a name that is not among `names`.
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

/// Defines a struct of parameters: fields with documentation, default and source; presets; a check of the whole.
/// A field without a default must be given in a scenario; until then it is what its type has by `Default`.
///
/// ```
/// use cwnd_units::Duration;
/// cwnd_units::params! {
///     /// A queue that aims at a delay.
///     pub struct Params {
///         /// The delay to aim at.
///         #[source("RFC 8289 § 4.4")]
///         pub target: Duration = Duration::from_millis(5),
///     }
///     presets {
///         /// For a data centre.
///         "fast" => |p| { p.target = Duration::from_micros(50); }
///     }
///     check |p| {
///         if p.target == Duration::ZERO {
///             return Err(cwnd_units::Invalid { key: "target", message: "a target of zero marks everything".into() });
///         }
///     }
/// }
/// ```
#[macro_export]
macro_rules! params {
    (@default $default:expr) => { $default };
    (@default) => { ::core::default::Default::default() };
    (@required $default:expr) => { false };
    (@required) => { true };
    (
        $(#[doc = $sdoc:literal])*
        pub struct $name:ident {
            $( $(#[doc = $doc:literal])+ #[source($source:literal)] pub $field:ident : $ty:ty $(= $default:expr)?, )*
        }
        $( presets { $( $(#[doc = $pdoc:literal])+ $pname:literal => |$p:ident| $body:block )* } )?
        $( check |$c:ident| $check:block )?
    ) => {
        $(#[doc = $sdoc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name { $( $(#[doc = $doc])+ pub $field: $ty, )* }

        impl Default for $name {
            fn default() -> Self {
                Self { $( $field: $crate::params!(@default $($default)?), )* }
            }
        }

        impl $crate::Params for $name {
            fn fields(&self) -> &'static [$crate::Field] {
                const FIELDS: &[$crate::Field] = &[$( $crate::Field {
                    name: stringify!($field),
                    kind: <$ty as $crate::Param>::KIND,
                    doc: concat!($($doc),+),
                    source: $source,
                    required: $crate::params!(@required $($default)?),
                }, )*];
                FIELDS
            }
            fn set(&mut self, name: &str, value: &$crate::Value) -> ::core::result::Result<(), $crate::ParseError> {
                $( if name == stringify!($field) {
                    self.$field = <$ty as $crate::Param>::read(value)?;
                    return Ok(());
                } )*
                // Where there are no parameters at all, nothing reads it.
                let _ = value;
                Err($crate::ParseError(format!("there is no parameter `{name}`")))
            }
            fn get(&self, name: &str) -> Option<$crate::Value> {
                match name {
                    $( stringify!($field) => Some($crate::Param::write(&self.$field)), )*
                    _ => None,
                }
            }
            fn presets(&self) -> &'static [$crate::Preset] {
                const PRESETS: &[$crate::Preset] =
                    &[$( $( $crate::Preset { name: $pname, doc: concat!($($pdoc),+) }, )* )?];
                PRESETS
            }
            fn apply_preset(&mut self, name: &str) -> bool {
                match name {
                    $( $( $pname => { let $p = self; $body; true } )* )?
                    _ => false,
                }
            }
            fn check(&self) -> ::core::result::Result<(), $crate::Invalid> {
                $( let $c = self; $check; )?
                Ok(())
            }
        }
    };
}

/// Defines an enum over sets of parameters, told apart in a scenario by `kind = "…"`: the registry of a crate's
/// algorithms. Each variant's kind, documentation and parameters come from one line.
#[macro_export]
macro_rules! params_choice {
    (
        $(#[doc = $edoc:literal])*
        pub enum $name:ident { $( $(#[doc = $doc:literal])+ $variant:ident($ty:ty) = $text:literal, )+ }
    ) => {
        $(#[doc = $edoc])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $name { $( $(#[doc = $doc])+ $variant($ty), )+ }

        impl $crate::ParamsChoice for $name {
            const KINDS: &'static [$crate::Preset] =
                &[$( $crate::Preset { name: $text, doc: concat!($($doc),+) }, )+];
            fn of_kind(kind: &str) -> Option<Self> {
                match kind {
                    $( $text => Some(Self::$variant(<$ty>::default())), )+
                    _ => None,
                }
            }
            fn kind(&self) -> &'static str {
                match self { $( Self::$variant(_) => $text, )+ }
            }
            fn params(&self) -> &dyn $crate::Params {
                match self { $( Self::$variant(p) => p, )+ }
            }
            fn params_mut(&mut self) -> &mut dyn $crate::Params {
                match self { $( Self::$variant(p) => p, )+ }
            }
        }
    };
}

/// One of several sets of parameters, made by [`params_choice!`](crate::params_choice!).
pub trait ParamsChoice: Sized {
    /// The kinds there are, with what each is.
    const KINDS: &'static [Preset];
    /// The defaults of a kind; `None` if there is no such kind.
    fn of_kind(kind: &str) -> Option<Self>;
    /// Which kind this is.
    fn kind(&self) -> &'static str;
    /// Its parameters.
    fn params(&self) -> &dyn Params;
    /// Its parameters, to be set.
    fn params_mut(&mut self) -> &mut dyn Params;
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::param_enum! {
        /// A mode.
        pub enum Mode {
            /// One.
            One = "one",
            /// Two.
            Two = "two",
        }
    }

    crate::params! {
        /// An example.
        pub struct Example {
            /// How long.
            #[source("RFC 1")]
            pub span: Duration = Duration::from_millis(5),
            /// Which way.
            #[source("RFC 2")]
            pub mode: Mode = Mode::One,
            /// A part.
            #[source("RFC 3")]
            pub part: Option<f64> = None,
        }
        presets {
            /// Quick.
            "quick" => |p| { p.span = Duration::from_micros(1); }
        }
        check |p| {
            if p.span == Duration::ZERO {
                return Err(Invalid { key: "span", message: "zero".to_owned() });
            }
        }
    }

    #[test]
    fn every_parameter_reads_back_what_it_writes() {
        let mut example = Example::default();
        for field in example.fields() {
            let value = example.get(field.name).unwrap();
            example.set(field.name, &value).unwrap();
        }
        assert_eq!(example, Example::default());
        assert!(example.apply_preset("quick"));
        assert_eq!(example.span, Duration(1_000));
        example.set("mode", &Value::Text("two".into())).unwrap();
        assert_eq!(example.mode, Mode::Two);
        assert!(
            example
                .set("mode", &Value::Text("three".into()))
                .unwrap_err()
                .0
                .contains("\"one\", \"two\"")
        );
        assert!(example.set("span", &Value::Integer(3)).unwrap_err().0.contains("bare number 3"));
        example.set("span", &Value::Text("0 s".into())).unwrap();
        assert_eq!(example.check().unwrap_err().key, "span");
    }
}
