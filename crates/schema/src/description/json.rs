//! Descriptions of kinds as JSON: written by the package that has a kind, read where it is used.

use alloc::borrow::ToOwned as _;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use std::sync::{Mutex, PoisonError};

use cwnd_quantity::{Bytes, Duration};
use serde_json::{Value as Json, json};

use crate::{Bounds, Description, Edge, Field, Params, Quantity, RegistryEntry, Value, ValueType};

/// Types of parameters that a description may have, with their names.
const TYPES: [(ValueType, &str); 14] = [
    (ValueType::Bool, "bool"),
    (ValueType::Integer, "integer"),
    (ValueType::Number, "number"),
    (ValueType::Duration, "duration"),
    (ValueType::Rate, "rate"),
    (ValueType::Bytes, "bytes"),
    (ValueType::QueueSize, "queue-size"),
    (ValueType::Share, "share"),
    (ValueType::DurationDist, "duration-distribution"),
    (ValueType::SizeDist, "size-distribution"),
    (ValueType::Fractions, "fractions"),
    (ValueType::QueueSizes, "queue-sizes"),
    (ValueType::CountDist, "count-distribution"),
    (ValueType::Text, "text"),
];

/// Describes a kind: its name, its documentation and its parameters, with the values that `params`
/// has as their defaults.
///
/// # Errors
/// If a parameter has a type that descriptions do not have, such as a file.
pub fn describe(entry: &RegistryEntry, params: &dyn Params) -> Result<Json, String> {
    let fields = params.fields().iter().filter(|field| field.part.is_none());
    let fields = fields.map(|field| {
        let default = params.get(field.name).filter(|_| !field.required);
        Ok(json!({
            "name": field.name,
            "type": of_type(field.value_type)
                .ok_or_else(|| format!("`{}` is of no type that a package may use", field.name))?,
            "doc": field.doc.trim(),
            "source": field.source,
            "default": default.as_ref().map(to_json),
            "lower": field.bounds.lower.map(of_edge),
            "upper": field.bounds.upper.map(of_edge),
            "reason": field.bounds.reason,
        }))
    });
    let fields = fields.collect::<Result<Vec<Json>, String>>()?;
    Ok(json!({ "name": entry.name, "doc": entry.doc.trim(), "parameters": fields }))
}

/// Returns the values of parameters as a JSON object.
#[must_use]
pub fn values_as_json(params: &dyn Params) -> String {
    let value = |name: &'static str| Some((name.to_owned(), to_json(&params.get(name)?)));
    let values = params.fields().iter().filter_map(|field| value(field.name));
    Json::Object(values.collect()).to_string()
}

/// Converts a parameter's value to JSON.
fn to_json(value: &Value) -> Json {
    match value {
        Value::Text(text) => json!(text),
        Value::Bool(is_on) => json!(is_on),
        Value::Integer(number) => json!(number),
        Value::Float(number) => json!(number),
    }
}

/// Converts a value of [`values_as_json`] back; `None` for other JSON.
#[must_use]
pub fn from_json(json: &Json) -> Option<Value> {
    match json {
        Json::String(text) => Some(Value::Text(text.clone())),
        Json::Bool(is_on) => Some(Value::Bool(*is_on)),
        Json::Number(number) => {
            number.as_i64().map(Value::Integer).or_else(|| number.as_f64().map(Value::Float))
        }
        Json::Null | Json::Array(_) | Json::Object(_) => None,
    }
}

fn of_type(kind: ValueType) -> Option<Json> {
    match kind {
        ValueType::Choice(names) => Some(json!({ "choice": names })),
        ValueType::Optional(inner) => Some(json!({ "optional": of_type(*inner)? })),
        _ => TYPES.iter().find(|(known, _)| *known == kind).map(|(_, name)| json!(name)),
    }
}

fn of_edge(Edge { at, included }: Edge) -> Json {
    let at = match at {
        Quantity::Count(number) => json!({ "count": number }),
        Quantity::Number(number) => json!({ "number": number }),
        Quantity::Size(size) => json!({ "bytes": size.0 }),
        Quantity::Span(span) => json!({ "ns": span.0 }),
    };
    json!({ "at": at, "included": included })
}

/// Descriptions read so far. Parameters and diagnostics refer to them as to those of this project,
/// which last as long as the program.
static KNOWN: Mutex<Vec<&'static Description>> = Mutex::new(Vec::new());

/// Reads a description: a JSON object whose member `kind` is what [`describe`] writes, or whose
/// member `error` says why there is none.
///
/// # Errors
/// The text of `error`, or a sentence about JSON of another form.
pub fn described(text: &str) -> Result<&'static Description, String> {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = known.iter().find(|one| one.text == text) {
        return Ok(found);
    }
    let json: Json = serde_json::from_str(text).map_err(|_| UNREADABLE.to_owned())?;
    if let Some(why) = json["error"].as_str() {
        return Err(why.to_owned());
    }
    let read = of_json(text, &json["kind"]).ok_or_else(|| UNREADABLE.to_owned())?;
    let kept: &'static Description = Box::leak(Box::new(read));
    known.push(kept);
    Ok(kept)
}

fn of_json(text: &str, kind: &Json) -> Option<Description> {
    let listed = kind["parameters"].as_array()?;
    let fields = listed.iter().map(field).collect::<Option<Vec<Field>>>()?;
    let defaults = listed.iter().map(|parameter| from_json(&parameter["default"])).collect();
    let entry = RegistryEntry::new(kept(&kind["name"])?, kept(&kind["doc"])?);
    Some(Description { text: text.to_owned(), entry, fields: fields.leak(), defaults })
}

const UNREADABLE: &str = "the description of its controller is of another form";

/// Keeps a text for as long as the program runs.
fn kept(json: &Json) -> Option<&'static str> {
    json.as_str().map(|text| &*text.to_owned().leak())
}

fn field(json: &Json) -> Option<Field> {
    let bounds = Bounds {
        lower: edge(&json["lower"])?,
        upper: edge(&json["upper"])?,
        reason: kept(&json["reason"])?,
    };
    Some(Field {
        name: kept(&json["name"])?,
        value_type: to_type(&json["type"])?,
        doc: kept(&json["doc"])?,
        source: kept(&json["source"])?,
        bounds,
        required: json["default"].is_null(),
        part: None,
        was: None,
        later: false,
    })
}

fn to_type(json: &Json) -> Option<ValueType> {
    if let Some(names) = json["choice"].as_array() {
        let names = names.iter().map(kept).collect::<Option<Vec<_>>>()?;
        return Some(ValueType::Choice(names.leak()));
    }
    if !json["optional"].is_null() {
        return Some(ValueType::Optional(Box::leak(Box::new(to_type(&json["optional"])?))));
    }
    let name = json.as_str()?;
    TYPES.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind)
}

/// Reads an end of a range; `Some(None)` if it has none.
fn edge(json: &Json) -> Option<Option<Edge>> {
    if json.is_null() {
        return Some(None);
    }
    let at = &json["at"];
    let number = |name: &str| at[name].as_u64();
    let at = None
        .or_else(|| number("count").map(Quantity::Count))
        .or_else(|| at["number"].as_f64().map(Quantity::Number))
        .or_else(|| number("bytes").map(|size| Quantity::Size(Bytes(size))))
        .or_else(|| number("ns").map(|span| Quantity::Span(Duration(span))))?;
    Some(Some(Edge { at, included: json["included"].as_bool()? }))
}
