//! Typed access to the tree: every problem is collected, none stops the reading of the rest.

use std::collections::BTreeMap;

use cwnd_schema::{Param, Params, ParamsChoice};

use crate::idle::{self, IdleKey};
use crate::link_rate::LinkRate;
use crate::phrases::{example, example_value, phrase};
use crate::sections::{Fallback, Key, SCHEMAS};
use crate::tables::{Recorded, Tables, inlined};
use cwnd_schema::file::{
    Entry, Item, MOST_SHOWN, Node, Sink, Span, Table, closest, list, parse_value,
};

/// Reads the text of a file that a scenario names, such as a trace; the error is a sentence.
///
/// This crate touches no file system: whoever does passes this in, and resolves names against the scenario's folder.
pub type Files<'f> = &'f dyn Fn(&str) -> Result<String, String>;

/// What goes along with every read.
pub(crate) struct Context<'f> {
    pub sink: Sink,
    pub files: Files<'f>,
    /// Traces read so far; one that can't be read is remembered as its error.
    pub traces: BTreeMap<String, Result<LinkRate, String>>,
    /// The same of recorded delays.
    pub delays: BTreeMap<String, Recorded>,
    /// Tables of measured values.
    pub tables: Tables,
    /// The file's schema, one of [`SCHEMAS`].
    pub schema: u64,
    /// Keys without effect, of the combination of the sweep that is read.
    pub idle: Vec<IdleKey>,
}

impl<'f> Context<'f> {
    /// Nothing is read yet.
    pub fn new(files: Files<'f>) -> Self {
        Self {
            sink: Sink::default(),
            files,
            traces: BTreeMap::new(),
            delays: BTreeMap::new(),
            tables: BTreeMap::new(),
            schema: SCHEMAS[0],
            idle: Vec::new(),
        }
    }

    /// The endpoint preset of today that a file means: `rfc` of schema 1 is `rfc6675` by now.
    pub(crate) fn preset_name<'n>(&self, name: &'n str) -> &'n str {
        let renamed = self.schema == SCHEMAS[0] && name == "rfc";
        if renamed { "rfc6675" } else { name }
    }

    /// The default among those of all schemas.
    fn of_schema(&self, defaults: [&'static str; SCHEMAS.len()]) -> &'static str {
        let pairs = SCHEMAS.into_iter().zip(defaults);
        let mut own = pairs.filter(|(schema, _)| *schema == self.schema);
        own.next().map_or(defaults[0], |(_, default)| default)
    }
}

/// A node with the path of its key.
#[derive(Clone, Copy)]
pub(crate) struct At<'t> {
    pub node: &'t Node,
    pub path: &'t str,
}

impl At<'_> {
    /// Reports that another kind of value is expected here.
    pub fn wrong_kind(&self, wanted: &str, cx: &mut Context<'_>) {
        if matches!(self.node.item, Item::Broken) {
            return;
        }
        let message = format!("expected {wanted}, found {}", self.node.describe());
        cx.sink.error(self.node.span, self.path, message);
    }

    /// A value that reads itself.
    pub fn plain<T: Param>(&self, cx: &mut Context<'_>) -> Option<T> {
        let Item::Value(value) = &self.node.item else {
            self.wrong_kind(&phrase(T::KIND), cx);
            return None;
        };
        let value = inlined(value, T::KIND, cx.files, &mut cx.tables);
        match value.and_then(|value| T::read(&value).map_err(|e| e.0)) {
            Ok(v) => Some(v),
            Err(message) => {
                cx.sink.error(self.node.span, self.path, message);
                None
            }
        }
    }
}

/// A table whose keys are known.
pub(crate) struct Section<'t> {
    table: &'t Table,
    keys: &'static [&'static [Key]],
    /// Path of the section; empty for the file itself.
    pub path: String,
    /// Where to point for what is absent.
    pub at: Span,
}

