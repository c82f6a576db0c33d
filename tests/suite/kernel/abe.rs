//! ABE in the kernel against the simulator.

use std::fmt::Write as _;

use super::{HZ, PATHS, Replay, Seen, assert_same, compiled, cubic, flow, reno, run_program};

/// Settings of the program.
fn settings(beta_ecn: u32, always: bool, deepen: bool) -> Vec<u32> {
    vec![beta_ecn, u32::from(always), u32::from(deepen), HZ]
}

fn assert_same_on(
    paths: &[(&str, &str, &str, &str)],
    controller: &str,
    beta_ecn: f64,
    of: fn(&str) -> String,
) -> Seen {
    let program = compiled(controller, &[]);
    let mut all = Seen::default();
    for (mode, always) in [("beta", false), ("beta-ecn", true)] {
        let parts = (beta_ecn * 1e9 + 0.5) as u32;
        let settings = settings(parts, always, false);
        let replay =
            Replay { program: program.clone(), settings, fractional: false, duplicates: false };
        let rule = format!("beta_ecn = {beta_ecn}, ecn_in_slow_start = \"{mode}\"");
        for (queue, rtt, more, own) in paths {
            all = all.and(assert_same(&replay, &flow(&of(&rule), rtt, queue, more, own)));
        }
    }
    eprintln!("{controller} with {beta_ecn}: {all:?}");
    assert!(all.acks > 100_000 && all.ecn > 50 && all.losses > 50 && all.timeouts > 0, "{all:?}");
    all
}

#[test]
fn abe_reno_of_the_kernel_is_newreno_of_the_simulator() {
    for beta_ecn in [0.5, 0.8] {
        // The two differ by design in two cases that are left out. An ACK for several windows, as
        // occurs with the smallest windows after timeouts, adds one segment (RFC 3465 § 2.1), in
        // the kernel several. Also, the simulator resets the count towards the next segment at the
        // end of slow start, so after idle periods they differ by a fraction of a segment.
        assert_same_on(&PATHS[..7], "abe_reno", beta_ecn, reno);
    }
}

#[test]
fn abe_cubic_of_the_kernel_is_cubic_of_the_simulator() {
    for beta_ecn in [717.0 / 1024.0, 0.85] {
        let seen = assert_same_on(&PATHS, "abe_cubic", beta_ecn, cubic);
        assert!(seen.timeouts > 50 && seen.idle > 5 && seen.hystart > 5, "{seen:?}");
    }
}

/// Returns windows and thresholds after each event of a script, as `cwnd ssthresh`, and the
/// counters.
fn script(replay: &Replay, start: &str, events: &[&str]) -> (Vec<String>, String) {
    let mut text = format!("{start} 1000000\n");
    for (index, event) in events.iter().enumerate() {
        let time = 10_000 * (index + 1);
        let (kind, state) = event.split_once(' ').expect("an event and a state");
        writeln!(text, "{kind} {time} {state} 1 1 1 0 1 40000").expect("a String");
    }
    let mut lines: Vec<String> =
        run_program(&replay.program, &replay.settings, &text).lines().map(str::to_owned).collect();
    let counters = lines.pop().expect("the counters");
    (lines, counters)
}

const OPEN: &str = "a 0";

#[test]
fn in_the_kernel_the_state_tells_ecn_from_loss() {
    let program = compiled("abe_reno", &[]);
    let [avoidance, always, deepen] =
        [(false, false), (true, false), (false, true)].map(|(always, deepen)| Replay {
            program: program.clone(),
            settings: settings(800_000_000, always, deepen),
            fractional: false,
            duplicates: false,
        });
    for (replay, start, events, windows, counters) in [
        // 0.8 of the window in congestion avoidance.
        (&avoidance, "100 50", &["e 0"][..], &["80 80"][..], "ecn 1 loss 0"),
        (&avoidance, "100 50", &["l 0"], &["50 50"], "ecn 0 loss 1"),
        // Half in slow start, or the factor of the paper.
        (&avoidance, "100 999", &["e 0"], &["50 50"], "ecn 1 loss 0"),
        (&always, "100 999", &["e 0"], &["80 80"], "ecn 1 loss 0"),
        // A loss in the same window: no further reduction, or down to what the loss alone would
        // have left.
        (&avoidance, "100 50", &["e 0", "l 2"], &["80 80", "80 80"], "ecn 1 loss 0"),
        (&deepen, "100 50", &["e 0", "l 2"], &["80 80", "50 50"], "ecn 1 loss 0"),
        // In the next window a loss counts as usual.
        (&deepen, "100 50", &["e 0", OPEN, "l 0"], &["80 80", "80 80", "40 40"], "ecn 1 loss 1"),
        // A drop in the sender's own queue is not a mark, even if the ACK before carried ECE.
        (&always, "100 50", &["c 0"], &["50 50"], "ecn 0 loss 0 timeout 0 local 1"),
        (&always, "100 50", &["e 0", "c 2"], &["80 80", "40 40"], "ecn 1 loss 0 timeout 0 local 1"),
        (&always, "100 50", &["t 0"], &["1 50"], "ecn 0 loss 0 timeout 1"),
        // The threshold is at least two segments (RFC 5681 eq. 4).
        (&always, "2 2", &["e 0"], &["2 2"], "ecn 1"),
    ] {
        let (found, counted) = script(replay, start, events);
        assert_eq!(found, windows, "{start} {events:?}");
        assert!(counted.starts_with(counters), "{start} {events:?}: {counted}");
    }
    let (_, counted) = script(&deepen, "100 50", &["e 0", "l 2"]);
    assert!(counted.contains("loss_after_ecn 1"), "{counted}");
    let (_, counted) = script(&always, "100 999", &["e 0"]);
    assert!(counted.contains("ecn_in_slow_start 1"), "{counted}");
}
