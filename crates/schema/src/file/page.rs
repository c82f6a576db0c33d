//! Generator of reference pages in Markdown: keys, parameters and kinds of parts.

use core::fmt::Write as _;

use crate::file::keys::{Fallback, Form, Key, by_schema, phrase};
use crate::{Bounds, Params, ParamsChoice, Preset, Value, ValueType};

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

    /// Writes all kinds of a part, each with its parameters and presets.
    pub fn choice<T: ParamsChoice + 'static>(&mut self) {
        for kind in T::KINDS {
            let Some(mut chosen) = T::of_kind(kind.name) else { continue };
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
