//! Typed access to the tree; problems are collected, so that other keys are still read.

use std::borrow::Cow;

use crate::description::described;
use crate::file::context::{At, Context, IdleKey, note};
use crate::file::diagnostics::{MAX_SHOWN, Span};
use crate::file::keys::{Fallback, Key, example, example_value, index_of, phrase};
use crate::file::suggest::{closest, list};
use crate::file::tree::{Entry, Item, Table, parse_value};
use crate::{Param, Params, ParamsChoice, ValueType};

/// A table with the keys that it may have.
pub struct Section<'t> {
    table: &'t Table,
    keys: &'static [&'static [Key]],
    /// Path of the section; empty for the top level of the file.
    pub path: String,
    /// Position reported for absent keys.
    pub at: Span,
}

impl<'t> Section<'t> {
    /// Creates a section, and reports its unknown keys.
    pub fn new(
        table: &'t Table,
        keys: &'static [&'static [Key]],
        path: impl Into<String>,
        at: Span,
        cx: &mut Context<'_>,
    ) -> Self {
        Self::with_hint(table, keys, path, at, &|_| None, cx)
    }

    /// Creates a section as [`Section::new`] does; `elsewhere` explains where an unknown key
    /// belongs.
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

    /// `true` if an unknown key of the table is probably a misspelling of `name`.
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

    /// Returns the path of one of its keys.
    pub fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Returns the position of a key's value, or of the section if the key is absent.
    pub fn span_of(&self, key: &str) -> Span {
        self.table.get(key).map_or(self.at, |e| e.node.span)
    }

    /// Returns the same section without entries, to read its defaults.
    pub fn without_entries(&self) -> Section<'static> {
        const EMPTY: &Table = &Table { entries: Vec::new() };
        Section { table: EMPTY, keys: self.keys, path: self.path.clone(), at: self.at }
    }

    /// Returns the entry of a key, if the file has it.
    pub fn entry(&self, key: &str) -> Option<&'t Entry> {
        self.table.get(key)
    }

    /// Reads the value of a key, from the file or from its default.
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

    /// Reports an absent key, unless another key is probably a misspelling of it.
    pub fn lacks(&self, name: &str, cx: &mut Context<'_>) {
        let Some(key) = self.key(name).filter(|_| !self.misspelt(name)) else { return };
        let (what, example) = example(key);
        let message = format!("{} lacks {what}", self.title());
        let problem = cx.sink.missing(self.at, self.path_of(name), message);
        let doc = key.doc.trim().trim_end_matches('.');
        problem.help(format!("{doc}, such as {example}"));
    }

    /// Reads a parameter's value and checks its bounds.
    pub fn plain<T: Param>(&self, name: &str, cx: &mut Context<'_>) -> Option<T> {
        let key = self.key(name)?;
        self.read(name, cx, |at, cx| {
            let value: T = at.plain(cx)?;
            if let Some(message) = value.quantity().and_then(|q| key.bounds.violation(q)) {
                cx.sink.error(at.node.span, at.path, message);
                return None;
            }
            Some(value)
        })
    }

    fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find_map(|keys| keys.get(index_of(keys, name)))
    }

    /// Records that a key has no effect, if the file has it; `true` if the key must be reset to its
    /// default.
    pub fn has_no_effect(&self, key: &str, why: &str, cx: &mut Context<'_>) -> bool {
        let entry = self.entry(key).into_iter();
        cx.idle.extend(entry.map(|entry| IdleKey::of_section(entry, self.path_of(key), why)));
        cx.refuses_idle()
    }
}

/// `true` if one of the first [`MAX_SHOWN`] unknown keys is closest to `name`.
fn is_meant<'k>(name: &str, keys: impl Iterator<Item = &'k str>, names: &[&str]) -> bool {
    let mut unknown = keys.filter(|key| !names.contains(key)).take(MAX_SHOWN);
    unknown.any(|key| closest(key, names.iter().copied()) == Some(name))
}

