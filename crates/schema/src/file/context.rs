//! State while a file is read, values with their key paths, and keys without effect.

use core::any::Any;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::file::diagnostics::{Sink, Span, at_place};
use crate::file::keys::phrase;
use crate::file::tree::{Entry, Item, Node, Table};
use crate::{Idle, Param, Params, Value, ValueType};

/// Callback that returns the text of a file that another one names, such as a trace; its error is a
/// sentence.
///
/// Pure crates touch no file system: their caller passes this in, and resolves names against the
/// folder of the file.
pub type Files<'f> = &'f dyn Fn(&str) -> Result<String, String>;

/// Prefix, which no name of a file has, of the kinds of installed packages whose descriptions the
/// callback returns.
pub const INSTALLED: &str = "\0kind ";

/// Callback that replaces file names in a value of the given kind by the contents of the files.
pub type Inline =
    for<'v> fn(&'v Value, ValueType, &mut Context<'_>) -> Result<Cow<'v, Value>, String>;

/// Extensions by which a value is recognized as the name of a file.
pub const EXTENSIONS: [&str; 4] = [".csv", ".tsv", ".txt", ".dat"];

/// Parsed contents of files, by name and purpose; errors are kept, too.
pub type Contents = BTreeMap<(String, &'static str), Result<Arc<dyn Any + Send + Sync>, String>>;

/// State that is passed to every read.
pub struct Context<'f> {
    /// Problems found so far.
    pub sink: Sink,
    files: Files<'f>,
    inline: Inline,
    /// Files parsed so far.
    pub contents: Contents,
    /// Version of the file's format, from 1 on.
    pub schema: u64,
    /// Keys without effect found so far.
    pub idle: Vec<IdleKey>,
}

impl<'f> Context<'f> {
    /// Creates the context for a file of which nothing is read yet; the version of its format is 1.
    pub fn new(files: Files<'f>, inline: Inline) -> Self {
        let (sink, contents, idle) = Default::default();
        Self { sink, files, inline, contents, schema: 1, idle }
    }

    /// Returns the parsed contents of the file `name`, read once for each purpose.
    ///
    /// # Errors
    /// If the file can't be read or parsed.
    pub fn content<T: Any + Send + Sync>(
        &mut self,
        name: &str,
        purpose: &'static str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Arc<T>, String> {
        let files = self.files;
        let read = || -> Result<Arc<dyn Any + Send + Sync>, String> {
            Ok(Arc::new(parse(&files(name)?)?))
        };
        let found = self.contents.entry((name.to_owned(), purpose)).or_insert_with(read).clone()?;
        found.downcast().map_err(|_| format!("`{name}` is no {purpose}"))
    }

    /// Returns the description of a kind that an installed package has; `None` if none has it. For
    /// an empty name it returns a line for each kind that there is. The callback for files is asked
    /// for [`INSTALLED`] and the name.
    pub(super) fn installed(&mut self, kind: &str) -> Option<String> {
        let name = format!("{INSTALLED}{kind}");
        let found = self.content(&name, "kind", |text| Ok(text.to_owned()));
        found.ok().map(|text| text.as_ref().clone())
    }

    /// `true` if keys without effect are reset to their defaults, and are errors if the file sets
    /// them: from version 2 on.
    pub const fn refuses_idle(&self) -> bool {
        self.schema > 1
    }

    /// Resets keys without effect to their defaults, so that resolved files can omit them; from
    /// version 2 on.
    pub fn reset_idle(&self, params: &mut dyn Params) {
        if self.refuses_idle() {
            params.idle().iter().for_each(|idle| params.reset(idle.key));
        }
    }

    /// Returns the default for the file's version among those of all versions; the first one for an
    /// unknown version.
    pub(super) fn of_schema(&self, defaults: &'static [&'static str]) -> &'static str {
        let place = usize::try_from(self.schema - 1).unwrap_or(usize::MAX);
        defaults.get(place).unwrap_or(&defaults[0])
    }

    /// Returns the value with file names replaced by the contents of the files.
    pub(super) fn inlined<'v>(
        &mut self,
        value: &'v Value,
        kind: ValueType,
    ) -> Result<Cow<'v, Value>, String> {
        (self.inline)(value, kind, self)
    }
}

