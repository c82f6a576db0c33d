//! Keys without effect because of other keys of the same part.

use crate::file::diagnostics::{Sink, Span, at_place};
use crate::file::tree::{Entry, Table};
use crate::{Idle, Kind, Params};

/// A key without effect beside the values of others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IdleKey {
    /// Place of the key, or of the preset.
    pub span: Span,
    /// Path of the key.
    pub path: String,
    /// The sentence about it.
    pub message: String,
    /// `true` if the file does not have it.
    pub by_preset: bool,
}

/// Notes the keys without effect that the table has, and those of the preset that have none
/// because of other keys of the table.
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
        let kind = field.map(|field| field.kind);
        // `dsack = false` says what happens; `prr_rule = "rfc6937"` does not.
        let is_off = kind.is_some_and(Kind::can_be_off) && params.is_default(key);
        let counts = match written {
            Some(_) => !is_off,
            None => !params.is_default(key) && !of_preset.contains(&key),
        };
        if counts {
            let part = field.and_then(|field| field.part).filter(|_| written.is_none());
            // Files have no key for it: its part is named, once for all of its keys.
            let (path, what) = match part {
                Some(part) => (path.to_owned(), format!("the part `{part}` of the stack")),
                None if written.is_some() => (format!("{path}.{key}"), format!("`{key}`")),
                None => (format!("{path}.{key}"), format!("`{key}` of the preset")),
            };
            let message = format!("{what} has no effect {why}");
            let span = written.map_or(at, Entry::place);
            found.push(IdleKey { span, path, message, by_preset: written.is_none() });
        }
    }
}

impl IdleKey {
    /// Key of a section that has no effect for the reason `why`.
    pub(super) fn of_section(entry: &Entry, path: String, why: &str) -> Self {
        let message = format!("`{}` has no effect {why}", entry.key);
        Self { span: entry.place(), path, message, by_preset: false }
    }

    /// Reports it: as an error, or as a note with the place where that holds.
    pub fn report(self, is_error: bool, place: Option<&str>, sink: &mut Sink) {
        if is_error {
            sink.error(self.span, self.path, self.message).help("remove it");
        } else {
            sink.note(self.span, self.path, at_place(self.message, place));
        }
    }
}
