//! Node names in a group of flows, and the shortest paths between the nodes.

use std::collections::BTreeSet;

use cwnd_schema::file::{At, Context, Item, Section, unknown_name};

use crate::links::Topology;
use crate::raw::Raw;

/// Limit on the paths of one group; they take half a gigabyte.
pub(crate) const MAX_PATHS: usize = 1_000_000;

/// Reads a node name or a list of different ones.
pub(crate) fn nodes(
    (key, given): (&str, Option<&Raw>),
    section: &Section<'_>,
    topology: &Topology,
    cx: &mut Context<'_>,
) -> Option<Vec<usize>> {
    let Some(at) = given.map(Raw::at) else {
        section.lacks(key, cx);
        return None;
    };
    let Item::Array(list) = &at.node.item else {
        return node(at, topology, cx).map(|found| vec![found]);
    };
    if list.is_empty() {
        cx.sink.error(at.node.span, at.path, "a list of no nodes: the flows have no end here");
        return None;
    }
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    let mut good = true;
    for one in list {
        let at = At { node: one, path: at.path };
        match node(at, topology, cx) {
            Some(node) if !seen.insert(node) => {
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
}

/// Reads a node name and returns its index.
pub(crate) fn node(at: At<'_>, topology: &Topology, cx: &mut Context<'_>) -> Option<usize> {
    let Some(name) = at.node.text() else {
        at.wrong_kind("the name of a node, or a list of names", cx);
        return None;
    };
    let found = topology.node_called(name);
    // The node may belong to a link that could not be read; the topology then has no routes.
    if found.is_none() && topology.routes.is_some() {
        let names: Vec<&str> = topology.nodes.iter().map(String::as_str).collect();
        unknown_name(at, "node", &names, cx);
    }
    found
}

/// Direction of a path, for the error message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathDirection {
    Data,
    Acknowledgements,
}

/// Returns the links of the shortest path between two nodes. If there is none, the error is
/// reported at the key of the unreachable end.
pub(crate) fn shortest(
    (from, to): (usize, usize),
    what: PathDirection,
    section: &Section<'_>,
    topology: &Topology,
    cx: &mut Context<'_>,
) -> Option<Vec<usize>> {
    let route = topology.routes.as_ref()?.shortest(from, to);
    if route.is_none() {
        let (a, b) = (&topology.nodes[from], &topology.nodes[to]);
        let (what, end) = match what {
            PathDirection::Data => ("data", "to"),
            PathDirection::Acknowledgements => ("acknowledgements", "from"),
        };
        let message = format!("no links lead from `{a}` to `{b}`, where {what} must go");
        let problem = cx.sink.error(section.span_of(end), section.path_of(end), message);
        problem.help("links are directed: add one, or `duplex = true` to one there is");
    }
    route
}
