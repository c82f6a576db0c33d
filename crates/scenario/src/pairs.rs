//! Ends of a group's flows: nodes, pairs of nodes with their shares, and peers drawn from the
//! scenario's seed.

use std::collections::BTreeSet;

use cwnd_quantity::Rng;
use cwnd_schema::SectionKeys;
use cwnd_schema::file::{
    At, Context, Item, Node, ReadValue, Section, SectionKeys as _, WriteValue, WrittenValue,
    inline, unknown_name,
};

use crate::links::Topology;
use crate::model::{Ends, FlowGroup, FlowPath, Scenario, Shares};
use crate::value_forms::{self, Format, Raw};

/// An entry of `pairs`: two nodes and the pair's share.
#[derive(SectionKeys)]
pub(crate) struct Pair {
    /// Node of the sender.
    #[entry(value_forms::NODE)]
    #[required("none")]
    pub from: Raw,
    /// Node of the receiver.
    #[entry(value_forms::NODE)]
    #[required("none")]
    pub to: Raw,
    /// Relative frequency at which the pair is drawn, dimensionless.
    #[default(1.0, "cwnd: all pairs have the same chance")]
    #[bounds(above 0.0; "a pair that is never drawn is no pair")]
    pub share: f64,
}

/// The key `pairs`, unread or taken from a scenario.
pub(crate) enum Pairs {
    /// The unread value of a file.
    Read(Raw),
    /// The pairs of a group, and the rule by which its flows choose among them.
    Of(Vec<Pair>, Ends),
}

impl Pairs {
    /// Returns the pairs of a group.
    pub fn of(group: &FlowGroup, shares: &Shares, scenario: &Scenario) -> Self {
        let node = |node: usize| Raw::name(&scenario.nodes[node]);
        let pairs = group.paths.iter().zip(shares.each()).map(|(path, &share)| Pair {
            from: node(path.from),
            to: node(path.to),
            share,
        });
        Self::Of(pairs.collect(), group.ends)
    }
}

impl ReadValue<Format> for Pairs {
    fn read(at: At<'_>, cx: &mut Context<'_>) -> Option<Self> {
        Raw::read(at, cx).map(Self::Read)
    }
}

impl WriteValue<Format> for Pairs {
    fn write(&self) -> WrittenValue<'_> {
        let (pairs, ends) = match self {
            Self::Read(raw) => return raw.write(),
            Self::Of(pairs, ends) => (pairs, ends),
        };
        // Round-robin ignores shares, and the reader refuses them with it.
        let is_wanted = |key: &str| key != "share" || *ends == Ends::Random;
        let pairs = pairs.iter().map(|pair| format!("  {},\n", inline(pair, is_wanted)));
        WrittenValue::Line(format!("[\n{}]", pairs.collect::<String>()))
    }
}

/// Returns the paths and shares of a group that gives `pairs`.
pub(crate) fn read(
    pairs: &Pairs,
    section: &Section<'_>,
    ends: Option<Ends>,
    topology: &Topology,
    cx: &mut Context<'_>,
) -> Option<(Vec<FlowPath>, Shares)> {
    for key in ["from", "to", "route", "reverse_route"] {
        let Some(entry) = section.entry(key) else { continue };
        let message = format!("`pairs` say where the flows go, and so does `{key}`");
        let problem = cx.sink.error(entry.key_span, section.path_of(key), message);
        problem.help(format!("remove `{key}`, or `pairs`"));
    }
    let Pairs::Read(raw) = pairs else { return None };
    let at = raw.at();
    let Item::Array(list) = &at.node.item else {
        at.wrong_kind("a list such as [{ from = \"a\", to = \"b\", share = 2 }]", cx);
        return None;
    };
    if list.is_empty() || list.len() > MAX_PATHS {
        let message = match list.len() {
            0 => "a list of no pairs: the flows have no ends".to_owned(),
            all => format!("{all} pairs: at most {MAX_PATHS} can be simulated"),
        };
        cx.sink.error(at.node.span, at.path, message);
        return None;
    }
    let mut seen = BTreeSet::new();
    let pairs = list.iter().enumerate().map(|(i, node)| {
        let (path, share) = pair(node, format!("{}[{i}]", at.path), ends, topology, cx)?;
        if !seen.insert((path.from, path.to)) {
            let (from, to) = (&topology.nodes[path.from], &topology.nodes[path.to]);
            let message = format!("the pair `{from}` to `{to}` is there twice");
            let problem = cx.sink.error(node.span, at.path, message);
            problem.help("write it once, with the sum of the shares");
            return None;
        }
        Some((path, share))
    });
    // Collected before the first error returns, so that the errors of all pairs are reported.
    let pairs: Vec<Option<(FlowPath, f64)>> = pairs.collect();
    let (paths, shares): (Vec<FlowPath>, Vec<f64>) =
        pairs.into_iter().collect::<Option<Vec<_>>>()?.into_iter().unzip();
    if !shares.iter().sum::<f64>().is_finite() {
        cx.sink.error(at.node.span, at.path, "the sum of these shares is no number");
        return None;
    }
    Some((paths, Shares::new(shares)))
}

