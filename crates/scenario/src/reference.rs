//! The scenario reference, made from the same tables that read a scenario.

use core::fmt::Write as _;

use cwnd_apps::{ArrivalParams, AttackerParams, WorkloadParams};
use cwnd_aqm::{MessengerParams, MeterParams, QueueParams};
use cwnd_cc::ControllerParams;
use cwnd_schema::{Bounds, Kind, Params, ParamsChoice, Preset, Value};
use cwnd_tcp::PARTS;

use crate::file::ScenarioFile;
use crate::flow_keys::{DumbbellFlowKeys, FlowKeys, GraphFlowKeys};
use crate::impairments::BurstLoss;
use crate::links::{DumbbellKeys, LinkKeys};
use crate::model::{Place, Record};
use crate::pairs::Pair;
use crate::phrases::{by_schema, phrase};
use crate::rates::RateTable;
use crate::run::Run;
use crate::section::SectionKeys as _;
use crate::sections::{Fallback, Form, Key};
use crate::stack::{self, StackParts};
use crate::steps::{DelayStep, RateStep};
use crate::sweep::{AxisKeys, SweepKeys};

/// The reference documentation of the scenario file, as Markdown.
#[must_use]
pub fn reference_markdown() -> String {
    let mut page = Page(INTRODUCTION.to_owned());
    page.section("The file", SCHEMA_TEXT, &[ScenarioFile::KEYS]);
    page.section("`[run]`", "When things happen.", &[Run::KEYS]);
    page.section("`[record]`", RECORD_TEXT, &[Record::KEYS]);
    page.section("`[dumbbell]`", DUMBBELL_TEXT, &[DumbbellKeys::KEYS]);
    page.section("`[link.NAME]`", LINK_TEXT, &[LinkKeys::KEYS]);
    page.section("`[node.NAME]`", NODE_TEXT, &[Place::KEYS]);
    page.section("Rates", RATE_TEXT, &[RateTable::KEYS]);
    page.section("Steps of a rate", "", &[RateStep::KEYS]);
    page.section("Steps of a delay", "", &[DelayStep::KEYS]);
    page.section("Burst loss", BURST_LOSS_TEXT, &[BurstLoss::KEYS]);
    page.section("`[flow.NAME]`", FLOW_TEXT, &[FlowKeys::KEYS]);
    page.section("`[flow.NAME]` in a dumbbell", "", &[DumbbellFlowKeys::KEYS]);
    page.section("`[flow.NAME]` in a graph", "", &[GraphFlowKeys::KEYS]);
    page.text(ENDS_TEXT);
    page.section("Pairs of nodes", PAIRS_TEXT, &[Pair::KEYS]);
    page.heading(2, "Workloads");
    page.text(WORKLOAD_TEXT);
    page.choice::<WorkloadParams>();
    page.heading(2, "Arrivals");
    page.text(ARRIVALS_TEXT);
    page.choice::<ArrivalParams>();
    page.heading(2, "Attackers");
    page.text(ATTACKER_TEXT);
    page.choice::<AttackerParams>();
    page.heading(2, "Stacks");
    page.text(STACK_TEXT);
    page.stacks();
    page.heading(3, "Parts of a stack");
    page.text(PARTS_TEXT);
    page.keys(&[StackParts::KEYS]);
    page.parts();
    page.heading(2, "Controllers");
    page.text(CONTROLLER_TEXT);
    page.choice::<ControllerParams>();
    page.heading(2, "Queues");
    page.text(QUEUE_TEXT);
    page.choice::<QueueParams>();
    page.heading(2, "Meters");
    page.text(METER_TEXT);
    page.choice::<MeterParams>();
    page.heading(2, "Messengers");
    page.text(MESSENGER_TEXT);
    page.choice::<MessengerParams>();
    page.heading(2, "Endpoints");
    page.text(ENDPOINT_TEXT);
    let fresh = cwnd_tcp::Params::default;
    page.parameters(&fresh());
    page.presets(&fresh());
    page.preset_table("endpoint", &mut fresh());
    page.section("`[sweep]`", SWEEP_TEXT, &[SweepKeys::KEYS]);
    page.section("`[sweep.axis.NAME]`", AXIS_TEXT, &[AxisKeys::KEYS]);
    page.0
}

