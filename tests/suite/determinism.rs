//! Determinism: equal scenario and seed give equal bytes, and the random draws of one component do
//! not affect those of another. Check mode: lockstep comparison of two runs, and pinned step hashes
//! that every build must reproduce. Noise: seeds change the base RTT of each flow and the
//! processing delay of hosts. The identifier of the engine changes with code, not with comments,
//! layout or file names.

#[path = "../../crates/python/engine_id.rs"]
mod identify;

use std::fs;

use cwnd_quantity::{Duration, Time};
use cwnd_sim::{CheckError, Checked, Divergence, Witness, World, compare};
use identify::identify;

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
fn a_run_in_slices_of_time_is_a_run() {
    for (name, text) in PINNED {
        let mut world = World::new(scenario(text));
        let mut until = Time::ZERO;
        loop {
            until += Duration::from_micros(7_919);
            let goes_on = world.advance(until);
            assert!(world.now() < until, "{name}: {} is after {until}", world.now());
            if !goes_on {
                break;
            }
        }
        assert_eq!(until.0 / 1_000_000_000, 20, "{name} ends with its duration");
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

/// Writes the same network with a given rate, constant or with a step at half time.
fn with_rate(rate: &str) -> String {
    format!(
        "[run]\nduration = \"4 s\"\nsample = \"none\"\n[dumbbell]\nrate = {rate}\n\
         queue = \"codel\"\nbdp_rtt = \"40 ms\"\nloss = 0.01\n[flow.main]\nrtt = \"40 ms\"\n"
    )
}

/// Compares two runs of one scenario.
fn check(text: &str, go_on: impl FnMut(Time) -> bool) -> Result<Checked, CheckError> {
    let [mut one, mut other] = [(); 2].map(|()| Witness::new(scenario(text)));
    compare(&mut one, &mut other, go_on)
}

fn divergence(one: &str, other: &str) -> Divergence {
    let [mut one, mut other] = [one, other].map(|text| Witness::new(scenario(text)));
    match compare(&mut one, &mut other, |_| true) {
        Err(CheckError::Diverged(divergence)) => *divergence,
        other => panic!("{other:?}"),
    }
}

#[test]
fn two_runs_of_a_scenario_take_the_same_steps_and_give_what_one_run_gives() {
    for (name, text) in PINNED {
        let checked = check(text, |_| true).expect(name);
        assert_eq!(checked.records.digest(), run(text).digest(), "{name}");
        let again = check(text, |_| true).expect(name);
        assert_eq!(checked.chain, again.chain, "{name}");
    }
}

#[test]
fn the_first_event_that_differs_is_found() {
    let constant = with_rate("\"4 Mbit/s\"");
    let stepped =
        with_rate(r#"{ initial = "4 Mbit/s", steps = [{ at = "2 s", rate = "4000001 bit/s" }] }"#);
    let found = divergence(&constant, &stepped);
    let [one, other] = found.steps.clone().map(|s| s.expect("both go on"));
    assert_eq!(one.index, other.index);
    // The runs agree until the instant of the change, which is an event.
    assert_eq!(other.at.0, 2_000_000_000);
    assert!(one.at > other.at, "nothing else happens at that instant");
    assert!(found.last_common.as_ref().is_some_and(|s| s.at < other.at));
    assert!(found.to_string().contains("at 2000000000 ns: the rate of line 0 changes"), "{found}");

    // Confirms the report: stepping both by hand, this is the first event that differs.
    let mut hands = [&constant, &stepped].map(|text| World::new(scenario(text)));
    for _ in 1..one.index {
        hands.iter_mut().for_each(|world| assert!(world.step()));
        assert_eq!(hands[0].now(), hands[1].now());
    }
    hands.iter_mut().for_each(|world| assert!(world.step()));
    assert_eq!((hands[0].now(), hands[1].now()), (one.at, other.at));
}

#[test]
fn a_draw_that_differs_is_found_before_it_has_consequences() {
    let text = with_rate("\"4 Mbit/s\"");
    let found = divergence(&text, &text.replace("[run]", "[run]\nseed = 2"));
    let [one, other] = found.steps.clone().map(|s| s.expect("both go on"));
    // The first packet that enters the bottleneck's pipe takes draws for loss, reordering and
    // jitter.
    assert_eq!((one.index, one.at), (other.index, other.at));
    let names: Vec<&str> = one.draws.iter().map(|d| &*d.stream).collect();
    assert_eq!(names, ["link.bottleneck.faults"; 3]);
    assert_eq!(one.draws.len(), other.draws.len());
    assert_ne!(one.draws, other.draws);
    assert!(found.to_string().contains("drawn: link.bottleneck.faults "), "{found}");
}

#[test]
fn a_run_that_ends_before_the_other_is_found() {
    let text = with_rate("\"4 Mbit/s\"");
    let found = divergence(&text, &text.replace("4 s", "3 s"));
    let [longer, shorter] = &found.steps;
    assert_eq!(*shorter, None);
    assert!(longer.as_ref().is_some_and(|s| s.at.0 >= 3_000_000_000));
    assert!(found.to_string().contains("the other:      the run is over"), "{found}");
}

#[test]
fn a_checked_run_can_be_called_off() {
    for until_s in [0.0, 5.0] {
        let outcome = check(PINNED[0].1, |now| now.as_secs_f64() < until_s);
        assert_eq!(outcome.err(), Some(CheckError::Cancelled));
    }
}

/// The hashes are the same in every build: this debug test and the release tests of the extension
/// read the same file. `cargo run --example steps` prints the steps of a build, to find where two
/// differ.
#[test]
fn the_steps_of_a_run_are_what_they_were() {
    let mut found = "# Hash of every step of a run: time, event, random draws.\n".to_owned();
    for (name, text) in PINNED {
        let checked = check(text, |_| true).expect(name);
        found += &format!("{name} {:016x} {} events\n", checked.chain, checked.records.events);
    }
    assert_golden("steps.txt", &found);
}

/// Writes a flow over CoDel whose goodput depends on the phase of its packets: without noise, 9.44
/// Mbit/s at 90 ms and 11.17 Mbit/s at 90.2 ms, for any seed.
fn phased(seed: u64, rtt: &str, noise: &str) -> String {
    format!(
        r#"
        [run]
        duration = "60 s"
        seed = {seed}
        noise = "{noise}"
        sample = "none"
        [dumbbell]
        rate = "15 Mbit/s"
        queue = {{ kind = "codel", limit = "1000 packets" }}
        [flow.main]
        rtt = "{rtt}"
        start = "uniform(0 s, 20 ms)"
        controller = {{ kind = "newreno", preset = "linux" }}
        endpoint = {{ preset = "linux", ecn = false }}
        "#
    )
}

/// Returns mean and standard deviation of the goodput over seeds, Mbit/s.
fn goodput(seeds: u64, rtt: &str, noise: &str) -> (f64, f64) {
    let of = |seed| column(&run(&phased(seed, rtt, noise)).flows, "goodput_bit_s")[0] / 1e6;
    let found: Vec<f64> = (1..=seeds).map(of).collect();
    let mean = found.iter().sum::<f64>() / seeds as f64;
    let square = found.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
    (mean, (square / (seeds - 1) as f64).sqrt())
}

#[test]
fn with_noise_the_spread_over_seeds_covers_what_a_little_delay_changes() {
    let [(here, alike), (there, _)] = ["90 ms", "90.2 ms"].map(|rtt| goodput(4, rtt, "none"));
    assert!(there / here > 1.1 && alike < 0.01 * here, "{here} ± {alike}, {there} Mbit/s");
    let [(here, s), (there, t)] = ["90 ms", "90.2 ms"].map(|rtt| goodput(20, rtt, "path"));
    // Welch's test at 95 % with 38 degrees of freedom.
    let apart = (here - there).abs() / ((s * s + t * t) / 20.0).sqrt();
    assert!(apart < 2.02, "{here} ± {s} and {there} ± {t} Mbit/s");
    assert!(s > 0.02 * here, "the deviation of {here} Mbit/s over seeds is {s}");
}

/// Returns the base RTTs of all flows, ms.
fn base_rtts(text: &str) -> Vec<f64> {
    column(&run(text).flows, "rtt_base_us").iter().map(|us| us / 1e3).collect()
}

#[test]
fn flows_draw_their_base_rtt_by_seed_and_name_and_nothing_else() {
    let text = |seed: u64, rest: &str| {
        format!(
            "[run]\nduration = \"1 s\"\nseed = {seed}\nnoise = \"path\"\n\
             [dumbbell]\nrate = \"10 Mbit/s\"\ndelay = \"5 ms\"\n\
             [flow.a]\nrtt = \"100 ms\"\ncount = 3\n{rest}\n"
        )
    };
    let alone = base_rtts(&text(1, ""));
    assert!(alone.iter().all(|rtt| (99.5..=100.5).contains(rtt)), "{alone:?}");
    assert!(alone[0] != alone[1] && alone[1] != alone[2], "{alone:?}");
    let other_arm = base_rtts(&text(1, "controller = \"cubic\"\nendpoint = \"linux\""));
    assert_eq!(other_arm, alone);
    let beside = base_rtts(&text(1, "start = \"uniform(0 s, 1 ms)\"\n[flow.b]\nrtt = \"50 ms\""));
    assert_eq!(beside[..3], alone);
    assert!((49.75..=50.25).contains(&beside[3]), "{beside:?}");
    let other_seed = base_rtts(&text(2, ""));
    assert!(alone.iter().zip(&other_seed).all(|(one, two)| one != two), "{other_seed:?}");
}

#[test]
fn hosts_in_a_graph_are_up_to_a_percent_of_their_path_away() {
    let text = r#"
        [run]
        duration = "5 s"
        noise = "path"
        [link.ab]
        from = "a"
        to = "b"
        rate = "10 Mbit/s"
        delay = "20 ms"
        duplex = true
        [link.bc]
        from = "b"
        to = "c"
        rate = "10 Mbit/s"
        delay = "30 ms"
        duplex = true
        [flow.web]
        from = "a"
        to = ["b", "c"]
        workload = { kind = "poisson", interval = "50 ms", size = "20 kB" }
    "#;
    let rtts = base_rtts(text);
    let (short, long): (Vec<f64>, Vec<f64>) = rtts.iter().partition(|&&rtt| rtt < 50.0);
    for (rtts, least) in [(short, 40.0), (long, 100.0)] {
        assert!(rtts.len() > 20, "{rtts:?}");
        assert!(rtts.iter().all(|rtt| (least..=least * 1.01).contains(rtt)), "{rtts:?}");
        let mean = rtts.iter().sum::<f64>() / rtts.len() as f64;
        assert!((mean / least - 1.005).abs() < 0.0015, "{mean}");
    }
}

#[test]
fn a_scenario_without_the_key_has_no_noise_in_schema_1_and_that_of_the_path_in_schema_2() {
    let [quiet, noisy] = ["none", "path"].map(|noise| phased(1, "90 ms", noise));
    let unnamed = quiet.replace("noise = \"none\"\n", "");
    for (schema, same, other) in [(1, &quiet, &noisy), (2, &noisy, &quiet)] {
        let read = |text: &str| scenario(&format!("schema = {schema}\n{text}"));
        assert_eq!(read(&unnamed), read(same), "schema {schema}");
        assert_ne!(read(&unnamed), read(other), "schema {schema}");
    }
    assert_eq!(scenario(&unnamed), scenario(&quiet));
}

const CODE: &str = "fn rate(bytes: u64) -> u64 { let shift = 3; bytes << shift }\n";

fn of(source: &str) -> String {
    identify([source]).expect("it is Rust")
}

#[test]
fn comments_docs_and_layout_do_not_change_it() {
    let commented = "//! A module.
#![doc = \"x\"]

/// Rate, bit/s.
fn rate(
    bytes: u64,
) -> u64 {
    // Eight bits a byte.
    let shift /* 2^3 */ = 3;
    bytes << shift
}
";
    assert_eq!(of(CODE), of(commented));
}

#[test]
fn numbers_names_attributes_and_brackets_change_it() {
    let others = [
        CODE.replace('3', "4"),
        CODE.replace("shift", "bits"),
        format!("#[inline]\n{CODE}"),
        CODE.replace("bytes << shift", "(bytes << shift)"),
        CODE.replace("{ let", "{ #![inline] let"),
    ];
    let mut ids: Vec<String> = others.iter().map(|source| of(source)).collect();
    ids.push(of(CODE));
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), others.len() + 1);
}

#[test]
fn the_order_of_files_does_not_change_it_but_each_file_does() {
    let id = identify([CODE, "struct Queue;"]).expect("it is Rust");
    assert_eq!(id, identify(["struct Queue;", CODE]).expect("it is Rust"));
    assert_ne!(id, of(CODE));
    assert_ne!(id, identify([CODE, "struct Queue;", "struct Queue;"]).expect("it is Rust"));
    assert_eq!(identify([CODE, "fn ("]), Err(1), "the file that is not Rust");
}

/// Removes the lines of comments as text, without the lexer.
#[test]
fn a_real_module_has_the_identifier_of_its_lines_without_comments() {
    let source = fs::read_to_string("../crates/cc/src/copa.rs").expect("Copa is there");
    let is_comment = |line: &&str| line.trim_start().starts_with("//");
    assert!(source.lines().filter(is_comment).count() > 10);
    let code: Vec<&str> = source.lines().filter(|line| !is_comment(line)).collect();
    assert_eq!(of(&source), of(&code.join("\n")));
}
