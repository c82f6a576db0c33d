//! Peers: each receiver has flows from a number of senders, drawn from the scenario's seed.

use cwnd_quantity::Rng;
use cwnd_schema::file::{Context, Section};

use crate::links::Topology;
use crate::model::{FlowPath, Shares};
use crate::nodes::{MAX_PATHS, PathDirection, nodes, shortest};
use crate::raw::Raw;

/// Returns the paths of a group with `peers`: those to the first receiver, to the second, and so
/// on, all with equal shares. The flows take them in turn.
pub(crate) fn read(
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
