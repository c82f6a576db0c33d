//! The JSON Schema of a scenario file, made from the same tables that read it.

use cwnd_apps::{ArrivalParams, AttackerParams, WorkloadParams};
use cwnd_aqm::{MessengerParams, MeterParams, QueueParams};
use cwnd_cc::ControllerParams;
use cwnd_quantity::dist::{FORMS, NAMED_SIZES};
use cwnd_schema::{
    Bounds, Edge, Field, Kind, Params, ParamsChoice, Quantity, RegistryEntry, Value,
};
use cwnd_tcp::PARTS;
use serde_json::{Map, Value as Json, json};

use crate::file::ScenarioFile;
use crate::flow_keys::{DumbbellFlowKeys, FlowKeys, GraphFlowKeys};
use crate::impairments::BurstLoss;
use crate::json::{any_of, none, reference};
use crate::links::{DumbbellKeys, LinkKeys};
use crate::model::{Place, Record};
use crate::pairs::Pair;
use crate::phrases::{by_schema, phrase};
use crate::rates::RateTable;
use crate::run::Run;
use crate::section::SectionKeys as _;
use crate::sections::{Fallback, Form, Key};
use crate::stack::StackParts;
use crate::steps::{DelayStep, RateStep};
use crate::sweep::{AxisKeys, SweepKeys};
use crate::tables::EXTENSIONS;

/// The JSON Schema (draft 2020-12) of a scenario file.
///
/// It asks for fewer keys than the reader: an axis of the sweep may be what gives `flow.main.rtt`.
#[must_use]
pub fn json_schema() -> Json {
    let mut root = object(&[ScenarioFile::KEYS]);
    root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    root["title"] = json!("cwnd scenario");
    root["description"] = json!("What to simulate: links, queues, flows, and what is varied.");
    root["required"] = json!(["run", "flow"]);
    root["oneOf"] = json!([
        {
            "required": ["dumbbell"],
            "not": { "required": ["link"] },
            "properties": { "flow": { "additionalProperties": reference("flow-dumbbell") } },
        },
        {
            "required": ["link"],
            "not": { "required": ["dumbbell"] },
            "properties": { "flow": { "additionalProperties": reference("flow-graph") } },
        },
    ]);
    root["$defs"] = json!({
        "run": object(&[Run::KEYS]),
        "record": object(&[Record::KEYS]),
        "dumbbell": object(&[DumbbellKeys::KEYS]),
        "link": object(&[LinkKeys::KEYS]),
        "flow-dumbbell": object(&[FlowKeys::KEYS, DumbbellFlowKeys::KEYS]),
        "flow-graph": object(&[FlowKeys::KEYS, GraphFlowKeys::KEYS]),
        "sweep": object(&[SweepKeys::KEYS]),
        "axis": complete(AxisKeys::KEYS),
        "step": complete(RateStep::KEYS),
        "burst-loss": complete(BurstLoss::KEYS),
        "delay-step": complete(DelayStep::KEYS),
        "node": complete(Place::KEYS),
        "pair": complete(Pair::KEYS),
        "duration": quantity(&phrase(Kind::Duration), "100 ms"),
        "rate": quantity(&phrase(Kind::Rate), "10 Mbit/s"),
        "bytes": quantity(&phrase(Kind::Bytes), "64 kB"),
        "queue-size": quantity(&phrase(Kind::QueueSize), "1 BDP"),
        "duration-distribution": distribution("duration", "uniform(20 ms, 200 ms)", &[]),
        "size-distribution": distribution("bytes", "pareto(1.2, 30 kB)", NAMED_SIZES),
        "count-distribution": drawn("lomax(1.5, 3)"),
        "link-rate": any_of(&[reference("rate"), none(), object(&[RateTable::KEYS])]),
        "queue": choice::<QueueParams>(),
        "meter": choice::<MeterParams>(),
        "messenger": choice::<MessengerParams>(),
        "controller": choice::<ControllerParams>(),
        "endpoint": endpoint(),
        "stack": any_of(&[reference("stack-name"), object(&[StackParts::KEYS])]),
        "stack-name": presets(&cwnd_tcp::Params::default()),
        "part": one_of(PARTS.iter().map(|part| (part.name, part.doc))),
        "workload": choice::<WorkloadParams>(),
        "arrivals": choice::<ArrivalParams>(),
        "attacker": choice::<AttackerParams>(),
    });
    root
}

