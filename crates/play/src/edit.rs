//! Edits of a scenario's text that keep its comments and layout.

use serde_json::Value as Json;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, Value};

/// Changes keys of a scenario: `[[["dumbbell", "rate"], "20 Mbit/s"], …]`, in JSON. `null` removes
/// a key. A section that does not exist is added; a part that is a name becomes a table.
///
/// # Errors
/// The text is not TOML, or the changes are not of this form: a sentence.
pub fn edit(text: &str, changes: &str) -> Result<String, String> {
    let mut document: DocumentMut = text.parse().map_err(|error| format!("{error}"))?;
    let changes: Vec<(Vec<String>, Json)> =
        serde_json::from_str(changes).map_err(|error| format!("the changes: {error}"))?;
    for (path, value) in &changes {
        set(document.as_table_mut(), path, value)?;
    }
    Ok(document.to_string())
}

fn set(root: &mut Table, path: &[String], value: &Json) -> Result<(), String> {
    let Some((key, above)) = path.split_last() else { return Ok(()) };
    let mut table: &mut dyn TableLike = root;
    for (depth, name) in above.iter().enumerate() {
        let item = table.entry(name).or_insert_with(|| match is_section(&path[..=depth]) {
            true => Item::Table(Table::new()),
            false => Item::Value(InlineTable::new().into()),
        });
        if let Some(word) = item.as_str() {
            let mut part = InlineTable::new();
            part.insert(shorthand(name), word.into());
            replace(item, part.into());
        }
        let is = item.type_name();
        table = item.as_table_like_mut().ok_or_else(|| format!("`{name}` is no table: {is}"))?;
    }
    match (value, table.get_mut(key)) {
        (Json::Null, _) => {
            table.remove(key);
        }
        (Json::Object(keys), None) if is_section(path) => {
            let keys = keys.iter().map(|(key, value)| (key.as_str(), written(value)));
            table.insert(key, Item::Table(keys.collect()));
        }
        (_, Some(item @ Item::Value(_))) => replace(item, written(value)),
        _ => {
            table.insert(key, Item::Value(written(value)));
        }
    }
    Ok(())
}

/// Replaces a value, and keeps the space and the comment around it.
fn replace(item: &mut Item, mut value: Value) {
    if let Some(old) = item.as_value() {
        *value.decor_mut() = old.decor().clone();
    }
    *item = Item::Value(value);
}

/// `true` if the table at a path is a section, like `[flow.main]`; other tables are inline.
fn is_section(path: &[String]) -> bool {
    match path {
        [_] => true,
        [first, _] => first == "flow" || first == "link",
        _ => false,
    }
}

/// Key of a part's table that means the same as its name alone.
fn shorthand(part: &str) -> &'static str {
    match part {
        "endpoint" => "preset",
        "stack" => "base",
        "rate" => "initial",
        _ => "kind",
    }
}

/// Converts a value; the kind of a part comes before its keys.
fn written(value: &Json) -> Value {
    match value {
        Json::Null => "none".into(),
        Json::Bool(value) => (*value).into(),
        Json::Number(number) => match number.as_i64() {
            Some(whole) => whole.into(),
            None => number.as_f64().unwrap_or_default().into(),
        },
        Json::String(text) => text.as_str().into(),
        Json::Array(list) => Value::Array(list.iter().map(written).collect::<Array>()),
        Json::Object(keys) => {
            let mut keys: Vec<_> = keys.iter().collect();
            keys.sort_by_key(|(key, _)| *key != "kind");
            let keys = keys.into_iter().map(|(key, value)| (key.as_str(), written(value)));
            Value::InlineTable(keys.collect::<InlineTable>())
        }
    }
}
