//! TOML documents as trees, with the order and the spans of the file.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::Value;
use crate::file::diagnostics::{Diagnostics, Sink, Source, Span};

/// A value with its position.
#[derive(Clone, Debug)]
pub struct Node {
    /// Value of the node, in one of the forms of TOML.
    pub item: Item,
    /// Position in the file.
    pub span: Span,
}

/// Forms of a TOML value.
#[derive(Clone, Debug)]
pub enum Item {
    /// A text, a number, `true` or `false`.
    Value(Value),
    /// A list.
    Array(Vec<Node>),
    /// A table.
    Table(Table),
    /// A date or time, which no file needs.
    Datetime,
    /// A value that could not be read; the error has been reported.
    Broken,
}

/// Keys and values, in the order of the file.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Each key with its value.
    pub entries: Vec<Entry>,
}

/// A key with its value.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Name of the key, without its section.
    pub key: String,
    /// Position of the key in the file.
    pub key_span: Span,
    /// Node of the value.
    pub node: Node,
    /// `true` if the value was set from outside, as by the command line.
    pub set: bool,
}

impl Entry {
    /// Returns the position of the key in the file, or of the value that was set from outside.
    pub const fn position(&self) -> Span {
        if self.set { self.node.span } else { self.key_span }
    }

    /// Returns the position that a message shows: the key of a section in the file, otherwise the
    /// value.
    fn span(&self) -> Span {
        if self.node.table().is_some() && !self.set { self.key_span } else { self.node.span }
    }
}

impl Table {
    /// Returns the entry of a key.
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|e| e.key == key)
    }

    /// Returns the entry of a key, for changes.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|e| e.key == key)
    }

    /// Iterates over all keys.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|e| e.key.as_str())
    }
}

impl Node {
    /// Returns a text; `None` for other values.
    pub fn text(&self) -> Option<&str> {
        match &self.item {
            Item::Value(Value::Text(t)) => Some(t),
            _ => None,
        }
    }

    /// Returns a table; `None` for other values.
    pub fn table(&self) -> Option<&Table> {
        match &self.item {
            Item::Table(t) => Some(t),
            _ => None,
        }
    }

    /// Sets the position of the node and all nodes in it: a default has the position where its key
    /// is absent.
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

    /// Describes the value for messages such as "expected …, found …".
    pub fn describe(&self) -> String {
        match &self.item {
            Item::Value(value) => value.describe(),
            Item::Array(_) => "a list".to_owned(),
            Item::Table(_) => "a table".to_owned(),
            Item::Datetime => "a date".to_owned(),
            Item::Broken => "nothing that can be read".to_owned(),
        }
    }
}

/// Parses a whole document as far as possible. Syntax errors go to `malformed`, values that are
/// valid TOML but can't be used to `sink`.
pub fn parse_document(source: usize, text: &str, malformed: &mut Sink, sink: &mut Sink) -> Table {
    let (table, errors) = DeTable::parse_recoverable(text);
    // CSV, JSON and other formats have an error in each line, of which one says it all.
    let reported = if text.lines().any(is_assignment) { errors.len() } else { 1 };
    for error in errors.iter().take(reported) {
        report(error, text, Origin { source, offset: 0 }, malformed);
    }
    convert_table(table.get_ref(), Origin { source, offset: 0 }, sink)
}

/// `true` if a line begins with a key and `=`.
fn is_assignment(line: &str) -> bool {
    let of_key = |c: char| c.is_alphanumeric() || "-_.\"'".contains(c);
    line.split_once('=').is_some_and(|(key, _)| key.trim().chars().all(of_key))
}

/// Parses a TOML text; `name` stands for its file in errors.
///
/// # Errors
/// All places where the text is not TOML, or has dates, numbers that are not finite, numbers beyond
/// 63 bits or keys of more than 200 characters.
pub fn read_toml(name: &str, text: &str) -> Result<Table, Diagnostics> {
    let (mut malformed, mut unusable) = (Sink::default(), Sink::default());
    let root = parse_document(0, text, &mut malformed, &mut unusable);
    root.entries.iter().for_each(|entry| refuse_dates(&entry.node, &mut unusable));
    malformed.merge(unusable);
    if !malformed.has_errors() {
        return Ok(root);
    }
    Err(malformed.finish(&[Source { name: name.to_owned(), text: text.to_owned() }]))
}

fn refuse_dates(node: &Node, sink: &mut Sink) {
    match &node.item {
        Item::Datetime => {
            sink.error(node.span, "", "a date says nothing here").help("put it in quotes");
        }
        Item::Array(list) => list.iter().for_each(|node| refuse_dates(node, sink)),
        Item::Table(table) => {
            table.entries.iter().for_each(|entry| refuse_dates(&entry.node, sink));
        }
        Item::Value(_) | Item::Broken => {}
    }
}

