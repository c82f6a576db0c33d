//! Descriptions of keys that are no parameters of an algorithm: `SectionKeys` derives them.

use cwnd_schema::expanded::{joined, same};
use cwnd_schema::{Bounds, Kind};
use serde_json::Value as Json;

/// One key of a section.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    pub name: &'static str,
    pub form: Form,
    pub fallback: Fallback,
    pub doc: &'static str,
    pub source: &'static str,
    /// From where to where the values of a [`Form::Plain`] go.
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
pub(crate) const fn described<const N: usize>(
    keys: &[Key],
    others: &[(&str, &'static str, &'static str)],
) -> [Key; N] {
    let mut all = joined(&[keys], Key::NONE);
    let mut other = 0;
    while other < others.len() {
        let (name, doc, source) = others[other];
        let mut i = 0;
        while i < N && !same(all[i].name, name) {
            i += 1;
        }
        assert!(i < N, "another doc is of a key that is not there");
        (all[i].doc, all[i].source) = (doc, source);
        other += 1;
    }
    all
}

/// What a key takes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
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
pub(crate) struct Takes {
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

/// What holds when a key is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fallback {
    /// An error.
    Required,
    /// This, as it would be written.
    Toml(&'static str),
    /// One of these by the file's schema, as it would be written; see [`SCHEMAS`].
    BySchema([&'static str; SCHEMAS.len()]),
    /// What this sentence says.
    Derived(&'static str),
}

/// Runs that fit a plan.
pub(crate) const MOST_CELLS: u64 = 1_000_000;
/// Flows that can be simulated at a time.
pub(crate) const MOST_FLOWS: u64 = 8_000_000;
/// The versions of the file format; the last is the newest.
pub(crate) const SCHEMAS: [u64; 2] = [1, 2];
