//! The sections `[flow.*]`: groups of flows.

use cwnd_cc::ControllerParams;
use cwnd_units::{Bytes, Duration, Param, Rate, Time};

use crate::dist::{DurationDist, Shape, SizeDist};
use crate::links::{Dumbbell, Topology};
use crate::model::{Arrivals, Cycle, Datagrams, FlowGroup, Workload};
use crate::reader::{At, Context, OptionalRate, Section, choice, preset_or_table, unknown_name};
use crate::routes::{broken, shortest};
use crate::sections::{
    DEFAULT_CONTROLLER, DEFAULT_WORKLOAD, FLOW, FLOW_DUMBBELL, FLOW_GRAPH, Key, WORKLOADS,
};
use crate::tree::{Entry, Item, Table};

/// The most flows of a scenario.
pub(crate) const MOST_FLOWS: u64 = 10_000_000;

/// What results write in the place of a group's name where they count all flows.
const ALL_FLOWS: &str = "*";

/// The groups; one that could not be read is `None`. Without a topology only what they say of themselves is looked at.
pub(crate) fn groups(
    table: &Table,
    topology: Option<&Topology>,
    cx: &mut Context<'_>,
) -> Vec<Option<FlowGroup>> {
    table.entries.iter().map(|entry| group(entry, topology, cx)).collect()
}

