//! Descriptions of keys that are not parameters of an algorithm; `SectionKeys` derives them.

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
    /// A value derived from other keys, as the sentence says.
    Derived(&'static str),
}
