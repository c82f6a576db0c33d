//! Dotted key paths such as `flow.main.controller.beta_ecn`, setting keys by them, and values that
//! an axis of the sweep replaces.

use std::collections::{BTreeMap, BTreeSet};

use cwnd_schema::file::{Entry, Form, Item, Node, SectionKeys as _, Sink, Span, Table, list};

use crate::file::ScenarioFile;
use crate::flow_keys::FlowKeys;
use crate::links::{DumbbellKeys, LinkKeys};

/// A key path, split at its dots; each part has the span of its text.
#[derive(Clone, Debug)]
pub(crate) struct KeyPath {
    pub text: String,
    pub parts: Vec<(String, Span)>,
}

impl KeyPath {
    /// Parses a path that starts at `at`. Parts that contain a dot are quoted:
    /// `link."a.reverse".delay`.
    pub fn parse(text: &str, at: Span, sink: &mut Sink) -> Option<Self> {
        let mut parts = Vec::new();
        let mut rest = text;
        loop {
            let start = at.start + text.len() - rest.len();
            let (part, after) = match rest.strip_prefix('"') {
                Some(quoted) => match quoted.split_once('"') {
                    Some((part, after)) => (part, after),
                    None => {
                        sink.error(at, text, format!("the path `{text}` lacks a closing quote"));
                        return None;
                    }
                },
                None => rest.split_at(rest.find('.').unwrap_or(rest.len())),
            };
            let part = part.trim();
            if part.is_empty() {
                sink.error(at, text, format!("`{text}` is no path of a key"))
                    .help("write it like `flow.main.rtt`");
                return None;
            }
            let end = at.start + text.len() - after.len();
            parts.push((part.to_owned(), Span { source: at.source, start, end }));
            match after.strip_prefix('.') {
                Some(more) => rest = more,
                None if after.trim().is_empty() => break,
                None => {
                    sink.error(at, text, format!("`{text}` is no path of a key"));
                    return None;
                }
            }
        }
        Some(Self { text: text.to_owned(), parts })
    }

    /// `true` if it stands for a key of every flow group or link, as `flow.*.rtt`.
    fn stands_for_many(&self) -> bool {
        match &self.parts[..] {
            [(section, _), (name, _), _, ..] => name == ALL && MATCHED.contains(&section.as_str()),
            _ => false,
        }
    }

    /// Returns the entries at this path, each with its own path; several for a wildcard.
    pub fn find<'t>(&self, root: &'t Table) -> Vec<(String, &'t Entry)> {
        if !self.stands_for_many() {
            let Some((last, above)) = self.parts.split_last() else { return Vec::new() };
            let inner = |table: &'t Table, part: &(String, Span)| table.get(&part.0)?.node.table();
            let table = above.iter().try_fold(root, inner);
            let found = table.and_then(|table| table.get(&last.0));
            return found.map(|entry| (self.text.clone(), entry)).into_iter().collect();
        }
        let named = root.get(&self.parts[0].0).and_then(|entry| entry.node.table());
        let names = named.into_iter().flat_map(Table::keys);
        names.flat_map(|name| self.of(name).find(root)).collect()
    }

    /// Expands the shorthands along the path, so that [`KeyPath::find`] finds the keys they set.
    pub fn expand(&self, root: &mut Table) {
        let Some((_, above)) = self.parts.split_last() else { return };
        let many = self.stands_for_many();
        let mut tables = vec![root];
        for (depth, (part, _)) in above.iter().enumerate() {
            let all = many && depth == 1;
            let entries = tables.into_iter().flat_map(|table| &mut table.entries);
            tables = entries
                .filter(|entry| all || entry.key == *part)
                .filter_map(|entry| {
                    expand_shorthand(entry);
                    match &mut entry.node.item {
                        Item::Table(table) => Some(table),
                        _ => None,
                    }
                })
                .collect();
        }
    }

    /// Returns the path with its second part, the wildcard, replaced by `name`.
    fn of(&self, name: &str) -> Self {
        let mut parts = self.parts.clone();
        name.clone_into(&mut parts[1].0);
        Self { text: parts.iter().map(|p| p.0.as_str()).collect::<Vec<_>>().join("."), parts }
    }
}

/// A set of paths, for finding two that set the same key.
#[derive(Default)]
pub(crate) struct Varied<'p> {
    /// Names in the second part, and `true` if one is a wildcard; by the other parts of the path.
    names: BTreeMap<Vec<&'p str>, (BTreeSet<&'p str>, bool)>,
}

