//! Reader of TOML files whose sections are structs: a tree with spans, key tables, and errors that
//! are reported together.

mod context;
mod diagnostics;
mod former_names;
pub mod json;
mod keys;
mod lines;
mod no_effect;
mod page;
mod reader;
mod section;
mod suggest;
mod toml_value;
mod tree;
mod value_types;

pub use context::{At, Contents, Context, EXTENSIONS, Files, Inline};
pub use diagnostics::{
    Diagnostic, Diagnostics, MAX_SHOWN, Problem, Severity, Sink, Source, Span, at_place,
};
pub use former_names::with_current_names;
pub use keys::{Fallback, Form, Key, ValueForm, described, index_of};
pub use no_effect::IdleKey;
pub use page::Page;
pub use reader::{
    PresetRenaming, Section, TableDescription, choice, choice_from, named_preset, parameters,
    preset, table_preset, unknown_name,
};
pub use section::{
    ReadValue, Resolved, SectionKeys, WriteValue, WrittenValue, from_defaults, inline, plain,
    tables,
};
pub use suggest::{closest, list};
pub use toml_value::{key, quoted, toml};
pub use tree::{
    Entry, Item, Node, Table, locate, parse_document, parse_value, read_toml, too_long,
};
