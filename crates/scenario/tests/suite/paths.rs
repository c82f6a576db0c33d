//! Paths through graphs, against a reference algorithm and between many nodes; and requirements
//! between the parts of a path, tested with artificial parts beside those of a scenario.

use cwnd_packet::{Ability, Contract, Place};
use cwnd_scenario::requirements::{
    Part, Parts, Requirer, UnmetRequirement, key, unmet, unsupported,
};
use cwnd_scenario::{Document, Scenario};
use proptest::prelude::*;

use crate::NO_FILES;

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

/// A chain of two links with a rate and one without. One group crosses all three, the other the
/// last one.
const ROW: &str = r#"
    schema = 1
    [run]
    duration = "1 s"
    [link.first]
    from = "a"
    to = "b"
    rate = "10 Mbit/s"
    duplex = true
    [link.wire]
    from = "b"
    to = "c"
    rate = "none"
    delay = "5 ms"
    duplex = true
    [link.last]
    from = "c"
    to = "d"
    rate = "10 Mbit/s"
    queue = "codel"
    duplex = true
    [flow.far]
    from = "a"
    to = "d"
    [flow.near]
    from = "c"
    to = "d"
"#;

fn row() -> Scenario {
    let files = |name: &str| Err(format!("there is no {name}"));
    let document = Document::parse("row.toml", ROW, &files).expect("it is TOML");
    document.cells().expect("it can be run").remove(0).scenario
}

fn named(scenario: &Scenario, link: &str) -> usize {
    scenario.links.iter().position(|l| l.name == link).expect("it is there")
}

#[test]
fn each_ability_is_missed_where_it_is_not_and_found_where_it_may_be() {
    let scenario = row();
    for ability in Ability::all() {
        let mut parts = Parts::of(&scenario);
        for of_all in [&mut parts.senders, &mut parts.receivers, &mut parts.links] {
            for part in of_all.iter_mut().flatten() {
                part.contract = Contract::new();
            }
        }
        parts.senders[0].push(Part::new(
            "toy",
            "controller",
            Contract::new().needs(ability, "waits for ever"),
        ));
        let found = unmet(&scenario, &parts);
        assert_eq!(found.len(), 1, "{ability:?}");
        assert_eq!(found[0].requirer, Requirer::Group(0));
        assert!(found[0].message.starts_with("`toy` waits for ever: "), "{}", found[0].message);
        assert!(found[0].message.contains(ability.phrase()));
        assert_eq!(key(&scenario, &found[0], false), ["flow", "far", "controller"]);
        let giver = || Part::new("giver", "queue", Contract::new().provides(ability));
        let (first, wire, last) =
            (named(&scenario, "first"), named(&scenario, "wire"), named(&scenario, "last"));
        let with = |change: &dyn Fn(&mut Parts)| {
            let mut parts = parts.clone();
            change(&mut parts);
            unmet(&scenario, &parts).is_empty()
        };
        assert!(parts.links[wire].is_empty(), "what is not queued is not asked");
        // Abilities of the other group's parts do not count.
        assert!(!with(&|p| p.senders[1].push(giver())));
        assert!(!with(&|p| p.receivers[1].push(giver())));
        let place = ability.place();
        assert_eq!(with(&|p| p.senders[0].push(giver())), place == Place::Sender);
        assert_eq!(with(&|p| p.receivers[0].push(giver())), place == Place::Receiver);
        assert_eq!(with(&|p| p.links[last].push(giver())), place == Place::SomeLink);
        let both = |p: &mut Parts| [first, last].map(|link| p.links[link].push(giver()));
        assert_eq!(
            with(&|p| {
                both(p);
            }),
            matches!(place, Place::SomeLink | Place::EveryLink)
        );
    }
}

#[test]
fn a_link_has_what_it_asks_for_if_one_of_those_who_cross_it_provides_it() {
    let scenario = row();
    let last = named(&scenario, "last");
    let mut parts = Parts::of(&scenario);
    let meter = Contract::new().needs(Ability::SendsXcp, "has nothing to fill");
    parts.links[last].push(Part::new("meter", "meter", meter));
    let found = unmet(&scenario, &parts);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].message, "`meter` has nothing to fill: data has no XCP header");
    assert_eq!(key(&scenario, &found[0], false), ["link", "last", "meter"]);
    // Of a dumbbell's links, all but the first are the reverse link.
    assert_eq!(key(&scenario, &found[0], true), ["dumbbell", "reverse_meter"]);
    let first = UnmetRequirement { requirer: Requirer::Link(0), ..found[0].clone() };
    assert_eq!(key(&scenario, &first, true), ["dumbbell", "meter"]);
    let sender = || Part::new("xcp", "controller", Contract::new().provides(Ability::SendsXcp));
    for group in 0..2 {
        let mut parts = parts.clone();
        parts.senders[group].push(sender());
        assert_eq!(unmet(&scenario, &parts), []);
    }
    // No data crosses the reverse link.
    let mut parts = Parts::of(&scenario);
    let back = scenario.links.iter().position(|l| l.from == scenario.links[last].to);
    let meter = Contract::new().needs(Ability::SendsXcp, "has nothing to fill");
    parts.links[back.expect("it is duplex")].push(Part::new("meter", "queue", meter));
    assert_eq!(unmet(&scenario, &parts), []);
}

