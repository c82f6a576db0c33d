//! Sections whose keys are the fields of a struct.

use std::borrow::Cow;

use crate::file::context::{At, Context};
use crate::file::diagnostics::Span;
use crate::file::keys::Key;
use crate::file::reader::Section;
use crate::file::toml_text::toml;
use crate::file::tree::Table;
use crate::{Param, Params};

/// Keys of a section, which `#[derive(SectionKeys)]` makes of fields.
pub trait SectionKeys: Sized {
    /// Keys, in order.
    const KEYS: &'static [Key];
    /// Values of its keys that could be read.
    type Partial;
    /// Reads all keys, and reports all errors.
    fn read_keys(section: &Section<'_>, cx: &mut Context<'_>) -> Self::Partial;
    /// All of them, if all could be read.
    fn whole(partial: Self::Partial) -> Option<Self>;
    /// Notes keys without effect, which take their defaults.
    fn settle(&mut self, _: &Section<'_>, _: &mut Context<'_>) {}

    /// The whole with its keys without effect settled.
    fn settled(
        partial: Self::Partial,
        section: &Section<'_>,
        cx: &mut Context<'_>,
    ) -> Option<Self> {
        let mut whole = Self::whole(partial)?;
        whole.settle(section, cx);
        Some(whole)
    }

    /// Reads the whole, and reports all errors.
    fn read(section: &Section<'_>, cx: &mut Context<'_>) -> Option<Self> {
        Self::settled(Self::read_keys(section, cx), section, cx)
    }
}

/// A section of resolved files.
pub trait Resolved {
    /// Keys and values, in order.
    fn written(&self) -> Vec<(&'static str, Written<'_>)>;
}

/// Keys that stand in one section.
impl<A: Resolved, B: Resolved> Resolved for (A, B) {
    fn written(&self) -> Vec<(&'static str, Written<'_>)> {
        [self.0.written(), self.1.written()].into_iter().flatten().collect()
    }
}

/// A value in a resolved file.
pub enum Written<'a> {
    /// TOML.
    Line(String),
    /// A section that is written on its own.
    Section,
    /// A part of this kind, which has a section of its own.
    Part(&'static str, &'a dyn Params),
}

/// A value that is no [`Param`]: it reads its node itself.
///
/// `F` names the format of files: a type of the crate that reads them, which may then implement
/// this for types of other crates.
pub trait ReadValue<F>: Sized {
    /// Reads it, and reports what is wrong.
    fn read(at: At<'_>, cx: &mut Context<'_>) -> Option<Self>;
}

/// A value that is no [`Param`] and stands in resolved files of the format `F`.
pub trait WriteValue<F> {
    /// Writes it.
    fn write(&self) -> Written<'_>;
}

/// A parameter's value as TOML.
pub fn plain<T: Param>(value: &T) -> Written<'_> {
    Written::Line(toml(&value.write()))
}

/// Keys of a section as a table on one line.
pub fn inline<S: Resolved>(section: &S, is_wanted: impl Fn(&str) -> bool) -> String {
    let keys = section.written().into_iter().filter_map(|(name, value)| match value {
        Written::Line(value) if is_wanted(name) => Some(format!("{name} = {value}")),
        _ => None,
    });
    format!("{{ {} }}", keys.collect::<Vec<_>>().join(", "))
}

/// Sections as a list of tables on one line.
pub fn tables<S: Resolved>(sections: impl Iterator<Item = S>) -> Written<'static> {
    let tables: Vec<String> = sections.map(|section| inline(&section, |_| true)).collect();
    Written::Line(format!("[{}]", tables.join(", ")))
}

/// The defaults of a section without required keys.
///
/// # Panics
/// If a default is no value of its key.
pub fn by_default<S: SectionKeys>() -> S {
    let files = |name: &str| Err(format!("no `{name}`"));
    let (table, mut cx) =
        (Table::default(), Context::new(&files, |value, _, _| Ok(Cow::Borrowed(value))));
    let section = Section::new(&table, const { &[S::KEYS] }, "", Span::default(), &mut cx);
    S::read(&section, &mut cx).expect("defaults are values of their keys")
}
