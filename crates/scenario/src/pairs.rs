//! Pairs of nodes with their shares: the traffic matrix of a group.

use std::collections::BTreeSet;

use cwnd_schema::SectionKeys;
use cwnd_schema::file::{
    At, Context, Item, Node, ReadValue, Section, SectionKeys as _, WriteValue, WrittenValue, inline,
};

use crate::ends::Ends;
use crate::links::Topology;
use crate::model::{FlowGroup, FlowPath, Scenario, Shares};
use crate::nodes::{MAX_PATHS, PathDirection, node, shortest};
use crate::raw::Raw;
use crate::value_forms;
use crate::value_forms::Format;

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