/// Parses one value that begins `offset` bytes into its source.
pub fn parse_value(source: usize, offset: usize, text: &str, sink: &mut Sink) -> Option<Node> {
    match DeValue::parse(text) {
        Ok(value) => Some(convert(&value, Origin { source, offset }, sink)),
        Err(error) => {
            report(&error, text, Origin { source, offset }, sink);
            None
        }
    }
}

fn report(error: &toml::de::Error, text: &str, origin: Origin, sink: &mut Sink) {
    let range = error.span().unwrap_or(0..0);
    let (source, offset) = (origin.source, origin.offset);
    let span = Span { source, start: range.start + offset, end: range.end + offset };
    let (before, rest) = text.split_at_checked(range.start).unwrap_or_default();
    // Only the next character is examined: every byte of a long line may be an error.
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
struct Origin {
    source: usize,
    offset: usize,
}

impl Origin {
    fn span<T>(self, of: &Spanned<T>) -> Span {
        let range = of.span();
        Span { source: self.source, start: range.start + self.offset, end: range.end + self.offset }
    }
}

fn convert_table(table: &DeTable<'_>, origin: Origin, sink: &mut Sink) -> Table {
    let mut entries: Vec<Entry> = table
        .iter()
        .map(|(key, value)| Entry {
            key: key.get_ref().to_string(),
            key_span: origin.span(key),
            node: convert(value, origin, sink),
            set: false,
        })
        .collect();
    for entry in &entries {
        too_long(&entry.key, entry.key_span, &entry.key, sink);
    }
    // The parser sorts keys by name.
    entries.sort_by_key(|e| e.key_span);
    Table { entries }
}

/// Limit on the length of a name, which tables, figures and messages show.
const MAX_NAME_CHARS: usize = 200;

/// Reports a name or label that is too long; `true` if it is.
pub fn too_long(name: &str, span: Span, path: &str, sink: &mut Sink) -> bool {
    let count = name.chars().count();
    let is_too_long = count > MAX_NAME_CHARS;
    if is_too_long {
        let message = format!("a name of {count} characters: at most {MAX_NAME_CHARS} are shown");
        sink.error(span, path, message);
    }
    is_too_long
}

fn convert(value: &Spanned<DeValue<'_>>, origin: Origin, sink: &mut Sink) -> Node {
    let span = origin.span(value);
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
        DeValue::Array(list) => {
            Item::Array(list.iter().map(|v| convert(v, origin, sink)).collect())
        }
        DeValue::Table(table) => Item::Table(convert_table(table, origin, sink)),
    };
    Node { item, span }
}

/// Returns the position of a key, or of the innermost section on its path if the key is absent.
pub fn locate(root: &Table, path: &[impl AsRef<str>]) -> Span {
    let mut span = Span::default();
    let mut table = Some(root);
    for key in path {
        let Some(entry) = table.and_then(|t| t.get(key.as_ref())) else { break };
        table = entry.node.table();
        span = entry.span();
    }
    span
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_stay_in_the_order_of_the_text() {
        let read = read_toml("a.toml", "b = 1\na = [true, 0.5]\n[t]\nk = \"\\e[0m\"\n").unwrap();
        assert_eq!(read.keys().collect::<Vec<_>>(), ["b", "a", "t"]);
        let Item::Array(list) = &read.get("a").unwrap().node.item else { panic!("it is a list") };
        let list: Vec<String> = list.iter().map(Node::describe).collect();
        assert_eq!(list, ["`true`", "the bare number 0.5"]);
        let table = read.get("t").unwrap().node.table().unwrap();
        assert_eq!(table.get("k").unwrap().node.text(), Some("\u{1b}[0m"));
    }

    #[test]
    fn a_text_that_is_no_toml_is_reported_with_its_lines() {
        let text = "a = 1\nb = nan\nc = [1979-05-27]\nd = \n";
        let found = read_toml("a.toml", text).unwrap_err();
        let lines: Vec<usize> = found.iter().map(|d| d.line).collect();
        assert_eq!(lines, [2, 3, 4]);
        assert!(found.iter().all(|d| d.file == "a.toml"));
    }

    #[test]
    fn a_text_of_another_format_has_one_error() {
        for text in ["a,b,c\n1,2,3\n4,\"x=1\",5\n", "{\n  \"a\": 1,\n  \"b\": [2]\n}\n"] {
            let found = read_toml("a.toml", text).unwrap_err();
            assert_eq!(found.iter().map(|d| d.line).collect::<Vec<_>>(), [1], "{text}");
        }
    }
}