impl<'p> Varied<'p> {
    /// Adds a path; `false` if it sets a key that an earlier path sets.
    pub fn insert(&mut self, path: &'p KeyPath) -> bool {
        let mut parts: Vec<&str> = path.parts.iter().map(|part| part.0.as_str()).collect();
        let name = if parts.len() > 1 { parts.remove(1) } else { "" };
        let (names, all) = self.names.entry(parts).or_default();
        let many = path.stands_for_many();
        let meets = *all || (many && !names.is_empty()) || !names.insert(name);
        *all |= many;
        !meets
    }
}

/// Wildcard in place of a name: every group or link.
const ALL: &str = "*";
/// Sections whose names may be a wildcard.
const MATCHED: &[&str] = &["flow", "link"];

/// Sections in which a path must not create a name, as a typing error would.
const NAMED: &[&[&str]] = &[&["flow"], &["link"], &["sweep", "axis"]];

/// Sets the key at `path`, replacing its value or adding the key; a wildcard sets it in every group
/// or link.
pub(crate) fn set(root: &mut Table, path: &KeyPath, value: Node, sink: &mut Sink) -> bool {
    if !path.stands_for_many() {
        return set_one(root, path, value, sink);
    }
    let (section, _) = &path.parts[0];
    let named = root.get(section).and_then(|entry| entry.node.table());
    let names: Vec<String> = named.into_iter().flat_map(Table::keys).map(str::to_owned).collect();
    if names.is_empty() {
        let message = format!("`{}` matches nothing: there is no [{section}.…]", path.text);
        sink.error(path.parts[1].1, &path.text, message);
        return false;
    }
    let set = |name: &String| set_one(root, &path.of(name), value.clone(), sink);
    // All are tried, so that all errors are reported together.
    let results: Vec<bool> = names.iter().map(set).collect();
    results.into_iter().all(|good| good)
}

fn set_one(root: &mut Table, path: &KeyPath, value: Node, sink: &mut Sink) -> bool {
    let Some(((last, last_span), sections)) = path.parts.split_last() else { return false };
    let mut table = root;
    for (depth, (part, span)) in sections.iter().enumerate() {
        if !names_what_is_there(table, &path.parts[..=depth], path, sink) {
            return false;
        }
        if table.get(part).is_none() {
            let node = Node { item: Item::Table(Table::default()), span: *span };
            table.entries.push(Entry { key: part.clone(), key_span: *span, node, set: false });
        }
        let Some(entry) = table.get_mut(part) else { return false };
        expand_shorthand(entry);
        let found = entry.node.describe();
        let Item::Table(inner) = &mut entry.node.item else {
            let message = format!("`{part}` is {found}, and has no keys in it");
            sink.error(*span, &path.text, message);
            return false;
        };
        table = inner;
    }
    if !names_what_is_there(table, &path.parts, path, sink) {
        return false;
    }
    let (key, key_span) = (last.clone(), *last_span);
    match table.get_mut(last) {
        Some(entry) => (entry.node, entry.set) = (value, true),
        None => table.entries.push(Entry { key, key_span, node: value, set: true }),
    }
    true
}

/// `true` if the last part of `parts` may be named: a top-level key, an existing group, link or
/// axis, or any key in one of these. Reports an error otherwise.
fn names_what_is_there(
    table: &Table,
    parts: &[(String, Span)],
    path: &KeyPath,
    sink: &mut Sink,
) -> bool {
    let Some(((name, span), above)) = parts.split_last() else { return false };
    let known: Vec<&str> = if above.is_empty() {
        ScenarioFile::KEYS.iter().map(|key| key.name).collect()
    } else {
        let user_named = NAMED.iter().any(|names| {
            names.len() == above.len() && names.iter().zip(above).all(|(n, p)| *n == p.0)
        });
        if !user_named {
            return true;
        }
        table.keys().collect()
    };
    if known.contains(&name.as_str()) {
        return true;
    }
    let whole: Vec<&str> = parts.iter().map(|p| p.0.as_str()).collect();
    let whole = whole.join(".");
    if let Some(near) = sink.closest(name, known.iter().copied()) {
        let message = format!("there is no `{whole}`, did you mean `{near}`?");
        sink.error(*span, &path.text, message);
        return false;
    }
    let problem = sink.error(*span, &path.text, format!("there is no `{whole}`"));
    problem.help(if known.is_empty() {
        format!("`{}` is empty", above.iter().map(|p| p.0.as_str()).collect::<Vec<_>>().join("."))
    } else {
        format!("there are {}", list(known.iter().copied()))
    });
    false
}

