//! The section `[sweep]`: its axes, and the combinations of their values.

use std::collections::BTreeSet;

use cwnd_quantity::{QueueSize, parse_bytes, parse_duration, parse_rate};
use cwnd_schema::file::{
    At, Context, Entry, Form, Item, Node, ReadValue, Section, SectionKeys as _, Sink, Span, Table,
    list, too_long,
};
use cwnd_schema::{Param, SectionKeys, Value};

use crate::key_path::{KeyPath, Varied, report_replaced, set};
use crate::model::{self, AxisValue};
use crate::value_forms::{self, Format, MAX_CELLS, Raw};

/// Keys of `[sweep]`.
#[derive(SectionKeys)]
#[section(input)]
pub(crate) struct SweepKeys {
    /// Runs of each combination, with seeds `seed`, `seed + 1`, …
    #[default(1, "cwnd: one")]
    #[bounds(from 1, up_to MAX_CELLS; "no repeats are no runs, more fit no plan")]
    repeat: u64,
    /// Axes, by name; every combination of their values is run.
    #[entry(Form::Named)]
    #[derived("none", "none")]
    axis: Option<Vec<Axis>>,
}

/// Keys of `[sweep.axis.NAME]`.
#[derive(SectionKeys)]
#[section(input)]
pub(crate) struct AxisKeys {
    /// Path of the key that is varied, such as `"flow.main.rtt"`, or `"flow.*.rtt"` for that of
    /// every group; a list of paths varies them together.
    #[entry(value_forms::PATHS)]
    #[required("none")]
    path: Paths,
    /// Its values; with several paths, a list of values for each.
    #[entry(value_forms::VALUES)]
    #[required("none")]
    values: Raw,
    /// Names of the values in results.
    #[entry(value_forms::LABELS)]
    #[derived("the values as they are written", "cwnd: the value says it best")]
    labels: Option<Vec<String>>,
    /// Baselines of labels, over which gains are computed in comparisons of the simulator with
    /// other worlds: `{ BMCC = ["Reno", "CUBIC"] }`. A label without an entry has as its baseline
    /// the longest other label that it extends with "+", as in `"Reno+ABE"`.
    #[entry(value_forms::OVER)]
    #[derived("what labels say with \"+\"", "cwnd: most arms are a base with something besides")]
    over: Option<Raw>,
}

/// The axes of a sweep, and the number of repeats.
#[derive(Debug)]
pub(crate) struct Sweep {
    pub repeat: u64,
    pub axes: Vec<Axis>,
}

/// Key paths of an axis.
pub(crate) struct Paths {
    paths: Vec<KeyPath>,
    /// `true` if the file gives a list of paths; each value is then a list, too.
    several: bool,
}

/// One axis of a sweep.
#[derive(Debug)]
pub(crate) struct Axis {
    pub name: String,
    paths: Vec<KeyPath>,
    points: Vec<Point>,
    /// Baselines: a label, and the labels over which its gain is computed.
    over: Vec<(String, Vec<String>)>,
}

/// One value of an axis.
#[derive(Debug)]
struct Point {
    /// One node for each path.
    values: Vec<Node>,
    label: String,
    quantity: Option<(f64, Option<&'static str>)>,
}

impl Sweep {
    /// Returns a sweep without axes, which has one run.
    pub const fn none() -> Self {
        Self { repeat: 1, axes: Vec::new() }
    }

    /// Reads `[sweep]`; errors go to the context's sink.
    pub fn read(entry: &Entry, cx: &mut Context<'_>) -> Option<Self> {
        let Some(table) = entry.node.table() else {
            At { node: &entry.node, path: "sweep" }.wrong_kind("a section [sweep]", cx);
            return None;
        };
        let section = Section::new(table, &[SweepKeys::KEYS], "sweep", entry.key_span, cx);
        let SweepKeys { repeat, axis } = SweepKeys::read(&section, cx)?;
        let sweep = Self { repeat, axes: axis.unwrap_or_default() };
        sweep.check(&section, cx).then_some(sweep)
    }