impl<'t> Section<'t> {
    /// A section, after telling of its unknown keys.
    pub fn new(
        table: &'t Table,
        keys: &'static [&'static [Key]],
        path: impl Into<String>,
        at: Span,
        cx: &mut Context<'_>,
    ) -> Self {
        Self::with_hint(table, keys, path, at, &|_| None, cx)
    }

    /// As [`Section::new`]; `elsewhere` says of an unknown key where it belongs.
    pub fn with_hint(
        table: &'t Table,
        keys: &'static [&'static [Key]],
        path: impl Into<String>,
        at: Span,
        elsewhere: &dyn Fn(&str) -> Option<String>,
        cx: &mut Context<'_>,
    ) -> Self {
        let section = Self { table, keys, path: path.into(), at };
        let names: Vec<&str> = section.names().collect();
        for entry in table.entries.iter().filter(|e| !names.contains(&e.key.as_str())) {
            let path = section.path_of(&entry.key);
            let hint = elsewhere(&entry.key);
            unknown_key(entry, &path, &section.title(), &names, hint, cx);
        }
        section
    }

    /// Whether a key is there under a name that was meant to be its own.
    pub fn misspelt(&self, name: &str) -> bool {
        let names: Vec<&str> = self.names().collect();
        is_meant(name, self.table.keys(), &names)
    }

    fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.keys.iter().flat_map(|keys| keys.iter()).map(|key| key.name)
    }

    fn title(&self) -> String {
        if self.path.is_empty() { "the file".to_owned() } else { format!("[{}]", self.path) }
    }

    /// The path of one of its keys.
    pub fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Where a key stands, or where it is missing.
    pub fn span_of(&self, key: &str) -> Span {
        self.table.get(key).map_or(self.at, |e| e.node.span)
    }

    /// The same section with none of its keys.
    pub fn absent(&self) -> Section<'static> {
        const NOTHING: &Table = &Table { entries: Vec::new() };
        Section { table: NOTHING, keys: self.keys, path: self.path.clone(), at: self.at }
    }

    /// What was written for a key.
    pub fn entry(&self, key: &str) -> Option<&'t Entry> {
        self.table.get(key)
    }

    /// The value of a key that has one in any case: written, or by default.
    pub fn read<T>(
        &self,
        name: &str,
        cx: &mut Context<'_>,
        read: impl FnOnce(At<'_>, &mut Context<'_>) -> Option<T>,
    ) -> Option<T> {
        let path = self.path_of(name);
        if let Some(entry) = self.table.get(name) {
            return read(At { node: &entry.node, path: &path }, cx);
        }
        let key = self.key(name)?;
        let default = match key.fallback {
            Fallback::Toml(text) => Some(text),
            Fallback::BySchema(texts) => Some(cx.of_schema(texts)),
            Fallback::Required | Fallback::Derived(_) => None,
        };
        let Some(text) = default else {
            self.lacks(name, cx);
            return None;
        };
        let mut node = parse_value(self.at.source, 0, text, &mut cx.sink)?;
        node.move_to(self.at);
        read(At { node: &node, path: &path }, cx)
    }

    /// Reports that a key is missing, unless another one was meant to be it.
    pub fn lacks(&self, name: &str, cx: &mut Context<'_>) {
        let Some(key) = self.key(name).filter(|_| !self.misspelt(name)) else { return };
        let (what, example) = example(key);
        let message = format!("{} lacks {what}", self.title());
        let problem = cx.sink.missing(self.at, self.path_of(name), message);
        let doc = key.doc.trim().trim_end_matches('.');
        problem.help(format!("{doc}, such as {example}"));
    }

    /// The value of a key that reads itself, and lies within its bounds.
    pub fn plain<T: Param>(&self, name: &str, cx: &mut Context<'_>) -> Option<T> {
        let key = self.key(name)?;
        self.read(name, cx, |at, cx| {
            let value: T = at.plain(cx)?;
            if let Some(message) = value.quantity().and_then(|q| key.bounds.refusal(q)) {
                cx.sink.error(at.node.span, at.path, message);
                return None;
            }
            Some(value)
        })
    }

    fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().flat_map(|keys| keys.iter()).find(|key| key.name == name)
    }

    /// Notes that a key has no effect, if the file has it; `true` if it then takes its default.
    pub fn has_no_effect(&self, key: &str, why: &str, cx: &mut Context<'_>) -> bool {
        let entry = self.entry(key).into_iter();
        cx.idle.extend(entry.map(|entry| idle::of_section(entry, self.path_of(key), why)));
        cx.schema > SCHEMAS[0]
    }
}

/// Tells whether one of the first keys that are not among `names` was meant to be `name`.
fn is_meant<'k>(name: &str, keys: impl Iterator<Item = &'k str>, names: &[&str]) -> bool {
    let mut unknown = keys.filter(|key| !names.contains(key)).take(MOST_SHOWN);
    unknown.any(|key| closest(key, names.iter().copied()) == Some(name))
}

