//! Reader of the sections `[flow.*]`: groups of flows.

use cwnd_apps::Transport;
use cwnd_cc::ControllerParams;
use cwnd_quantity::Time;
use cwnd_schema::file::{
    At, Context, Entry, Key, Section, SectionKeys as _, Span, Table, choice_from,
};
use cwnd_schema::{Params, ParamsChoice as _};
use cwnd_tcp::quic;

use crate::flow_keys::{DumbbellFlowKeys, FlowKeys, GraphFlowKeys, PartialFlowKeys};
use crate::flow_paths::{across, through};
use crate::links::Topology;
use crate::model::{FlowGroup, Stack};
use crate::stack;
use crate::value_forms::SCHEMAS;

/// Name that stands for all flows in results, refused as the name of a group.
const ALL_FLOWS: &str = "*";

/// Reads the groups; `None` for each that could not be read. Without a topology only their own keys
/// are checked. Peers are drawn from `seed`.
pub(crate) fn groups(
    table: &Table,
    topology: Option<&Topology>,
    seed: Option<u64>,
    cx: &mut Context<'_>,
) -> Vec<Option<FlowGroup>> {
    table.entries.iter().map(|entry| group(entry, topology, seed, cx)).collect()
}

fn group(
    entry: &Entry,
    topology: Option<&Topology>,
    seed: Option<u64>,
    cx: &mut Context<'_>,
) -> Option<FlowGroup> {
    let path = format!("flow.{}", entry.key);
    let Some(table) = entry.node.table() else {
        At { node: &entry.node, path: &path }.wrong_kind("a table with the keys of a group", cx);
        return None;
    };
    let dumbbell = topology.map(|t| t.dumbbell.is_some());
    let (keys, others) = keys(dumbbell);
    let elsewhere = |key: &str| {
        let (theirs, ours) = match dumbbell {
            Some(true) => ("graph of links", "dumbbell"),
            Some(false) | None => ("dumbbell", "graph of links"),
        };
        let found = others.iter().any(|other| other.name == key);
        found.then(|| format!("it is for a {theirs}, and this is a {ours}"))
    };
    if entry.key == ALL_FLOWS {
        let message = format!("`{ALL_FLOWS}` can't name a group: it names all flows in results");
        let problem = cx.sink.error(entry.key_span, &path, message);
        problem.help("give the group another name, as in [flow.main]");
    }
    let section = Section::with_hint(table, keys, path, entry.key_span, &elsewhere, cx);
    let found = FlowKeys::read_keys(&section, cx);
    let path = topology.and_then(|topology| match &topology.dumbbell {
        Some(dumbbell) => across(&section, dumbbell, cx),
        None => through(&section, topology, seed, cx),
    });
    let unsaid = section.entry("count").is_none();
    let count = path.as_ref().and_then(|path| path.flows).filter(|_| unsaid).or(found.count);
    let protocol = protocol(&found, &section, cx);
    if let Some(quic) = protocol.as_ref().and_then(|ends| ends.quic.as_ref()) {
        report_tcp_only(&found, quic, &section, cx);
    }
    let PartialFlowKeys { start, spacing, rtt_step, stop, workload, arrivals, attacker, .. } =
        found;
    let transport = workload.as_ref().map(|workload| workload.facts().transport);
    let connects = transport == Some(Transport::Connection);
    let (path, protocol) = (path?, protocol?);
    Some(FlowGroup {
        name: entry.key.clone(),
        count: count?,
        from: path.from,
        to: path.to,
        shares: path.shares,
        ends: path.ends,
        paths: path.paths,
        edge_rtt: path.edge_rtt,
        edge_rate: path.edge_rate,
        start: start?,
        spacing: spacing?,
        rtt_step: rtt_step?,
        stop: stop?.map(|d| Time(d.0)),
        workload: workload?,
        arrivals: arrivals?,
        attacker: attacker?,
        stack: protocol.stack.filter(|_| connects),
        controller: protocol.controller,
        endpoint: protocol.endpoint,
        quic: protocol.quic.filter(|_| connects),
    })
}

/// Returns the key lists of a group in a topology, and the keys that belong to the other one.
/// Without a topology all keys are the group's.
const fn keys(dumbbell: Option<bool>) -> (&'static [&'static [Key]], &'static [Key]) {
    match dumbbell {
        Some(true) => (&[FlowKeys::KEYS, DumbbellFlowKeys::KEYS], GraphFlowKeys::KEYS),
        Some(false) => (&[FlowKeys::KEYS, GraphFlowKeys::KEYS], DumbbellFlowKeys::KEYS),
        None => (&[FlowKeys::KEYS, DumbbellFlowKeys::KEYS, GraphFlowKeys::KEYS], &[]),
    }
}