struct Page(String);

impl Page {
    fn line(&mut self, text: &str) {
        self.0.push_str(text);
        self.0.push('\n');
    }

    fn heading(&mut self, level: usize, text: &str) {
        // Writing to a string can't fail.
        let _ = writeln!(self.0, "\n{} {text}\n", "#".repeat(level));
    }

    fn text(&mut self, text: &str) {
        if !text.is_empty() {
            self.line(text);
        }
    }

    fn row(&mut self, cells: &[String]) {
        let cells: Vec<String> = cells.iter().map(|c| c.replace('|', "\\|")).collect();
        self.line(&format!("| {} |", cells.join(" | ")));
    }

    fn table(&mut self, heads: &[&str]) {
        if !self.0.ends_with("\n\n") {
            self.line("");
        }
        self.row(&heads.iter().map(|h| (*h).to_owned()).collect::<Vec<_>>());
        self.line(&format!("|{}", "---|".repeat(heads.len())));
    }

    fn section(&mut self, title: &str, text: &str, keys: &[&[Key]]) {
        self.heading(2, title);
        self.text(text);
        self.keys(keys);
    }

    fn keys(&mut self, keys: &[&[Key]]) {
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

    /// Rows are stacks; the controllers that have a preset for each, and how it is called.
    fn stacks(&mut self) {
        self.table(&["Stack", "Controllers that have a preset for it"]);
        for stack in stack::stacks() {
            let presets = ControllerParams::KINDS.iter().filter_map(|kind| {
                let chosen = ControllerParams::of_kind(kind.name)?;
                let preset = stack::controller_preset(stack.name, chosen.params())?;
                Some(format!("`{}` (`{preset}`)", kind.name))
            });
            let presets: Vec<String> = presets.collect();
            self.row(&[format!("`{}`", stack.name), presets.join(", ")]);
        }
    }

    /// Parts, and the stacks that have each.
    fn parts(&mut self) {
        self.table(&["Part", "Meaning", "Needs", "Stacks that have it"]);
        for part in PARTS {
            let stacks = stack::stacks().iter().filter(|stack| {
                let mut params = cwnd_tcp::Params::default();
                params.apply_preset(stack.name) && part.is_in(&params)
            });
            let stacks: Vec<String> = stacks.map(|stack| format!("`{}`", stack.name)).collect();
            let needs = part.needs.map_or_else(String::new, |part| format!("`{part}`"));
            self.row(&[format!("`{}`", part.name), part.doc.to_owned(), needs, stacks.join(", ")]);
        }
    }

    fn choice<T: ParamsChoice + 'static>(&mut self) {
        for kind in T::KINDS {
            let Some(mut chosen) = T::of_kind(kind.name) else { continue };
            self.heading(3, &format!("`{}`", kind.name));
            self.text(kind.doc.trim());
            self.parameters(chosen.params());
            self.presets(chosen.params());
            self.preset_table(kind.name, chosen.params_mut());
        }
    }