/// Expands `queue = "codel"` to `queue = { kind = "codel" }`, so that keys can be set in it.
fn expand_shorthand(entry: &mut Entry) {
    let Some(inner) = shorthand(&entry.key) else { return };
    if matches!(entry.node.item, Item::Value(_)) {
        let span = entry.node.span;
        let node = entry.node.clone();
        let plain = Entry { key: inner.to_owned(), key_span: span, node, set: entry.set };
        entry.node = Node { item: Item::Table(Table { entries: vec![plain] }), span };
    }
}

/// Returns the key that a plain value of `key` sets in a table: `kind` for `queue`, as
/// `queue = "codel"` is `queue = { kind = "codel" }`. `None` if `key` has no such short form.
fn shorthand(key: &str) -> Option<&'static str> {
    let mut forms = [DumbbellKeys::KEYS, LinkKeys::KEYS, FlowKeys::KEYS]
        .into_iter()
        .flatten()
        .filter(|of| of.name == key);
    forms.find_map(|of| match of.form {
        Form::Value(takes) => takes.shorthand,
        Form::Plain(_) | Form::Section | Form::Named => None,
    })
}

/// Reports, at each entry of `path`, the first value that the axis `axis` replaces: one set there
/// from the command line, or else a key of a table that none of the axis's values has alike. A
/// plain value, a `kind`, or a value of the axis counts as the starting point of the sweep.
pub(crate) fn report_replaced(
    root: &Table,
    axis: &str,
    path: &KeyPath,
    values: &[&Node],
    sink: &mut Sink,
) {
    for (key, entry) in path.find(root) {
        let (lost, help) = if let Some(lost) = from_command_line(&key, entry) {
            (lost, format!("set `sweep.axis.{axis}.values`"))
        } else if let Some(lost) = in_no_value(&key, entry, values) {
            (lost, "write it into the values of the axis, or remove it".to_owned())
        } else {
            continue;
        };
        let (lost, span) = lost;
        let message =
            format!("`{lost}` has no effect: the axis `{axis}` sets `{key}` at every point");
        sink.error(span, lost, message).help(help);
    }
}

type Lost = (String, Span);

/// Returns the first value at or below a key that was set from the command line.
fn from_command_line(key: &str, entry: &Entry) -> Option<Lost> {
    if entry.node.span.source != 0 {
        return Some((key.to_owned(), entry.node.span));
    }
    let below = &entry.node.table()?.entries;
    below.iter().find_map(|inner| from_command_line(&format!("{key}.{}", inner.key), inner))
}

/// Returns the first key of a table, except `kind`, that no value of the axis has alike.
fn in_no_value(key: &str, entry: &Entry, values: &[&Node]) -> Option<Lost> {
    let table = entry.node.table()?;
    // Values of another source than 0, the scenario file, come from the command line. They may omit
    // the file's own value.
    let chosen = values.iter().any(|value| value.span.source != 0);
    if chosen || values.iter().any(|value| has(value, &entry.node)) {
        return None;
    }
    let in_none = |inner: &&Entry| {
        let same = |value: &&Node| {
            value.table().and_then(|t| t.get(&inner.key)).is_some_and(|e| has(&e.node, &inner.node))
        };
        inner.key != "kind" && !values.iter().any(same)
    };
    let lost = table.entries.iter().find(in_none)?;
    Some((format!("{key}.{}", lost.key), lost.key_span))
}

