//! Reads one cell of a sweep: from its TOML tree to a fully resolved scenario.

use cwnd_apps::Transport;
use cwnd_quantity::Duration;
use cwnd_schema::file::{
    At, Context, Entry, Section, SectionKeys as _, Span, Table, locate, too_long,
};
use cwnd_schema::{ParamsChoice, Value, ValueType};

use crate::file::ScenarioFile;
use crate::flow_keys::earliest;
use crate::link_rate::LinkRate;
use crate::links::{self, Topology};
use crate::model::{FlowGroup, FlowPath, Link, NodePosition, Record, Scenario};
use crate::requirements::{self, Parts};
use crate::run::Run;
use crate::value_forms::{MAX_FLOWS, SCHEMAS};
use crate::{arrivals, flows};

/// A scenario, and `true` if its file is a dumbbell.
#[derive(Clone, Debug)]
pub(crate) struct Lowered {
    pub scenario: Scenario,
    pub dumbbell: bool,
}

/// Reads a whole file without its sweep; `stem` is the default name of the scenario.
pub(crate) fn lower(root: &Table, stem: &str, cx: &mut Context<'_>) -> Option<Lowered> {
    let top = Section::new(root, &[ScenarioFile::KEYS], "", Span::default(), cx);
    cx.schema = schema(&top, cx);
    let name = name(&top, stem, cx);
    let description = top.plain::<String>("description", cx);
    let run = table(&top, "run", cx).and_then(|(t, at)| run(t, at, cx));
    let record = record(&top, cx);
    let topology = topology(&top, cx);
    let flow = table(&top, "flow", cx);
    if let Some((flow, at)) = flow
        && flow.entries.is_empty()
    {
        cx.sink.error(at, "flow", "there are no flows: write a section such as [flow.main]");
    }
    let groups = flow.map(|(flow, _)| {
        flows::groups(flow, topology.as_ref(), run.as_ref().map(|run| run.seed), cx)
    });
    if let (Some(groups), Some(run)) = (&groups, &run) {
        for group in groups.iter().flatten() {
            check_start(group, run.duration, root, cx);
            arrivals::check_connection_limit(group, run.duration, root, &mut cx.sink);
        }
    }
    let (groups, topology) = (groups?, topology?);
    let node_positions = node_positions(&top, &topology, cx);
    let dumbbell = topology.dumbbell.is_some();
    let links = links_with_bdp(topology.links, &groups, cx);
    let groups: Option<Vec<FlowGroup>> = groups.into_iter().collect();
    let mut scenario = Scenario {
        schema: cx.schema,
        name: name?,
        description: description?,
        run: run?,
        record: record?,
        nodes: topology.nodes,
        node_positions,
        links: links?,
        flows: groups?,
    };
    arrivals::resolve_arrivals(&mut scenario, root, &mut cx.sink);
    if cx.sink.has_errors() {
        return None;
    }
    check_limits(&scenario, root, cx);
    Some(Lowered { scenario, dumbbell })
}

/// Returns the schema of the file; schema 1 gets a note about the defaults that it lacks.
fn schema(top: &Section<'_>, cx: &mut Context<'_>) -> u64 {
    let [first, newest] = SCHEMAS;
    let Some(schema) = top.plain::<u64>("schema", cx) else { return newest };
    let span = top.span_of("schema");
    if !SCHEMAS.contains(&schema) {
        let message =
            format!("this version of cwnd reads schema {first} and {newest}, not {schema}");
        let problem = cx.sink.error(span, "schema", message);
        problem.help(format!("write `schema = {newest}`"));
        return newest;
    }
    if schema == first {
        let message = "a file of schema 1 has no noise and the stack `rfc6675` unless it says \
                       otherwise: schema 2 has `noise = \"path\"` under [run] and \
                       `stack = \"linux\"` under [flow.NAME]";
        let problem = cx.sink.note(span, "schema", message);
        problem.help(
            "write `schema = 2` for these defaults; \
             `noise = \"none\"` and `stack = \"rfc6675\"` beside it keep those of schema 1",
        );
    }
    schema
}

fn name(top: &Section<'_>, stem: &str, cx: &mut Context<'_>) -> Option<String> {
    if top.entry("name").is_none() {
        return Some(stem.to_owned());
    }
    let name = top.plain::<String>("name", cx)?;
    if too_long(&name, top.span_of("name"), "name", &mut cx.sink) {
        return None;
    }
    let bad = |c: char| c.is_control() || "/\\:*?\"<>|".contains(c);
    if name.trim().is_empty() || name.contains(bad) || name.starts_with('.') {
        let message =
            format!("`{name}` can't name a scenario: results go to a folder of this name");
        let problem = cx.sink.error(top.span_of("name"), "name", message);
        problem.help("write letters, digits, `-`, `_` and `.`");
        return None;
    }
    Some(name)
}