    fn check(&self, section: &Section<'_>, cx: &mut Context<'_>) -> bool {
        let mut good = self.repeat > 0;
        let cells = self
            .axes
            .iter()
            .try_fold(self.repeat, |n, axis| n.checked_mul(axis.points.len() as u64));
        if cells.is_none_or(|n| n > MAX_CELLS) {
            let count = cells.map_or_else(|| "far too many".to_owned(), |n| n.to_string());
            let message = format!("the sweep has {count} runs: at most {MAX_CELLS} fit a plan");
            cx.sink.error(section.at, "sweep", message);
            good = false;
        }
        let mut earlier = Varied::default();
        for path in self.axes.iter().flat_map(|axis| &axis.paths) {
            if !earlier.insert(path) {
                let message = format!("`{}` is varied twice", path.text);
                cx.sink.error(path.parts[0].1, &path.text, message);
                good = false;
            }
        }
        good
    }

    /// Number of combinations, apart from repeats.
    pub fn combinations(&self) -> usize {
        self.axes.iter().map(|axis| axis.points.len()).product()
    }

    /// Returns the value of combination `index` on each axis; the last axis varies fastest.
    fn position(&self, mut index: usize) -> Vec<(&Axis, &Point)> {
        let mut position: Vec<(&Axis, &Point)> = Vec::with_capacity(self.axes.len());
        for axis in self.axes.iter().rev() {
            position.push((axis, &axis.points[index % axis.points.len()]));
            index /= axis.points.len();
        }
        position.reverse();
        position
    }

    /// Returns the values of combination `index`, as results show them.
    pub fn labels(&self, index: usize) -> Vec<AxisValue> {
        let describe = |(axis, point): (&Axis, &Point)| AxisValue {
            axis: axis.name.clone(),
            label: point.label.clone(),
            value: point.quantity.map(|q| q.0),
            unit: point.quantity.and_then(|q| q.1),
        };
        self.position(index).into_iter().map(describe).collect()
    }

    /// Returns the axes as data for callers, without their TOML nodes.
    pub fn outline(&self) -> Vec<model::Axis> {
        let describe = |axis: &Axis| model::Axis {
            name: axis.name.clone(),
            labels: axis.points.iter().map(|point| point.label.clone()).collect(),
            values: axis.points.iter().map(|point| point.quantity.map(|q| q.0)).collect(),
            unit: axis.points.first().and_then(|point| point.quantity?.1),
            over: axis.over.clone(),
        };
        self.axes.iter().map(describe).collect()
    }

    /// Reports values that the axes replace in every run.
    pub fn report_replaced(&self, root: &Table, sink: &mut Sink) {
        let mut root = root.clone();
        self.axes.iter().flat_map(|axis| &axis.paths).for_each(|path| path.expand(&mut root));
        for axis in &self.axes {
            for (i, path) in axis.paths.iter().enumerate() {
                let values: Vec<&Node> = axis.points.iter().map(|p| &p.values[i]).collect();
                report_replaced(&root, &axis.name, path, &values, sink);
            }
        }
    }

    /// `true` if `span` lies in a value of an axis.
    pub fn has_value_at(&self, span: Span) -> bool {
        let nodes = self.axes.iter().flat_map(|axis| &axis.points).flat_map(|point| &point.values);
        let mut spans = nodes.map(|node| node.span);
        spans.any(|of| of.source == span.source && of.start <= span.start && span.end <= of.end)
    }