fn group(entry: &Entry, topology: Option<&Topology>, cx: &mut Context<'_>) -> Option<FlowGroup> {
    let path = format!("flow.{}", entry.key);
    let Some(table) = entry.node.table() else {
        At { node: &entry.node, path: &path }.wrong_kind("a table with the keys of a group", cx);
        return None;
    };
    let dumbbell = topology.map(|t| t.dumbbell.is_some());
    let (keys, others): (&'static [&'static [Key]], &[Key]) = match dumbbell {
        Some(true) => (&[FLOW, FLOW_DUMBBELL], FLOW_GRAPH),
        Some(false) => (&[FLOW, FLOW_GRAPH], FLOW_DUMBBELL),
        None => (&[FLOW, FLOW_DUMBBELL, FLOW_GRAPH], &[]),
    };
    let elsewhere = |key: &str| {
        let (theirs, ours) = match dumbbell {
            Some(true) => ("graph of links", "dumbbell"),
            _ => ("dumbbell", "graph of links"),
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
    let count = count(&section, cx);
    let way = topology.and_then(|topology| match &topology.dumbbell {
        Some(dumbbell) => across(&section, dumbbell, cx),
        None => through(&section, topology, cx),
    });
    let controller = section.read("controller", cx, |at, cx| {
        choice::<ControllerParams>(at, "controller", DEFAULT_CONTROLLER, cx)
    });
    let endpoint = section
        .read("endpoint", cx, |at, cx| preset_or_table::<cwnd_tcp::Params>(at, "endpoint", cx));
    let start = section.plain::<DurationDist>("start", cx);
    let spacing = section.plain::<Duration>("spacing", cx);
    let stop = section.plain::<Option<Duration>>("stop", cx);
    let workload = section.read("workload", cx, workload);
    if let (Some(Some(stop)), Some(start)) = (stop, start)
        && stop <= earliest(&start)
    {
        let message = format!("the flows stop at {stop}, before they start");
        cx.sink.error(section.span_of("stop"), section.path_of("stop"), message);
    }
    if let (Some(Some(_)), Some(workload)) = (stop, &workload)
        && !matches!(workload, Workload::Bulk | Workload::Udp(_))
    {
        let message =
            "only bulk flows and datagrams can be stopped: the others end with their transfers";
        cx.sink.error(section.span_of("stop"), section.path_of("stop"), message);
    }
    if let Some(Workload::Udp(_)) = workload {
        for key in ["controller", "endpoint"] {
            let Some(entry) = section.entry(key) else { continue };
            let message = format!("datagrams have no {key}: nothing answers them");
            let problem = cx.sink.error(entry.key_span, section.path_of(key), message);
            problem.help(format!("remove `{key}`, or take another workload than `udp`"));
        }
    }
    let way = way?;
    Some(FlowGroup {
        name: entry.key.clone(),
        count: count?,
        from: way.from,
        to: way.to,
        route: way.route,
        reverse: way.reverse,
        edge_rtt: way.edge_rtt,
        edge_rate: way.edge_rate,
        start: start?,
        spacing: spacing?,
        stop: stop?.map(|d| Time(d.0)),
        workload: workload?,
        controller: controller?,
        endpoint: endpoint?,
    })
}

/// The least that a draw can be.
pub(crate) fn earliest(dist: &DurationDist) -> Duration {
    match dist.0 {
        Shape::Constant(v) | Shape::Uniform(v, _) => Duration(v),
        Shape::Exponential(_) | Shape::Pareto(..) | Shape::LogNormal(..) => Duration::ZERO,
    }
}

fn count(section: &Section<'_>, cx: &mut Context<'_>) -> Option<u32> {
    let count = section.plain::<u64>("count", cx)?;
    let message = match count {
        0 => "a group of no flows does nothing".to_owned(),
        1..=MOST_FLOWS => return u32::try_from(count).ok(),
        _ => format!("{count} flows are too many: at most {MOST_FLOWS} can be simulated"),
    };
    cx.sink.error(section.span_of("count"), section.path_of("count"), message);
    None
}

/// How a group's packets travel.
struct Way {
    from: usize,
    to: usize,
    route: Vec<usize>,
    reverse: Vec<usize>,
    edge_rtt: DurationDist,
    edge_rate: Option<Rate>,
}

/// Through a dumbbell: what of the RTT is not the bottleneck's is between the hosts and the nodes.
fn across(section: &Section<'_>, dumbbell: &Dumbbell, cx: &mut Context<'_>) -> Option<Way> {
    let rtt = section.plain::<DurationDist>("rtt", cx);
    let direction = section.plain::<Direction>("direction", cx);
    let delay = dumbbell.delay?;
    let edge_rtt = match shift(rtt?, delay * 2) {
        Ok(edge_rtt) => edge_rtt,
        Err(message) => {
            cx.sink.error(section.span_of("rtt"), section.path_of("rtt"), message);
            return None;
        }
    };
    let (from, to) = match direction? {
        Direction::Forward => (0, 1),
        Direction::Reverse => (1, 0),
    };
    // The bottleneck leaves node 0 and is link 0; the way back leaves node 1 and is link 1.
    Some(Way {
        from,
        to,
        route: vec![from],
        reverse: vec![to],
        edge_rtt,
        edge_rate: dumbbell.edge_rate?,
    })
}

cwnd_units::param_enum! {
    /// Which way data goes through a dumbbell.
    pub enum Direction {
        /// From left to right.
        Forward = "forward",
        /// From right to left.
        Reverse = "reverse",
    }
}

/// An RTT less the part that the links account for.
fn shift(rtt: DurationDist, by: Duration) -> Result<DurationDist, String> {
    let short = |least: u64| {
        format!(
            "an RTT of {} is shorter than the bottleneck's own round trip of {by} (twice its delay)",
            Duration(least)
        )
    };
    match rtt.0 {
        _ if by == Duration::ZERO => Ok(rtt),
        Shape::Constant(v) | Shape::Uniform(v, _) if v < by.0 => Err(short(v)),
        Shape::Constant(v) => Ok(DurationDist(Shape::Constant(v - by.0))),
        Shape::Uniform(low, high) => Ok(DurationDist(Shape::Uniform(low - by.0, high - by.0))),
        _ => Err(format!(
            "`{rtt}` can fall below the bottleneck's own round trip of {by} (twice its delay); write a uniform \
             distribution, or set the delay to \"0 ms\""
        )),
    }
}

/// Through a graph, by a given or the shortest route.
fn through(section: &Section<'_>, topology: &Topology, cx: &mut Context<'_>) -> Option<Way> {
    let from = node("from", section, topology, cx);
    let to = node("to", section, topology, cx);
    let edge_rtt = section.plain::<DurationDist>("edge_rtt", cx);
    let edge_rate = section.plain::<OptionalRate>("edge_rate", cx).map(|r| r.0);
    if from.is_some() && from == to {
        let message = "the flows would send to the node where they are";
        cx.sink.error(section.span_of("to"), section.path_of("to"), message);
        return None;
    }
    let route = route("route", (from, to), section, topology, cx);
    let reverse = self::route("reverse_route", (to, from), section, topology, cx);
    Some(Way {
        from: from?,
        to: to?,
        route: route?,
        reverse: reverse?,
        edge_rtt: edge_rtt?,
        edge_rate: edge_rate?,
    })
}

fn node(
    key: &str,
    section: &Section<'_>,
    topology: &Topology,
    cx: &mut Context<'_>,
) -> Option<usize> {
    section.read(key, cx, |at, cx| {
        let name = at.plain::<String>(cx)?;
        let found = topology.nodes.iter().position(|n| *n == name);
        // A link that could not be read may be the one that has this node.
        if found.is_none() && topology.edges.is_some() {
            let names: Vec<&str> = topology.nodes.iter().map(String::as_str).collect();
            unknown_name(at, "node", &names, cx);
        }
        found
    })
}

fn route(
    key: &str,
    (from, to): (Option<usize>, Option<usize>),
    section: &Section<'_>,
    topology: &Topology,
    cx: &mut Context<'_>,
) -> Option<Vec<usize>> {
    let given = section.optional(key, cx, |at, cx| links(at, topology, cx))?;
    let edges = topology.edges.as_ref()?;
    let (from, to) = (from?, to?);
    match given {
        Some(route) => {
            let Some((i, message)) = broken(edges, &topology.nodes, &route, from, to) else {
                return Some(route);
            };
            let span = match section.entry(key).map(|e| &e.node.item) {
                Some(Item::Array(list)) => list.get(i).map(|n| n.span),
                _ => None,
            };
            let span = span.unwrap_or_else(|| section.span_of(key));
            cx.sink.error(span, section.path_of(key), message);
            None
        }
        None => {
            let route = shortest(edges, topology.nodes.len(), from, to);
            if route.is_none() {
                let (a, b) = (&topology.nodes[from], &topology.nodes[to]);
                let (what, end) =
                    if key == "route" { ("data", "to") } else { ("acknowledgements", "from") };
                let message = format!("no links lead from `{a}` to `{b}`, where {what} must go");
                let problem = cx.sink.error(section.span_of(end), section.path_of(end), message);
                problem.help("links are directed: add one, or `duplex = true` to one there is");
            }
            route
        }
    }
}

fn links(at: At<'_>, topology: &Topology, cx: &mut Context<'_>) -> Option<Vec<usize>> {
    let Item::Array(list) = &at.node.item else {
        at.wrong_kind("a list of names of links", cx);
        return None;
    };
    let names: Vec<&str> = topology.names.iter().map(String::as_str).collect();
    let indices: Vec<Option<usize>> = list
        .iter()
        .map(|node| {
            let found = node.text().and_then(|t| names.iter().position(|n| *n == t));
            if found.is_none() {
                unknown_name(At { node, path: at.path }, "link", &names, cx);
            }
            found
        })
        .collect();
    indices.into_iter().collect()
}

/// A workload: its kind, or a table with its keys.
fn workload(at: At<'_>, cx: &mut Context<'_>) -> Option<Workload> {
    let empty = Table::default();
    let (table, kind_node) = match at.node.table() {
        Some(table) => (table, table.get("kind").map(|e| &e.node)),
        None => (&empty, Some(at.node)),
    };
    let name = match kind_node {
        None => DEFAULT_WORKLOAD,
        Some(node) => node.text().unwrap_or_default(),
    };
    let Some(kind) = WORKLOADS.iter().find(|k| k.name == name) else {
        let names: Vec<&str> = WORKLOADS.iter().map(|k| k.name).collect();
        unknown_name(At { node: kind_node?, path: at.path }, "workload", &names, cx);
        return None;
    };
    let section = Section::new(table, kind.keys, at.path, at.node.span, cx);
    let size = |cx: &mut Context<'_>| section.plain::<SizeDist>("size", cx);
    match kind.name {
        "bytes" => Some(Workload::Bytes { size: size(cx)? }),
        "on-off" => {
            let (size, off) = (size(cx), section.plain::<DurationDist>("off", cx));
            Some(Workload::OnOff { size: size?, off: off? })
        }
        "poisson" => {
            let (size, interval) = (size(cx), section.plain::<Duration>("interval", cx));
            if interval == Some(Duration::ZERO) {
                let message = "arrivals with no time between them would have no end";
                cx.sink.error(section.span_of("interval"), section.path_of("interval"), message);
                return None;
            }
            Some(Workload::Poisson { interval: interval?, size: size? })
        }
        "udp" => datagrams(&section, cx).map(Workload::Udp),
        _ => Some(Workload::Bulk),
    }
}

/// The keys of a workload `udp`.
fn datagrams(section: &Section<'_>, cx: &mut Context<'_>) -> Option<Datagrams> {
    let rate = section.plain::<Rate>("rate", cx);
    let size = section.plain::<Bytes>("size", cx);
    let header = section.plain::<Bytes>("header", cx);
    let arrivals = section.plain::<Arrivals>("arrivals", cx);
    let span = |key: &str, cx: &mut Context<'_>| {
        section.optional(key, cx, |at, cx| at.plain::<DurationDist>(cx))
    };
    let (on, off) = (span("on", cx), span("off", cx));
    let mut refuse = |key: &str, message: String| {
        cx.sink.error(section.span_of(key), section.path_of(key), message);
        None
    };
    let cycle = match (on?, off?) {
        (None, None) => None,
        (Some(on), Some(_)) if on == DurationDist::constant(Duration::ZERO) => {
            return refuse("on", "datagrams that are on for no time send nothing".to_owned());
        }
        (Some(on), Some(off)) => Some(Cycle { on, off }),
        (Some(_), None) => return refuse("on", "`on` needs `off`, the pause after it".to_owned()),
        (None, Some(_)) => return refuse("off", "`off` needs `on`, the time before it".to_owned()),
    };
    let (size, header) = (size?, header?);
    if size > LARGEST_DATAGRAM {
        return refuse("size", format!("an IP packet has at most {LARGEST_DATAGRAM}"));
    }
    if size <= header {
        return refuse("size", format!("{size} with headers of {header} carries nothing"));
    }
    Some(Datagrams { rate: rate?, size, header, arrivals: arrivals?, cycle })
}

