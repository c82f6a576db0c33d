//! A TOML document as a tree that keeps the order of the file and where each piece stands.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::diagnostics::{Sink, Span};

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub item: Item,
    pub span: Span,
}

/// What a value is.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    Value(cwnd_schema::Value),
    Array(Vec<Node>),
    Table(Table),
    Datetime,
    /// What could not be read; it was told of when that was tried.
    Broken,
}

/// Keys and values, in the order of the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub entries: Vec<Entry>,
}

/// A key with its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub key: String,
    pub key_span: Span,
    pub node: Node,
    /// An axis of the sweep or `--set` gave the value.
    pub set: bool,
}

impl Entry {
    /// The place that a message shows: of a section of the file its key, else the value.
    fn span(&self) -> Span {
        if self.node.table().is_some() && !self.set { self.key_span } else { self.node.span }
    }
}

impl Table {
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|e| e.key == key)
    }

    pub fn get_mut(&mut self, key: &str) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|e| e.key == key)
    }

    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|e| e.key.as_str())
    }
}

impl Node {
    pub fn text(&self) -> Option<&str> {
        match &self.item {
            Item::Value(cwnd_schema::Value::Text(t)) => Some(t),
            _ => None,
        }
    }

    pub fn table(&self) -> Option<&Table> {
        match &self.item {
            Item::Table(t) => Some(t),
            _ => None,
        }
    }

    /// Makes all of it stand at `span`: a default stands where it is missing.
    pub fn move_to(&mut self, span: Span) {
        self.span = span;
        match &mut self.item {
            Item::Array(list) => list.iter_mut().for_each(|n| n.move_to(span)),
            Item::Table(table) => table.entries.iter_mut().for_each(|e| {
                e.key_span = span;
                e.node.move_to(span);
            }),
            Item::Value(_) | Item::Datetime | Item::Broken => {}
        }
    }

    /// What it is, for "expected …, found …".
    pub fn describe(&self) -> String {
        use cwnd_schema::Value;
        match &self.item {
            Item::Value(Value::Text(t)) => format!("the text \"{t}\""),
            Item::Value(Value::Bool(b)) => format!("`{b}`"),
            Item::Value(Value::Integer(i)) => format!("the bare number {i}"),
            Item::Value(Value::Float(x)) => format!("the bare number {x}"),
            Item::Array(_) => "a list".to_owned(),
            Item::Table(_) => "a table".to_owned(),
            Item::Datetime => "a date".to_owned(),
            Item::Broken => "nothing that can be read".to_owned(),
        }
    }
}

/// Reads a whole document. What is no TOML goes to `malformed`, with the rest read as well as can be; what is TOML
/// and yet can't be used goes to `sink`.
pub(crate) fn parse_document(
    source: usize,
    text: &str,
    malformed: &mut Sink,
    sink: &mut Sink,
) -> Table {
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        report(error, text, Place { source, offset: 0 }, malformed);
    }
    convert_table(table.get_ref(), Place { source, offset: 0 }, sink)
}

/// Reads one value that stands `offset` bytes into its source.
pub(crate) fn parse_value(
    source: usize,
    offset: usize,
    text: &str,
    sink: &mut Sink,
) -> Option<Node> {
    match DeValue::parse(text) {
        Ok(value) => Some(convert(&value, Place { source, offset }, sink)),
        Err(error) => {
            report(&error, text, Place { source, offset }, sink);
            None
        }
    }
}

fn report(error: &toml::de::Error, text: &str, place: Place, sink: &mut Sink) {
    let range = error.span().unwrap_or(0..0);
    let (source, offset) = (place.source, place.offset);
    let span = Span { source, start: range.start + offset, end: range.end + offset };
    let (before, rest) = text.split_at_checked(range.start).unwrap_or_default();
    // No further than to what is there: of a long line each byte may be an error.
    let written = rest.trim_start_matches([' ', '\t', '\r']).chars().next();
    let is_empty = rest.starts_with('#') || matches!(written, None | Some('\n'));
    let why = if before.trim_end().ends_with('=') && is_empty {
        "a value is missing behind `=`"
    } else {
        error.message()
    };
    sink.error(span, "", format!("this is not TOML: {why}"));
}

#[derive(Clone, Copy)]
struct Place {
    source: usize,
    offset: usize,
}

impl Place {
    fn span<T>(self, of: &Spanned<T>) -> Span {
        let range = of.span();
        Span { source: self.source, start: range.start + self.offset, end: range.end + self.offset }
    }
}

fn convert_table(table: &DeTable<'_>, place: Place, sink: &mut Sink) -> Table {
    let mut entries: Vec<Entry> = table
        .iter()
        .map(|(key, value)| Entry {
            key: key.get_ref().to_string(),
            key_span: place.span(key),
            node: convert(value, place, sink),
            set: false,
        })
        .collect();
    for entry in &entries {
        too_long(&entry.key, entry.key_span, &entry.key, sink);
    }
    // The parser sorts by name; a scenario's flows and links are in the order in which they were written.
    entries.sort_by_key(|e| e.key_span);
    Table { entries }
}

/// Names are in tables, figures and messages.
const MOST_NAME_CHARS: usize = 200;

/// Reports a name or label that is too long for what it is shown in.
pub(crate) fn too_long(name: &str, span: Span, path: &str, sink: &mut Sink) -> bool {
    let count = name.chars().count();
    let is_too_long = count > MOST_NAME_CHARS;
    if is_too_long {
        let message = format!("a name of {count} characters: at most {MOST_NAME_CHARS} are shown");
        sink.error(span, path, message);
    }
    is_too_long
}

fn convert(value: &Spanned<DeValue<'_>>, place: Place, sink: &mut Sink) -> Node {
    use cwnd_schema::Value;
    let span = place.span(value);
    let item = match value.get_ref() {
        DeValue::String(s) => Item::Value(Value::Text(s.to_string())),
        DeValue::Boolean(b) => Item::Value(Value::Bool(*b)),
        DeValue::Integer(i) => match i64::from_str_radix(i.as_str(), i.radix()) {
            Ok(number) => Item::Value(Value::Integer(number)),
            Err(_) => {
                sink.error(span, "", format!("the number {i} is too large: it must fit 63 bits"));
                Item::Broken
            }
        },
        DeValue::Float(x) => match x.as_str().parse::<f64>() {
            Ok(number) if number.is_finite() => Item::Value(Value::Float(number)),
            _ => {
                sink.error(span, "", format!("`{x}` is not a finite number"));
                Item::Broken
            }
        },
        DeValue::Datetime(_) => Item::Datetime,
        DeValue::Array(list) => Item::Array(list.iter().map(|v| convert(v, place, sink)).collect()),
        DeValue::Table(table) => Item::Table(convert_table(table, place, sink)),
    };
    Node { item, span }
}

/// Where a key stands, or the innermost section that it would stand in.
pub(crate) fn locate(root: &Table, path: &[impl AsRef<str>]) -> Span {
    let mut span = Span::default();
    let mut table = Some(root);
    for key in path {
        let Some(entry) = table.and_then(|t| t.get(key.as_ref())) else { break };
        table = entry.node.table();
        span = entry.span();
    }
    span
}
