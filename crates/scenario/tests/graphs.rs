//! Paths through graphs, against a reference algorithm and between many nodes.

use cwnd_scenario::{Document, Scenario};
use proptest::prelude::*;

const NO_FILES: &dyn Fn(&str) -> Result<String, String> = &|_| Err("no such file".to_owned());

fn scenario(text: &str) -> Scenario {
    let plan = Document::parse("t.toml", text, NO_FILES).and_then(|d| d.plan());
    plan.unwrap_or_else(|problems| panic!("{problems}")).cells.remove(0).scenario
}

/// Writes a file with links `(from, to, delay in ms)`.
fn text(links: &[(usize, usize, u64)]) -> String {
    let mut text = "[run]\nduration = \"1 s\"\n".to_owned();
    for (i, (from, to, delay)) in links.iter().enumerate() {
        text += &format!(
            "[link.l{i}]\nfrom = \"n{from}\"\nto = \"n{to}\"\nrate = \"1 Mbit/s\"\n\
             queue = {{ kind = \"fifo\", limit = \"9 packets\" }}\ndelay = \"{delay} ms\"\n"
        );
    }
    text
}

/// Returns the least delay, and at it the fewest links, between all pairs of nodes (Floyd 1962,
/// Algorithm 97).
fn floyd(scenario: &Scenario) -> Vec<Vec<Option<(u64, usize)>>> {
    let n = scenario.nodes.len();
    let mut best = vec![vec![None; n]; n];
    for (node, row) in best.iter_mut().enumerate() {
        row[node] = Some((0, 0));
    }
    let least = |a: Option<(u64, usize)>, b: (u64, usize)| Some(a.map_or(b, |a| a.min(b)));
    for link in &scenario.links {
        let cell = &mut best[link.from][link.to];
        *cell = least(*cell, (link.delay.0, 1));
    }
    for k in 0..n {
        for i in 0..n {
            for j in 0..n {
                if let (Some(a), Some(b)) = (best[i][k], best[k][j]) {
                    best[i][j] = least(best[i][j], (a.0 + b.0, a.1 + b.1));
                }
            }
        }
    }
    best
}

proptest! {
    #[test]
    fn the_shortest_ways_are_floyds_and_the_first_of_equal_ones(
        links in prop::collection::vec((0usize..9, 0usize..9, 0u64..4), 1..40),
    ) {
        let links: Vec<_> = links.into_iter().filter(|(from, to, _)| from != to).collect();
        prop_assume!(!links.is_empty());
        let (from, to, _) = links[0];
        // The return link gives the flow a reverse path. It comes last, and is so slow that paths
        // take it only where there is no other.
        let mut all = links.clone();
        all.push((to, from, 1_000));
        let scenario =
            scenario(&(text(&all) + &format!("[flow.f]\nfrom = \"n{from}\"\nto = \"n{to}\"\n")));
        let (best, routes) = (floyd(&scenario), scenario.routes());
        let links = &scenario.links;
        let nodes = 0..scenario.nodes.len();
        for (from, to) in nodes.clone().flat_map(|from| nodes.clone().map(move |to| (from, to))) {
            let found = routes.shortest(from, to);
            let cost = found.as_ref().map(|route| {
                (route.iter().map(|&i| links[i].delay.0).sum::<u64>(), route.len())
            });
            prop_assert_eq!(cost, best[from][to]);
            let mut at = from;
            for (done, &link) in found.iter().flatten().enumerate() {
                prop_assert_eq!(links[link].from, at);
                // No earlier link of the file starts a path of the same cost.
                let left = best[at][to];
                let leads = |i: &usize| links[*i].from == at
                    && best[links[*i].to][to].map(|c| (c.0 + links[*i].delay.0, c.1 + 1)) == left;
                prop_assert_eq!((0..links.len()).find(leads), Some(link), "after {} links", done);
                at = links[link].to;
            }
        }
    }
}