    /// Describes a set of combinations, as in "queue fifo, ecn on"; `None` if it has all of them.
    pub fn place(&self, combinations: &BTreeSet<usize>) -> Option<String> {
        /// Number of labels up to which they are listed; more are only counted.
        const MOST: usize = 3;
        if combinations.len() == self.combinations() {
            return None;
        }
        let mut found = vec![BTreeSet::new(); self.axes.len()];
        for &index in combinations {
            for (labels, (_, point)) in found.iter_mut().zip(self.position(index)) {
                labels.insert(point.label.as_str());
            }
        }
        let mut parts = Vec::new();
        if found.iter().map(BTreeSet::len).product::<usize>() != combinations.len() {
            parts.push(format!("{} of {} combinations", combinations.len(), self.combinations()));
        }
        for (axis, all) in self.axes.iter().zip(found) {
            if all.len() == axis.points.len() {
                continue;
            }
            let in_order = axis.points.iter().map(|point| point.label.as_str());
            let labels: Vec<&str> = in_order.filter(|label| all.contains(label)).collect();
            parts.push(if labels.len() > MOST {
                format!("{} of the {} values of {}", labels.len(), axis.points.len(), axis.name)
            } else {
                format!("{} {}", axis.name, labels.join(" or "))
            });
        }
        Some(parts.join(", "))
    }

