//! Paths of a group's flows: across a dumbbell, or through a graph between pairs or lists of nodes.

use std::collections::BTreeSet;

use cwnd_quantity::dist::Shape;
use cwnd_quantity::{Duration, DurationDist, Rate};
use cwnd_schema::file::{At, Context, Item, Section, SectionKeys as _, unknown_name};

use crate::flow_keys::{
    Direction, DumbbellFlowKeys, GraphFlowKeys, PartialDumbbellFlowKeys, PartialGraphFlowKeys,
};
use crate::links::{Dumbbell, Topology};
use crate::model::{Ends, FlowPath, Shares};
use crate::pairs::{self, MAX_PATHS, PathDirection, nodes, shortest};
use crate::routes::broken;
use crate::value_forms::Raw;

/// End nodes, paths and host links of a group.
pub(crate) struct FlowPaths {
    pub from: Vec<usize>,
    pub to: Vec<usize>,
    pub shares: Option<Shares>,
    pub ends: Ends,
    /// Default number of flows, for a group without `count`.
    pub flows: Option<u32>,
    pub paths: Vec<FlowPath>,
    pub edge_rtt: DurationDist,
    pub edge_rate: Option<Rate>,
}

/// Returns the path across a dumbbell. The part of the RTT that exceeds the links' delay becomes
/// `edge_rtt`.
pub(crate) fn across(
    section: &Section<'_>,
    dumbbell: &Dumbbell,
    cx: &mut Context<'_>,
) -> Option<FlowPaths> {
    let PartialDumbbellFlowKeys { rtt, direction } = DumbbellFlowKeys::read_keys(section, cx);
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
    // The bottleneck leaves node 0 and is link 0; the reverse link leaves node 1 and is link 1.
    Some(FlowPaths {
        from: vec![from],
        to: vec![to],
        shares: None,
        ends: Ends::Random,
        flows: None,
        paths: vec![FlowPath { from, to, route: vec![from], reverse: vec![to] }],
        edge_rtt,
        edge_rate: dumbbell.edge_rate?,
    })
}

/// Subtracts the links' delay `by` from an RTT, to get the delay at the hosts.
fn shift(rtt: DurationDist, by: Duration) -> Result<DurationDist, String> {
    let short = |least: u64| {
        format!(
            "an RTT of {} is shorter than the bottleneck's own round trip of {by} \
             (twice its delay)",
            Duration(least)
        )
    };
    match rtt.0 {
        _ if by == Duration::ZERO => Ok(rtt),
        Shape::Constant(v) | Shape::Uniform(v, _) if v < by.0 => Err(short(v)),
        Shape::Constant(v) => Ok(DurationDist(Shape::Constant(v - by.0))),
        Shape::Uniform(low, high) => Ok(DurationDist(Shape::Uniform(low - by.0, high - by.0))),
        _ => Err(format!(
            "`{rtt}` can fall below the bottleneck's own round trip of {by} (twice its delay); \
             write a uniform distribution, or set the delay to \"0 ms\""
        )),
    }
}

/// Returns the paths through a graph: of `peers`, of `pairs`, or from each of `from` to each of
/// `to`.
pub(crate) fn through(
    section: &Section<'_>,
    topology: &Topology,
    seed: Option<u64>,
    cx: &mut Context<'_>,
) -> Option<FlowPaths> {
    let found = GraphFlowKeys::read_keys(section, cx);
    let (ends, peers) = (found.ends, found.peers?);
    let each = |paths: &[FlowPath], end: fn(&FlowPath) -> usize| -> Vec<usize> {
        let nodes: BTreeSet<usize> = paths.iter().map(end).collect();
        nodes.into_iter().collect()
    };
    let of_pairs = |paths: Vec<FlowPath>, shares| {
        (each(&paths, |path| path.from), each(&paths, |path| path.to), paths, Some(shares))
    };
    let (from, to, paths, shares) = match (given(&found.pairs), peers) {
        (_, Some(count)) => {
            let lists = (given(&found.from), given(&found.to));
            let (paths, shares) = pairs::read_peers(lists, section, count, seed?, topology, cx)?;
            let (from, to, paths, shares) = of_pairs(paths, shares);
            let (edge_rtt, edge_rate) = (found.edge_rtt?, found.edge_rate?);
            // Round-robin over the drawn pairs gives one flow from each peer.
            let (ends, flows) = (Ends::RoundRobin, u32::try_from(paths.len()).ok());
            return Some(FlowPaths { from, to, shares, ends, flows, paths, edge_rtt, edge_rate });
        }
        (Some(pairs), None) => {
            let (paths, shares) = pairs::read(pairs, section, ends, topology, cx)?;
            of_pairs(paths, shares)
        }
        (None, None) => {
            let (from, to, paths) = between_lists(&found, section, topology, cx)?;
            (from, to, paths, None)
        }
    };
    let (ends, edge_rtt, edge_rate) = (ends?, found.edge_rtt?, found.edge_rate?);
    Some(FlowPaths { from, to, shares, ends, flows: None, paths, edge_rtt, edge_rate })
}

