//! Phrases for kinds of values in messages and the reference, and example values.

use crate::Kind;
use crate::file::keys::{Form, Key};

/// Returns the phrase for a kind of value, as in "expected a rate such as …".
pub fn phrase(kind: Kind) -> String {
    let words = match kind {
        Kind::Optional(Kind::Number) => "a number, or \"none\"",
        Kind::Optional(inner) => {
            let inner = phrase(*inner).replace(", or ", ", ");
            return format!("{inner}, or \"none\"");
        }
        Kind::Bool => "`true` or `false`",
        Kind::Integer => "a whole number",
        Kind::Number => "a number without a unit",
        Kind::Duration => "a time such as \"100 ms\"",
        Kind::Rate => "a rate such as \"10 Mbit/s\"",
        Kind::Bytes => "a size such as \"64 kB\"",
        Kind::QueueSize => {
            "a queue size such as \"1000 packets\", \"64 kB\", \"50 ms\" or \"1 BDP\""
        }
        Kind::Share => "\"all\", \"none\" or a share such as 0.01",
        Kind::DurationDist => "a time, or a distribution over times",
        Kind::SizeDist => "a size, or a distribution over sizes",
        Kind::Parts => "a number above 0 and below 1, or several such as \"0.8, 0.6, 0.5\"",
        Kind::QueueSizes => "queue sizes such as \"10 packets, 20 packets\"",
        Kind::CountDist => "a whole number, or a distribution over them",
        Kind::Arrivals => "a CSV file, or its rows",
        Kind::Choice(_) | Kind::Text => "a text in quotes",
    };
    words.to_owned()
}

/// Returns an example value of this kind, as written in a file.
pub(super) const fn example_value(kind: Kind) -> &'static str {
    match kind {
        Kind::Bool => "true",
        Kind::Integer | Kind::CountDist => "1",
        Kind::Number | Kind::Parts | Kind::Share => "0.5",
        Kind::Rate => "\"10 Mbit/s\"",
        Kind::Duration | Kind::DurationDist => "\"100 ms\"",
        Kind::Bytes => "\"1000 B\"",
        Kind::SizeDist => "\"30 kB\"",
        Kind::QueueSize | Kind::QueueSizes => "\"100 packets\"",
        Kind::Optional(inner) => example_value(*inner),
        Kind::Arrivals => "\"arrivals.csv\"",
        Kind::Choice(_) | Kind::Text => "\"...\"",
    }
}

/// Lists the defaults of a key whose default depends on the version of the file format.
pub(super) fn by_schema(defaults: &[&str]) -> String {
    let pairs = (1..).zip(defaults);
    let parts = pairs.map(|(schema, default): (u64, _)| format!("`{default}` in schema {schema}"));
    parts.collect::<Vec<_>>().join(", ")
}

/// Returns the name of a key in messages, and an example of it.
pub(super) fn example(key: &Key) -> (String, String) {
    let name = key.name;
    let value = match key.form {
        Form::Section => return (format!("the section [{name}]"), format!("[{name}]")),
        Form::Named => return (format!("a section [{name}.NAME]"), format!("[{name}.main]")),
        Form::Plain(kind) => example_value(kind),
        Form::Value(takes) => takes.example,
    };
    (format!("the key `{name}`"), format!("`{name} = {value}`"))
}
