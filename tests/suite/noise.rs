//! Noise of a run: seeds change the base RTT of each flow and the processing delay of hosts.

use crate::common::{column, run, scenario};

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
