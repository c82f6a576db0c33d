//! Descriptions of keys that are not parameters of an algorithm; `SectionKeys` derives them.
//! Phrases and examples of the kinds of their values, and the Markdown that lists the keys.

use core::fmt::Write as _;

use serde_json::Value as Json;

use crate::derive_support::{joined, same};
use crate::{Bounds, Description, Params, ParamsChoice, Preset, Value, ValueType};

/// Description of one key of a section.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Name of the key.
    pub name: &'static str,
    /// Form of its values.
    pub form: Form,
    /// Its value if the key is absent.
    pub fallback: Fallback,
    /// Text of the key in the reference.
    pub doc: &'static str,
    /// Source of the default of the key.
    pub source: &'static str,
    /// Range of the values, for [`Form::Plain`].
    pub bounds: Bounds,
}

impl Key {
    /// Placeholder entry for arrays of keys that are not filled yet.
    pub const NONE: Self = Self {
        name: "",
        form: Form::Plain(ValueType::Text),
        fallback: Fallback::Required,
        doc: "",
        source: "",
        bounds: Bounds::NONE,
    };
}

/// Copies keys, and replaces docs and sources of some. A name that no key has does not compile.
pub const fn described<const N: usize>(
    keys: &[Key],
    others: &[(&str, &'static str, &'static str)],
) -> [Key; N] {
    let mut all = joined(&[keys], Key::NONE);
    let mut other = 0;
    while other < others.len() {
        let (name, doc, source) = others[other];
        let i = index_of(&all, name);
        assert!(i < N, "another doc is of a key that is not there");
        (all[i].doc, all[i].source) = (doc, source);
        other += 1;
    }
    all
}

/// Returns the index of a key, or the number of keys if it is absent.
pub const fn index_of(keys: &[Key], name: &str) -> usize {
    let mut i = 0;
    while i < keys.len() && !same(keys[i].name, name) {
        i += 1;
    }
    i
}

/// Forms of a key's values.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// A value of a parameter kind.
    Plain(ValueType),
    /// A value that reads its own node.
    Value(&'static ValueForm),
    /// A section.
    Section,
    /// Sections with user-chosen names.
    Named,
}

/// Description of a value that reads its own node.
#[derive(Debug)]
pub struct ValueForm {
    /// Phrase of the reference for the value.
    pub phrase: &'static str,
    /// Example of a value, as written in a file.
    pub example: &'static str,
    /// Key of a table that a plain value abbreviates: `queue = "codel"` is `queue = { kind =
    /// "codel" }`.
    pub shorthand: Option<&'static str>,
    /// Generator of its JSON Schema.
    pub json: fn() -> Json,
}

impl ValueForm {
    /// Describes a value without a short form.
    pub const fn new(phrase: &'static str, json: fn() -> Json) -> Self {
        Self { phrase, example: "\"...\"", shorthand: None, json }
    }

    /// Describes one of several algorithms, whose short form gives the `kind`.
    pub const fn choice(phrase: &'static str, json: fn() -> Json) -> Self {
        Self { shorthand: Some("kind"), ..Self::new(phrase, json) }
    }
}

/// Value of a key that is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// No value: an absent key is an error.
    Required,
    /// A default, written as TOML.
    Toml(&'static str),
    /// A default for each version of the file format, from version 1 on.
    BySchema(&'static [&'static str]),
    /// No default; the sentence states the meaning of an absent key.
    Derived(&'static str),
}

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
        ValueType::SourceFile => "the name of a file, seen from the scenario's folder",
        ValueType::Argument => "a text, a number, or `true` or `false`",
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
        ValueType::SourceFile => "\"mine.py\"",
        ValueType::Argument => "1",
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

/// A page of Markdown under construction.
pub struct Page(pub String);

impl Page {
    fn line(&mut self, text: &str) {
        self.0.push_str(text);
        self.0.push('\n');
    }

    /// Writes a heading.
    pub fn heading(&mut self, level: usize, text: &str) {
        // Writing to a string can't fail.
        let _ = writeln!(self.0, "\n{} {text}\n", "#".repeat(level));
    }

    /// Writes a paragraph, unless it is empty.
    pub fn text(&mut self, text: &str) {
        if !text.is_empty() {
            self.line(text);
        }
    }

    /// Writes a row of a table; bars in cells are escaped.
    pub fn row(&mut self, cells: &[String]) {
        let cells: Vec<String> = cells.iter().map(|c| c.replace('|', "\\|")).collect();
        self.line(&format!("| {} |", cells.join(" | ")));
    }

    /// Writes the header of a table.
    pub fn table(&mut self, heads: &[&str]) {
        if !self.0.ends_with("\n\n") {
            self.line("");
        }
        self.row(&heads.iter().map(|h| (*h).to_owned()).collect::<Vec<_>>());
        self.line(&format!("|{}", "---|".repeat(heads.len())));
    }

    /// Writes a section of a file: heading, text and keys.
    pub fn section(&mut self, title: &str, text: &str, keys: &[&[Key]]) {
        self.heading(2, title);
        self.text(text);
        self.keys(keys);
    }

    /// Writes a table of keys.
    pub fn keys(&mut self, keys: &[&[Key]]) {
        let keys: Vec<&Key> = keys.iter().flat_map(|keys| keys.iter()).collect();
        if keys.is_empty() {
            return;
        }
        self.table(&["Key", "Takes", "Default", "Meaning", "Source of the default"]);
        for key in keys {
            let default = match key.fallback {
                Fallback::Required => "**required**".to_owned(),
                Fallback::Toml(text) => format!("`{text}`"),
                Fallback::BySchema(texts) => by_schema(texts),
                Fallback::Derived(text) => text.to_owned(),
            };
            self.row(&[
                format!("`{}`", key.name),
                takes(key),
                default,
                key.doc.trim().to_owned(),
                source(key.source),
            ]);
        }
    }