fn pair(
    pair: &Node,
    path: String,
    ends: Option<Ends>,
    topology: &Topology,
    cx: &mut Context<'_>,
) -> Option<(FlowPath, f64)> {
    let Some(table) = pair.table() else {
        let wanted = "a pair such as { from = \"a\", to = \"b\", share = 2 }";
        At { node: pair, path: &path }.wrong_kind(wanted, cx);
        return None;
    };
    let section = Section::new(table, &[Pair::KEYS], path, pair.span, cx);
    let PartialPair { from, to, share } = Pair::read_keys(&section, cx);
    let from = from.and_then(|from| node(from.at(), topology, cx));
    let to = to.and_then(|to| node(to.at(), topology, cx));
    if let (Some(entry), Some(Ends::RoundRobin)) = (section.entry("share"), ends) {
        let message = "flows that take the pairs by turns leave nothing for a share to say";
        let problem = cx.sink.error(entry.key_span, section.path_of("share"), message);
        problem.help("remove `share`, or write `ends = \"random\"`");
    }
    let (from, to) = (from?, to?);
    if from == to {
        let message = "the flows would send to the node where they are";
        cx.sink.error(section.span_of("to"), section.path_of("to"), message);
        return None;
    }
    let route = shortest((from, to), PathDirection::Data, &section, topology, cx);
    let reverse = shortest((to, from), PathDirection::Acknowledgements, &section, topology, cx);
    Some((FlowPath { from, to, route: route?, reverse: reverse? }, share?))
}

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

/// Returns the paths of a group with `peers`: those to the first receiver, to the second, and so
/// on, all with equal shares. The flows take them in turn.
pub(crate) fn read_peers(
    (from, to): (Option<&Raw>, Option<&Raw>),
    section: &Section<'_>,
    count: u32,
    seed: u64,
    topology: &Topology,
    cx: &mut Context<'_>,
) -> Option<(Vec<FlowPath>, Shares)> {
    for (key, why) in [
        ("pairs", "`peers` are drawn, and `pairs` say who they are"),
        ("ends", "flows take turns among peers, which leaves nothing to say for `ends`"),
        ("route", "a `route` leads from one node to one other, and peers are more"),
        ("reverse_route", "a `reverse_route` leads from one node to one other, and peers are more"),
    ] {
        let Some(entry) = section.entry(key) else { continue };
        let problem = cx.sink.error(entry.key_span, section.path_of(key), why);
        problem.help(format!("remove `{key}`, or `peers`"));
    }
    let from = nodes(("from", from), section, topology, cx);
    let to = nodes(("to", to), section, topology, cx);
    let (from, to) = (from?, to?);
    let wanted = count as usize;
    if to.len().saturating_mul(wanted) > MAX_PATHS {
        let message = format!(
            "{} receivers with {count} peers each: at most {MAX_PATHS} pairs can be simulated",
            to.len()
        );
        cx.sink.error(section.span_of("peers"), section.path_of("peers"), message);
        return None;
    }
    // Each group has its own stream, so that changes to other groups do not change its draws.
    let mut rng = Rng::named(seed, &format!("{}.peers", section.path));
    let mut paths = Vec::with_capacity(to.len() * wanted);
    for receiver in to {
        let others: Vec<usize> = from.iter().copied().filter(|&node| node != receiver).collect();
        if others.len() < wanted {
            let name = &topology.nodes[receiver];
            let message =
                format!("`{name}` has {} others to be its peers, not {count}", others.len());
            let problem =
                cx.sink.error(section.span_of("peers"), section.path_of("peers"), message);
            problem.help("name more nodes in `from`, or ask for fewer peers");
            return None;
        }
        for sender in drawn(others, wanted, &mut rng) {
            let route = shortest((sender, receiver), PathDirection::Data, section, topology, cx);
            let back = (receiver, sender);
            let reverse = shortest(back, PathDirection::Acknowledgements, section, topology, cx);
            paths.push(FlowPath { from: sender, to: receiver, route: route?, reverse: reverse? });
        }
    }
    let shares = Shares::new(vec![1.0; paths.len()]);
    Some((paths, shares))
}

/// Draws `count` of `all` in random order, every subset with the same probability (Fisher & Yates
/// 1938).
fn drawn(mut all: Vec<usize>, count: usize, rng: &mut Rng) -> Vec<usize> {
    for i in 0..count {
        let left = (all.len() - i) as u64;
        all.swap(i, i + rng.below(left) as usize);
    }
    all.truncate(count);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_of_peers_has_the_same_chance() {
        let mut rng = Rng::named(1, "peers");
        let mut seen = std::collections::BTreeMap::new();
        for _ in 0..10_000 {
            let mut peers = drawn(vec![3, 5, 8, 9, 11], 2, &mut rng);
            peers.sort_unstable();
            *seen.entry(peers).or_insert(0_u32) += 1;
        }
        // Ten sets, a thousand draws each; the standard deviation is 30.
        assert_eq!(seen.len(), 10);
        assert!(seen.values().all(|n| n.abs_diff(1000) < 120), "{seen:?}");
    }
}