/// RFC 791 § 3.1: Total Length has 16 bits.
const LARGEST_DATAGRAM: Bytes = Bytes(65_535);

/// The name of a workload's kind.
pub(crate) const fn workload_name(workload: &Workload) -> &'static str {
    match workload {
        Workload::Bulk => "bulk",
        Workload::Bytes { .. } => "bytes",
        Workload::OnOff { .. } => "on-off",
        Workload::Poisson { .. } => "poisson",
        Workload::Udp(_) => "udp",
    }
}

/// The keys of a workload and their values, as they are written.
pub(crate) fn workload_keys(workload: &Workload) -> Vec<(&'static str, cwnd_units::Value)> {
    match workload {
        Workload::Bulk => Vec::new(),
        Workload::Bytes { size } => vec![("size", size.write())],
        Workload::OnOff { size, off } => vec![("size", size.write()), ("off", off.write())],
        Workload::Poisson { interval, size } => {
            vec![("interval", interval.write()), ("size", size.write())]
        }
        Workload::Udp(Datagrams { rate, size, header, arrivals, cycle }) => {
            let mut keys = vec![
                ("rate", rate.write()),
                ("size", size.write()),
                ("header", header.write()),
                ("arrivals", arrivals.write()),
            ];
            if let Some(Cycle { on, off }) = cycle {
                keys.extend([("on", on.write()), ("off", off.write())]);
            }
            keys
        }
    }
}
