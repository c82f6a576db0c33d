//! Determinism: equal scenario and seed give equal bytes, and the random draws of one component do
//! not affect those of another.

use cwnd_sim::World;

use crate::common::{assert_golden, column, run, scenario};

/// Small scenarios whose digests are pinned; together they use every queue, and the workloads
/// `bulk`, `bytes`, `on-off` and `poisson`.
pub const PINNED: [(&str, &str); 3] = [
    (
        "dumbbell",
        r#"
        [run]
        duration = "20 s"
        warmup = "2 s"
        [dumbbell]
        rate = "10 Mbit/s"
        queue = "codel"
        jitter = "200 us"
        [flow.newreno]
        rtt = "uniform(40 ms, 80 ms)"
        count = 2
        endpoint = { ecn = true }
        [flow.cubic]
        rtt = "60 ms"
        controller = { kind = "cubic", slow_start = "hystart++" }
        endpoint = "linux"
        "#,
    ),
    (
        "graph",
        r#"
        [run]
        duration = "20 s"
        seed = 7
        [link.ab]
        from = "a"
        to = "b"
        rate = "8 Mbit/s"
        delay = "10 ms"
        queue = "red"
        duplex = true
        [link.bc]
        from = "b"
        to = "c"
        rate = { initial = "6 Mbit/s", steps = [{ at = "10 s", rate = "3 Mbit/s" }] }
        delay = "5 ms"
        queue = "pie"
        duplex = true
        loss = 0.002
        [flow.long]
        from = "a"
        to = "c"
        endpoint = { ecn = true, recovery = "newreno" }
        [flow.bursts]
        from = "a"
        to = "b"
        start = "1 s"
        workload = { kind = "on-off", size = "exponential(100 kB)", off = "exponential(500 ms)" }
        "#,
    ),
    (
        "web",
        r#"
        [run]
        duration = "20 s"
        [dumbbell]
        rate = { trace_ms = [1, 1, 2, 5, 9, 9] }
        queue = "fq-codel"
        reorder = 0.001
        reorder_delay = "5 ms"
        edge_rate = "50 Mbit/s"
        [flow.web]
        rtt = "uniform(10 ms, 100 ms)"
        workload = { kind = "poisson", interval = "50 ms", size = "pareto(1.4, 20 kB)" }
        endpoint = { ecn = true }
        [flow.file]
        rtt = "30 ms"
        start = "3 s"
        workload = { kind = "bytes", size = "1 MB" }
        "#,
    ),
];

#[test]
fn the_same_scenario_gives_the_same_records() {
    for (name, text) in PINNED {
        assert_eq!(run(text).digest(), run(text).digest(), "{name}");
    }
}

#[test]
fn another_seed_gives_other_records() {
    for (name, text) in PINNED {
        let other = text.replace("[run]", "[run]\nseed = 99").replace("seed = 7", "");
        assert_ne!(run(text).digest(), run(&other).digest(), "{name}");
    }
}

/// The pinned digests are the same on every machine. A difference is a change of results, to be
/// listed in the changelog.
#[test]
fn records_are_what_they_were() {
    let mut found = "# Digests of all tables of a run, and how many events it took.\n".to_owned();
    for (name, text) in PINNED {
        let records = run(text);
        found += &format!("{name} {} {} events\n", records.digest(), records.events);
    }
    assert_golden("digests.txt", &found);
}

#[test]
fn one_step_after_another_is_a_run() {
    for (name, text) in PINNED {
        let mut world = World::new(scenario(text));
        let mut last = world.now();
        while world.step() {
            assert!(world.now() >= last, "time goes forward");
            last = world.now();
        }
        assert_eq!(world.finish().digest(), run(text).digest(), "{name}");
    }
}

#[test]
fn a_run_that_is_called_off_stops_soon() {
    let mut looks = 0;
    let outcome = World::new(scenario(PINNED[0].1)).run(|now| {
        looks += 1;
        now.as_secs_f64() < 5.0
    });
    assert_eq!(outcome.err(), Some(cwnd_sim::Cancelled));
    assert!(looks > 1);
}

#[test]
fn looking_more_often_changes_nothing() {
    for (name, text) in PINNED {
        let often = run(&text.replace("[run]", "[run]\nsample = \"7 ms\""));
        let never = run(&text.replace("[run]", "[run]\nsample = \"none\""));
        assert_eq!(often.flows, never.flows, "{name}");
        assert_eq!(often.qdelay, never.qdelay, "{name}");
        assert!(never.flow_series.is_empty() && !often.flow_series.is_empty());
    }
}

const FIRST: &str = r#"
    [flow.first]
    count = 2
    rtt = "uniform(10 ms, 100 ms)"
    start = "uniform(0 s, 1 s)"
    workload = { kind = "poisson", interval = "100 ms", size = "pareto(1.5, 20 kB)" }
"#;
const SECOND: &str = r#"
    [flow.second]
    count = 3
    rtt = "uniform(10 ms, 100 ms)"
    workload = { kind = "poisson", interval = "50 ms", size = "pareto(1.5, 20 kB)" }
"#;

/// Returns start, size and base RTT, as bits, of the flows of the group with this index, in order
/// of their starts.
fn draws(groups: &str, code: f64) -> Vec<[u64; 3]> {
    let records = run(&format!(
        "[run]\nduration = \"30 s\"\nsample = \"none\"\n[dumbbell]\nrate = \"20 Mbit/s\"\n{groups}"
    ));
    let [group, start, size, base] =
        ["group", "start_s", "size_bytes", "rtt_base_us"].map(|name| column(&records.flows, name));
    let mut rows: Vec<[u64; 3]> = (0..records.flows.len())
        .filter(|&i| group[i] == code)
        .map(|i| [start[i], size[i], base[i]].map(f64::to_bits))
        .collect();
    rows.sort_unstable();
    rows
}

#[test]
fn another_group_of_flows_leaves_the_draws_of_the_first_as_they_were() {
    let alone = draws(FIRST, 0.0);
    assert!(alone.len() > 400);
    assert_eq!(draws(&format!("{FIRST}{SECOND}"), 0.0), alone, "a group after it");
    assert_eq!(draws(&format!("{SECOND}{FIRST}"), 1.0), alone, "a group before it");
}
