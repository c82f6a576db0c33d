//! Keys without effect because of the values of other keys.

use crate::file::diagnostics::{Sink, Span, at_place};
use crate::file::tree::{Entry, Table};
use crate::{Idle, Params, ValueType};

/// A key that has no effect because of the values of others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IdleKey {
    /// Position of the key, or of the preset that sets it.
    pub span: Span,
    /// Path of the key.
    pub path: String,
    /// Message for the user.
    pub message: String,
    /// `true` if the key is set by a preset and not by the file.
    pub by_preset: bool,
}

/// Collects the keys without effect that a table sets, and those of its preset that lose their
/// effect because of other keys of the table. Switches at their defaults are left out. `of_preset`
/// are the keys without effect in the preset itself.
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