/// Returns a top-level section and its position in the file.
fn table<'t>(top: &Section<'t>, key: &str, cx: &mut Context<'_>) -> Option<(&'t Table, Span)> {
    let Some(entry) = top.entry(key) else {
        top.read(key, cx, |_, _| Some(()));
        return None;
    };
    as_table(entry, key, cx).map(|t| (t, entry.key_span))
}

fn as_table<'t>(entry: &'t Entry, path: &str, cx: &mut Context<'_>) -> Option<&'t Table> {
    let table = entry.node.table();
    if table.is_none() {
        At { node: &entry.node, path }.wrong_kind(&format!("a section [{path}]"), cx);
    }
    table
}

fn run(table: &Table, at: Span, cx: &mut Context<'_>) -> Option<Run> {
    let section = Section::new(table, &[Run::KEYS], "run", at, cx);
    Run::read(&section, cx)
}

fn record(top: &Section<'_>, cx: &mut Context<'_>) -> Option<Record> {
    let Some(entry) = top.entry("record") else { return Some(Record::default()) };
    let table = as_table(entry, "record", cx)?;
    let section = Section::new(table, &[Record::KEYS], "record", entry.key_span, cx);
    Record::read(&section, cx)
}

fn topology(top: &Section<'_>, cx: &mut Context<'_>) -> Option<Topology> {
    match (top.entry("dumbbell"), top.entry("link")) {
        (Some(_), Some(link)) => {
            let message = "a scenario is a [dumbbell] or a graph of [link.*], not both";
            cx.sink.error(link.key_span, "link", message);
            None
        }
        (Some(dumbbell), None) => {
            let table = as_table(dumbbell, "dumbbell", cx)?;
            Some(links::dumbbell(table, dumbbell.key_span, cx))
        }
        (None, Some(link)) => as_table(link, "link", cx).map(|table| links::graph(table, cx)),
        (None, None) => {
            let message =
                "there is nothing to send over: write [dumbbell], or links such as [link.a-b]";
            if !top.misspelt("dumbbell") && !top.misspelt("link") {
                cx.sink.missing(top.at, "dumbbell", message);
            }
            None
        }
    }
}

/// Returns the drawing position of each node, `None` for those without a section.
fn node_positions(
    top: &Section<'_>,
    topology: &Topology,
    cx: &mut Context<'_>,
) -> Vec<Option<NodePosition>> {
    let mut node_positions = vec![None; topology.nodes.len()];
    let Some(entry) = top.entry("node") else { return node_positions };
    let Some(table) = as_table(entry, "node", cx) else { return node_positions };
    for entry in &table.entries {
        let path = format!("node.{}", entry.key);
        let Some(table) = as_table(entry, &path, cx) else { continue };
        let section = Section::new(table, &[NodePosition::KEYS], path, entry.key_span, cx);
        let place = NodePosition::read(&section, cx);
        match topology.node_called(&entry.key) {
            Some(node) => node_positions[node] = place,
            None => topology.unknown_node(entry, &section.path, cx),
        }
    }
    node_positions
}

/// Returns the links with the RTT that sizes in BDP refer to: `bdp_rtt` if given, otherwise the
/// largest mean base RTT of the groups whose data or ACKs cross the link, zero without any.
fn links_with_bdp(
    drafts: Vec<Option<links::DraftLink>>,
    groups: &[Option<FlowGroup>],
    cx: &mut Context<'_>,
) -> Option<Vec<Link>> {
    let drafts: Vec<links::DraftLink> = drafts.into_iter().collect::<Option<_>>()?;
    let groups: Vec<&FlowGroup> = groups.iter().map(Option::as_ref).collect::<Option<_>>()?;
    let delay = |path: &FlowPath| {
        path.links().fold(Duration::ZERO, |sum, link| sum + drafts[link].link.delay)
    };
    let mut longest: Vec<Option<Duration>> = vec![None; drafts.len()];
    for group in groups {
        for path in &group.paths {
            let steps = group.rtt_step * u64::from(group.count.saturating_sub(1)) / 2;
            let rtt = group.edge_rtt.mean() + steps + delay(path);
            for link in path.links() {
                longest[link] = longest[link].max(Some(rtt));
            }
        }
    }
    let mut links = Vec::with_capacity(drafts.len());
    for (i, draft) in drafts.iter().enumerate() {
        let through = longest[i];
        let bdp_rtt = draft.bdp_rtt.or(through).unwrap_or_default();
        let link = Link { bdp_rtt, ..draft.link.clone() };
        if bdp_rtt == Duration::ZERO && through.is_some() && link.rate != LinkRate::Unlimited {
            refuse_bdp(&link, draft, cx);
        }
        links.push(link);
    }
    Some(links)
}

