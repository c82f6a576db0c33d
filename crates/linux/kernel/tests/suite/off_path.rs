//! Segments forged by an off-path attacker who knows addresses and ports: no controller reacts to
//! them.

use crate::machine::{self, Group, Held, count, unique};

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
