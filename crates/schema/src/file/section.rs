//! Traits of sections whose keys are the fields of a struct, and the TOML text of values and keys.

use core::fmt::Write as _;
use std::borrow::Cow;

use crate::file::context::{At, Context};
use crate::file::diagnostics::Span;
use crate::file::keys::Key;
use crate::file::reader::Section;
use crate::file::tree::Table;
use crate::{Param, Params, Value};

/// A section that can be read, derived by `#[derive(SectionKeys)]`.
pub trait SectionKeys: Sized {
    /// Descriptions of the keys, in order.
    const KEYS: &'static [Key];
    /// Struct of optional fields, for the keys that could be read.
    type Partial;
    /// Reads all keys, and reports all errors.
    fn read_keys(section: &Section<'_>, cx: &mut Context<'_>) -> Self::Partial;
    /// Returns the section, if all of its keys could be read.
    fn complete(partial: Self::Partial) -> Option<Self>;
    /// Records keys without effect, and from version 2 of the file format on resets them to their
    /// defaults.
    fn reset_idle(&mut self, _: &Section<'_>, _: &mut Context<'_>) {}

    /// Returns the section after [`SectionKeys::reset_idle`], if all of its keys could be read.
    fn complete_and_reset(
        partial: Self::Partial,
        section: &Section<'_>,
        cx: &mut Context<'_>,
    ) -> Option<Self> {
        let mut section_keys = Self::complete(partial)?;
        section_keys.reset_idle(section, cx);
        Some(section_keys)
    }

    /// Reads the section, and reports all errors.
    fn read(section: &Section<'_>, cx: &mut Context<'_>) -> Option<Self> {
        Self::complete_and_reset(Self::read_keys(section, cx), section, cx)
    }
}

/// A section that can be written to resolved files.
pub trait Resolved {
    /// Returns the keys and their values, in order.
    fn written(&self) -> Vec<(&'static str, WrittenValue<'_>)>;
}

/// Writes the keys of two structs as one section.
impl<A: Resolved, B: Resolved> Resolved for (A, B) {
    fn written(&self) -> Vec<(&'static str, WrittenValue<'_>)> {
        [self.0.written(), self.1.written()].into_iter().flatten().collect()
    }
}

/// A value in a resolved file.
pub enum WrittenValue<'a> {
    /// TOML text after the `=`.
    Line(String),
    /// A section that is written separately.
    Section,
    /// A part, by its kind and parameters, written as a section of its own.
    Part(&'static str, &'a dyn Params),
}

/// A value that is not a [`Param`] and reads its node itself.
///
/// `F` names the format of files: a type of the crate that reads them, which may then implement
/// this for types of other crates.
pub trait ReadValue<F>: Sized {
    /// Reads the value, and reports errors.
    fn read(at: At<'_>, cx: &mut Context<'_>) -> Option<Self>;
}

/// A value that is not a [`Param`], for resolved files of the format `F`.
pub trait WriteValue<F> {
    /// Returns the form in which a resolved file has the value.
    fn write(&self) -> WrittenValue<'_>;
}

/// Writes a parameter's value as TOML.
pub fn plain<T: Param>(value: &T) -> WrittenValue<'_> {
    WrittenValue::Line(toml(&value.write()))
}

/// Formats the wanted keys of a section as an inline table, without sections and parts in it.
pub fn inline<S: Resolved>(section: &S, is_wanted: impl Fn(&str) -> bool) -> String {
    let keys = section.written().into_iter().filter_map(|(name, value)| match value {
        WrittenValue::Line(value) if is_wanted(name) => Some(format!("{name} = {value}")),
        _ => None,
    });
    format!("{{ {} }}", keys.collect::<Vec<_>>().join(", "))
}

/// Formats sections as a list of inline tables.
pub fn tables<S: Resolved>(sections: impl Iterator<Item = S>) -> WrittenValue<'static> {
    let tables: Vec<String> = sections.map(|section| inline(&section, |_| true)).collect();
    WrittenValue::Line(format!("[{}]", tables.join(", ")))
}

/// Returns the defaults of a section without required keys.
///
/// # Panics
/// If the text of a default is not a valid value of its key.
pub fn from_defaults<S: SectionKeys>() -> S {
    let files = |name: &str| Err(format!("no `{name}`"));
    let (table, mut cx) =
        (Table::default(), Context::new(&files, |value, _, _| Ok(Cow::Borrowed(value))));
    let section = Section::new(&table, const { &[S::KEYS] }, "", Span::default(), &mut cx);
    S::read(&section, &mut cx).expect("defaults are values of their keys")
}

/// Formats a value as TOML.
pub fn toml(value: &Value) -> String {
    match value {
        Value::Text(text) => quoted(text),
        Value::Bool(b) => b.to_string(),
        Value::Integer(i) => i.to_string(),
        // The shortest digits that read back to the same number, never in the form of an integer.
        Value::Float(x) => format!("{x:?}"),
    }
}

/// Formats a key, quoted if TOML requires it.
pub fn key(name: &str) -> String {
    let bare =
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if bare { name.to_owned() } else { quoted(name) }
}

/// Formats a text as a basic string.
pub fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