/// A node with the path of its key.
#[derive(Clone, Copy)]
pub struct At<'t> {
    /// Node that holds the value.
    pub node: &'t Node,
    /// Path of the value's key, such as `flow.main.rtt`.
    pub path: &'t str,
}

impl At<'_> {
    /// Reports that another kind of value is expected here, unless the value could not be read:
    /// that is already reported.
    pub fn wrong_kind(&self, wanted: &str, cx: &mut Context<'_>) {
        if matches!(self.node.item, Item::Broken) {
            return;
        }
        let message = format!("expected {wanted}, found {}", self.node.describe());
        cx.sink.error(self.node.span, self.path, message);
    }

    /// Reads a parameter's value; `None` after reporting an error.
    pub fn plain<T: Param>(&self, cx: &mut Context<'_>) -> Option<T> {
        let Item::Value(value) = &self.node.item else {
            self.wrong_kind(&phrase(T::VALUE_TYPE), cx);
            return None;
        };
        let value = cx.inlined(value, T::VALUE_TYPE);
        let read = value.and_then(|value| T::read(&value).map_err(|e| e.0));
        read.map_err(|message| cx.sink.error(self.node.span, self.path, message)).ok()
    }
}

/// A key that has no effect because of the values of others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IdleKey {
    /// Position of the key, or of the table whose preset or stack sets it.
    pub span: Span,
    /// Path of the key; that of the table if a part of a stack sets it.
    pub path: String,
    /// Message for the user.
    pub message: String,
    /// `true` if the key is set by a preset and not by the file.
    pub by_preset: bool,
}

/// Collects the keys without effect that a table sets, and those of its preset that lose their
/// effect because of other keys of the table. Switches and optional values at their defaults are
/// left out. `of_preset` are the keys without effect in the preset itself.
pub(super) fn note(
    params: &dyn Params,
    of_preset: &[&str],
    table: &Table,
    (at, path): (Span, &str),
    found: &mut Vec<IdleKey>,
) {
    for Idle { key, why } in params.idle() {
        let written = table.get(key);
        let field = params.fields().iter().find(|field| field.name == key);
        let kind = field.map(|field| field.value_type);
        // A switch or an optional value at its default states what happens even without effect
        // (`dsack = false`); another key (`prr_rule = "rfc6937"`) does not.
        let is_off = kind.is_some_and(ValueType::can_be_off) && params.is_default(key);
        let counts = match written {
            Some(_) => !is_off,
            None => !params.is_default(key) && !of_preset.contains(&key),
        };
        if counts {
            let part = field.and_then(|field| field.part).filter(|_| written.is_none());
            // Files have no key for it, so its part is named instead; equal messages are merged
            // later.
            let (path, what) = match part {
                Some(part) => (path.to_owned(), format!("the part `{part}` of the stack")),
                None if written.is_some() => (format!("{path}.{key}"), format!("`{key}`")),
                None => (format!("{path}.{key}"), format!("`{key}` of the preset")),
            };
            let message = format!("{what} has no effect {why}");
            let span = written.map_or(at, Entry::position);
            found.push(IdleKey { span, path, message, by_preset: written.is_none() });
        }
    }
}

impl IdleKey {
    /// Creates the entry for a section's key that has no effect for the reason `why`.
    pub(super) fn of_section(entry: &Entry, path: String, why: &str) -> Self {
        let message = format!("`{}` has no effect {why}", entry.key);
        Self { span: entry.position(), path, message, by_preset: false }
    }

    /// Reports the key as an error, or as a note with the points of a sweep at which it holds.
    pub fn report(self, is_error: bool, place: Option<&str>, sink: &mut Sink) {
        if is_error {
            sink.error(self.span, self.path, self.message).help("remove it");
        } else {
            sink.note(self.span, self.path, at_place(self.message, place));
        }
    }
}