/// Graph of two thousand nodes in a ring with a chord from each, and five thousand pairs of end
/// nodes.
#[test]
fn a_large_graph_is_read_without_a_search_for_each_pair() {
    let nodes = 2_000;
    let mut links: Vec<(usize, usize, u64)> = Vec::new();
    for node in 0..nodes {
        for other in [(node + 1) % nodes, (node * 7 + 3) % nodes] {
            if other != node {
                links.extend([(node, other, 1), (other, node, 1)]);
            }
        }
    }
    let list = |nodes: core::ops::Range<usize>| {
        nodes.map(|node| format!("\"n{node}\"")).collect::<Vec<_>>().join(", ")
    };
    let scenario = scenario(
        &(text(&links)
            + &format!("[flow.f]\nfrom = [{}]\nto = [{}]\n", list(0..5), list(100..1_100))),
    );
    assert_eq!(scenario.flows[0].paths.len(), 5_000);
}

#[test]
fn pairs_have_the_shortest_way_and_are_drawn_by_their_shares() {
    let scenario = scenario(
        &(text(&[(0, 1, 1), (1, 2, 1), (2, 0, 1), (0, 2, 5)])
            + "[flow.f]\n\
               pairs = [{ from = \"n0\", to = \"n2\", share = 3 }, \
               { from = \"n1\", to = \"n0\" }]\n"),
    );
    let group = &scenario.flows[0];
    assert_eq!((&group.from[..], &group.to[..]), (&[0, 1][..], &[0, 2][..]));
    let paths: Vec<_> = group.paths.iter().map(|w| (w.from, w.to, w.route.clone())).collect();
    assert_eq!(paths, [(0, 2, vec![0, 1]), (1, 0, vec![1, 2])]);
    let draws = 4_000;
    let drawn = |nth: u64| group.choose_path(nth, || cwnd_quantity::Rng::named(nth, "ends"));
    let first = (0..draws).filter(|&nth| drawn(nth) == 0).count() as f64;
    // Binomial with p = 3/4: the standard deviation is 27.
    assert!((first - 3_000.0).abs() < 110.0, "{first} of {draws}");
}

#[test]
fn places_of_nodes_are_kept_and_change_no_packet() {
    let ring = text(&[(0, 1, 1), (1, 0, 1)]) + "[flow.f]\nfrom = \"n0\"\nto = \"n1\"\n";
    let plain = scenario(&ring);
    let mut placed = scenario(&(ring + "[node]\nn1 = { x = -8.5, y = 47 }\n"));
    assert_eq!(placed.node_positions[0], None);
    let place = placed.node_positions[1].take().map(|place| (place.x, place.y));
    assert_eq!(place, Some((-8.5, 47.0)));
    assert_eq!(plain, placed);
}

#[test]
fn every_receiver_has_so_many_peers_and_each_seed_draws_its_own() {
    let ring: Vec<(usize, usize, u64)> =
        (0..8).flat_map(|i| [(i, (i + 1) % 8, 1), ((i + 1) % 8, i, 1)]).collect();
    let nodes = (0..8).map(|i| format!("\"n{i}\"")).collect::<Vec<_>>().join(", ");
    let group =
        |name: &str| format!("[flow.{name}]\nfrom = [{nodes}]\nto = [{nodes}]\npeers = 3\n");
    let drawn = |text: &str, group: usize| {
        let scenario = scenario(text);
        let of = &scenario.flows[group];
        assert_eq!((of.count, of.paths.len()), (24, 24), "a flow from each");
        (0..8)
            .map(|to| {
                let peers = of.paths.iter().filter(|path| path.to == to).map(|path| path.from);
                let peers: std::collections::BTreeSet<usize> = peers.collect();
                assert!(peers.len() == 3 && !peers.contains(&to), "{peers:?}");
                peers
            })
            .collect::<Vec<_>>()
    };
    let one = text(&ring) + &group("p2p");
    let first = drawn(&one, 0);
    assert_eq!(drawn(&(text(&ring) + &group("other") + &group("p2p")), 1), first);
    let other = one.replace("[run]", "[run]\nseed = 2");
    assert!(other != one && drawn(&other, 0) != first);
}
