//! Source quenches in real packets: those of a router, and forged ones. Segments forged by an
//! off-path attacker who knows addresses and ports: no controller reacts to them.

use serde_json::Value;

use crate::machine::{self, Group, Held, count, program, run, unique};

const CONTROLLERS: [&str; 2] = ["becn_reno", "becn_cubic"];
/// Quenches while more than 15 kB wait, which is the path's BDP; three for each packet.
const PATH: &str = "--seconds 4 --rtt-ms 30 --mbit 4 --quench-above 15000";

/// A controller in the namespace of its flow.
struct Run {
    controllers: String,
    path: Vec<String>,
}

impl Run {
    /// Runs a flow with quenches of a kind, and a second flow with the controller `beside`, if it
    /// is given.
    fn new(controller: &str, kind: &str, beside: &str) -> Self {
        Self::at("near", controller, &["--quench", kind], beside)
    }

    fn at(interface: &str, controller: &str, what: &[&str], beside: &str) -> Self {
        let name = unique("becn");
        let hold = format!("{} hold {controller} --name {name} --interface {interface}", program());
        let path = PATH.split(' ').chain(what.iter().copied()).chain(["--hold", &hold]);
        let path = path.map(str::to_owned).collect();
        Self { controllers: format!("{name} {beside}").trim().to_owned(), path }
    }
}

/// Runs several at once; returns their results.
fn told(runs: &[Run]) -> Vec<Value> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = runs
            .iter()
            .map(|run| scope.spawn(|| machine::flow_with(&run.controllers, &run.path)))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn a_quench_makes_the_window_smaller_at_most_once_a_window() {
    let Some(_root) = machine::root_with_btf() else { return };
    for controller in CONTROLLERS {
        let kinds = ["marked", "dropped", "options"];
        let runs = kinds.map(|kind| Run::new(controller, kind, ""));
        for (kind, path) in kinds.iter().zip(told(&runs)) {
            let held = &path["held"];
            eprintln!("{controller}, {kind}: {path}");
            let [reduced, other] = if *kind == "dropped" {
                ["quench_dropped", "quench_marked"]
            } else {
                ["quench_marked", "quench_dropped"]
            };
            let reductions = count(held, reduced);
            assert!(reductions >= 3, "{controller}: {path}");
            assert_eq!(count(held, other), 0, "{path}");
            // A window of data takes a round trip.
            assert!(reductions <= 4000 / 30, "{path}");
            // In each window with quenches only the first counts.
            let sent = path["quenches"].as_u64().unwrap();
            assert!(sent > 2 * reductions, "{path}");
            let believed = count(held, "quenches");
            assert!(believed > reductions && believed <= sent, "{path}");
            for never in ["malformed", "stranger", "loss", "ecn", "timeout"] {
                assert_eq!(count(held, never), 0, "{never}: {path}");
            }
            // Without quenches nothing would end growth: the queue is unlimited.
            assert!(path["late_queue"].as_u64().unwrap() < 40_000, "{path}");
        }
    }
}

/// If the router is next to the sender, a marked packet is often the last one sent when its quench
/// arrives. Its ECN-echo then acknowledges just the data that was outstanding: both are about the
/// same congestion (BECN § IV-B).
#[test]
fn the_echo_of_a_mark_that_a_quench_told_of_reduces_nothing_more() {
    let Some(_root) = machine::root_with_btf() else { return };
    let runs = CONTROLLERS.map(|controller| {
        // The quenched packet is the marked one: path.py compares the queue with the packet for a
        // quench, and without it for a mark.
        let mut run = Run::new(controller, "marked", "");
        run.path.extend(["--mark-above", "13500"].map(str::to_owned));
        run
    });
    for (controller, path) in CONTROLLERS.iter().zip(told(&runs)) {
        let held = &path["held"];
        eprintln!("{controller}: {path}");
        let (echoes, spared) = (count(held, "ecn"), count(held, "spared"));
        assert!(count(held, "quench_marked") >= 3 && echoes >= 3, "{controller}: {path}");
        assert!(spared <= echoes && spared * 10 >= echoes * 8, "{controller}: {path}");
    }
}

/// Returns the number of quenches that the program at the interface saw, with any result.
fn heard(held: &Value) -> u64 {
    let all = ["quenches", "malformed", "stranger", "outside", "deaf"];
    all.iter().map(|name| count(held, name)).sum()
}

/// Each forged quench is counted by its kind, and none reduces a window (RFC 5927 § 4.1).
#[test]
fn what_a_stranger_makes_up_does_nothing() {
    let Some(_root) = machine::root_with_btf() else { return };
    let kinds = [
        ("port", "stranger", ""),
        ("other connection", "stranger", "cubic"),
        ("sequence", "outside", ""),
        ("acknowledged", "outside", ""),
        ("not sent", "outside", ""),
        ("truncated", "malformed", ""),
        ("checksum", "malformed", ""),
        ("guesses", "deaf", ""),
        ("malformed", "malformed", ""),
        ("nobody", "malformed", ""),
    ];
    for (controller, kinds) in CONTROLLERS.iter().zip([&kinds[..5], &kinds[5..]]) {
        let runs: Vec<Run> =
            kinds.iter().map(|(kind, _, beside)| Run::new(controller, kind, beside)).collect();
        for ((kind, counter, _), path) in kinds.iter().zip(told(&runs)) {
            let held = &path["held"];
            eprintln!("{controller}, {kind}: {path}");
            assert!(count(held, counter) > 20, "{kind}: {path}");
            let sent = path["quenches"].as_u64().unwrap();
            // The last ones may arrive after the end.
            let heard = heard(held);
            assert!(heard <= sent && heard * 10 >= sent * 9, "{kind}: {path}");
            for reduced in ["quench_marked", "quench_dropped", "quenches", "spared"] {
                assert_eq!(count(held, reduced), 0, "{kind}: {path}");
            }
            assert!(path["late_queue"].as_u64().unwrap() > 60_000, "it grows on, {kind}: {path}");
        }
    }
}

