//! JSON Schema generation for keys, parameters and kinds of parts.

use cwnd_quantity::dist::{FORMS, NAMED_SIZES};
use serde_json::{Map, Value as Json, json};

use crate::file::context::EXTENSIONS;
use crate::file::keys::{Fallback, Form, Key, by_schema, phrase};
use crate::{
    Bounds, Description, Edge, Field, Params, ParamsChoice, Quantity, RegistryEntry, Value,
    ValueType,
};

/// Returns a reference to the definition `name`.
pub fn reference(name: &str) -> Json {
    json!({ "$ref": format!("#/$defs/{name}") })
}

/// Returns the schema of a value in one of several forms.
pub fn any_of(forms: &[Json]) -> Json {
    json!({ "anyOf": forms })
}

/// Returns the schema of the text "none".
pub fn none() -> Json {
    json!({ "const": "none" })
}

/// Returns the schema of a text.
pub fn text() -> Json {
    json!({ "type": "string" })
}

/// Returns the schema of a non-empty list.
pub fn some(items: &Json) -> Json {
    json!({ "type": "array", "items": items, "minItems": 1 })
}

/// Returns the schema of a list that may be empty.
pub fn list(items: &Json) -> Json {
    json!({ "type": "array", "items": items })
}

/// Returns the schema of a table with these keys and no others, all of them optional.
pub fn object(sections: &[&[Key]]) -> Json {
    let mut properties = Map::new();
    for key in sections.iter().flat_map(|keys| keys.iter()) {
        let mut schema = form(key);
        schema["description"] = json!(described(key.doc, key.fallback == Fallback::Required));
        match key.fallback {
            Fallback::Toml(text) => {
                if let Some(default) = default(text) {
                    schema["default"] = default;
                }
            }
            Fallback::BySchema(texts) => {
                let doc = format!("{} Default: {}.", key.doc.trim(), by_schema(texts));
                schema["description"] = json!(doc);
            }
            Fallback::Required | Fallback::Derived(_) => {}
        }
        properties.insert(key.name.to_owned(), schema);
    }
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

/// Returns the schema of [`object`] in which required keys are required.
pub fn complete(keys: &[Key]) -> Json {
    let required = keys.iter().filter(|key| key.fallback == Fallback::Required);
    let required: Vec<&str> = required.map(|key| key.name).collect();
    let mut table = object(&[keys]);
    table["required"] = json!(required);
    table
}

fn described(doc: &str, required: bool) -> String {
    let doc = doc.trim();
    if required { format!("{doc} (Required.)") } else { doc.to_owned() }
}

/// Converts a TOML default to JSON, if its text is valid JSON, too; the schema omits others.
fn default(text: &str) -> Option<Json> {
    serde_json::from_str(text).ok()
}

fn form(key: &Key) -> Json {
    match key.form {
        Form::Plain(kind) => bounded(kind, &key.bounds),
        Form::Value(takes) => (takes.json)(),
        Form::Section => reference(key.name),
        Form::Named => {
            json!({ "type": "object", "additionalProperties": reference(key.name) })
        }
    }
}

fn value(kind: ValueType) -> Json {
    match kind {
        ValueType::Bool => json!({ "type": "boolean" }),
        ValueType::Integer => json!({ "type": "integer", "minimum": 0 }),
        ValueType::Number => json!({ "type": "number" }),
        // The definitions with units are shared by all keys.
        ValueType::Duration => reference("duration"),
        ValueType::Rate => reference("rate"),
        ValueType::Bytes => reference("bytes"),
        ValueType::QueueSize => reference("queue-size"),
        ValueType::Choice(names) => json!({ "enum": names }),
        // The pattern-free text also covers "none".
        ValueType::QueueSizes | ValueType::Optional(ValueType::QueueSizes) => {
            json!({ "type": "string" })
        }
        ValueType::Optional(ValueType::Fractions) => {
            let [one, several] = shares();
            any_of(&[one, several, none()])
        }
        ValueType::Optional(inner) => any_of(&[value(*inner), none()]),
        ValueType::Share => any_of(&[value(ValueType::Number), json!({ "enum": ["all", "none"] })]),
        ValueType::Fractions => any_of(&shares()),
        ValueType::DurationDist => reference("duration-distribution"),
        ValueType::SizeDist => reference("size-distribution"),
        ValueType::CountDist => any_of(&[
            value(ValueType::Integer),
            json!({ "type": "string", "pattern": r"^\s*[1-9][0-9]*\s*$" }),
            reference("count-distribution"),
        ]),
        ValueType::Text | ValueType::Arrivals | ValueType::SourceFile => {
            json!({ "type": "string" })
        }
        ValueType::Argument => json!({ "type": ["string", "number", "boolean"] }),
    }
}

/// Returns the two schemas of shares: a number above 0 and below 1, or several in a text.
fn shares() -> [Json; 2] {
    [
        json!({ "type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1 }),
        json!({ "type": "string", "pattern": r"^\s*0?\.[0-9]+(\s*,\s*0?\.[0-9]+)*\s*$" }),
    ]
}

/// Returns the schema of a value within bounds. Bounds with units are left to the reader, except a
/// lower one that excludes only zero.
fn bounded(kind: ValueType, bounds: &Bounds) -> Json {
    let mut schema = value(kind);
    // The first form of an optional value is its kind, the second "none".
    let inner = match schema.get_mut("anyOf").and_then(|forms| forms.get_mut(0)) {
        Some(first) => first,
        None => &mut schema,
    };
    for (edge, including, excluding) in [
        (bounds.lower, "minimum", "exclusiveMinimum"),
        (bounds.upper, "maximum", "exclusiveMaximum"),
    ] {
        let Some(Edge { at, included }) = edge else { continue };
        let key = if included { including } else { excluding };
        match at {
            Quantity::Count(n) => inner[key] = json!(n),
            Quantity::Number(x) => inner[key] = json!(x),
            Quantity::Size(_) | Quantity::Span(_) => {}
        }
    }
    if bounds.lower.is_some_and(excludes_only_zero) {
        inner["pattern"] = json!("[1-9]");
    }
    schema
}

/// `true` if the lower bound excludes zero and no other quantity.
fn excludes_only_zero(lower: Edge) -> bool {
    match (lower.at, lower.included) {
        (Quantity::Size(b), true) => b.0 == 1,
        (Quantity::Size(b), false) => b.0 == 0,
        (Quantity::Span(d), true) => d.0 == 1,
        (Quantity::Span(d), false) => d.0 == 0,
        (Quantity::Count(_) | Quantity::Number(_), _) => false,
    }
}

/// Returns the definitions of quantities and distributions that keys refer to.
pub fn quantities() -> Map<String, Json> {
    let all = [
        ("duration", quantity(&phrase(ValueType::Duration), "100 ms")),
        ("rate", quantity(&phrase(ValueType::Rate), "10 Mbit/s")),
        ("bytes", quantity(&phrase(ValueType::Bytes), "64 kB")),
        ("queue-size", quantity(&phrase(ValueType::QueueSize), "1 BDP")),
        ("duration-distribution", distribution("duration", "uniform(20 ms, 200 ms)", &[])),
        ("size-distribution", distribution("bytes", "pareto(1.2, 30 kB)", NAMED_SIZES)),
        ("count-distribution", drawn("lomax(1.5, 3)")),
    ];
    all.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect()
}

/// Returns the schema of a number with a unit; the reader checks the unit.
fn quantity(what: &str, example: &str) -> Json {
    json!({
        "type": "string",
        "description": what,
        "pattern": r"^\s*\+?[0-9][0-9_]*(\.[0-9_]*)?\s*[A-Za-zµμ/]+\s*$",
        "examples": [example],
    })
}

fn distribution(constant: &str, example: &str, named: &[(&str, &str)]) -> Json {
    let names: Vec<&str> = named.iter().map(|(name, _)| *name).collect();
    let mut forms = vec![reference(constant), drawn(example)];
    if !names.is_empty() {
        forms.push(json!({ "enum": names }));
    }
    any_of(&forms)
}

/// Returns the schema of a distribution, or of the name of a file with one.
fn drawn(example: &str) -> Json {
    let words: Vec<&str> = FORMS.iter().map(|(word, _)| *word).collect();
    let written: Vec<&str> = FORMS.iter().map(|(_, form)| *form).collect();
    let files = EXTENSIONS.map(|extension| extension.replace('.', r"\.")).join("|");
    json!({
        "type": "string",
        "description": written.join(", "),
        "pattern": format!(r"^\s*((({})\s*\(.*\))|([^()]*({})))\s*$", words.join("|"), files),
        "examples": [example],
    })
}

/// Returns the schema of a part: the name of a kind without required parameters, or a table of
/// parameters. `installed` are kinds of installed packages.
pub fn choice<T: ParamsChoice>(installed: &[&'static Description]) -> Json {
    let default = T::default().kind();
    let kinds = T::with_installed(installed);
    let is_complete = |chosen: &T| chosen.params().fields().iter().all(|field| !field.required);
    let complete = || kinds.iter().filter(|(_, chosen)| is_complete(chosen)).map(|(kind, _)| kind);
    let aliases = complete().flat_map(|kind| kind.aliases.iter().copied());
    let names: Vec<&str> = complete().map(|kind| kind.name).chain(aliases).collect();
    let mut forms = vec![json!({ "enum": names })];
    for (kind, chosen) in &kinds {
        let mut form = table(kind, chosen.params(), kind.name == default);
        for alias in kind.aliases {
            form["properties"]["kind"] = json!({ "enum": [kind.name, alias] });
        }
        forms.push(form);
    }
    any_of(&forms)
}

fn table(kind: &RegistryEntry, params: &dyn Params, default_kind: bool) -> Json {
    let mut properties = Map::new();
    properties.insert("kind".to_owned(), json!({ "const": kind.name }));
    insert_params(&mut properties, params);
    let mut schema = json!({
        "type": "object",
        "description": kind.doc.trim(),
        "properties": properties,
        "additionalProperties":
            params.arguments().map_or(json!(false), |_| value(ValueType::Argument)),
    });
    if !default_kind {
        schema["required"] = json!(["kind"]);
    }
    schema
}

/// Adds parameters and presets to the properties of a table.
pub fn insert_params(properties: &mut Map<String, Json>, params: &dyn Params) {
    if !params.presets().is_empty() {
        properties.insert("preset".to_owned(), presets(params));
    }
    for field in params.fields().iter().filter(|field| field.part.is_none()) {
        properties.insert(field.name.to_owned(), parameter(field, params));
    }
}

/// Returns the schema of a preset's name.
pub fn presets(params: &dyn Params) -> Json {
    one_of(params.presets().iter().map(|preset| (preset.name, preset.doc)))
}

/// Returns the schema of one of these names, each with its description.
pub fn one_of(names: impl Iterator<Item = (&'static str, &'static str)>) -> Json {
    let one = |(name, doc): (_, &str)| json!({ "const": name, "description": doc.trim() });
    json!({ "oneOf": names.map(one).collect::<Vec<_>>() })
}

fn parameter(field: &Field, params: &dyn Params) -> Json {
    let mut schema = bounded(field.value_type, &field.bounds);
    if field.required {
        schema["description"] = json!(described(field.doc, true));
        return schema;
    }
    schema["description"] = json!(format!("{} ({})", field.doc.trim(), field.source));
    schema["default"] = match params.get(field.name) {
        Some(Value::Text(t)) => json!(t),
        Some(Value::Bool(b)) => json!(b),
        Some(Value::Integer(i)) => json!(i),
        Some(Value::Float(x)) => json!(x),
        None => Json::Null,
    };
    schema
}
