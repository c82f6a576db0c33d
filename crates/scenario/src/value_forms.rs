//! The format of scenario files: its versions and limits, forms of keys that are no algorithm
//! parameters with description, example and JSON Schema, and values whose reading is deferred.
//! Lists of values that change at given times, and parts that come in several kinds.

use std::collections::BTreeMap;

use cwnd_apps::{ArrivalParams, AttackerParams, WorkloadParams};
use cwnd_aqm::{MessengerParams, MeterParams, QueueParams};
use cwnd_cc::ControllerParams;
use cwnd_quantity::{Duration, Rate, Time};
use cwnd_schema::file::json::{any_of, list, none, reference, some, text};
use cwnd_schema::file::{
    At, Context, Form, Item, Key, Node, ReadValue, Section, SectionKeys, Span, ValueForm,
    WriteValue, WrittenValue, choice, key, toml,
};
use cwnd_schema::{ParamsChoice, RegistryEntry, SectionKeys, Value};
use serde_json::{Value as Json, json};

use crate::data_files::delays;

/// Marker type of the scenario format, for values that implement its reading and writing.
pub(crate) struct Format;

/// A link's rate: constant, in steps, from a trace, or none.
pub(crate) const LINK_RATE: Form = Form::Value(&ValueForm {
    shorthand: Some("initial"),
    example: "\"10 Mbit/s\"",
    ..ValueForm::new("a [rate](#rates)", || reference("link-rate"))
});
/// Name of a trace file.
pub(crate) const TRACE_FILE: Form =
    Form::Value(&ValueForm::new("the name of a file, seen from the scenario's folder", text));
/// Inlined delivery opportunities of a trace, in milliseconds.
pub(crate) const TRACE_TIMES: Form =
    Form::Value(&ValueForm::new("a list of whole numbers that do not decrease", || {
        some(&json!({ "type": "integer", "minimum": 0 }))
    }));
/// Rate changes, as a list of steps.
pub(crate) const STEPS: Form =
    Form::Value(&ValueForm::new("a list of [steps](#steps-of-a-rate)", || {
        list(&reference("step"))
    }));
/// Parameters of burst loss.
pub(crate) const BURST_LOSS: Form =
    Form::Value(&ValueForm::new("probabilities of [burst loss](#burst-loss), or \"none\"", || {
        any_of(&[reference("burst-loss"), none()])
    }));
/// Delay changes, as a list of steps or the name of a file.
pub(crate) const DELAY_STEPS: Form = Form::Value(&ValueForm::new(
    "a list of [steps](#steps-of-a-delay), or the name of a file, \
    seen from the scenario's folder",
    || any_of(&[list(&reference("delay-step")), text()]),
));
/// A queue discipline.
pub(crate) const QUEUE: Form =
    Form::Value(&ValueForm::choice("a [queue](#queues)", || reference("queue")));
/// A meter.
pub(crate) const METER: Form =
    Form::Value(&ValueForm::choice("a [meter](#meters)", || reference("meter")));
/// A messenger.
pub(crate) const MESSENGER: Form =
    Form::Value(&ValueForm::choice("a [messenger](#messengers)", || reference("messenger")));
/// A congestion controller.
pub(crate) const CONTROLLER: Form =
    Form::Value(&ValueForm::choice("a [controller](#controllers)", || reference("controller")));
/// An endpoint.
pub(crate) const ENDPOINT: Form = Form::Value(&ValueForm {
    shorthand: Some("preset"),
    ..ValueForm::new("an [endpoint](#endpoints)", || reference("endpoint"))
});
/// A stack: the name of an endpoint's preset, or a table with parts.
pub(crate) const STACK: Form = Form::Value(&ValueForm {
    shorthand: Some("base"),
    ..ValueForm::new("a [stack](#stacks)", || reference("stack"))
});
/// The name of a stack.
pub(crate) const STACK_NAME: Form =
    Form::Value(&ValueForm::new("the name of a [stack](#stacks)", || reference("stack-name")));
/// Parts of a stack.
pub(crate) const PARTS: Form =
    Form::Value(&ValueForm::new("a list of [parts](#parts-of-a-stack)", || {
        list(&reference("part"))
    }));
/// A workload.
pub(crate) const WORKLOAD: Form =
    Form::Value(&ValueForm::choice("a [workload](#workloads)", || reference("workload")));
/// Arrivals of flows.
pub(crate) const ARRIVALS: Form =
    Form::Value(&ValueForm::choice("[arrivals](#arrivals)", || reference("arrivals")));
