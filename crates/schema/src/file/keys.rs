//! Descriptions of keys that are not parameters of an algorithm; `SectionKeys` derives them.
//! Phrases and examples of the kinds of their values.

use serde_json::Value as Json;

use crate::derive_support::{joined, same};
use crate::{Bounds, ValueType};

/// Description of one key of a section.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Name of the key.
    pub name: &'static str,
    /// Form of its values.
    pub form: Form,
    /// Its value if the key is absent.
    pub fallback: Fallback,
    /// Text of the key in the reference.
    pub doc: &'static str,
    /// Source of the default of the key.
    pub source: &'static str,
    /// Range of the values, for [`Form::Plain`].
    pub bounds: Bounds,
}

impl Key {
    /// Placeholder entry for arrays of keys that are not filled yet.
    pub const NONE: Self = Self {
        name: "",
        form: Form::Plain(ValueType::Text),
        fallback: Fallback::Required,
        doc: "",
        source: "",
        bounds: Bounds::NONE,
    };
}

/// Copies keys, and replaces docs and sources of some. A name that no key has does not compile.
pub const fn described<const N: usize>(
    keys: &[Key],
    others: &[(&str, &'static str, &'static str)],
) -> [Key; N] {
    let mut all = joined(&[keys], Key::NONE);
    let mut other = 0;
    while other < others.len() {
        let (name, doc, source) = others[other];
        let i = index_of(&all, name);
        assert!(i < N, "another doc is of a key that is not there");
        (all[i].doc, all[i].source) = (doc, source);
        other += 1;
    }
    all
}

/// Returns the index of a key, or the number of keys if it is absent.
pub const fn index_of(keys: &[Key], name: &str) -> usize {
    let mut i = 0;
    while i < keys.len() && !same(keys[i].name, name) {
        i += 1;
    }
    i
}

/// Forms of a key's values.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// A value of a parameter kind.
    Plain(ValueType),
    /// A value that reads its own node.
    Value(&'static ValueForm),
    /// A section.
    Section,
    /// Sections with user-chosen names.
    Named,
}

/// Description of a value that reads its own node.
#[derive(Debug)]
pub struct ValueForm {
    /// Phrase of the reference for the value.
    pub phrase: &'static str,
    /// Example of a value, as written in a file.
    pub example: &'static str,
    /// Key of a table that a plain value abbreviates: `queue = "codel"` is `queue = { kind =
    /// "codel" }`.
    pub shorthand: Option<&'static str>,
    /// Generator of its JSON Schema.
    pub json: fn() -> Json,
}

impl ValueForm {
    /// Describes a value without a short form.
    pub const fn new(phrase: &'static str, json: fn() -> Json) -> Self {
        Self { phrase, example: "\"...\"", shorthand: None, json }
    }

    /// Describes one of several algorithms, whose short form gives the `kind`.
    pub const fn choice(phrase: &'static str, json: fn() -> Json) -> Self {
        Self { shorthand: Some("kind"), ..Self::new(phrase, json) }
    }
}

/// Value of a key that is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// No value: an absent key is an error.
    Required,
    /// A default, written as TOML.
    Toml(&'static str),
    /// A default for each version of the file format, from version 1 on.
    BySchema(&'static [&'static str]),
    /// No default; the sentence states the meaning of an absent key.
    Derived(&'static str),
}

/// Returns the phrase for a kind of value, as in "expected a rate such as …".
pub fn phrase(kind: ValueType) -> String {
    let words = match kind {
        ValueType::Optional(ValueType::Number) => "a number, or \"none\"",
        ValueType::Optional(inner) => {
            let inner = phrase(*inner).replace(", or ", ", ");
            return format!("{inner}, or \"none\"");
        }
        ValueType::Bool => "`true` or `false`",
        ValueType::Integer => "a whole number",
        ValueType::Number => "a number without a unit",
        ValueType::Duration => "a time such as \"100 ms\"",
        ValueType::Rate => "a rate such as \"10 Mbit/s\"",
        ValueType::Bytes => "a size such as \"64 kB\"",
        ValueType::QueueSize => {
            "a queue size such as \"1000 packets\", \"64 kB\", \"50 ms\" or \"1 BDP\""
        }
        ValueType::Share => "\"all\", \"none\" or a share such as 0.01",
        ValueType::DurationDist => "a time, or a distribution over times",
        ValueType::SizeDist => "a size, or a distribution over sizes",
        ValueType::Fractions => {
            "a number above 0 and below 1, or several such as \"0.8, 0.6, 0.5\""
        }
        ValueType::QueueSizes => "queue sizes such as \"10 packets, 20 packets\"",
        ValueType::CountDist => "a whole number, or a distribution over them",
        ValueType::Arrivals => "a CSV file, or its rows",
        ValueType::Choice(_) | ValueType::Text => "a text in quotes",
    };
    words.to_owned()
}

/// Returns an example value of this kind, as written in a file.
pub(super) const fn example_value(kind: ValueType) -> &'static str {
    match kind {
        ValueType::Bool => "true",
        ValueType::Integer | ValueType::CountDist => "1",
        ValueType::Number | ValueType::Fractions | ValueType::Share => "0.5",
        ValueType::Rate => "\"10 Mbit/s\"",
        ValueType::Duration | ValueType::DurationDist => "\"100 ms\"",
        ValueType::Bytes => "\"1000 B\"",
        ValueType::SizeDist => "\"30 kB\"",
        ValueType::QueueSize | ValueType::QueueSizes => "\"100 packets\"",
        ValueType::Optional(inner) => example_value(*inner),
        ValueType::Arrivals => "\"arrivals.csv\"",
        ValueType::Choice(_) | ValueType::Text => "\"...\"",
    }
}

/// Lists the defaults of a key whose default depends on the version of the file format.
pub(super) fn by_schema(defaults: &[&str]) -> String {
    let pairs = (1..).zip(defaults);
    let parts = pairs.map(|(schema, default): (u64, _)| format!("`{default}` in schema {schema}"));
    parts.collect::<Vec<_>>().join(", ")
}

/// Returns the name of a key in messages, and an example of it.
pub(super) fn example(key: &Key) -> (String, String) {
    let name = key.name;
    let value = match key.form {
        Form::Section => return (format!("the section [{name}]"), format!("[{name}]")),
        Form::Named => return (format!("a section [{name}.NAME]"), format!("[{name}.main]")),
        Form::Plain(kind) => example_value(kind),
        Form::Value(takes) => takes.example,
    };
    (format!("the key `{name}`"), format!("`{name} = {value}`"))
}
