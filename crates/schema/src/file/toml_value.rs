//! Formatting of values and keys as TOML.

use core::fmt::Write as _;

use crate::Value;

/// Formats a value as TOML.
pub fn toml(value: &Value) -> String {
    match value {
        Value::Text(text) => quoted(text),
        Value::Bool(b) => b.to_string(),
        Value::Integer(i) => i.to_string(),
        // The shortest digits that read back to the same number, never in the form of an integer.
        Value::Float(x) => format!("{x:?}"),
    }
}

/// Formats a key, quoted if TOML requires it.
pub fn key(name: &str) -> String {
    let bare =
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if bare { name.to_owned() } else { quoted(name) }
}

/// Formats a text as a basic string.
pub fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