/// Reports sizes in BDP on a link whose RTT is zero: the first of its queue and of its meter.
fn refuse_bdp(link: &Link, draft: &links::DraftLink, cx: &mut Context<'_>) {
    let parts = [("queue", link.queue.params()), ("meter", link.meter.params())];
    for ((what, params), (span, path)) in parts.into_iter().zip(&draft.written) {
        let in_bdp = |name| matches!(params.get(name), Some(Value::Text(t)) if t.ends_with("BDP"));
        let mut fields = params.fields().iter();
        let Some(field) = fields.find(|f| f.value_type == ValueType::QueueSize && in_bdp(f.name))
        else {
            continue;
        };
        let message = format!(
            "the {what}'s `{}` is in BDP, and the path has no delay that would give it one",
            field.name
        );
        let problem = cx.sink.error(*span, format!("{path}.{}", field.name), message);
        problem.help("write it in packets, kB or ms, or set `bdp_rtt`");
    }
}

/// Checks limits and combinations that need the complete scenario.
fn check_limits(scenario: &Scenario, root: &Table, cx: &mut Context<'_>) {
    let flows: u64 = scenario.flows.iter().map(|g| u64::from(g.count)).sum();
    if flows > MAX_FLOWS {
        let message = format!("{flows} flows are too many: at most {MAX_FLOWS} can be simulated");
        cx.sink.error(locate(root, &["flow"]), "flow", message);
    }
    let duration = scenario.run.duration;
    if let Some(sample) = scenario.run.sample {
        let rows =
            u128::from(duration.0 / sample.0) * u128::from(flows + scenario.links.len() as u64);
        if rows > MAX_ROWS {
            let message = format!(
                "a sample of each flow and link every {sample} would give {rows} rows: \
                 at most {MAX_ROWS}"
            );
            let problem = cx.sink.error(locate(root, &["run", "sample"]), "run.sample", message);
            problem.help("sample less often, or write `sample = \"none\"`");
        }
    }
    check_requirements(scenario, root, cx);
    for group in &scenario.flows {
        check_rate_limit(group, &scenario.links, root, cx);
    }
}

/// Reports flows without a rate limit. An error if no time passes on their round trip either,
/// because the run would never end; otherwise a warning.
fn check_rate_limit(group: &FlowGroup, links: &[Link], root: &Table, cx: &mut Context<'_>) {
    match group.workload.facts().transport {
        Transport::Datagrams { .. } => return,
        Transport::Connection if group.edge_rate.is_some() => return,
        Transport::Connection => {}
    }
    let limited = |path: &&FlowPath| path.links().any(|i| links[i].rate != LinkRate::Unlimited);
    let delayed = |path: &FlowPath| path.links().any(|i| links[i].delay > Duration::ZERO);
    let mut free = group.paths.iter().filter(|path| !limited(path)).peekable();
    if free.peek().is_none() {
        return;
    }
    let span = locate(root, &["flow", &group.name]);
    let path = format!("flow.{}", group.name);
    if group.edge_rtt.mean() > Duration::ZERO || free.all(delayed) {
        let message =
            "nothing but the receive window limits these flows: no link on their way has a rate";
        cx.sink
            .warning(span, path, message)
            .help("give a link a `rate`, or the hosts an `edge_rate`");
    } else {
        let message = "time would stand still: these flows' way has neither a rate nor a delay";
        cx.sink.error(span, path, message).help("give a link on it a `rate` or a `delay`");
    }
}

fn check_start(group: &FlowGroup, duration: Duration, root: &Table, cx: &mut Context<'_>) {
    let first = earliest(&group.start);
    let path = |key: &str| format!("flow.{}.{key}", group.name);
    if first >= duration {
        let span = locate(root, &["flow", &group.name, "start"]);
        let message = format!("the flows start at {first}, when the run of {duration} is over");
        cx.sink.error(span, path("start"), message);
        return;
    }
    let last = first + group.spacing * u64::from(group.count - 1);
    if last >= duration {
        let span = locate(root, &["flow", &group.name, "spacing"]);
        let message =
            format!("the last of the flows starts at {last}, when the run of {duration} is over");
        cx.sink.error(span, path("spacing"), message);
    }
}

/// Reports requirements between parts of a path that are not met.
fn check_requirements(scenario: &Scenario, root: &Table, cx: &mut Context<'_>) {
    for unmet in requirements::unmet(scenario, &Parts::of(scenario)) {
        let path = requirements::key(scenario, &unmet, root.get("dumbbell").is_some());
        let parts: Vec<&str> = path.iter().map(String::as_str).collect();
        let span = locate(root, &parts);
        let fix = unmet.fix(scenario);
        let problem = if unmet.requirement.required {
            cx.sink.error(span, path.join("."), unmet.message)
        } else {
            cx.sink.warning(span, path.join("."), unmet.message)
        };
        problem.help(fix);
    }
}

/// Limit on the rows of a time series: some gigabytes.
const MAX_ROWS: u128 = 100_000_000;