/// Returns the senders' nodes, the receivers' nodes and the paths between them. Between two nodes a
/// given route is taken, if any; otherwise the shortest.
fn between_lists(
    keys: &PartialGraphFlowKeys,
    section: &Section<'_>,
    topology: &Topology,
    cx: &mut Context<'_>,
) -> Option<(Vec<usize>, Vec<usize>, Vec<FlowPath>)> {
    let from = nodes(("from", given(&keys.from)), section, topology, cx);
    let to = nodes(("to", given(&keys.to)), section, topology, cx);
    let one = |nodes: &Option<Vec<usize>>| match nodes.as_deref() {
        Some([one]) => Some(*one),
        Some(_) | None => None,
    };
    let several = |nodes: &Option<Vec<usize>>| nodes.as_ref().is_some_and(|n| n.len() > 1);
    let paths = if several(&from) || several(&to) {
        for key in ["route", "reverse_route"] {
            let Some(entry) = section.entry(key) else { continue };
            let message = format!("a `{key}` leads from one node to one other, and here are more");
            let problem = cx.sink.error(entry.key_span, section.path_of(key), message);
            problem.help(format!("remove `{key}`, or write a group for each pair of nodes"));
        }
        between((from.as_ref()?, to.as_ref()?), section, topology, cx)
    } else {
        let (from, to) = (one(&from), one(&to));
        if from.is_some() && from == to {
            nowhere(section, cx);
            return None;
        }
        let (data, acks) = (given(&keys.route), given(&keys.reverse_route));
        let route = route(("route", data), (from, to), section, topology, cx);
        let reverse = self::route(("reverse_route", acks), (to, from), section, topology, cx);
        Some(vec![FlowPath { from: from?, to: to?, route: route?, reverse: reverse? }])
    };
    Some((from?, to?, paths?))
}

/// Returns the value of an optional key, if it was read and given.
fn given<T>(key: &Option<Option<T>>) -> Option<&T> {
    key.as_ref().and_then(Option::as_ref)
}

fn nowhere(section: &Section<'_>, cx: &mut Context<'_>) {
    let message = "the flows would send to the node where they are";
    cx.sink.error(section.span_of("to"), section.path_of("to"), message);
}

/// Returns the shortest paths from each sender to each other node among the receivers, by receiver.
fn between(
    (from, to): (&[usize], &[usize]),
    section: &Section<'_>,
    topology: &Topology,
    cx: &mut Context<'_>,
) -> Option<Vec<FlowPath>> {
    let all = from.len().saturating_mul(to.len());
    if all > MAX_PATHS {
        let message = format!(
            "{} senders' nodes and {} receivers' make {all} pairs: \
             at most {MAX_PATHS} can be simulated",
            from.len(),
            to.len()
        );
        cx.sink.error(section.span_of("to"), section.path_of("to"), message);
        return None;
    }
    let pairs = to.iter().flat_map(|&to| from.iter().map(move |&from| (from, to)));
    let paths = pairs.filter(|(from, to)| from != to).map(|(from, to)| {
        let route = shortest((from, to), PathDirection::Data, section, topology, cx)?;
        let back = (to, from);
        let reverse = shortest(back, PathDirection::Acknowledgements, section, topology, cx)?;
        Some(FlowPath { from, to, route, reverse })
    });
    let paths: Vec<FlowPath> = paths.collect::<Option<_>>()?;
    if paths.is_empty() {
        nowhere(section, cx);
        return None;
    }
    Some(paths)
}

fn route(
    (key, given): (&str, Option<&Raw>),
    (from, to): (Option<usize>, Option<usize>),
    section: &Section<'_>,
    topology: &Topology,
    cx: &mut Context<'_>,
) -> Option<Vec<usize>> {
    let named = match given {
        Some(raw) => Some(links(raw.at(), topology, cx)?),
        None => None,
    };
    let routes = topology.routes.as_ref()?;
    let (from, to) = (from?, to?);
    match named {
        Some(route) => {
            let Some((i, message)) = broken(routes.edges(), &topology.nodes, &route, from, to)
            else {
                return Some(route);
            };
            let span = match given.map(|raw| &raw.at().node.item) {
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
            let what =
                if key == "route" { PathDirection::Data } else { PathDirection::Acknowledgements };
            shortest((from, to), what, section, topology, cx)
        }
    }
}

fn links(at: At<'_>, topology: &Topology, cx: &mut Context<'_>) -> Option<Vec<usize>> {
    let Item::Array(list) = &at.node.item else {
        at.wrong_kind("a list of names of links", cx);
        return None;
    };
    let indices: Vec<Option<usize>> = list
        .iter()
        .map(|node| {
            let found = node.text().and_then(|name| topology.link_called(name));
            if found.is_none() {
                let names: Vec<&str> = topology.names.iter().map(String::as_str).collect();
                unknown_name(At { node, path: at.path }, "link", &names, cx);
            }
            found
        })
        .collect();
    indices.into_iter().collect()
}
