//! Phrases for kinds of values in messages and the reference, and example values.

use crate::ValueType;
use crate::file::keys::{Form, Key};

/// Returns the phrase for a kind of value, as in "expected a rate such as …".
pub fn phrase(kind: ValueType) -> String {
    let words = match kind {
        ValueType::Optional(ValueType::Number) => "a number, or \"none\"",
        ValueType::Optional(inner) => {
            let inner = phrase(*inner).replace(", or ", ", ");
            return format!("{inner}, or \"none\"");
        }
        ValueType::Bool => "`true` or `false`",
        ValueType::Integer => "a whole number",
        ValueType::Number => "a number without a unit",
        ValueType::Duration => "a time such as \"100 ms\"",
        ValueType::Rate => "a rate such as \"10 Mbit/s\"",
        ValueType::Bytes => "a size such as \"64 kB\"",
        ValueType::QueueSize => {
            "a queue size such as \"1000 packets\", \"64 kB\", \"50 ms\" or \"1 BDP\""
        }
        ValueType::Share => "\"all\", \"none\" or a share such as 0.01",
        ValueType::DurationDist => "a time, or a distribution over times",
        ValueType::SizeDist => "a size, or a distribution over sizes",
        ValueType::Fractions => {
            "a number above 0 and below 1, or several such as \"0.8, 0.6, 0.5\""
        }
        ValueType::QueueSizes => "queue sizes such as \"10 packets, 20 packets\"",
        ValueType::CountDist => "a whole number, or a distribution over them",
        ValueType::Arrivals => "a CSV file, or its rows",
        ValueType::Choice(_) | ValueType::Text => "a text in quotes",
    };
    words.to_owned()
}

/// Returns an example value of this kind, as written in a file.
pub(super) const fn example_value(kind: ValueType) -> &'static str {
    match kind {
        ValueType::Bool => "true",
        ValueType::Integer | ValueType::CountDist => "1",
        ValueType::Number | ValueType::Fractions | ValueType::Share => "0.5",
        ValueType::Rate => "\"10 Mbit/s\"",
        ValueType::Duration | ValueType::DurationDist => "\"100 ms\"",
        ValueType::Bytes => "\"1000 B\"",
        ValueType::SizeDist => "\"30 kB\"",
        ValueType::QueueSize | ValueType::QueueSizes => "\"100 packets\"",
        ValueType::Optional(inner) => example_value(*inner),
        ValueType::Arrivals => "\"arrivals.csv\"",
        ValueType::Choice(_) | ValueType::Text => "\"...\"",
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