/// Tells of a key that is not among `names`.
pub(crate) fn unknown_key(
    entry: &Entry,
    path: &str,
    title: &str,
    names: &[&str],
    hint: Option<String>,
    cx: &mut Context<'_>,
) {
    let key = &entry.key;
    if let Some(hint) = hint {
        let message = format!("unknown key `{key}` in {title}: {hint}");
        let problem = cx.sink.error(entry.key_span, path, message);
        problem.help(format!("there are {}", list(names.iter().copied())));
    } else if let Some(name) = cx.sink.closest(key, names.iter().copied()) {
        let message = format!("unknown key `{key}`, did you mean `{name}`?");
        cx.sink.error(entry.key_span, path, message);
    } else {
        let problem =
            cx.sink.error(entry.key_span, path, format!("unknown key `{key}` in {title}"));
        problem.help(if names.is_empty() {
            format!("{title} takes no keys")
        } else {
            format!("there are {}", list(names.iter().copied()))
        });
    }
}

/// Tells of a name that is not among `names`.
pub(crate) fn unknown_name(at: At<'_>, what: &str, names: &[&str], cx: &mut Context<'_>) {
    unknown_name_of(at, (what, ""), names, cx);
}

/// Tells of a name of a `what` that `owner` does not have.
pub(crate) fn unknown_name_of(
    at: At<'_>,
    (what, owner): (&str, &str),
    names: &[&str],
    cx: &mut Context<'_>,
) {
    let Some(text) = at.node.text() else {
        at.wrong_kind(&format!("the name of a {what}"), cx);
        return;
    };
    let of = if owner.is_empty() { String::new() } else { format!(" of the {owner}") };
    let message = match cx.sink.closest(text, names.iter().copied()) {
        Some(name) => format!("unknown {what} `{text}`{of}, did you mean `{name}`?"),
        None => format!("unknown {what} `{text}`{of}"),
    };
    let help = if names.is_empty() {
        format!("there is no {what} at all")
    } else {
        format!("there are {}", list(names.iter().copied()))
    };
    cx.sink.error(at.node.span, at.path, message).help(help);
}

/// One of several algorithms: `"codel"`, or `{ kind = "codel", preset = "…", target = "5 ms" }`.
pub(crate) fn choice<T: ParamsChoice>(at: At<'_>, what: &str, cx: &mut Context<'_>) -> Option<T> {
    choice_from(at, what, &|_| None, cx).map(|(chosen, _)| chosen)
}

/// As [`choice`], from the preset that `base` has for the kind unless another one is written; with
/// the preset in force.
pub(crate) fn choice_from<T: ParamsChoice>(
    at: At<'_>,
    what: &str,
    base: &dyn Fn(&dyn Params) -> Option<&'static str>,
    cx: &mut Context<'_>,
) -> Option<(T, Option<&'static str>)> {
    let kinds: Vec<&str> = T::KINDS.iter().map(|k| k.name).collect();
    let Some(table) = at.node.table() else {
        let Some(mut chosen) = at.node.text().and_then(T::of_kind) else {
            unknown_name(at, what, &kinds, cx);
            return None;
        };
        let preset = begin(chosen.params_mut(), base);
        idle::reset(chosen.params_mut(), cx.schema);
        let title = format!("the {what} `{}`", chosen.kind());
        let complete = tell_missing(chosen.params(), None, &title, at, cx);
        return complete.then_some((chosen, preset));
    };
    let kind_path = format!("{}.kind", at.path);
    let chosen = match table.get("kind") {
        None => Some(T::default()),
        Some(entry) => {
            let chosen = entry.node.text().and_then(T::of_kind);
            if chosen.is_none() {
                unknown_name(At { node: &entry.node, path: &kind_path }, what, &kinds, cx);
            }
            chosen
        }
    };
    let mut chosen = chosen?;
    let preset = begin(chosen.params_mut(), base);
    let title = format!("{what} `{}`", chosen.kind());
    let elsewhere = |key: &str| {
        let having: Vec<&str> = kinds
            .iter()
            .copied()
            .filter(|kind| T::of_kind(kind).is_some_and(|c| c.params().get(key).is_some()))
            .collect();
        (!having.is_empty()).then(|| format!("it is a key of {}", list(having)))
    };
    let shape = Shape { title: &title, besides: &["kind"], elsewhere: &elsewhere, renames: false };
    let params = chosen.params_mut();
    let good =
        table_preset(params, table, &shape, at, cx) & parameters(params, table, &shape, at, cx);
    let preset = written_preset(table, chosen.params()).or(preset);
    good.then_some((chosen, preset))
}

/// Applies the preset that parameters begin from, and names it.
fn begin(
    params: &mut dyn Params,
    base: &dyn Fn(&dyn Params) -> Option<&'static str>,
) -> Option<&'static str> {
    base(params).filter(|name| params.apply_preset(name))
}

/// The preset that a table names.
fn written_preset(table: &Table, params: &dyn Params) -> Option<&'static str> {
    preset(params, table.get("preset")?.node.text()?)
}