/// An attacker of connections.
pub(crate) const ATTACKER: Form =
    Form::Value(&ValueForm::choice("an [attacker](#attackers)", || reference("attacker")));
/// Name of a node.
pub(crate) const NODE: Form = Form::Value(&ValueForm::new("a text in quotes", text));
/// Name of a node, or a list of names.
pub(crate) const NODES: Form =
    Form::Value(&ValueForm::new("the name of a node, or a list of names", one_or_several));
/// Pairs of nodes, perhaps with their shares.
pub(crate) const PAIRS: Form =
    Form::Value(&ValueForm::new("a list of [pairs](#pairs-of-nodes)", || some(&reference("pair"))));
/// Route: a list of link names.
pub(crate) const ROUTE: Form =
    Form::Value(&ValueForm::new("a list of names of links", || list(&text())));
/// Key path of an axis, or a list of paths.
pub(crate) const PATHS: Form = Form::Value(&ValueForm {
    example: "\"flow.main.rtt\"",
    ..ValueForm::new("a path, or a list of paths", one_or_several)
});
/// Values of an axis: a list of anything.
pub(crate) const VALUES: Form = Form::Value(&ValueForm {
    example: "[\"100 ms\", \"200 ms\"]",
    ..ValueForm::new("a list", || json!({ "type": "array", "minItems": 1 }))
});
/// Labels of an axis: a list of texts.
pub(crate) const LABELS: Form = Form::Value(&ValueForm::new("a list of texts", || list(&text())));
/// Baselines of an axis: for some labels, one or several others.
pub(crate) const OVER: Form = Form::Value(&ValueForm::new(
    "a table: for a label another one, or a list of others",
    || json!({ "type": "object", "additionalProperties": one_or_several() }),
));

/// Returns the JSON Schema of a text or a list of texts.
fn one_or_several() -> Json {
    any_of(&[text(), some(&text())])
}

/// Limit on the runs of one plan.
pub(crate) const MAX_CELLS: u64 = 1_000_000;
/// Limit on the flows of a run, and on the connections expected to arrive in each of its groups.
pub(crate) const MAX_FLOWS: u64 = 8_000_000;
/// Supported versions of the file format; the last is the newest.
pub(crate) const SCHEMAS: [u64; 2] = [1, 2];

/// An unread value of a key, kept as parsed from the file.
pub(crate) struct Raw {
    node: Node,
    path: String,
}

impl Raw {
    /// Returns the value with its key path, ready to be read.
    pub fn at(&self) -> At<'_> {
        At { node: &self.node, path: &self.path }
    }

    /// Returns a value that holds a name.
    pub fn name(name: &str) -> Self {
        Self::of(name_item(name))
    }

    /// Returns a value that holds a list of names.
    pub fn names<'n>(names: impl Iterator<Item = &'n str>) -> Self {
        Self::of(Item::Array(names.map(|name| node(name_item(name))).collect()))
    }

    fn of(item: Item) -> Self {
        Self { node: node(item), path: String::new() }
    }
}

fn name_item(name: &str) -> Item {
    Item::Value(Value::Text(name.to_owned()))
}

fn node(item: Item) -> Node {
    Node { item, span: Span::default() }
}

impl ReadValue<Format> for Raw {
    fn read(at: At<'_>, _: &mut Context<'_>) -> Option<Self> {
        Some(Self { node: at.node.clone(), path: at.path.to_owned() })
    }
}

impl WriteValue<Format> for Raw {
    fn write(&self) -> WrittenValue<'_> {
        WrittenValue::Line(written(&self.node))
    }
}

/// Formats a node as TOML on one line.
fn written(node: &Node) -> String {
    match &node.item {
        Item::Value(value) => toml(value),
        Item::Array(list) => {
            let list: Vec<String> = list.iter().map(written).collect();
            format!("[{}]", list.join(", "))
        }
        Item::Table(table) => {
            let entries = table.entries.iter();
            let entries = entries.map(|e| format!("{} = {}", key(&e.key), written(&e.node)));
            format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))
        }
        // A file with either of these is refused, so none reaches the writer.
        Item::Datetime | Item::Broken => String::new(),
    }
}

/// An entry of a rate's `steps`.
#[derive(SectionKeys)]
pub(crate) struct RateStep {
    /// Time at which the rate changes.
    #[required("none")]
    pub at: Duration,
    /// Rate from then on.
    #[required("none")]
    pub rate: Rate,
}

/// An entry of a link's `delay_steps`.
#[derive(SectionKeys)]
pub(crate) struct DelayStep {
    /// Time at which the delay changes.
    #[required("none")]
    pub at: Duration,
    /// Delay beyond the link's `delay` from then on.
    #[required("none")]
    pub added: Duration,
}

