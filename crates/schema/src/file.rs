//! TOML files whose sections are structs: tree with spans, and errors that are reported together.

mod diagnostics;
mod lines;
mod suggest;
mod toml_text;
mod tree;

pub use diagnostics::{
    Diagnostic, Diagnostics, MOST_SHOWN, Problem, Severity, Sink, Source, Span, at_place,
};
pub use suggest::{closest, list};
pub use toml_text::{key, quoted, toml};
pub use tree::{
    Entry, Item, Node, Table, locate, parse_document, parse_value, read_toml, too_long,
};
