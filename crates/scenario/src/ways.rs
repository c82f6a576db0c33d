//! Which ways the flows of a group take: through a dumbbell, or through a graph between one or many nodes.

use cwnd_units::dist::Shape;
use cwnd_units::{Duration, DurationDist, Rate};

use crate::links::{Dumbbell, Topology};
use crate::model::{Ends, Way};
use crate::reader::{At, Context, OptionalRate, Section, unknown_name};
use crate::routes::{broken, shortest};
use crate::tree::Item;

/// The most ways of a group.
const MOST_WAYS: usize = 10_000;

/// How a group's packets travel.
pub(crate) struct Ways {
    pub from: Vec<usize>,
    pub to: Vec<usize>,
    pub ends: Ends,
    pub ways: Vec<Way>,
    pub edge_rtt: DurationDist,
    pub edge_rate: Option<Rate>,
}

/// Through a dumbbell: what of the RTT is not the bottleneck's is between the hosts and the nodes.
pub(crate) fn across(
    section: &Section<'_>,
    dumbbell: &Dumbbell,
    cx: &mut Context<'_>,
) -> Option<Ways> {
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
    Some(Ways {
        from: vec![from],
        to: vec![to],
        ends: Ends::Random,
        ways: vec![Way { from, to, route: vec![from], reverse: vec![to] }],
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
        Shape::Exponential(_) | Shape::Pareto(..) | Shape::LogNormal(..) => Err(format!(
            "`{rtt}` can fall below the bottleneck's own round trip of {by} (twice its delay); write a uniform \
             distribution, or set the delay to \"0 ms\""
        )),
    }
}

/// Through a graph, by a given or the shortest route between two nodes, by the shortest between several.
pub(crate) fn through(
    section: &Section<'_>,
    topology: &Topology,
    cx: &mut Context<'_>,
) -> Option<Ways> {
    let from = nodes("from", section, topology, cx);
    let to = nodes("to", section, topology, cx);
    let ends = section.plain::<Ends>("ends", cx);
    let edge_rtt = section.plain::<DurationDist>("edge_rtt", cx);
    let edge_rate = section.plain::<OptionalRate>("edge_rate", cx).map(|r| r.0);
    let one = |nodes: &Option<Vec<usize>>| match nodes.as_deref() {
        Some([one]) => Some(*one),
        Some(_) | None => None,
    };
    let several = |nodes: &Option<Vec<usize>>| nodes.as_ref().is_some_and(|n| n.len() > 1);
    let ways = if several(&from) || several(&to) {
        for key in ["route", "reverse_route"] {
            let Some(entry) = section.entry(key) else { continue };
            let message = format!("a `{key}` leads from one node to one other, and here are more");
            let problem = cx.sink.error(entry.key_span, section.path_of(key), message);
            problem.help(format!("remove `{key}`, or write a group for each pair of nodes"));
        }
        between(from.as_ref()?, to.as_ref()?, section, topology, cx)
    } else {
        let (from, to) = (one(&from), one(&to));
        if from.is_some() && from == to {
            nowhere(section, cx);
            return None;
        }
        let route = route("route", (from, to), section, topology, cx);
        let reverse = self::route("reverse_route", (to, from), section, topology, cx);
        Some(vec![Way { from: from?, to: to?, route: route?, reverse: reverse? }])
    };
    Some(Ways {
        from: from?,
        to: to?,
        ends: ends?,
        ways: ways?,
        edge_rtt: edge_rtt?,
        edge_rate: edge_rate?,
    })
}

fn nowhere(section: &Section<'_>, cx: &mut Context<'_>) {
    let message = "the flows would send to the node where they are";
    cx.sink.error(section.span_of("to"), section.path_of("to"), message);
}

/// The ways from each of some nodes to each of some others.
fn between(
    from: &[usize],
    to: &[usize],
    section: &Section<'_>,
    topology: &Topology,
    cx: &mut Context<'_>,
) -> Option<Vec<Way>> {
    let all = from.len().saturating_mul(to.len());
    if all > MOST_WAYS {
        let message = format!(
            "{} senders' nodes and {} receivers' make {all} pairs: at most {MOST_WAYS} can be simulated",
            from.len(),
            to.len()
        );
        cx.sink.error(section.span_of("to"), section.path_of("to"), message);
        return None;
    }
    let pairs = to.iter().flat_map(|&to| from.iter().map(move |&from| (from, to)));
    let ways = pairs.filter(|(from, to)| from != to).map(|(from, to)| {
        let route = route("route", (Some(from), Some(to)), section, topology, cx)?;
        let reverse = self::route("reverse_route", (Some(to), Some(from)), section, topology, cx)?;
        Some(Way { from, to, route, reverse })
    });
    let ways: Vec<Way> = ways.collect::<Option<_>>()?;
    if ways.is_empty() {
        nowhere(section, cx);
        return None;
    }
    Some(ways)
}

/// A node, or a list of different ones.
fn nodes(
    key: &str,
    section: &Section<'_>,
    topology: &Topology,
    cx: &mut Context<'_>,
) -> Option<Vec<usize>> {
    section.read(key, cx, |at, cx| {
        let Item::Array(list) = &at.node.item else {
            return node(at, topology, cx).map(|found| vec![found]);
        };
        if list.is_empty() {
            cx.sink.error(at.node.span, at.path, "a list of no nodes: the flows have no end here");
            return None;
        }
        let mut found = Vec::new();
        let mut good = true;
        for one in list {
            let at = At { node: one, path: at.path };
            match node(at, topology, cx) {
                Some(node) if found.contains(&node) => {
                    let message = format!("`{}` is named twice", topology.nodes[node]);
                    let problem = cx.sink.error(one.span, at.path, message);
                    problem.help("name each node once: all pairs have the same chance");
                    good = false;
                }
                Some(node) => found.push(node),
                None => good = false,
            }
        }
        good.then_some(found)
    })
}

fn node(at: At<'_>, topology: &Topology, cx: &mut Context<'_>) -> Option<usize> {
    let Some(name) = at.node.text() else {
        at.wrong_kind("the name of a node, or a list of names", cx);
        return None;
    };
    let found = topology.nodes.iter().position(|n| *n == name);
    // A link that could not be read may be the one that has this node.
    if found.is_none() && topology.edges.is_some() {
        let names: Vec<&str> = topology.nodes.iter().map(String::as_str).collect();
        unknown_name(at, "node", &names, cx);
    }
    found
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
                Some(Item::Value(_) | Item::Table(_) | Item::Datetime | Item::Broken) | None => {
                    None
                }
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
