//! Definitions of parameters: what one macro makes of a struct, another of an enum, a third of a registry.

use crate::bounds::{Bounds, Quantity};
use crate::params::{Field, Idle, Kind};
use crate::parse::ParseError;

/// An enum whose variants are written as names in a scenario.
///
/// ```
/// cwnd_quantity::param_enum! {
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
            type Bound = Self;
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

/// Defines a struct of parameters: fields with documentation, default and source; bounds; presets, each a whole value;
/// a check of what lies between fields; rules for fields without effect. A field without a default
/// must be given in a scenario; until then it is what its type has by `Default`.
///
/// `#[bounds(…)]` says `from`, `above`, `up_to` or `below` which value a parameter goes, and what is wrong outside. A
/// field with `#[flatten(…)]` is a set of parameters of its own, whose keys stand among the others; those whose defaults
/// are others here have sources of their own, too.
///
/// ```
/// use cwnd_quantity::{Duration, Params as _};
/// cwnd_quantity::params! {
///     /// What several queues share.
///     pub struct Marking {
///         /// Whether packets are marked.
///         #[source("RFC 3168")]
///         pub ecn: bool = false,
///     }
/// }
/// cwnd_quantity::params! {
///     /// A queue that aims at a delay.
///     pub struct Params {
///         /// The delay to aim at.
///         #[source("RFC 8289 § 4.4")]
///         #[bounds(above Duration::ZERO; "a target of zero marks everything")]
///         pub target: Duration = Duration::from_millis(5),
///         /// Marks.
///         #[flatten(ecn: "RFC 8289 § 4.1")]
///         pub marking: Marking = Marking { ecn: true },
///     }
///     presets {
///         /// For a data centre.
///         "fast" => Self { target: Duration::from_micros(50), ..Self::default() },
///     }
///     check |p| {
///         if !p.marking.ecn && p.target > Duration::from_secs(1) {
///             return Err(cwnd_quantity::Invalid { key: "target", message: "only marks may come so late".into() });
///         }
///     }
/// }
/// let sources: Vec<&str> = Params::FIELDS.iter().map(|field| field.source).collect();
/// assert_eq!(sources, ["RFC 8289 § 4.4", "RFC 8289 § 4.1"]);
/// assert!(Params { target: Duration::ZERO, ..Params::default() }.check().is_err());
/// ```
#[macro_export]
macro_rules! params {
    (@default $default:expr) => { $default };
    (@default) => { ::core::default::Default::default() };
    (@required $default:expr) => { false };
    (@required) => { true };
    (@bounds $ty:ty) => { <$ty as $crate::Param>::BOUNDS };
    (@bounds $ty:ty, $($edge:ident $value:expr),+ $(; $why:literal)?) => {
        <$ty as $crate::Param>::BOUNDS
            $( .$edge($crate::Typed::<<$ty as $crate::Param>::Bound>($value).quantity()) )+
            $( .because($why) )?
    };
    // What a field adds to the list: itself, or all that it holds.
    (@fields $ty:ty, $field:ident, [$($doc:literal)+] [$source:literal] [$(($($bounds:tt)+))?] [] [$($default:expr)?]) => {
        &[$crate::Field {
            name: stringify!($field),
            kind: <$ty as $crate::Param>::KIND,
            doc: concat!($($doc),+),
            source: $source,
            bounds: $crate::params!(@bounds $ty $(, $($bounds)+)?),
            required: $crate::params!(@required $($default)?),
        }]
    };
    (@fields $ty:ty, $field:ident, [$($doc:literal)+] [] [] [($($key:ident: $source:literal),* $(,)?)] [$($default:expr)?]) => {
        &$crate::resourced::<{ <$ty>::FIELDS.len() }>(<$ty>::FIELDS, &[$((stringify!($key), $source)),*])
    };
    (@set $self:ident, $name:ident, $value:ident, $ty:ty, $field:ident, []) => {
        if $name == stringify!($field) {
            let read = <$ty as $crate::Param>::read($value)?;
            $crate::within(Self::FIELDS, $name, $crate::Param::quantity(&read))?;
            $self.$field = read;
            return Ok(());
        }
    };
    (@set $self:ident, $name:ident, $value:ident, $ty:ty, $field:ident, [($($sources:tt)*)]) => {
        if <$ty>::FIELDS.iter().any(|field| field.name == $name) {
            return $crate::Params::set(&mut $self.$field, $name, $value);
        }
    };
    (@get $self:ident, $name:ident, $field:ident, []) => {
        if $name == stringify!($field) {
            return Some($crate::Param::write(&$self.$field));
        }
    };
    (@get $self:ident, $name:ident, $field:ident, [($($sources:tt)*)]) => {
        if let Some(value) = $crate::Params::get(&$self.$field, $name) {
            return Some(value);
        }
    };
    (@idle $self:ident, $field:ident, []) => { Vec::new() };
    (@idle $self:ident, $field:ident, [($($sources:tt)*)]) => {
        $crate::Params::idle(&$self.$field)
    };
    (@check $self:ident, $field:ident, []) => {
        $crate::within(Self::FIELDS, stringify!($field), $crate::Param::quantity(&$self.$field))
            .map_err(|e| $crate::Invalid { key: stringify!($field), message: e.0 })?;
    };
    (@check $self:ident, $field:ident, [($($sources:tt)*)]) => {
        $crate::Params::check(&$self.$field)?;
    };
    (
        $(#[doc = $sdoc:literal])*
        pub struct $name:ident { $(
            $(#[doc = $doc:literal])+
            $(#[source($source:literal)])?
            $(#[bounds($($bounds:tt)+)])?
            $(#[flatten($($sources:tt)*)])?
            pub $field:ident : $ty:ty $(= $default:expr)?,
        )* }
        $( presets { $( $(#[doc = $pdoc:literal])+ $pname:literal => $preset:expr, )* } )?
        $( check |$c:ident| $check:block )?
        $( idle |$i:ident| { $( [$($ikey:ident),+ $(,)?] if $cond:expr => $why:literal, )+ } )?
    ) => {
        $(#[doc = $sdoc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name { $( $(#[doc = $doc])+ pub $field: $ty, )* }

        impl Default for $name {
            fn default() -> Self {
                Self { $( $field: $crate::params!(@default $($default)?), )* }
            }
        }

        impl $name {
            /// What parameters there are, in order.
            pub const FIELDS: &'static [$crate::Field] = {
                const PARTS: &[&[$crate::Field]] = &[$(
                    $crate::params!(@fields $ty, $field,
                        [$($doc)+] [$($source)?] [$(($($bounds)+))?] [$(($($sources)*))?] [$($default)?]),
                )*];
                &$crate::joined::<{ $crate::total(PARTS) }>(PARTS)
            };
        }

        impl $crate::Params for $name {
            fn fields(&self) -> &'static [$crate::Field] {
                Self::FIELDS
            }
            fn set(&mut self, name: &str, value: &$crate::Value) -> ::core::result::Result<(), $crate::ParseError> {
                $( $crate::params!(@set self, name, value, $ty, $field, [$(($($sources)*))?]); )*
                // Where there are no parameters at all, nothing reads it.
                let _ = value;
                Err($crate::ParseError(format!("there is no parameter `{name}`")))
            }
            fn get(&self, name: &str) -> Option<$crate::Value> {
                $( $crate::params!(@get self, name, $field, [$(($($sources)*))?]); )*
                // Where there are no parameters at all, nothing compares it.
                let _ = name;
                None
            }
            fn presets(&self) -> &'static [$crate::Preset] {
                const PRESETS: &[$crate::Preset] =
                    &[$( $( $crate::Preset { name: $pname, doc: concat!($($pdoc),+) }, )* )?];
                PRESETS
            }
            fn apply_preset(&mut self, name: &str) -> bool {
                let preset: Option<Self> = match name {
                    $( $( $pname => Some($preset), )* )?
                    _ => None,
                };
                let found = preset.is_some();
                if let Some(preset) = preset {
                    *self = preset;
                }
                found
            }
            fn check(&self) -> ::core::result::Result<(), $crate::Invalid> {
                $( $crate::params!(@check self, $field, [$(($($sources)*))?]); )*
                $( let $c = self; $check; )?
                Ok(())
            }
            fn idle(&self) -> Vec<$crate::Idle> {
                $( let $i = self; )?
                let parts: &[Vec<$crate::Idle>] = &[
                    $( $crate::params!(@idle self, $field, [$(($($sources)*))?]), )*
                    $( $( if $cond {
                        [$(stringify!($ikey)),+]
                            .map(|key| $crate::Idle { key, why: $why })
                            .to_vec()
                    } else {
                        Vec::new()
                    }, )+ )?
                ];
                $crate::each_once(Self::FIELDS, parts.concat())
            }
            fn is_default(&self, name: &str) -> bool {
                $crate::Params::get(self, name) == $crate::Params::get(&Self::default(), name)
            }
            fn reset(&mut self, name: &str) {
                if let Some(value) = $crate::Params::get(&Self::default(), name) {
                    // A default is a value that the parameter takes.
                    let _ = $crate::Params::set(self, name, &value);
                }
            }
        }
    };
}

/// How many parameters these are together.
#[doc(hidden)]
#[must_use]
pub const fn total(parts: &[&[Field]]) -> usize {
    let (mut n, mut part) = (0, 0);
    while part < parts.len() {
        n += parts[part].len();
        part += 1;
    }
    n
}

/// The parameters of several lists, one after the other.
#[doc(hidden)]
#[must_use]
pub const fn joined<const N: usize>(parts: &[&[Field]]) -> [Field; N] {
    let mut all = [NOTHING; N];
    let (mut n, mut part) = (0, 0);
    while part < parts.len() {
        let mut i = 0;
        while i < parts[part].len() {
            all[n] = parts[part][i];
            (n, i) = (n + 1, i + 1);
        }
        part += 1;
    }
    all
}

/// The same parameters, some with other sources.
#[doc(hidden)]
#[must_use]
pub const fn resourced<const N: usize>(
    fields: &[Field],
    sources: &[(&str, &'static str)],
) -> [Field; N] {
    let mut all = joined(&[fields]);
    let mut s = 0;
    while s < sources.len() {
        let mut i = 0;
        while !same(all[i].name, sources[s].0) {
            i += 1;
            // Where it is defined, so while it is compiled.
            assert!(i < N, "a source is given for a parameter that is not there");
        }
        all[i].source = sources[s].1;
        s += 1;
    }
    all
}

const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}

/// What a list is filled with before its parameters are known.
const NOTHING: Field = Field {
    name: "",
    kind: Kind::Text,
    doc: "",
    source: "",
    bounds: Bounds::NONE,
    required: false,
};

/// Idle parameters, each with the first reason.
///
/// # Panics
/// In tests, if a rule names a parameter that is not there.
#[doc(hidden)]
#[must_use]
pub fn each_once(fields: &[Field], mut found: Vec<Idle>) -> Vec<Idle> {
    debug_assert!(
        found.iter().all(|idle| fields.iter().any(|field| field.name == idle.key)),
        "{found:?}"
    );
    let mut seen = Vec::new();
    found.retain(|idle| {
        let is_new = !seen.contains(&idle.key);
        seen.push(idle.key);
        is_new
    });
    found
}

/// Whether a value lies within the bounds of the parameter of this name.
///
/// # Errors
/// If it does not, as a sentence for the user.
#[doc(hidden)]
pub fn within(fields: &[Field], name: &str, value: Option<Quantity>) -> Result<(), ParseError> {
    let field = fields.iter().find(|field| field.name == name);
    match field.zip(value).and_then(|(field, value)| field.bounds.refusal(value)) {
        Some(message) => Err(ParseError(message)),
        None => Ok(()),
    }
}

/// Defines the registry of a kind of parts: an enum over their parameters, told apart in a scenario
/// by `kind = "…"`.
///
/// Each line names a variant and its module, which the macro declares. The module holds `ENTRY`,
/// its [`RegistryEntry`](crate::RegistryEntry), and `Params`. The first kind is the default.
/// `#[each(name)]` names a macro: `name!(self, params => …)` evaluates an expression for the
/// parameters of whichever kind it is.
#[macro_export]
macro_rules! registry {
    (
        $(#[doc = $edoc:literal])*
        #[each($each:ident)]
        pub enum $name:ident { $( $variant:ident($module:ident), )+ }
    ) => {
        $( pub mod $module; )+

        $(#[doc = $edoc])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $name { $(
            #[doc = concat!("[`", stringify!($module), "`].")]
            $variant($module::Params),
        )+ }

        /// Evaluates an expression for the parameters of whichever kind it is.
        macro_rules! $each {
            ($self:expr, $params:pat => $value:expr) => {
                match $self { $( $name::$variant($params) => $value, )+ }
            };
        }

        impl $name {
            /// The defaults of each kind.
            const DEFAULTS: &'static [fn() -> Self] =
                &[$( || Self::$variant($module::Params::default()), )+];
        }

        impl Default for $name {
            fn default() -> Self {
                Self::DEFAULTS[0]()
            }
        }

        impl $crate::ParamsChoice for $name {
            const KINDS: &'static [$crate::RegistryEntry] = &[$( $module::ENTRY, )+];
            fn of_kind(kind: &str) -> Option<Self> {
                let place = Self::KINDS.iter().position(|entry| entry.is(kind))?;
                Some(Self::DEFAULTS[place]())
            }
            fn kind(&self) -> &'static str {
                match self { $( Self::$variant(_) => $module::ENTRY.name, )+ }
            }
            fn params(&self) -> &dyn $crate::Params {
                $each!(self, params => params)
            }
            fn params_mut(&mut self) -> &mut dyn $crate::Params {
                $each!(self, params => params)
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use crate::{Bytes, Duration, Invalid, Params, Value};

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
        /// What several have.
        pub struct Shared {
            /// How much.
            #[source("RFC 4")]
            #[bounds(from Bytes(1), up_to Bytes(100); "nobody takes it")]
            pub size: Bytes = Bytes(10),
            /// Whether.
            #[source("RFC 5")]
            pub on: bool = true,
        }
    }

    crate::params! {
        /// An example.
        pub struct Example {
            /// How long.
            #[source("RFC 1")]
            pub span: Duration = Duration::from_millis(5),
            /// What others have, too.
            #[flatten(size: "RFC 6")]
            pub shared: Shared = Shared { size: Bytes(20), ..Shared::default() },
            /// Which way.
            #[source("RFC 2")]
            pub mode: Mode = Mode::One,
            /// A part.
            #[source("RFC 3")]
            #[bounds(above 0.0, below 1.0)]
            pub part: Option<f64> = None,
        }
        presets {
            /// Quick.
            "quick" => Self { span: Duration::from_micros(1), ..Self::default() },
        }
        check |p| {
            if p.span == Duration::ZERO {
                return Err(Invalid { key: "span", message: "zero".to_owned() });
            }
        }
    }

    fn text(text: &str) -> Value {
        Value::Text(text.to_owned())
    }

    #[test]
    fn every_parameter_reads_back_what_it_writes() {
        let mut example = Example::default();
        for field in example.fields() {
            let value = example.get(field.name).unwrap();
            example.set(field.name, &value).unwrap();
        }
        assert_eq!(example, Example::default());
        example.set("mode", &text("two")).unwrap();
        assert_eq!(example.mode, Mode::Two);
        let unknown = example.set("mode", &text("three")).unwrap_err().0;
        assert!(unknown.contains("\"one\", \"two\""));
        assert!(example.set("span", &Value::Integer(3)).unwrap_err().0.contains("bare number 3"));
        example.set("span", &text("0 s")).unwrap();
        assert_eq!(example.check().unwrap_err().key, "span");
    }

    #[test]
    fn a_preset_is_a_whole_value() {
        let mut example = Example::default();
        example.set("mode", &text("two")).unwrap();
        assert!(example.apply_preset("quick"));
        assert_eq!(example, Example { span: Duration(1_000), ..Example::default() });
        assert!(!example.apply_preset("slow"));
    }

    #[test]
    fn what_is_shared_stands_among_the_others_with_its_own_sources() {
        let of = |fields: &[super::Field]| -> Vec<(&str, &str)> {
            fields.iter().map(|field| (field.name, field.source)).collect()
        };
        let expected = [
            ("span", "RFC 1"),
            ("size", "RFC 6"),
            ("on", "RFC 5"),
            ("mode", "RFC 2"),
            ("part", "RFC 3"),
        ];
        assert_eq!(of(Example::FIELDS), expected);
        assert_eq!(of(Shared::FIELDS), [("size", "RFC 4"), ("on", "RFC 5")]);
        let mut example = Example::default();
        assert_eq!(example.get("size"), Some(text("20 B")));
        example.set("size", &text("30 B")).unwrap();
        assert_eq!(example.shared.size, Bytes(30));
        assert!(example.get("shared").is_none());
    }

    #[test]
    fn a_value_out_of_its_bounds_is_refused_when_it_is_set_and_when_all_is_looked_at() {
        let mut example = Example::default();
        let refused = example.set("part", &Value::Float(1.0)).unwrap_err().0;
        assert_eq!(refused, "1 is out of range: it must be above 0 and below 1");
        let refused = example.set("size", &text("101 B")).unwrap_err().0;
        assert_eq!(refused, "101 B is out of range: it must be from 1 B to 100 B; nobody takes it");
        assert_eq!(example, Example::default());
        example.set("part", &text("none")).unwrap();
        example.shared.size = Bytes(0);
        assert_eq!(example.check().unwrap_err().key, "size");
    }
}