/// Reads the rate changes of a link, in order of time.
pub(crate) fn rate_steps(at: At<'_>, cx: &mut Context<'_>) -> Option<Vec<(Time, Rate)>> {
    let example = "{ at = \"10 s\", rate = \"5 Mbit/s\" }";
    steps(at, cx, &[RateStep::KEYS], example, |RateStep { at, rate }| (at, rate))
}

/// Reads the added delays of a link, in order of time.
pub(crate) fn delay_steps(at: At<'_>, cx: &mut Context<'_>) -> Option<Vec<(Time, Duration)>> {
    if let Some(name) = at.node.text() {
        return recorded(at, name, cx);
    }
    let example = "{ at = \"10 s\", added = \"50 ms\" }";
    steps(at, cx, &[DelayStep::KEYS], example, |DelayStep { at, added }| (at, added))
}

/// Reads the steps from a file of recorded delays.
fn recorded(at: At<'_>, name: &str, cx: &mut Context<'_>) -> Option<Vec<(Time, Duration)>> {
    match cx.content(name, "file of delays", delays) {
        Ok(steps) => Some(steps.as_ref().clone()),
        Err(why) => {
            let message = format!("the delays of `{name}` can't be used: {why}");
            let problem = cx.sink.error(at.node.span, at.path, message);
            problem.help("a file has the columns `time_s` and `added_ms`, its times in order");
            None
        }
    }
}

fn steps<S: SectionKeys, T>(
    at: At<'_>,
    cx: &mut Context<'_>,
    keys: &'static [&'static [Key]],
    example: &str,
    parts: impl Fn(S) -> (Duration, T),
) -> Option<Vec<(Time, T)>> {
    let Item::Array(list) = &at.node.item else {
        at.wrong_kind(&format!("a list such as [{example}]"), cx);
        return None;
    };
    let mut changes: Vec<(Time, T)> = Vec::new();
    let mut good = true;
    for (i, node) in list.iter().enumerate() {
        let path = format!("{}[{i}]", at.path);
        let Some(table) = node.table() else {
            At { node, path: &path }.wrong_kind(&format!("a step such as {example}"), cx);
            good = false;
            continue;
        };
        let section = Section::new(table, keys, path, node.span, cx);
        let Some((when, value)) = S::read(&section, cx).map(&parts) else {
            good = false;
            continue;
        };
        let when = Time(when.0);
        if changes.last().is_some_and(|&(earlier, _)| earlier >= when) {
            let message = "a step must come after the one before it";
            cx.sink.error(section.span_of("at"), section.path_of("at"), message);
            good = false;
        }
        changes.push((when, value));
    }
    good.then_some(changes)
}

macro_rules! parts {
    ($($part:ty, $what:literal;)+) => {$(
        impl ReadValue<Format> for $part {
            fn read(at: At<'_>, cx: &mut Context<'_>) -> Option<Self> {
                choice(at, $what, cx)
            }
        }

        impl WriteValue<Format> for $part {
            fn write(&self) -> WrittenValue<'_> {
                WrittenValue::Part(self.kind(), self.params())
            }
        }
    )+};
}
parts! {
    QueueParams, "queue";
    MeterParams, "meter";
    MessengerParams, "messenger";
    WorkloadParams, "workload";
    ArrivalParams, "arrivals";
    AttackerParams, "attacker";
}

/// A kind of a part: its name, its description, and the keys of its table.
pub type KindInfo = (&'static str, &'static str, Vec<&'static str>);

/// Returns the kinds of each exchangeable part, by the part's key in a scenario.
#[must_use]
pub fn kinds() -> BTreeMap<&'static str, Vec<KindInfo>> {
    BTreeMap::from([
        ("arrivals", all::<ArrivalParams>()),
        ("attacker", all::<AttackerParams>()),
        ("controller", all::<ControllerParams>()),
        ("messenger", all::<MessengerParams>()),
        ("meter", all::<MeterParams>()),
        ("queue", all::<QueueParams>()),
        ("workload", all::<WorkloadParams>()),
    ])
}

fn all<T: ParamsChoice>() -> Vec<KindInfo> {
    let of = |kind: &RegistryEntry| {
        let chosen = T::of_kind(kind.name);
        let fields = chosen.iter().flat_map(|chosen| chosen.params().fields());
        (kind.name, kind.doc, fields.map(|field| field.name).collect())
    };
    T::KINDS.iter().map(of).collect()
}