/// Transport protocol of a group: the parameters of its TCP or QUIC.
struct Protocol {
    stack: Option<Stack>,
    controller: ControllerParams,
    endpoint: cwnd_tcp::Params,
    quic: Option<quic::Params>,
}

fn protocol(
    keys: &PartialFlowKeys,
    section: &Section<'_>,
    cx: &mut Context<'_>,
) -> Option<Protocol> {
    let parts = keys.stack.as_ref();
    let name = parts.map(|parts| parts.base);
    let of_stack = |params: &dyn Params| stack::controller_preset(name?, params);
    let controller = keys
        .controller
        .as_ref()
        .and_then(|raw| choice_from::<ControllerParams>(raw.at(), "controller", &of_stack, cx));
    // With an invalid stack, the keys beside it are still checked, against the first stack.
    let of_stack = name.unwrap_or(stack::first());
    if stack::is_quic(of_stack) {
        let (parts, controller) = (parts?.clone(), controller);
        let quic = match keys.endpoint.as_ref()? {
            Some(raw) => stack::read_quic(raw.at(), cx)?,
            None => quic::Params::default(),
        };
        let ((controller, preset), endpoint) = (controller?, of_stack);
        let at = (section.span_of("controller"), section.path_of("controller"));
        check_quic_controller(&controller, &quic, at, cx)?;
        let stack = Some(Stack { parts, endpoint, controller: preset });
        let endpoint = cwnd_tcp::Params::default();
        return Some(Protocol { stack, controller, endpoint, quic: Some(quic) });
    }
    let change =
        |params: &mut cwnd_tcp::Params| parts.iter().for_each(|parts| parts.change(params));
    let written = keys.endpoint.as_ref()?.as_ref().map(|raw| {
        let at = raw.at();
        let found = stack::read_endpoint(at, of_stack, &change, cx);
        parts.iter().zip(&found).for_each(|(parts, (_, named))| parts.check_preset(named, at, cx));
        found
    });
    let (endpoint, of_endpoint) = written
        .unwrap_or_else(|| Some((stack::endpoint_of_stack(of_stack, &change, cx), of_stack)))?;
    let (parts, (controller, of_controller)) = (parts?.clone(), controller?);
    parts.note_idle(&endpoint, section, cx);
    let name = parts.base;
    // Ids are hashes of the resolved file: schema 1 without a stack resolves as it did before the
    // key existed.
    let named = cx.schema > SCHEMAS[0] || section.entry("stack").is_some();
    let stack = named.then_some(Stack { parts, endpoint: of_endpoint, controller: of_controller });
    let chosen = section.entry("controller").and_then(|entry| entry.node.table());
    if stack.is_some() && chosen.is_none_or(|table| table.get("preset").is_none()) {
        let at = (section.span_of("controller"), section.path_of("controller"));
        stack::note(name, controller.kind(), at, &mut cx.sink);
    }
    Some(Protocol { stack, controller, endpoint, quic: None })
}

/// Reports a controller with a requirement that no QUIC sender meets.
fn check_quic_controller(
    controller: &ControllerParams,
    quic: &quic::Params,
    (span, path): (Span, String),
    cx: &mut Context<'_>,
) -> Option<()> {
    let config = quic::Config::new(quic.clone(), controller);
    let Some(lack) = config.lacks() else { return Some(()) };
    let problem = cx.sink.error(span, path, format!("`{}` {lack}", controller.kind()));
    problem.help("take another controller, or a stack of TCP");
    None
}

/// Reports a workload or an attacker that needs TCP, in a group of QUIC.
fn report_tcp_only(
    keys: &PartialFlowKeys,
    quic: &quic::Params,
    section: &Section<'_>,
    cx: &mut Context<'_>,
) {
    let name = quic.presets()[0].name;
    let mut report = |key: &str, message: String, help: &str| {
        let problem = cx.sink.error(section.span_of(key), section.path_of(key), message);
        problem.help(help);
    };
    if let Some(workload) = &keys.workload
        && workload.facts().client_opens
    {
        let kind = workload.kind();
        let message = format!("clients of `{kind}` ask on a connection of TCP, not of `{name}`");
        report("workload", message, "take a workload without requests, or a stack of TCP");
    }
    if let Some(attacker) = &keys.attacker
        && attacker.build(Time::ZERO).is_some()
    {
        let message = format!("senders of `{name}` ignore source quenches, forged or not");
        report("attacker", message, "remove `attacker`, or take a stack of TCP");
    }
}
