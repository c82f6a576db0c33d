//! Values whose reading is deferred until the other sections are known.

use cwnd_schema::Value;
use cwnd_schema::file::{
    At, Context, Item, Node, ReadValue, Span, WriteValue, WrittenValue, key, toml,
};

use crate::value_forms::Format;

/// An unread value of a key, kept as parsed from the file.
pub(crate) struct Raw {
    node: Node,
    path: String,
}

impl Raw {
    /// Returns the value with its key path, ready to be read.
    pub fn at(&self) -> At<'_> {
        At { node: &self.node, path: &self.path }
    }

    /// Returns a value that holds a name.
    pub fn name(name: &str) -> Self {
        Self::of(text(name))
    }

    /// Returns a value that holds a list of names.
    pub fn names<'n>(names: impl Iterator<Item = &'n str>) -> Self {
        Self::of(Item::Array(names.map(|name| node(text(name))).collect()))
    }

    fn of(item: Item) -> Self {
        Self { node: node(item), path: String::new() }
    }
}

fn text(name: &str) -> Item {
    Item::Value(Value::Text(name.to_owned()))
}

fn node(item: Item) -> Node {
    Node { item, span: Span::default() }
}

impl ReadValue<Format> for Raw {
    fn read(at: At<'_>, _: &mut Context<'_>) -> Option<Self> {
        Some(Self { node: at.node.clone(), path: at.path.to_owned() })
    }
}

impl WriteValue<Format> for Raw {
    fn write(&self) -> WrittenValue<'_> {
        WrittenValue::Line(written(&self.node))
    }
}

/// Formats a node as TOML on one line.
fn written(node: &Node) -> String {
    match &node.item {
        Item::Value(value) => toml(value),
        Item::Array(list) => {
            let list: Vec<String> = list.iter().map(written).collect();
            format!("[{}]", list.join(", "))
        }
        Item::Table(table) => {
            let entries = table.entries.iter();
            let entries = entries.map(|e| format!("{} = {}", key(&e.key), written(&e.node)));
            format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))
        }
        // A file with either of these is refused, so none reaches the writer.
        Item::Datetime | Item::Broken => String::new(),
    }
}