    /// Writes all kinds of a part, and those of installed packages, each with its parameters and
    /// presets.
    pub fn choice<T: ParamsChoice>(&mut self, installed: &[&'static Description]) {
        for (kind, mut chosen) in T::with_installed(installed) {
            self.heading(3, &format!("`{}`", kind.name));
            self.text(kind.doc.trim());
            self.parameters(chosen.params());
            self.presets(chosen.params());
            self.preset_table(kind.name, chosen.params_mut());
        }
    }

    /// Writes a table of parameters.
    pub fn parameters(&mut self, params: &dyn Params) {
        if params.fields().is_empty() {
            return;
        }
        self.table(&["Parameter", "Takes", "Default", "Meaning", "Source of the default"]);
        for field in params.fields().iter().filter(|field| field.part.is_none()) {
            let default = match params.get(field.name).filter(|_| !field.required) {
                Some(value) => written(&value),
                None => "**required**".to_owned(),
            };
            self.row(&[
                format!("`{}`", field.name),
                of_kind(field.value_type, &field.bounds),
                default,
                field.doc.trim().to_owned(),
                source(field.source),
            ]);
        }
        if params.arguments().is_some() {
            let cells = ["any other", &phrase(ValueType::Argument), "", ARGUMENT, ""];
            self.row(&cells.map(str::to_owned));
        }
    }

    /// Writes a table of presets with their descriptions.
    pub fn presets(&mut self, params: &dyn Params) {
        if params.presets().is_empty() {
            return;
        }
        self.table(&["Preset", "What it stands for"]);
        for preset in params.presets() {
            self.row(&[format!("`{}`", preset.name), preset.doc.trim().to_owned()]);
        }
    }

    /// Writes a comparison of the presets of `what`: one row for each parameter, one column for
    /// each preset. The defaults are a column unless they equal a preset. `params`, which has the
    /// defaults, is left with the last preset.
    pub fn preset_table(&mut self, what: &str, params: &mut dyn Params) {
        let (fields, presets) = (params.fields(), params.presets());
        if presets.is_empty() {
            return;
        }
        let all = |params: &dyn Params| -> Vec<String> {
            let values = fields.iter().map(|field| params.get(field.name));
            values.map(|value| value.as_ref().map_or_else(String::new, written)).collect()
        };
        let defaults = all(params);
        let of_preset = |preset: &Preset| {
            params.apply_preset(preset.name);
            (format!("`{}`", preset.name), all(params))
        };
        let mut columns: Vec<(String, Vec<String>)> = presets.iter().map(of_preset).collect();
        if columns.iter().all(|(_, values)| *values != defaults) {
            columns.insert(0, ("default".to_owned(), defaults));
        }
        self.line("");
        self.line(&format!("The presets of `{what}` side by side:"));
        let (of_parts, keys): (Vec<_>, Vec<_>) =
            fields.iter().enumerate().partition(|(_, field)| field.part.is_some());
        let heads: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
        self.table(&[&["Parameter"], &heads[..]].concat());
        let values = |place: usize| columns.iter().map(move |(_, values)| values[place].clone());
        for (place, field) in keys {
            let row = [format!("`{}`", field.name)].into_iter().chain(values(place));
            self.row(&row.collect::<Vec<_>>());
        }
        if of_parts.is_empty() {
            return;
        }
        self.line("");
        self.line("What [parts](#parts-of-a-stack) set is no key of a scenario:");
        self.table(&[&["Parameter", "Part"], &heads[..]].concat());
        for (place, field) in of_parts {
            let part = field.part.map_or_else(String::new, |part| format!("`{part}`"));
            let row = [format!("`{}`", field.name), part].into_iter().chain(values(place));
            self.row(&row.collect::<Vec<_>>());
        }
    }
}

/// Text of the reference for keys that are arguments.
const ARGUMENT: &str = "Argument of the code.";

fn written(value: &Value) -> String {
    match value {
        Value::Text(t) => format!("`\"{t}\"`"),
        Value::Bool(b) => format!("`{b}`"),
        Value::Integer(i) => format!("`{i}`"),
        Value::Float(x) => format!("`{x:?}`"),
    }
}

fn of_kind(kind: ValueType, bounds: &Bounds) -> String {
    let range = bounds.to_string();
    if !range.is_empty() {
        return match phrase(kind).strip_suffix(", or \"none\"") {
            Some(phrase) => format!("{phrase}, {range}; or \"none\""),
            None => format!("{}, {range}", phrase(kind)),
        };
    }
    match kind {
        ValueType::Choice(names) => {
            let names: Vec<String> = names.iter().map(|n| format!("`\"{n}\"`")).collect();
            names.join(", ")
        }
        other => phrase(other),
    }
}

/// Returns the source of a default, or the reason why there is none.
fn source(text: &str) -> String {
    if text == "none" {
        String::new()
    } else {
        text.strip_prefix("none: ").unwrap_or(text).to_owned()
    }
}

fn takes(key: &Key) -> String {
    match key.form {
        Form::Plain(kind) => of_kind(kind, &key.bounds),
        Form::Value(takes) => takes.phrase.to_owned(),
        Form::Section => "a section".to_owned(),
        Form::Named => "sections, each with a name of its own".to_owned(),
    }
}