/// A table of these keys and no others.
fn object(sections: &[&[Key]]) -> Json {
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

/// The same, where the file itself has the required ones: no axis can give them.
fn complete(keys: &[Key]) -> Json {
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

/// A default that is written as TOML, as JSON; a table is left to the reader.
fn default(text: &str) -> Option<Json> {
    serde_json::from_str(text).ok()
}

fn form(key: &Key) -> Json {
    match key.form {
        Form::Plain(_) if key.name == "schema" => json!({ "enum": crate::sections::SCHEMAS }),
        Form::Plain(kind) => bounded(kind, &key.bounds),
        Form::Value(takes) => (takes.json)(),
        Form::Section => reference(key.name),
        // The two forms of a flow are told apart at the top.
        Form::Named if key.name == "flow" => json!({ "type": "object", "minProperties": 1 }),
        Form::Named => {
            json!({ "type": "object", "additionalProperties": reference(key.name) })
        }
    }
}

fn value(kind: Kind) -> Json {
    match kind {
        Kind::Bool => json!({ "type": "boolean" }),
        Kind::Integer => json!({ "type": "integer", "minimum": 0 }),
        Kind::Number => json!({ "type": "number" }),
        Kind::Duration => reference("duration"),
        Kind::Rate => reference("rate"),
        Kind::Bytes => reference("bytes"),
        Kind::QueueSize => reference("queue-size"),
        Kind::Choice(names) => json!({ "enum": names }),
        // The text "none" is one of these texts.
        Kind::QueueSizes | Kind::Optional(Kind::QueueSizes) => json!({ "type": "string" }),
        Kind::Optional(Kind::Parts) => {
            let [one, several] = shares();
            any_of(&[one, several, none()])
        }
        Kind::Optional(inner) => any_of(&[value(*inner), none()]),
        Kind::Share => any_of(&[value(Kind::Number), json!({ "enum": ["all", "none"] })]),
        Kind::Parts => any_of(&shares()),
        Kind::DurationDist => reference("duration-distribution"),
        Kind::SizeDist => reference("size-distribution"),
        Kind::CountDist => any_of(&[
            value(Kind::Integer),
            json!({ "type": "string", "pattern": r"^\s*[1-9][0-9]*\s*$" }),
            reference("count-distribution"),
        ]),
        Kind::Text | Kind::Arrivals => json!({ "type": "string" }),
    }
}

/// A number above 0 and below 1, or several in a text.
fn shares() -> [Json; 2] {
    [
        json!({ "type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1 }),
        json!({ "type": "string", "pattern": r"^\s*0?\.[0-9]+(\s*,\s*0?\.[0-9]+)*\s*$" }),
    ]
}

/// As [`value`], within bounds. What a pattern can't say of a quantity is left to the reader.
fn bounded(kind: Kind, bounds: &Bounds) -> Json {
    let mut schema = value(kind);
    // What is optional is its kind or "none".
    let inner = match schema.get_mut("anyOf").and_then(|forms| forms.get_mut(0)) {
        Some(first) => first,
        None => &mut schema,
    };
    for (edge, including, excluding) in [
        (bounds.least, "minimum", "exclusiveMinimum"),
        (bounds.most, "maximum", "exclusiveMaximum"),
    ] {
        let Some(Edge { at, included }) = edge else { continue };
        let key = if included { including } else { excluding };
        match at {
            Quantity::Count(n) => inner[key] = json!(n),
            Quantity::Number(x) => inner[key] = json!(x),
            Quantity::Size(_) | Quantity::Span(_) => {}
        }
    }
    if bounds.least.is_some_and(excludes_only_zero) {
        inner["pattern"] = json!("[1-9]");
    }
    schema
}

/// Whether what lies below a lower bound of a quantity is nothing but zero.
fn excludes_only_zero(least: Edge) -> bool {
    match (least.at, least.included) {
        (Quantity::Size(b), true) => b.0 == 1,
        (Quantity::Size(b), false) => b.0 == 0,
        (Quantity::Span(d), true) => d.0 == 1,
        (Quantity::Span(d), false) => d.0 == 0,
        (Quantity::Count(_) | Quantity::Number(_), _) => false,
    }
}

/// A number and a unit; the reader knows which units there are and says so better.
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

/// What is drawn from a distribution.
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

/// A kind by its name, or a table of its parameters.
fn choice<T: ParamsChoice>() -> Json {
    let default = T::default().kind();
    let complete = |name| {
        T::of_kind(name).is_some_and(|c| c.params().fields().iter().all(|field| !field.required))
    };
    let aliases = T::KINDS.iter().flat_map(|kind| kind.aliases.iter().copied());
    let names = T::KINDS.iter().map(|kind| kind.name).chain(aliases);
    let names: Vec<&str> = names.filter(|name| complete(name)).collect();
    let mut forms = vec![json!({ "enum": names })];
    for kind in T::KINDS {
        if let Some(chosen) = T::of_kind(kind.name) {
            let mut form = table(kind, chosen.params(), kind.name == default);
            for alias in kind.aliases {
                form["properties"]["kind"] = json!({ "enum": [kind.name, alias] });
            }
            forms.push(form);
        }
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
        "additionalProperties": false,
    });
    if !default_kind {
        schema["required"] = json!(["kind"]);
    }
    schema
}

fn insert_params(properties: &mut Map<String, Json>, params: &dyn Params) {
    if !params.presets().is_empty() {
        properties.insert("preset".to_owned(), presets(params));
    }
    for field in params.fields().iter().filter(|field| field.part.is_none()) {
        properties.insert(field.name.to_owned(), parameter(field, params));
    }
}

fn presets(params: &dyn Params) -> Json {
    one_of(params.presets().iter().map(|preset| (preset.name, preset.doc)))
}

/// One of these names, each with its description.
fn one_of(names: impl Iterator<Item = (&'static str, &'static str)>) -> Json {
    let one = |(name, doc): (_, &str)| json!({ "const": name, "description": doc.trim() });
    json!({ "oneOf": names.map(one).collect::<Vec<_>>() })
}

fn parameter(field: &Field, params: &dyn Params) -> Json {
    let mut schema = bounded(field.kind, &field.bounds);
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

fn endpoint() -> Json {
    let params = cwnd_tcp::Params::default();
    let mut properties = Map::new();
    insert_params(&mut properties, &params);
    any_of(&[
        presets(&params),
        json!({ "type": "object", "properties": properties, "additionalProperties": false }),
    ])
}
