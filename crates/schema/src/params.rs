//! Parameters that describe themselves: description of each; reading and writing of a set.

use cwnd_quantity::ParseError;

use crate::bounds::{Bounds, Quantity};

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

/// Kind of a parameter's values, for the JSON Schema and the reference.
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
    /// A value of this kind or `"none"`.
    Optional(&'static Self),
    /// [`Share`](crate::Share).
    Share,
    /// A duration, or a distribution over durations such as `"uniform(20 ms, 200 ms)"`.
    DurationDist,
    /// A size, or a distribution over sizes such as `"pareto(1.2, 30 kB)"`.
    SizeDist,
    /// A number above 0 and below 1, or several of them as in `"0.8, 0.6, 0.5"`.
    Parts,
    /// Queue sizes as in `"10 packets, 20 packets"`.
    QueueSizes,
    /// A whole number, or a distribution over them such as `"lomax(1.5, 3)"`.
    CountDist,
    /// A CSV file of recorded arrivals, or its rows.
    Arrivals,
    /// Free text.
    Text,
}

impl Kind {
    /// `true` if a value of it can say that something is not there or not done.
    #[must_use]
    pub const fn can_be_off(self) -> bool {
        matches!(self, Self::Bool | Self::Optional(_))
    }
}

/// One parameter: its name, what it means, what it is by default and who says so.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Key in the scenario file.
    pub name: &'static str,
    /// Kind of its values.
    pub kind: Kind,
    /// Its meaning.
    pub doc: &'static str,
    /// Source of the default.
    pub source: &'static str,
    /// From where to where its values go.
    pub bounds: Bounds,
    /// `true` if it must be given, because no default would be right.
    pub required: bool,
    /// Part of a stack that sets it; `None` for a key of scenarios.
    pub part: Option<&'static str>,
}

/// A named set of values for several parameters at once.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// Its name in a scenario: `preset = "…"`.
    pub name: &'static str,
    /// Its meaning.
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

/// A parameter without effect, whatever its value, because of what others say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idle {
    /// Its key.
    pub key: &'static str,
    /// The other parameter's value, as in "without `prr`".
    pub why: &'static str,
}

/// A set of parameters, which [`Schema`](derive@crate::Schema) derives.
pub trait Params {
    /// Lists the parameters, in order.
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
    /// Becomes what a preset says, whatever it was; `false` if there is none of that name.
    fn apply_preset(&mut self, name: &str) -> bool;
    /// Looks at the values together.
    ///
    /// # Errors
    /// If they contradict each other or lie out of range.
    fn check(&self) -> Result<(), Invalid>;
    /// Lists the parameters without effect, each once.
    fn idle(&self) -> Vec<Idle>;
    /// Gives a parameter its default.
    fn reset(&mut self, name: &str);
    /// `true` if a parameter has its default.
    fn is_default(&self, name: &str) -> bool;
}

/// A type that can be a parameter.
pub trait Param: Sized {
    /// Kind of the values.
    const KIND: Kind;
    /// The range of the type itself.
    const BOUNDS: Bounds = Bounds::NONE;
    /// Type of its bounds; itself for a type without numbers.
    type Bound;
    /// Number that is compared with its bounds; `None` if it has none, or is "none".
    fn quantity(&self) -> Option<Quantity> {
        None
    }
    /// Reads it.
    ///
    /// # Errors
    /// If the value is of another kind or out of range, as a sentence for the user.
    fn read(value: &Value) -> Result<Self, ParseError>;
    /// Writes it so that [`Param::read`] gives it back.
    fn write(&self) -> Value;
}

impl Value {
    /// Words for "expected …, found …".
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

/// An entry of a registry: a kind of part.
#[derive(Clone, Copy, Debug)]
pub struct RegistryEntry {
    /// Its name in a scenario: `kind = "…"`.
    pub name: &'static str,
    /// Other names of it.
    pub aliases: &'static [&'static str],
    /// A sentence for schema and reference.
    pub doc: &'static str,
}

impl RegistryEntry {
    /// A kind with one name.
    #[must_use]
    pub const fn new(name: &'static str, doc: &'static str) -> Self {
        Self { name, aliases: &[], doc }
    }

    /// The same kind under more names.
    #[must_use]
    pub const fn alias(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    /// `true` if the kind has this name.
    #[must_use]
    pub fn is(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }
}

/// One of several sets of parameters, made by [`registry!`](crate::registry!).
pub trait ParamsChoice: Sized + Default {
    /// The kinds there are.
    const KINDS: &'static [RegistryEntry];
    /// The defaults of a kind, by its name or another one; `None` if there is no such kind.
    fn of_kind(kind: &str) -> Option<Self>;
    /// The name of this kind.
    fn kind(&self) -> &'static str;
    /// Its parameters.
    fn params(&self) -> &dyn Params;
    /// Its parameters, to be set.
    fn params_mut(&mut self) -> &mut dyn Params;
}