/// Reports a key that is not among `names`.
fn unknown_key(
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

/// Reports a name that is not among `names`.
pub fn unknown_name(at: At<'_>, what: &str, names: &[&str], cx: &mut Context<'_>) {
    unknown_name_of(at, (what, ""), names, cx);
}

/// Reports a name of a `what` that `owner` does not have.
pub fn unknown_name_of(
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

/// Reads one of several algorithms: `"codel"`, or `{ kind = "codel", preset = "…", target = "5 ms"
/// }`.
pub fn choice<T: ParamsChoice>(at: At<'_>, what: &str, cx: &mut Context<'_>) -> Option<T> {
    choice_from(at, what, &|_| None, cx).map(|(chosen, _)| chosen)
}

/// Reads an algorithm as [`choice`] does, but starts from the preset that `base` gives for its
/// kind, unless the file names another one. Also returns the preset in force.
pub fn choice_from<T: ParamsChoice>(
    at: At<'_>,
    what: &str,
    base: &dyn Fn(&dyn Params) -> Option<&'static str>,
    cx: &mut Context<'_>,
) -> Option<(T, Option<&'static str>)> {
    let kinds: Vec<&str> = T::all_kinds().map(|k| k.name).collect();
    let Some(table) = at.node.table() else {
        let mut chosen: T = of_name(at, None, (what, &kinds), cx)?;
        let preset = apply_base_preset(chosen.params_mut(), base);
        cx.reset_idle(chosen.params_mut());
        let title = format!("the {what} `{}`", chosen.kind());
        let complete = report_missing(chosen.params(), None, &title, at, cx);
        return complete.then_some((chosen, preset));
    };
    let kind_path = format!("{}.kind", at.path);
    let chosen = match table.get("kind") {
        None => Some(T::default()),
        Some(entry) => {
            let description = table.get(DESCRIPTION).and_then(|entry| entry.node.text());
            of_name(At { node: &entry.node, path: &kind_path }, description, (what, &kinds), cx)
        }
    };
    let mut chosen = chosen?;
    let table = &*with_current_names(chosen.params(), table, at.path, cx);
    let preset = apply_base_preset(chosen.params_mut(), base);
    let title = format!("{what} `{}`", chosen.kind());
    let elsewhere = |key: &str| {
        let having: Vec<&str> = kinds
            .iter()
            .copied()
            .filter(|kind| T::of_kind(kind).is_some_and(|c| c.params().get(key).is_some()))
            .collect();
        (!having.is_empty()).then(|| format!("it is a key of {}", list(having)))
    };
    let besides: &[&str] =
        if chosen.description().is_some() { &["kind", DESCRIPTION] } else { &["kind"] };
    let shape = TableDescription { title: &title, besides, elsewhere: &elsewhere };
    let params = chosen.params_mut();
    let written = table_preset(params, table, &title, |name, _| name, (at, cx));
    let is_good = parameters(params, table, &shape, at, cx);
    written.filter(|_| is_good).map(|written| (chosen, written.or(preset)))
}

/// Key with the description of a kind that an installed package has, which resolved files contain.
pub const DESCRIPTION: &str = "installed";

/// Returns the defaults of a kind by its name: one of this project, or one of an installed package,
/// with its description if the file has that. Reports an unknown name.
fn of_name<T: ParamsChoice>(
    at: At<'_>,
    description: Option<&str>,
    (what, kinds): (&str, &[&str]),
    cx: &mut Context<'_>,
) -> Option<T> {
    let name = at.node.text();
    if let Some(chosen) = name.and_then(T::of_kind) {
        return Some(chosen);
    }
    let found = match (name, description) {
        (Some(name), None) if T::HAS_INSTALLED => cx.installed(name),
        (_, description) => description.map(str::to_owned),
    };
    match found.map(|text| described(&text)) {
        Some(Ok(description)) => T::of_installed(description),
        Some(Err(why)) => {
            cx.sink.error(at.node.span, at.path, why);
            None
        }
        None => {
            let others = if T::HAS_INSTALLED { cx.installed("") } else { None };
            let others = others.unwrap_or_default();
            let names: Vec<&str> = kinds.iter().copied().chain(others.lines()).collect();
            unknown_name(at, what, &names, cx);
            None
        }
    }
}

/// Applies the base preset of a kind, and returns its name.
fn apply_base_preset(
    params: &mut dyn Params,
    base: &dyn Fn(&dyn Params) -> Option<&'static str>,
) -> Option<&'static str> {
    base(params).filter(|name| params.apply_preset(name))
}

/// Returns the preset of this name, if there is one.
pub fn preset(params: &dyn Params, name: &str) -> Option<&'static str> {
    params.presets().iter().map(|preset| preset.name).find(|&known| known == name)
}

/// Description of a table of parameters, for messages.
pub struct TableDescription<'a> {
    /// Name of the table in messages.
    pub title: &'a str,
    /// Keys that the table takes besides parameters.
    pub besides: &'a [&'static str],
    /// Explains where a key belongs that the table does not have.
    pub elsewhere: &'a dyn Fn(&str) -> Option<String>,
}

/// Function that maps the name of a preset in a file of a given version to its current name.
pub type PresetRenaming = fn(&str, u64) -> &str;

/// Applies the preset that a table names, by its current or an earlier name. `Some(None)` if the
/// table names none; `None` after an error about an unknown name.
pub fn table_preset(
    params: &mut dyn Params,
    table: &Table,
    title: &str,
    renaming: PresetRenaming,
    (at, cx): (At<'_>, &mut Context<'_>),
) -> Option<Option<&'static str>> {
    let Some(entry) = table.get("preset") else { return Some(None) };
    let path = format!("{}.preset", at.path);
    named_preset(params, title, renaming, (At { node: &entry.node, path: &path }, cx)).map(Some)
}