/// The preset of this name among those that there are.
pub(crate) fn preset(params: &dyn Params, name: &str) -> Option<&'static str> {
    params.presets().iter().map(|preset| preset.name).find(|&known| known == name)
}

/// What a table of parameters is called and what it takes besides them.
pub(crate) struct Shape<'a> {
    pub title: &'a str,
    pub besides: &'a [&'static str],
    /// Where a key belongs that is unknown here.
    pub elsewhere: &'a dyn Fn(&str) -> Option<String>,
    /// `true` if its presets are those of [`Context::preset_name`].
    pub renames: bool,
}

/// Applies the preset that a table names, if it names one; `false` if there is none of that name.
pub(crate) fn table_preset(
    params: &mut dyn Params,
    table: &Table,
    shape: &Shape<'_>,
    at: At<'_>,
    cx: &mut Context<'_>,
) -> bool {
    let Some(entry) = table.get("preset") else { return true };
    let today = |name| if shape.renames { cx.preset_name(name) } else { name };
    if entry.node.text().is_some_and(|name| params.apply_preset(today(name))) {
        return true;
    }
    let presets: Vec<&str> = params.presets().iter().map(|p| p.name).collect();
    let path = format!("{}.preset", at.path);
    unknown_name_of(At { node: &entry.node, path: &path }, ("preset", shape.title), &presets, cx);
    false
}

/// Sets parameters from a table: the keys one by one, over a preset, then a look at the whole.
pub(crate) fn parameters(
    params: &mut dyn Params,
    table: &Table,
    shape: &Shape<'_>,
    at: At<'_>,
    cx: &mut Context<'_>,
) -> bool {
    let title = shape.title;
    let path_of = |key: &str| format!("{}.{key}", at.path);
    let mut good = true;
    let of_preset: Vec<&str> = params.idle().iter().map(|idle| idle.key).collect();
    let keys = params.fields().iter().filter(|field| field.part.is_none());
    let mut names: Vec<&str> = keys.map(|field| field.name).collect();
    names.extend_from_slice(shape.besides);
    if !params.presets().is_empty() {
        names.push("preset");
    }
    for entry in &table.entries {
        let key = entry.key.as_str();
        let path = path_of(key);
        if shape.besides.contains(&key) || key == "preset" {
            continue;
        }
        let Some(field) = params.fields().iter().find(|f| f.name == key) else {
            let hint = (shape.elsewhere)(key);
            unknown_key(entry, &path, &format!("the {title}"), &names, hint, cx);
            good = false;
            continue;
        };
        let set = match &entry.node.item {
            Item::Value(value) => inlined(value, field.kind, cx.files, &mut cx.tables)
                .and_then(|value| params.set(key, &value).map_err(|e| e.0)),
            Item::Broken => {
                good = false;
                continue;
            }
            _ => Err(format!("expected {}, found {}", phrase(field.kind), entry.node.describe())),
        };
        if let Err(message) = set {
            cx.sink.error(entry.node.span, path, message);
            good = false;
        }
    }
    good &= tell_missing(params, Some(table), &format!("the {title}"), at, cx);
    if good && let Err(invalid) = params.check() {
        let span = table.get(invalid.key).map_or(at.node.span, |e| e.node.span);
        cx.sink.error(span, path_of(invalid.key), invalid.message);
        good = false;
    }
    if good {
        idle::note(params, &of_preset, table, (at.node.span, at.path), &mut cx.idle);
        idle::reset(params, cx.schema);
    }
    good
}

/// Tells of parameters that must be given and are not; true if there are none. One that was misspelt is there.
fn tell_missing(
    params: &dyn Params,
    table: Option<&Table>,
    title: &str,
    at: At<'_>,
    cx: &mut Context<'_>,
) -> bool {
    let names: Vec<&str> = params.fields().iter().map(|f| f.name).collect();
    let meant = |name: &str| is_meant(name, table.into_iter().flat_map(Table::keys), &names);
    // A preset is a whole value.
    let absent = |name: &str| {
        table.is_none_or(|table| table.get(name).is_none() && table.get("preset").is_none())
    };
    let mut complete = true;
    for field in params.fields().iter().filter(|field| field.required && absent(field.name)) {
        complete = false;
        if meant(field.name) {
            continue;
        }
        let (name, value) = (field.name, example_value(field.kind));
        let message = format!("{title} lacks the key `{name}`");
        let path = format!("{}.{name}", at.path);
        let problem = cx.sink.missing(at.node.span, path, message);
        let doc = field.doc.trim().trim_end_matches('.');
        problem.help(format!("{doc}, such as `{name} = {value}`"));
    }
    complete
}