    fn parameters(&mut self, params: &dyn Params) {
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
                of_kind(field.kind, &field.bounds),
                default,
                field.doc.trim().to_owned(),
                source(field.source),
            ]);
        }
    }

    fn presets(&mut self, params: &dyn Params) {
        if params.presets().is_empty() {
            return;
        }
        self.table(&["Preset", "What it stands for"]);
        for preset in params.presets() {
            self.row(&[format!("`{}`", preset.name), preset.doc.trim().to_owned()]);
        }
    }

    /// Rows are parameters, columns are presets; the defaults are a column unless a preset says the
    /// same.
    fn preset_table(&mut self, what: &str, params: &mut dyn Params) {
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

fn of_kind(kind: Kind, bounds: &Bounds) -> String {
    let range = bounds.to_string();
    if !range.is_empty() {
        return match phrase(kind).strip_suffix(", or \"none\"") {
            Some(phrase) => format!("{phrase}, {range}; or \"none\""),
            None => format!("{}, {range}", phrase(kind)),
        };
    }
    match kind {
        Kind::Choice(names) => {
            let names: Vec<String> = names.iter().map(|n| format!("`\"{n}\"`")).collect();
            names.join(", ")
        }
        other => phrase(other),
    }
}

/// Who says what the default is, or why there is none.
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

const INTRODUCTION: &str = "\
<!-- Generated by `reference_markdown()` of crates/scenario. Refresh: UPDATE=1 cargo test -p cwnd-scenario -->
# Scenario reference

A scenario is a TOML file. Every quantity carries its unit:

| Quantity | Written like | Units |
|---|---|---|
| time | `\"100 ms\"` | ns, us, ms, s, min, h |
| rate | `\"10 Mbit/s\"` | bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s; `Mbps` and the like are bits |
| size | `\"64 kB\"` | B, kB, MB, GB, TB (decimal); KiB, MiB, GiB (binary) |
| queue size | `\"1000 packets\"` | packets, any size, any time (what the link sends in it), BDP |

A bare number is refused where a unit is meant, and so are `mbps` and `gbps`, which tc reads as bytes per second.

Where a distribution is taken, a constant is one: `\"100 ms\"`. Others, here of sizes, are ([more of them](arrivals.md)):

| Written like | |
|---|---|
| `\"uniform(1 kB, 2 kB)\"` | each whole number from one to the other is equally likely |
| `\"exponential(30 kB)\"` | its mean |
| `\"pareto(1.4, 30 kB)\"`, `\"lomax(1.4, 30 kB)\"`, `\"weibull(0.5, 30 kB)\"` | shape and mean; or shape and `scale 10 kB`, as SciPy has it |
| `\"lognormal(30 kB, 1.5)\"` | median, deviation of the logarithm |
| `\"cdf(40 B: 0, 1 kB: 0.5, 1 MB: 1)\"` | what was measured: the probabilities of no more, with straight lines between them |
| `\"sizes.csv\"`, `\"cdf(sizes.csv)\"` | the same from a [file](arrivals.md#sizes), with columns \
such as `bytes,probability` |
| `\"min(pareto(1.4, 30 kB), 1 GB)\"` | what is larger becomes 1 GB |
| `\"mix(0.9 exponential(5 kB), 0.1 1 MB)\"` | one of several, with these shares |
| `\"replace(exponential(5 kB) below 1 kB, 0.1 1 MB)\"` | of the draws below 1 kB, one in ten is 1 MB instead |
| `\"mondal-trace-1\"`, `\"mondal-trace-2\"`, `\"mondal-trace-3\"` | the web traffic of a paper, in three variants |

Any key can be set from the command line by its path, `--set flow.main.rtt=\"200 ms\"`, and varied in a sweep. A path may lead
into a short form: after `queue = \"codel\"`, `dumbbell.queue.target` is a path. A name with a dot in it is quoted:
`link.\"a-b.reverse\".delay`. In the place of a name, `*` stands for every flow group or link that there is: `flow.*.rtt`, `link.*.delay`.
";

const SCHEMA_TEXT: &str = "\
Versions of the file format differ in defaults, and in keys without effect:

| | `schema = 1` | `schema = 2` |
|---|---|---|
| `noise` under `[run]` | `\"none\"` | `\"path\"`: [RTTs differ by seed, hosts are late](noise.md) |
| `stack` under `[flow.NAME]` | `\"rfc6675\"` | `\"linux\"` |
| a key that others leave without effect, as `prr_rule` with `prr = false` | a note | an error |

It is a note in schema 2, too, if a preset or an axis of the sweep brings the key, or the others in
some of the runs only. Such a key then has its default, and the resolved file leaves it out.

A file of schema 1, or without a schema, runs as it always did, and a note says which defaults it
does not have. The resolved file states its schema.
";

const RECORD_TEXT: &str = "\
What has a row of its own in the results, for runs with millions of connections: then memory grows with those that are open at a time. What has
no row is counted all the same, in the tables `sketches` and `unrecorded`, and metrics are of everything.";

const DUMBBELL_TEXT: &str = "\
The short form of a graph: nodes `left` and `right`, the link `bottleneck` from left to right, and the link `reverse` back.
Faults (`loss`, `burst_loss`, `jitter`, `reorder`) are the bottleneck's; the way back has none.";

const LINK_TEXT: &str = "\
A directed link: its queue, then its line rate, then its propagation delay. Nodes come into being with the links that name them.";

const BURST_LOSS_TEXT: &str = "\
A link is good or bad, at first good (Gilbert 1960, Elliott 1963; netem's `loss gemodel p r 1-h
1-k`). A packet is lost by the state that it
finds, then the state may change. The share p / (p + r) of the packets finds it bad; with `h` and
`k` as they are, all of these are
lost and no others, in bursts of 1/r in the mean.";

const NODE_TEXT: &str = "\
Where drawings of the graph put a node; of no effect on what is simulated. Nodes come into being with links, and this only places
them.";

const RATE_TEXT: &str = "\
A rate is a constant (`\"10 Mbit/s\"`), `\"none\"` (a pure delay without a queue), or a table: `{ initial = \"10 Mbit/s\", steps = [...] }`,
`{ trace = \"file\" }`, `{ trace_ms = [...] }`. A trace is one of two:

- mahimahi's: one whole number of milliseconds a line, at each of which 1500 bytes may pass; it
  repeats after the last.
- Recorded rates: seconds and Mbit/s on each line, between blanks, tabs or commas, with the header
  `time_s,mbit_s` or without. Times count
  from the first line. A rate holds until the next line, the last one as long as the one before it;
  then all begins anew. While a rate is zero the
  link stands still (it has 1 bit/s). In resolved files these are `steps` with their `period`.";

const FLOW_TEXT: &str = "\
A group of flows that are alike. The order of the groups in the file is the order of the flows in the results.";

const ENDS_TEXT: &str = "
Where `from` or `to` is a list, each flow of the group has its own two ends and the shortest route between them:

<!-- test:
given scenarios/parking-lot.toml: link.de={ from = \"d\", to = \"e\", rate = \"20 Mbit/s\", duplex = true }
onto scenarios/parking-lot.toml
-->
```toml
[flow.mice]
from = [\"a\", \"b\"]
to = [\"c\", \"d\", \"e\"]
ends = \"round-robin\"
count = 6
```
The pairs are a node of `from` and another of `to`, in this order: a–c, b–c, a–d, b–d, a–e, b–e; a node that is in both lists sends
nothing to itself. With `ends = \"random\"` each flow draws its pair, all with the same chance, from a random stream of its own,
so other groups and other flows draw what they drew before; with `\"round-robin\"` the flows take one pair after the other, those of
arrival processes in the order in which they arrive. To hear what each pair got, write a group for each.";

const PAIRS_TEXT: &str = "\
A traffic matrix is a group whose flows draw their ends from `pairs`, in proportion to their shares:

<!-- test: onto scenarios/parking-lot.toml -->
```toml
[flow.matrix]
pairs = [
  { from = \"a\", to = \"c\", share = 3 },
  { from = \"a\", to = \"d\", share = 1.5 },
  { from = \"b\", to = \"d\", share = 0.5 },
]
workload = { kind = \"poisson\", interval = \"20 ms\", size = \"7 kB\" }
```
A pair without a `share` has one of 1. With `ends = \"round-robin\"` the flows take one pair after the other, which leaves nothing for
shares to say. Each pair has the shortest route.";

const WORKLOAD_TEXT: &str = "\
`workload = \"bulk\"`, or a table with `kind` and the keys of that kind: `workload = { kind = \"bytes\", size = \"1 MB\" }`. Without
`kind` it is `bulk`.";

const ARRIVALS_TEXT: &str = "\
How connections arrive while the run goes on, whatever each of them sends: `arrivals = { kind = \"poisson\", load = 0.8 }` beside
`workload = { kind = \"bytes\", size = \"30 kB\" }`. The workload `poisson` is short for that with an `interval`. [More of it](arrivals.md).";

const STACK_TEXT: &str = "\
The endpoint and the controller of one implementation under one name: `stack = \"linux\"` is
`endpoint = \"linux\"` and the controller's preset for Linux. Each [endpoint preset](#endpoints) is
a stack. A `preset` of `endpoint` or `controller` replaces the stack's, and single parameters go over
it. A controller without a preset for the stack keeps its own defaults; where the stack is an
implementation, a note says so. The presets `linux` of `bmcc` and `delay-aimd` are the controllers
of `cwnd-kernel`, as Linux has none
of that kind.";

const PARTS_TEXT: &str = "\
An experiment takes parts from a stack, or adds parts to it: `stack = { base = \"linux\", without =
[\"rack\", \"prr\"] }`. The name of a stack alone is short for its `base`, so that a path may lead
into it: `flow.main.stack.without`. Parameters of `endpoint` go over the parts. A `preset` of
another stack in `endpoint` is an error beside them.";

const CONTROLLER_TEXT: &str = "\
`controller = \"cubic\"`, or a table with `kind`, perhaps a `preset`, and parameters over what the preset says:
`controller = { kind = \"newreno\", preset = \"abe\", beta_ecn = 0.85 }`. Without `kind` it is `newreno`.";

const ATTACKER_TEXT: &str = "\
What a stranger sends to each of the group's connections in somebody else's name, in the simulator: `attacker = { kind = \"quench\",
rate = 1000.0, knows = \"ports\" }`. The activity counts what reached a connection (`quenches_forged`). Without `kind` it is `none`.";

const QUEUE_TEXT: &str = "\
`queue = \"codel\"`, or a table with `kind`, perhaps a `preset`, and parameters: `queue = { kind = \"codel\", target = \"10 ms\" }`.
Without `kind` it is `fifo`.";

const METER_TEXT: &str = "\
What writes into packets beside the queue, whichever queue it is: `meter = \"step\"`, or a table with `kind` and parameters:
`meter = { kind = \"step\", threshold = \"20 packets\" }`. Without `kind` it is `none`.";

const MESSENGER_TEXT: &str = "\
What tells the sources of packets that the queue marks or drops, whichever queue it is: `messenger = \"quench\"`, or a table with
`kind` and parameters. Its messages are packets on the way back to the source. Without `kind` it is `none`.";

const ENDPOINT_TEXT: &str = "\
The rest of TCP, for both ends of a connection: `endpoint = \"linux\"`, or a table with a `preset` and parameters over what it says:
`endpoint = { preset = \"linux\", ecn = true }`.";

const SWEEP_TEXT: &str = "\
Every combination of the axes' values is run, `repeat` times with seeds that count up: the cells of the sweep. The axis that
comes last in the file varies fastest. Each cell is checked as a scenario of its own.

The axis replaces what the file has under its key. A plain value there is the point where the sweep
starts; keys of a table that no value of the
axis has are an error, as they have no effect, and so is anything that `--set` sets there.";

const AXIS_TEXT: &str = "\
<!-- test: onto scenario.toml -->
```toml
[sweep.axis.rtt]
path = \"flow.main.rtt\"
values = [\"100 ms\", \"200 ms\"]

[sweep.axis.arm]
path = \"flow.main.controller\"
values = [\"newreno\", { kind = \"newreno\", preset = \"abe\" }]
labels = [\"NewReno\", \"NewReno+ABE\"]

[sweep.axis.load]        # several keys varied together
path = [\"flow.main.count\", \"dumbbell.rate\"]
values = [[1, \"10 Mbit/s\"], [10, \"100 Mbit/s\"]]
```
A path that leads into the value of another axis is set after it.";
