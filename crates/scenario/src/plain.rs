//! TOML as it is, for whoever reads more than scenarios, or looks something up in one: the same reader, the same errors.

use cwnd_schema::Value;

use crate::diagnostics::{Diagnostics, Sink, Source};
use crate::tree::{self, Item, Table};

/// A value of a TOML document.
#[derive(Clone, Debug, PartialEq)]
pub enum Toml {
    /// A text, a number or a truth.
    Value(Value),
    /// A list.
    List(Vec<Self>),
    /// Keys and values, in the order of the text.
    Table(Vec<(String, Self)>),
}

/// Reads the keys of a TOML text; `name` is what errors call it.
///
/// # Errors
/// All places where the text is not TOML, or holds what no scenario holds: dates, numbers that are not finite or beyond
/// 63 bits.
pub fn read_toml(name: &str, text: &str) -> Result<Vec<(String, Toml)>, Diagnostics> {
    let (mut malformed, mut told) = (Sink::default(), Sink::default());
    let root = tree::parse_document(0, text, &mut malformed, &mut told);
    let entries = entries(root, &mut told);
    malformed.merge(told);
    if !malformed.has_errors() {
        return Ok(entries);
    }
    Err(malformed.finish(&[Source { name: name.to_owned(), text: text.to_owned() }]))
}

fn entries(table: Table, told: &mut Sink) -> Vec<(String, Toml)> {
    let entries = table.entries.into_iter();
    entries.map(|entry| (entry.key, value(entry.node, told))).collect()
}

fn value(node: tree::Node, told: &mut Sink) -> Toml {
    match node.item {
        Item::Value(value) => Toml::Value(value),
        Item::Array(list) => Toml::List(list.into_iter().map(|node| value(node, told)).collect()),
        Item::Table(table) => Toml::Table(entries(table, told)),
        Item::Datetime => {
            told.error(node.span, "", "a date says nothing here").help("put it in quotes");
            Toml::List(Vec::new())
        }
        // That was told when it was read.
        Item::Broken => Toml::List(Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_stay_in_the_order_of_the_text() {
        let read = read_toml("a.toml", "b = 1\na = [true, 0.5]\n[t]\nk = \"\\e[0m\"\n").unwrap();
        let number = Toml::Value(Value::Integer(1));
        let list = vec![Toml::Value(Value::Bool(true)), Toml::Value(Value::Float(0.5))];
        let text = Toml::Value(Value::Text("\u{1b}[0m".to_owned()));
        assert_eq!(
            read,
            [
                ("b".to_owned(), number),
                ("a".to_owned(), Toml::List(list)),
                ("t".to_owned(), Toml::Table(vec![("k".to_owned(), text)])),
            ]
        );
    }

    #[test]
    fn what_is_no_toml_is_told_with_its_line() {
        let told = read_toml("a.toml", "a = 1\nb = nan\nc = 1979-05-27\nd = \n").unwrap_err();
        let lines: Vec<usize> = told.iter().map(|d| d.line).collect();
        assert_eq!(lines, [2, 3, 4]);
        assert!(told.iter().all(|d| d.file == "a.toml"));
    }
}
