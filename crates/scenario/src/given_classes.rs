//! Classes of the user's that a program passes with a scenario, which names them as kinds.

use cwnd_schema::Value;
use cwnd_schema::file::{Entry, Item, Node, Span, Table};

/// A class for a name in the scenario.
#[derive(Clone, Debug)]
pub struct GivenClass {
    /// Last word of the keys whose kind it is: `controller`, `queue` or `workload`.
    pub key: String,
    /// Name in the scenario.
    pub name: String,
    /// Class.
    pub class: String,
    /// Source file and its text, as [`SourceFile`](cwnd_schema::SourceFile) writes them.
    pub source: String,
}

/// Replaces the names of classes below a table by the classes.
pub(crate) fn replace(table: &mut Table, classes: &[GivenClass]) {
    if classes.is_empty() {
        return;
    }
    for Entry { key, node, .. } in &mut table.entries {
        replace_in(key, node, classes);
    }
}

fn replace_in(key: &str, node: &mut Node, classes: &[GivenClass]) {
    let span = node.span;
    match &mut node.item {
        Item::Value(Value::Text(name)) => {
            if let Some(class) = of_name(key, name, classes) {
                node.item = Item::Table(Table { entries: entries(class, span).into() });
            }
        }
        Item::Table(table) => {
            let kind = table.get("kind").and_then(|entry| entry.node.text());
            if let Some(class) = kind.and_then(|name| of_name(key, name, classes)) {
                table.entries.retain(|entry| entry.key != "kind");
                table.entries.extend(entries(class, span));
            }
            replace(table, classes);
        }
        Item::Array(_) | Item::Value(_) | Item::Datetime | Item::Broken => {}
    }
}

// `reverse_queue` takes queues, too.
fn of_name<'c>(key: &str, name: &str, classes: &'c [GivenClass]) -> Option<&'c GivenClass> {
    let last = key.rsplit('_').next().unwrap_or(key);
    classes.iter().find(|class| class.key == last && class.name == name)
}

/// Returns the keys of a class in a scenario.
fn entries(class: &GivenClass, span: Span) -> [Entry; 3] {
    [("kind", "python"), ("path", &class.source), ("class", &class.class)].map(|(key, text)| {
        Entry {
            key: key.to_owned(),
            key_span: span,
            node: Node { item: Item::Value(Value::Text(text.to_owned())), span },
            set: false,
        }
    })
}