#[test]
fn what_is_needed_stands_first_and_one_reason_is_told_once() {
    let scenario = row();
    let mut parts = Parts::of(&scenario);
    let contract = Contract::new()
        .wants(Ability::Ect, "it never acts")
        .wants(Ability::ObeysEce, "it never acts")
        .needs(Ability::Quenches, "waits for quenches");
    parts.senders[1] = vec![Part::new("toy", "controller", contract)];
    let messages: Vec<String> =
        unmet(&scenario, &parts).into_iter().map(|unmet| unmet.message).collect();
    assert_eq!(
        messages,
        [
            "`toy` waits for quenches: no queue on the way of the data sends source quenches \
             (codel)",
            "it never acts: the packets are not ECN-capable",
        ]
    );
}

#[test]
fn a_world_that_cannot_give_what_is_needed_is_refused() {
    let scenario = row();
    let mut parts = Parts::of(&scenario);
    let contract = Contract::new()
        .wants(Ability::ObeysEce, "it never acts")
        .needs(Ability::Ect, "is told by marks")
        .needs(Ability::WritesXcp, "waits for feedback");
    parts.senders[1] = vec![Part::new("toy", "controller", contract)];
    assert_eq!(unsupported(&parts, "Linux", &[Ability::Ect, Ability::WritesXcp]), []);
    let refused = unsupported(&parts, "Linux", &[Ability::Ect]);
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0].message, "`toy` waits for feedback: Linux has nothing like it");
    assert_eq!(key(&scenario, &refused[0], false), ["flow", "near", "controller"]);
}

#[test]
fn ecn_is_seen_to_act_on_nothing_where_no_ack_echoes_a_mark() {
    let told = |endpoint: &str| {
        let text =
            ROW.replace("[flow.near]", &format!("[flow.near]\n    endpoint = {{ {endpoint} }}"));
        let text = text.replace("queue = \"codel\"", "queue = { kind = \"codel\", ecn = true }");
        let files = |name: &str| Err(format!("there is no {name}"));
        let document = Document::parse("row.toml", &text, &files).expect("it is TOML");
        let scenario = document.cells().expect("it can be run").remove(0).scenario;
        let found = unmet(&scenario, &Parts::of(&scenario));
        found.into_iter().map(|unmet| unmet.message).collect::<Vec<_>>()
    };
    let none: [String; 0] = [];
    assert_eq!(told("ecn = true"), none);
    for echo in ["sum", "last", "changes", "ce-count"] {
        let found = told(&format!("ecn = true, echo = \"{echo}\""));
        assert_eq!(found, ["ECN never acts: ACKs do not echo marks by ECE"], "{echo}");
        // Sending ECT and obeying ECE are separate abilities.
        assert_eq!(told(&format!("ecn = true, obey_ece = false, echo = \"{echo}\"")), none);
    }
}

#[test]
fn who_needs_another_echo_and_has_it_is_not_told_that_ece_is_missing() {
    let told = |controller: &str, meter: &str, endpoint: &str| {
        let text = format!(
            "[run]\nduration = \"1 s\"\n[dumbbell]\nrate = \"10 Mbit/s\"\nmeter = \"{meter}\"\n\
             reverse_meter = \"{meter}\"\n[flow.main]\nrtt = \"20 ms\"\n\
             controller = {{ kind = \"{controller}\" }}\nendpoint = {{ {endpoint} }}\n"
        );
        let files = |_: &str| Ok(String::new());
        match Document::parse("row.toml", &text, &files).expect("it is TOML").cells() {
            Ok(mut cells) => {
                let scenario = cells.remove(0).scenario;
                let found = unmet(&scenario, &Parts::of(&scenario));
                found.into_iter().map(|unmet| unmet.message).collect()
            }
            Err(errors) => vec![errors.to_string()],
        }
    };
    let none: [String; 0] = [];
    assert_eq!(told("dctcp", "step", "ecn = true, echo = \"changes\""), none);
    assert_eq!(told("vcp", "vcp", "ecn = true, echo = \"changes\""), none);
    assert_eq!(told("bmcc", "adpm", "ecn = true, echo = \"load\""), none);
    let code = "c\", path = \"own.c";
    assert_eq!(told(code, "step", "ecn = true, echo = \"changes\""), none);
    assert_eq!(told(code, "step", "ecn = true, echo = \"load\"").len(), 1);
    // RFC 3168's echo lasts until CWR: one mark causes a window of marked ACKs.
    let refused = told("dctcp", "step", "ecn = true").remove(0);
    assert!(refused.contains("`dctcp` cannot tell which data was marked"), "{refused}");
    assert!(refused.contains("set `echo = \"changes\"`"), "{refused}");
    let refused = told("dctcp", "step", "echo = \"changes\"").remove(0);
    assert!(refused.contains("`dctcp` never hears of a mark"), "{refused}");
    let warned = told("dctcp", "none", "ecn = true, echo = \"changes\"").remove(0);
    assert!(warned.contains("DCTCP does what NewReno does"), "{warned}");
}

#[test]
fn attacks_on_flows_that_ignore_what_is_forged_are_warned_of() {
    let told = |endpoint: &str| {
        let text = format!(
            "[run]\nduration = \"1 s\"\n[dumbbell]\nrate = \"10 Mbit/s\"\n[flow.main]\n\
             rtt = \"20 ms\"\n{endpoint}attacker = \"quench\"\n"
        );
        let document = Document::parse("t.toml", &text, &|_: &str| Err(String::new())).unwrap();
        let scenario = document.cells().expect("it can be run").remove(0).scenario;
        let found = unmet(&scenario, &Parts::of(&scenario));
        found.into_iter().map(|unmet| unmet.message).collect::<Vec<_>>()
    };
    let message = "forged source quenches change nothing: the sender ignores source quenches";
    assert_eq!(told(""), [message]);
    assert!(told("endpoint = { obey_quench = true }\n").is_empty());
}
