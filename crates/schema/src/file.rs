//! Reader of TOML files whose sections are structs: a tree with spans, key tables, and errors that
//! are reported together.

mod context;
mod diagnostics;
pub mod json;
mod keys;
mod reader;
mod section;
mod suggest;
mod tree;

pub use context::{At, Contents, Context, EXTENSIONS, Files, INSTALLED, IdleKey, Inline};
pub use diagnostics::{
    Diagnostic, Diagnostics, MAX_SHOWN, Problem, Severity, Sink, Source, Span, at_place,
};
pub use keys::{Fallback, Form, Key, Page, ValueForm, described, index_of};
pub use reader::{
    DESCRIPTION, PresetRenaming, Section, TableDescription, choice, choice_from, named_preset,
    parameters, preset, table_preset, unknown_name, with_current_names,
};
pub use section::{
    ReadValue, Resolved, SectionKeys, WriteValue, WrittenValue, from_defaults, inline, key, plain,
    quoted, tables, toml,
};
pub use suggest::{closest, list};
pub use tree::{
    Entry, Item, Node, Table, locate, parse_document, parse_value, read_toml, too_long,
};