    /// Sets the values of combination `index`. A path that leads into the value of another axis is
    /// set after it. `false` if a value could not be set.
    pub fn apply(&self, index: usize, root: &mut Table, sink: &mut Sink) -> bool {
        let mut settings: Vec<(&KeyPath, &Node)> = Vec::new();
        for (axis, point) in self.position(index) {
            settings.extend(axis.paths.iter().zip(&point.values));
        }
        settings.sort_by_key(|(path, _)| path.parts.len());
        let results: Vec<bool> =
            settings.iter().map(|(path, value)| set(root, path, (*value).clone(), sink)).collect();
        results.into_iter().all(|good| good)
    }
}

impl ReadValue<Format> for Vec<Axis> {
    fn read(at: At<'_>, cx: &mut Context<'_>) -> Option<Self> {
        let Some(table) = at.node.table() else {
            at.wrong_kind("sections such as [sweep.axis.rtt]", cx);
            return None;
        };
        let axes: Vec<Option<Axis>> = table.entries.iter().map(|entry| axis(entry, cx)).collect();
        axes.into_iter().collect()
    }
}

fn axis(entry: &Entry, cx: &mut Context<'_>) -> Option<Axis> {
    let path = format!("sweep.axis.{}", entry.key);
    let Some(table) = entry.node.table() else {
        At { node: &entry.node, path: &path }.wrong_kind("a table with `path` and `values`", cx);
        return None;
    };
    let section = Section::new(table, &[AxisKeys::KEYS], path, entry.key_span, cx);
    let AxisKeys { path, values: rows, labels, over: bases } = AxisKeys::read(&section, cx)?;
    let rows = values(rows.at(), path.several.then_some(path.paths.len()), cx)?;
    if let Some(labels) = &labels
        && labels.len() != rows.len()
    {
        let counted = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let (labels, values) = (counted(labels.len(), "label"), counted(rows.len(), "value"));
        let message = format!("{labels} for {values}: each has one");
        cx.sink.error(section.span_of("labels"), section.path_of("labels"), message);
        return None;
    }
    let labels = labels.unwrap_or_else(|| rows.iter().map(|values| label_of(values)).collect());
    let mut earlier = BTreeSet::new();
    for label in &labels {
        if too_long(label, section.span_of("labels"), &section.path_of("labels"), &mut cx.sink) {
            return None;
        }
        if !earlier.insert(label) {
            let key = if section.entry("labels").is_some() { "labels" } else { "values" };
            let message = format!("two values of the axis are called `{label}`");
            let problem = cx.sink.error(section.span_of(key), section.path_of(key), message);
            problem.help("results can tell values apart only by their `labels`");
            return None;
        }
    }
    let over = match bases {
        Some(bases) => over(bases.at(), &labels, cx)?,
        None => Vec::new(),
    };
    let quantities = quantities(&rows);
    let points = rows.into_iter().zip(labels).zip(quantities);
    let points =
        points.map(|((values, label), quantity)| Point { values, label, quantity }).collect();
    Some(Axis { name: entry.key.clone(), paths: path.paths, points, over })
}

/// Reads one path, or several that are varied together.
impl ReadValue<Format> for Paths {
    fn read(at: At<'_>, cx: &mut Context<'_>) -> Option<Self> {
        let (nodes, several) = match &at.node.item {
            Item::Array(list) => (list.iter().collect::<Vec<_>>(), true),
            _ => (vec![at.node], false),
        };
        if nodes.is_empty() {
            cx.sink.error(at.node.span, at.path, "an axis varies at least one key");
            return None;
        }
        let paths: Vec<Option<KeyPath>> = nodes
            .into_iter()
            .map(|node| {
                let Some(text) = node.text() else {
                    At { node, path: at.path }.wrong_kind("a path such as \"flow.main.rtt\"", cx);
                    return None;
                };
                // Starts past the opening quote.
                let mut span = node.span;
                span.start += 1;
                let path = KeyPath::parse(text, span, &mut cx.sink)?;
                let first = path.parts[0].0.as_str();
                if matches!(first, "sweep" | "schema" | "name" | "description") {
                    let message =
                        format!("`{first}` is the same for all runs, and can't be varied");
                    cx.sink.error(path.parts[0].1, at.path, message);
                    return None;
                }
                Some(path)
            })
            .collect();
        let paths = paths.into_iter().collect::<Option<_>>()?;
        Some(Self { paths, several })
    }
}

/// Reads the values, each as one node per path.
fn values(at: At<'_>, width: Option<usize>, cx: &mut Context<'_>) -> Option<Vec<Vec<Node>>> {
    let Item::Array(list) = &at.node.item else {
        at.wrong_kind("a list of values", cx);
        return None;
    };
    if list.is_empty() {
        cx.sink.error(at.node.span, at.path, "an axis without values gives no runs");
        return None;
    }
    let Some(width) = width else {
        return Some(list.iter().map(|node| vec![node.clone()]).collect());
    };
    let rows: Vec<Option<Vec<Node>>> = list
        .iter()
        .map(|node| match &node.item {
            Item::Array(row) if row.len() == width => Some(row.clone()),
            Item::Array(row) => {
                let message =
                    format!("there are {} values for the {width} paths of the axis", row.len());
                cx.sink.error(node.span, at.path, message);
                None
            }
            _ => {
                At { node, path: at.path }
                    .wrong_kind(&format!("a list of {width} values, one for each path"), cx);
                None
            }
        })
        .collect();
    rows.into_iter().collect()
}

/// Reads labels.
impl ReadValue<Format> for Vec<String> {
    fn read(at: At<'_>, cx: &mut Context<'_>) -> Option<Self> {
        let Item::Array(list) = &at.node.item else {
            at.wrong_kind("a list of texts", cx);
            return None;
        };
        let texts: Vec<Option<String>> =
            list.iter().map(|node| At { node, path: at.path }.plain::<String>(cx)).collect();
        texts.into_iter().collect()
    }
}

/// Reads the baselines: for each label in the table the labels over which its gain is computed.
fn over(at: At<'_>, labels: &[String], cx: &mut Context<'_>) -> Option<Vec<(String, Vec<String>)>> {
    let Some(table) = at.node.table() else {
        at.wrong_kind("a table such as { \"mine\" = \"base\" }", cx);
        return None;
    };
    let read = |entry: &Entry| {
        let bases = match &entry.node.item {
            Item::Array(list) if !list.is_empty() => list.iter().collect::<Vec<_>>(),
            _ => vec![&entry.node],
        };
        let known = labelled(&entry.key, entry.key_span, at.path, labels, cx);
        let bases: Vec<Option<String>> = bases
            .into_iter()
            .map(|node| {
                let base = At { node, path: at.path }.plain::<String>(cx)?;
                if base == entry.key {
                    cx.sink.error(node.span, at.path, format!("`{base}` is over itself"));
                    return None;
                }
                labelled(&base, node.span, at.path, labels, cx).then_some(base)
            })
            .collect();
        let bases: Option<Vec<String>> = bases.into_iter().collect();
        known.then_some((entry.key.clone(), bases?))
    };
    let found: Vec<Option<(String, Vec<String>)>> = table.entries.iter().map(read).collect();
    found.into_iter().collect()
}

/// `true` if the axis has a value with this label; reports an error otherwise.
fn labelled(name: &str, at: Span, path: &str, labels: &[String], cx: &mut Context<'_>) -> bool {
    if labels.iter().any(|label| label == name) {
        return true;
    }
    let names = || labels.iter().map(String::as_str);
    let help = match cx.sink.closest(name, names()) {
        Some(label) => format!("did you mean `{label}`?"),
        None => format!("they are called {}", list(names())),
    };
    cx.sink.error(at, path, format!("no value of the axis is called `{name}`")).help(help);
    false
}

/// Returns the default label of a value; a value shared by all paths is shown once.
fn label_of(values: &[Node]) -> String {
    let mut texts: Vec<String> = values.iter().map(brief).collect();
    if texts.iter().all(|text| *text == texts[0]) {
        texts.truncate(1);
    }
    texts.join(", ")
}

/// Describes a value briefly: a table by its kind or class, its preset and `key=value` for the
/// other keys, in the order of the file.
fn brief(node: &Node) -> String {
    match &node.item {
        Item::Value(Value::Text(t)) => t.clone(),
        Item::Value(Value::Bool(b)) => b.to_string(),
        Item::Value(Value::Integer(i)) => i.to_string(),
        Item::Value(Value::Float(x)) => x.to_string(),
        Item::Datetime | Item::Broken => String::new(),
        Item::Array(list) => {
            let parts: Vec<String> = list.iter().map(brief).collect();
            format!("[{}]", parts.join(", "))
        }
        Item::Table(table) => {
            // A class says more than its kind, `python`, and its file.
            let is_class = table.get("class").is_some();
            let part = |e: &Entry| match e.key.as_str() {
                "kind" | "path" if is_class => None,
                "kind" | "preset" | "class" => Some(brief(&e.node)),
                key => Some(format!("{key}={}", brief(&e.node))),
            };
            let parts: Vec<String> = table.entries.iter().filter_map(part).collect();
            parts.join(" ")
        }
    }
}

/// Returns the values as numbers in SI base units, if all of them are quantities of one unit. An
/// axis over several paths uses its first.
fn quantities(rows: &[Vec<Node>]) -> Vec<Option<(f64, Option<&'static str>)>> {
    let all: Option<Vec<(f64, Option<&'static str>)>> =
        rows.iter().map(|row| row.first().and_then(quantity)).collect();
    match all {
        Some(all) if all.windows(2).all(|pair| pair[0].1 == pair[1].1) => {
            all.into_iter().map(Some).collect()
        }
        _ => vec![None; rows.len()],
    }
}

fn quantity(node: &Node) -> Option<(f64, Option<&'static str>)> {
    let Item::Value(value) = &node.item else { return None };
    let text = match value {
        Value::Integer(i) => return Some((*i as f64, None)),
        Value::Float(x) => return Some((*x, None)),
        Value::Bool(_) => return None,
        Value::Text(text) => text,
    };
    if let Ok(d) = parse_duration(text) {
        return Some((d.as_secs_f64(), Some("s")));
    }
    if let Ok(r) = parse_rate(text) {
        return Some((r.bits_per_sec() as f64, Some("bit/s")));
    }
    if let Ok(b) = parse_bytes(text) {
        return Some((b.0 as f64, Some("B")));
    }
    match QueueSize::read(value) {
        Ok(QueueSize::Packets(n)) => Some((n as f64, Some("packets"))),
        Ok(QueueSize::MilliBdp(m)) => Some((m as f64 / 1000.0, Some("BDP"))),
        _ => None,
    }
}