/// Applies the preset that a node names; `None` after an error about an unknown name.
pub fn named_preset(
    params: &mut dyn Params,
    title: &str,
    renaming: PresetRenaming,
    (at, cx): (At<'_>, &mut Context<'_>),
) -> Option<&'static str> {
    let named = at.node.text().and_then(|name| preset(params, renaming(name, cx.schema)));
    if named.is_none() {
        let presets: Vec<&str> = params.presets().iter().map(|p| p.name).collect();
        unknown_name_of(at, ("preset", title), &presets, cx);
    }
    named.filter(|name| params.apply_preset(name))
}

/// Sets parameters from a table: each key in turn, then checks that need all of them; `true` if all
/// are valid.
pub fn parameters(
    params: &mut dyn Params,
    table: &Table,
    shape: &TableDescription<'_>,
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
        let field = params.fields().iter().find(|f| f.name == key);
        let kind = match field {
            Some(field) => Some(field.value_type),
            None => params.arguments().map(|_| ValueType::Argument),
        };
        let Some(kind) = kind else {
            let hint = (shape.elsewhere)(key);
            unknown_key(entry, &path, &format!("the {title}"), &names, hint, cx);
            good = false;
            continue;
        };
        let set = match &entry.node.item {
            Item::Value(value) => {
                cx.inlined(value, kind).and_then(|value| params.set(key, &value).map_err(|e| e.0))
            }
            Item::Broken => {
                good = false;
                continue;
            }
            _ => Err(format!("expected {}, found {}", phrase(kind), entry.node.describe())),
        };
        if let Err(message) = set {
            cx.sink.error(entry.node.span, path, message);
            good = false;
        }
    }
    good &= report_missing(params, Some(table), &format!("the {title}"), at, cx);
    if good && let Err(invalid) = params.check() {
        let span = table.get(invalid.key).map_or(at.node.span, |e| e.node.span);
        cx.sink.error(span, path_of(invalid.key), invalid.message);
        good = false;
    }
    if good {
        note(params, &of_preset, table, (at.node.span, at.path), &mut cx.idle);
        cx.reset_idle(params);
    }
    good
}

/// Reports absent required parameters; `true` if there are none. A probable misspelling is already
/// reported as an unknown key.
fn report_missing(
    params: &dyn Params,
    table: Option<&Table>,
    title: &str,
    at: At<'_>,
    cx: &mut Context<'_>,
) -> bool {
    let names: Vec<&str> = params.fields().iter().map(|f| f.name).collect();
    let meant = |name: &str| is_meant(name, table.into_iter().flat_map(Table::keys), &names);
    // A preset sets every parameter.
    let is_absent = |name: &str| {
        table.is_none_or(|table| table.get(name).is_none() && table.get("preset").is_none())
    };
    let mut complete = true;
    for field in params.fields().iter().filter(|field| field.required && is_absent(field.name)) {
        complete = false;
        if meant(field.name) {
            continue;
        }
        let (name, value) = (field.name, example_value(field.value_type));
        let message = format!("{title} lacks the key `{name}`");
        let path = format!("{}.{name}", at.path);
        let problem = cx.sink.missing(at.node.span, path, message);
        let doc = field.doc.trim().trim_end_matches('.');
        problem.help(format!("{doc}, such as `{name} = {value}`"));
    }
    complete
}

/// Returns a table of parameters with the current names of its keys, and warns of former ones; a
/// key under both names is an error. `path` is the path of the table.
pub fn with_current_names<'t>(
    params: &dyn Params,
    table: &'t Table,
    path: &str,
    cx: &mut Context<'_>,
) -> Cow<'t, Table> {
    let mut table = Cow::Borrowed(table);
    for field in params.fields() {
        let Some(was) = field.was else { continue };
        let Some(i) = table.entries.iter().position(|entry| entry.key == was) else { continue };
        let (name, is_given) = (field.name, table.get(field.name).is_some());
        let (span, path) = (table.entries[i].position(), format!("{path}.{was}"));
        if is_given {
            let message = format!("`{was}` is the former name of `{name}`, which is given as well");
            cx.sink.error(span, path, message).help(format!("remove `{was}`"));
            table.to_mut().entries.remove(i);
        } else {
            let message = format!("`{was}` is now called `{name}`");
            let problem = cx.sink.warning(span, path, message);
            problem.help(format!("write `{name}`: the next version does not know the old name"));
            name.clone_into(&mut table.to_mut().entries[i].key);
        }
    }
    table
}
