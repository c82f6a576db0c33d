//! Keys without effect: because of what other keys of the same part say.

use cwnd_schema::{Idle, Kind, Params};

use crate::sections::SCHEMAS;
use cwnd_schema::file::{Entry, Sink, Span, Table, at_place};

/// A key without effect beside the values of others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct IdleKey {
    pub span: Span,
    pub path: String,
    pub message: String,
    /// `true` if the file does not have it.
    pub by_preset: bool,
}

/// Notes the keys without effect that the table has, and those of the preset that have none
/// because of other keys of the table.
pub(crate) fn note(
    params: &dyn Params,
    of_preset: &[&str],
    table: &Table,
    (at, path): (Span, &str),
    found: &mut Vec<IdleKey>,
) {
    for Idle { key, why } in params.idle() {
        let written = table.get(key);
        let kind = params.fields().iter().find(|field| field.name == key).map(|field| field.kind);
        // `dsack = false` says what happens; `prr_rule = "rfc6937"` does not.
        let is_off = kind.is_some_and(Kind::can_be_off) && params.is_default(key);
        let counts = match written {
            Some(_) => !is_off,
            None => !params.is_default(key) && !of_preset.contains(&key),
        };
        if counts {
            let path = format!("{path}.{key}");
            let of = if written.is_some() { "" } else { " of the preset" };
            let message = format!("`{key}`{of} has no effect {why}");
            let span = written.map_or(at, place);
            found.push(IdleKey { span, path, message, by_preset: written.is_none() });
        }
    }
}

/// Gives keys without effect their defaults, so that resolved files can leave them out.
pub(crate) fn reset(params: &mut dyn Params, schema: u64) {
    if schema > SCHEMAS[0] {
        params.idle().iter().for_each(|idle| params.reset(idle.key));
    }
}

/// The key in the file, or the value that an axis or the command line gives it.
const fn place(entry: &Entry) -> Span {
    if entry.set { entry.node.span } else { entry.key_span }
}

/// Key of a section that has no effect for the reason `why`.
pub(crate) fn of_section(entry: &Entry, path: String, why: &str) -> IdleKey {
    let message = format!("`{}` has no effect {why}", entry.key);
    IdleKey { span: place(entry), path, message, by_preset: false }
}

/// Reports a key without effect: an error if the file itself has it, for all combinations of its
/// sweep; a note has their place in it if it has no effect in some of them.
pub(crate) fn report(key: IdleKey, is_error: bool, place: Option<&str>, sink: &mut Sink) {
    if is_error {
        sink.error(key.span, key.path, key.message).help("remove it");
    } else {
        sink.note(key.span, key.path, at_place(key.message, place));
    }
}
