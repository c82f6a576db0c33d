//! Values without effect: those that an axis of the sweep replaces in every run.

use cwnd_schema::file::{Entry, Item, Node, Sink, Span, Table};

use crate::key_path::KeyPath;

/// Reports values that the axis `axis` replaces at `path`: everything set there from the command
/// line, and keys of a table that none of the axis's values has. A plain value, a `kind`, or a
/// value of the axis counts as the starting point of the sweep.
pub(crate) fn report(root: &Table, axis: &str, path: &KeyPath, values: &[&Node], sink: &mut Sink) {
    for (key, entry) in path.find(root) {
        let (lost, help) = if let Some(lost) = from_command_line(&key, entry) {
            (lost, format!("set `sweep.axis.{axis}.values`"))
        } else if let Some(lost) = in_no_value(&key, entry, values) {
            (lost, "write it into the values of the axis, or remove it".to_owned())
        } else {
            continue;
        };
        let (lost, span) = lost;
        let message =
            format!("`{lost}` has no effect: the axis `{axis}` sets `{key}` at every point");
        sink.error(span, lost, message).help(help);
    }
}

type Lost = (String, Span);

/// Returns the first value at or below a key that was set from the command line.
fn from_command_line(key: &str, entry: &Entry) -> Option<Lost> {
    if entry.node.span.source != 0 {
        return Some((key.to_owned(), entry.node.span));
    }
    let below = &entry.node.table()?.entries;
    below.iter().find_map(|inner| from_command_line(&format!("{key}.{}", inner.key), inner))
}

/// Returns the first key of a table, except `kind`, that no value of the axis has.
fn in_no_value(key: &str, entry: &Entry, values: &[&Node]) -> Option<Lost> {
    let table = entry.node.table()?;
    // Values of another source than 0, the scenario file, come from the command line. They may omit
    // the file's own value.
    let chosen = values.iter().any(|value| value.span.source != 0);
    if chosen || values.iter().any(|value| has(value, &entry.node)) {
        return None;
    }
    let in_none = |inner: &&Entry| {
        let same = |value: &&Node| {
            value.table().and_then(|t| t.get(&inner.key)).is_some_and(|e| has(&e.node, &inner.node))
        };
        inner.key != "kind" && !values.iter().any(same)
    };
    let lost = table.entries.iter().find(in_none)?;
    Some((format!("{key}.{}", lost.key), lost.key_span))
}

/// `true` if `whole` contains all of `part`; `"codel"` equals `{ kind = "codel" }`.
fn has(whole: &Node, part: &Node) -> bool {
    match (&whole.item, &part.item) {
        (Item::Value(a), Item::Value(b)) => a == b,
        (Item::Array(a), Item::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| has(a, b))
        }
        (Item::Table(a), Item::Table(b)) => {
            b.entries.iter().all(|e| a.get(&e.key).is_some_and(|found| has(&found.node, &e.node)))
        }
        (Item::Value(_), Item::Table(table)) => match &table.entries[..] {
            [short] => has(whole, &short.node),
            _ => false,
        },
        _ => false,
    }
}