/// Frames of an Ethernet. Quenches that the host would not accept are neither counted nor obeyed.
#[test]
fn what_is_for_others_or_in_another_vlan_is_not_heard() {
    let Some(_root) = machine::root_with_btf() else { return };
    let kinds = ["marked", "priority", "vlan", "not to us"];
    let runs = kinds.map(|kind| Run::at("side", "becn_reno", &["--frame", kind], ""));
    for (kind, path) in kinds.iter().zip(told(&runs)) {
        let held = &path["held"];
        eprintln!("{kind}: {path}");
        let sent = path["quenches"].as_u64().unwrap();
        let heard = heard(held);
        assert!(sent > 20, "{kind}: {path}");
        if ["marked", "priority"].contains(kind) {
            assert!(count(held, "quench_marked") >= 3 && heard * 10 >= sent * 9, "{kind}: {path}");
        } else {
            assert_eq!((heard, count(held, "quench_marked")), (0, 0), "{kind}: {path}");
        }
    }
}

#[test]
fn becn_needs_an_interface_that_there_is() {
    let Some(_root) = machine::root_with_btf() else { return };
    let none = run(&["load", "becn_reno", "--name", &unique("none")]);
    assert_eq!(none.code, 2, "{}", none.err);
    assert!(none.err.contains("--interface eth0"), "{}", none.err);
    let name = unique("nowhere");
    let wrong = run(&["load", "becn_reno", "--name", &name, "--interface", "nowhere0"]);
    assert_eq!(wrong.code, 1, "{}", wrong.err);
    assert!(wrong.err.contains("no interface is named nowhere0"), "{}", wrong.err);
    assert!(!machine::registered(&name), "what was registered before went again");
    let other = run(&["load", "abe_reno", "--interface", "lo"]);
    assert_eq!(other.code, 2, "{}", other.err);
}

/// A queue that marks sometimes, and is unlimited otherwise.
const MARKS: &str = "--seconds 5 --rtt-ms 40 --mbit 4 --mark-above 20000";
/// The round-trip time exceeds the threshold of delay-based AIMD: with a forged tiny minimum it
/// would back off all the time.
const DEEP: &str = "--seconds 5 --rtt-ms 100 --mbit 4";

/// Routers signal a load at which BMCC's window grows. An option with the highest load would reduce
/// it.
const LOAD: &str = "--seconds 5 --rtt-ms 40 --mbit 4 --loads 0:0.6";

/// Fifty times a second: ACKs of data sent earlier and never sent, with timestamps that make the
/// round trip short or long, with ECN-echoes, SACK blocks, and resets; options of all kinds and
/// lengths; marked data to the receiver.
#[test]
fn acknowledgements_options_and_marks_of_strangers_do_nothing() {
    let Some(_root) = machine::root_with_btf() else { return };
    let kinds = [
        ("delay_aimd", "acks", DEEP),
        ("delay_aimd", "options", DEEP),
        ("adaptive_cubic", "acks", DEEP),
        ("abe_reno", "acks", MARKS),
        ("abe_cubic", "options", MARKS),
        ("adaptive_reno", "marks", MARKS),
        ("bmcc", "options", LOAD),
    ];
    let Some(group) = Group::new() else { return };
    let runs = kinds.map(|(controller, forged, path)| {
        let name = unique("forged");
        let steered = ["--cgroup", group.path()];
        let (more, inside) = match controller {
            "bmcc" => (&steered[..], format!("--group {}", group.path())),
            _ => (&[][..], String::new()),
        };
        let path = format!("{path} --forge {forged} {inside}").trim().to_owned();
        (Held::new(controller, &name, more), name, path)
    });
    let told = std::thread::scope(|scope| {
        let threads: Vec<_> =
            runs.iter().map(|(_, name, path)| scope.spawn(|| machine::flow(name, path))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    for (((controller, forged, _), (held, ..)), path) in kinds.iter().zip(runs).zip(told) {
        let end = held.end();
        eprintln!("{controller}, {forged}: {path} {end}");
        assert!(path["forged"].as_u64().unwrap() > 100, "{controller}, {forged}: {path}");
        for never in ["loss", "timeout", "loss_after_ecn"] {
            assert_eq!(count(&end, never), 0, "{controller}, {forged}: {never} {path} {end}");
        }
        if *controller == "bmcc" {
            assert!(count(&end, "load_acks_multiplied") > 10, "{path} {end}");
            assert_eq!(count(&end, "load_decreases"), 0, "{path} {end}");
        }
        // Only marks of the path are answered.
        assert!(
            count(&end, "ecn") <= path["marks"].as_u64().unwrap(),
            "{controller}: {path} {end}"
        );
        if *controller == "delay_aimd" {
            // 50 ms of queue are 25 kB. A forged tiny minimum RTT would leave no queue, and so
            // would a forged newest RTT of a minute.
            assert!(path["late_queue"].as_u64().unwrap() > 8_000, "{forged}: {path} {end}");
        }
    }
}