/// `true` if `whole` contains all of `part`. A plain value contains a table with it as the only
/// value, as `"codel"` and `{ kind = "codel" }`.
fn has(whole: &Node, part: &Node) -> bool {
    match (&whole.item, &part.item) {
        (Item::Value(a), Item::Value(b)) => a == b,
        (Item::Array(a), Item::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| has(a, b))
        }
        (Item::Table(a), Item::Table(b)) => {
            b.entries.iter().all(|e| a.get(&e.key).is_some_and(|found| has(&found.node, &e.node)))
        }
        (Item::Value(_), Item::Table(table)) => match &table.entries[..] {
            [short] => has(whole, &short.node),
            _ => false,
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cwnd_schema::file::{parse_document, parse_value};

    fn set_text(document: &str, path: &str, value: &str) -> Result<Table, Sink> {
        let mut sink = Sink::default();
        let mut root = parse_document(0, document, &mut Sink::default(), &mut sink);
        let path = KeyPath::parse(path, Span::default(), &mut sink);
        let value = parse_value(0, 0, value, &mut sink).unwrap();
        if path.is_some_and(|p| set(&mut root, &p, value, &mut sink)) {
            Ok(root)
        } else {
            Err(sink)
        }
    }

    fn at<'t>(table: &'t Table, path: &[&str]) -> &'t Node {
        let node = &table.get(path[0]).unwrap().node;
        if path.len() == 1 { node } else { at(node.table().unwrap(), &path[1..]) }
    }

    #[test]
    fn a_key_is_replaced_or_added() {
        let root = set_text("[run]\nseed = 1", "run.seed", "2").unwrap();
        assert_eq!(at(&root, &["run", "seed"]).describe(), "the bare number 2");
        let root = set_text("[run]\nseed = 1", "run.warmup", "\"5 s\"").unwrap();
        assert_eq!(at(&root, &["run", "warmup"]).text(), Some("5 s"));
    }

    #[test]
    fn a_key_inside_a_shorthand_keeps_what_the_shorthand_said() {
        let document = "[flow.main]\ncontroller = \"cubic\"";
        let root = set_text(document, "flow.main.controller.beta_ecn", "0.85").unwrap();
        assert_eq!(at(&root, &["flow", "main", "controller", "kind"]).text(), Some("cubic"));
        assert_eq!(
            at(&root, &["flow", "main", "controller", "beta_ecn"]).describe(),
            "the bare number 0.85"
        );
    }

    #[test]
    fn a_name_with_a_dot_is_quoted() {
        let document = "[link.\"a.reverse\"]\ndelay = \"1 ms\"";
        let root = set_text(document, "link.\"a.reverse\".delay", "\"2 ms\"").unwrap();
        assert_eq!(at(&root, &["link", "a.reverse", "delay"]).text(), Some("2 ms"));
    }

    #[test]
    fn a_star_stands_for_every_group_and_every_link() {
        let document = "[flow.a]\nrtt = \"1 ms\"\n[flow.b]\ncontroller = \"cubic\"";
        let root = set_text(document, "flow.*.rtt", "\"2 ms\"").unwrap();
        assert_eq!(at(&root, &["flow", "a", "rtt"]).text(), Some("2 ms"));
        assert_eq!(at(&root, &["flow", "b", "rtt"]).text(), Some("2 ms"));
        let root = set_text(document, "flow.*.controller.beta", "0.8").unwrap();
        assert_eq!(at(&root, &["flow", "b", "controller", "kind"]).text(), Some("cubic"));
        let links = "[link.a]\ndelay = \"1 ms\"\n[link.\"a.reverse\"]";
        let root = set_text(links, "link.*.delay", "\"3 ms\"").unwrap();
        assert_eq!(at(&root, &["link", "a.reverse", "delay"]).text(), Some("3 ms"));
    }

    #[test]
    fn a_star_that_matches_nothing_is_an_error() {
        for (document, path) in [
            ("[flow.a]\ncount = 1", "link.*.delay"),
            ("[flow]", "flow.*.rtt"),
            ("[flow.a]\ncount = 1", "*.a.rtt"),
        ] {
            let sink = set_text(document, path, "\"2 ms\"").unwrap_err();
            assert!(sink.has_errors(), "{path}");
        }
    }

    #[test]
    fn paths_meet_where_one_stands_for_the_other() {
        let meet = |a: &str, b: &str| {
            let mut sink = Sink::default();
            let mut path = |text| KeyPath::parse(text, Span::default(), &mut sink).unwrap();
            let (a, b) = (path(a), path(b));
            let meet = |one, other| {
                let mut varied = Varied::default();
                assert!(varied.insert(one));
                !varied.insert(other)
            };
            assert_eq!(meet(&a, &b), meet(&b, &a));
            meet(&a, &b)
        };
        assert!(meet("flow.*.rtt", "flow.main.rtt"));
        assert!(meet("flow.main.rtt", "flow.\"main\".rtt"));
        assert!(!meet("flow.*.rtt", "flow.main.count"));
        assert!(!meet("flow.*.rtt", "link.main.rtt"));
        assert!(!meet("flow.*.controller", "flow.main.controller.beta"));
    }

    #[test]
    fn no_group_comes_into_being_by_a_slip_of_the_finger() {
        assert!(set_text("[flow.main]\ncount = 1", "flow.mian.count", "2").is_err());
        assert!(set_text("[flow.main]\ncount = 1", "flow..count", "2").is_err());
        assert!(set_text("[flow.main]\ncount = 1", "flows.main.count", "2").is_err());
        assert!(set_text("[flow.main]\ncount = 1", "flow.main.count.more", "2").is_err());
    }
}
