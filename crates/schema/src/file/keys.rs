//! Descriptions of keys that are no parameters of an algorithm: `SectionKeys` derives them.

use serde_json::Value as Json;

use crate::expanded::{joined, same};
use crate::{Bounds, Kind};

/// One key of a section.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// Form of its values.
    pub form: Form,
    /// Its value where it is absent.
    pub fallback: Fallback,
    /// Its meaning.
    pub doc: &'static str,
    /// Source of the default.
    pub source: &'static str,
    /// Range of the values of a [`Form::Plain`].
    pub bounds: Bounds,
}

impl Key {
    /// Entry of a list whose keys are not known yet.
    pub const NONE: Self = Self {
        name: "",
        form: Form::Plain(Kind::Text),
        fallback: Fallback::Required,
        doc: "",
        source: "",
        bounds: Bounds::NONE,
    };
}

/// The same keys, some with other docs and sources. A name that no key has does not compile.
pub const fn described<const N: usize>(
    keys: &[Key],
    others: &[(&str, &'static str, &'static str)],
) -> [Key; N] {
    let mut all = joined(&[keys], Key::NONE);
    let mut other = 0;
    while other < others.len() {
        let (name, doc, source) = others[other];
        let i = place(&all, name);
        assert!(i < N, "another doc is of a key that is not there");
        (all[i].doc, all[i].source) = (doc, source);
        other += 1;
    }
    all
}

/// Place of a key among others; their number if it is not there.
pub const fn place(keys: &[Key], name: &str) -> usize {
    let mut i = 0;
    while i < keys.len() && !same(keys[i].name, name) {
        i += 1;
    }
    i
}

/// Forms of a key's values.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// A value of a parameter's kind.
    Plain(Kind),
    /// Another value.
    Value(&'static Takes),
    /// A section of its own.
    Section,
    /// Sections of the user's own names.
    Named,
}

/// Description of a value.
#[derive(Debug)]
pub struct Takes {
    /// Words of the reference.
    pub phrase: &'static str,
    /// A value, as it may be written.
    pub example: &'static str,
    /// Key of a table for which a plain value is short: `queue = "codel"` is
    /// `queue = { kind = "codel" }`.
    pub shorthand: Option<&'static str>,
    /// Makes its JSON Schema.
    pub json: fn() -> Json,
}

impl Takes {
    /// A value without a short form.
    pub const fn new(phrase: &'static str, json: fn() -> Json) -> Self {
        Self { phrase, example: "\"...\"", shorthand: None, json }
    }

    /// One of several algorithms.
    pub const fn choice(phrase: &'static str, json: fn() -> Json) -> Self {
        Self { shorthand: Some("kind"), ..Self::new(phrase, json) }
    }
}

/// Values of a key that is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// None: it is an error.
    Required,
    /// This, as it would be written.
    Toml(&'static str),
    /// One of these by the version of the file's format, from version 1 on.
    BySchema(&'static [&'static str]),
    /// As this sentence says.
    Derived(&'static str),
}
