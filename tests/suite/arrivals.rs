//! Arrival processes of connections, and the load that they offer.

use cwnd_scenario::Document;
use cwnd_tables::Records;

use crate::common::{column, run};

fn web(seconds: u32, rate: &str, arrivals: &str) -> Records {
    run(&format!(
        r#"
        [run]
        duration = "{seconds} s"
        sample = "none"
        [dumbbell]
        rate = "{rate}"
        queue = {{ kind = "fifo", limit = "100 MB" }}
        [flow.web]
        rtt = "40 ms"
        arrivals = {{ {arrivals} }}
        workload = {{ kind = "bytes", size = "exponential(30 kB)" }}
    "#
    ))
}

/// Returns the start times of all flows, in order.
fn starts(records: &Records) -> Vec<f64> {
    let mut starts = column(&records.flows, "start_s");
    starts.sort_unstable_by(f64::total_cmp);
    starts
}

#[test]
fn the_workload_poisson_is_short_for_transfers_that_arrive() {
    let file = |keys: &str| {
        run(&format!(
            "[run]\nduration = \"20 s\"\n[dumbbell]\nrate = \"10 Mbit/s\"\n[flow.web]\ncount = 2\n\
             rtt = \"40 ms\"\n{keys}\n"
        ))
    };
    let short = file(
        r#"workload = { kind = "poisson", interval = "100 ms", size = "pareto(1.5, 30 kB)" }"#,
    );
    let long = file(
        r#"workload = { kind = "bytes", size = "pareto(1.5, 30 kB)" }
        arrivals = { kind = "poisson", interval = "100 ms" }"#,
    );
    assert!(short.flows.len() > 300);
    assert_eq!(short.digest(), long.digest());
}

#[test]
fn a_load_is_what_the_link_carries_when_nothing_is_lost() {
    for load in [0.3, 0.6] {
        let records = web(1000, "10 Mbit/s", &format!("kind = \"poisson\", load = {load}"));
        // 30 kB have 21.2 segments of 1448 B in the mean, 1 / (1 − exp(−1448/30000)), each with 52
        // B of headers, and a SYN.
        let bytes = 30_000.0 + 52.0 / (1.0 - (-1448.0_f64 / 30_000.0).exp()) + 52.0;
        let expected = load * 10e6 / (8.0 * bytes) * 1000.0;
        let flows = records.flows.len() as f64;
        assert!(
            (flows - expected).abs() < 3.0 * expected.sqrt(),
            "{flows} connections, {expected}"
        );
        // Standard deviation of a sum of n exponential sizes, n a Poisson number: √(2 / n) of it.
        let carried = column(&records.links, "utilisation")[0];
        let error = load * (2.0 / expected).sqrt();
        assert!((carried - load).abs() < 3.0 * error + 0.002, "{carried} of {load}");
    }
}

#[test]
fn several_processes_share_a_load_and_pauses_double_the_rate() {
    let count = |arrivals: &str, processes: u32| {
        let records = run(&format!(
            "[run]\nduration = \"400 s\"\nsample = \"none\"\n[dumbbell]\nrate = \"20 Mbit/s\"\n\
             [flow.web]\nrtt = \"40 ms\"\ncount = {processes}\n\
             arrivals = {{ {arrivals}, load = 0.4 }}\n\
             workload = {{ kind = \"bytes\", size = \"20 kB\" }}\n"
        ));
        starts(&records)
    };
    // 20 kB are 14 segments with 52 B of headers each, and a SYN.
    let rate = 0.4 * 20e6 / (8.0 * (20_000.0 + 14.0 * 52.0 + 52.0));
    let close = |starts: &[f64]| {
        let expected = rate * 400.0;
        assert!((starts.len() as f64 - expected).abs() < 4.0 * expected.sqrt(), "{}", starts.len());
    };
    close(&count("kind = \"poisson\"", 1));
    close(&count("kind = \"poisson\"", 7));
    let bursts = count("kind = \"on-off\", on = \"500 ms\", off = \"500 ms\"", 1);
    close(&bursts);
    // Arrivals come in the first half of each second, at twice the rate.
    assert!(bursts.iter().all(|start| start.fract() < 0.5));
}

#[test]
fn the_gaps_of_arrivals_are_exponential() {
    let starts = starts(&web(1000, "100 Mbit/s", "kind = \"poisson\", interval = \"50 ms\""));
    let mut gaps: Vec<f64> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    gaps.sort_unstable_by(f64::total_cmp);
    let n = gaps.len() as f64;
    let off = |(i, gap): (usize, &f64)| ((i as f64 + 0.5) / n - (1.0 - (-gap / 0.05).exp())).abs();
    let distance = gaps.iter().enumerate().map(off).fold(0.0, f64::max) * n.sqrt();
    // Kolmogorov–Smirnov test: one set of gaps in a thousand exceeds this distance.
    assert!(distance < 1.95, "{distance}");
}

#[test]
fn a_flash_crowd_has_its_rate_and_its_share_of_the_time() {
    let starts = starts(&run(r#"
        [run]
        duration = "4000 s"
        sample = "none"
        [dumbbell]
        rate = "1 Gbit/s"
        [flow.crowd]
        rtt = "10 ms"
        workload = { kind = "bytes", size = "1 kB" }
        [flow.crowd.arrivals]
        kind = "on-off"
        preset = "flash-crowd"
        interval = "50 ms"
        on = "pareto(2.5, 16 s)"
        off = "pareto(2.5, 8 s)"
    "#));
    // Twenty arrivals a second for 16 s of each 24 s. Pareto periods of shape 2.5 have a standard
    // deviation of 0.89 times their mean, and there are 167 of each kind.
    let expected = 4000.0 * 20.0 * 16.0 / 24.0;
    let found = starts.len() as f64;
    assert!((found / expected - 1.0).abs() < 0.15, "{found} of {expected}");
    let pauses = starts.windows(2).filter(|pair| pair[1] - pair[0] > 2.0).count();
    assert!((100..220).contains(&pauses), "{pauses} pauses");
}

#[test]
fn a_list_is_played_as_it_was_recorded() {
    let records = run(r#"
        [run]
        duration = "5 s"
        [link.ar]
        from = "a"
        to = "r"
        rate = "10 Mbit/s"
        delay = "1 ms"
        duplex = true
        [link.br]
        from = "b"
        to = "r"
        rate = "10 Mbit/s"
        delay = "2 ms"
        duplex = true
        [link.rc]
        from = "r"
        to = "c"
        rate = "10 Mbit/s"
        delay = "4 ms"
        duplex = true
        [link.rd]
        from = "r"
        to = "d"
        rate = "10 Mbit/s"
        delay = "8 ms"
        duplex = true
        [flow.web]
        from = ["a", "b"]
        to = ["c", "d"]
        workload = { kind = "bytes", size = "10 kB" }
        [flow.web.arrivals]
        kind = "list"
        rows = "2 s, b, c, 3 kB; 1 s, a, d, 70 kB; 1 s, b, d; 9 s, a, c, 1 kB; 3 s"
    "#);
    let (start, size, base) = (
        column(&records.flows, "start_s"),
        column(&records.flows, "size_bytes"),
        column(&records.flows, "rtt_base_us"),
    );
    let ids = column(&records.flows, "flow_id");
    let mut rows: Vec<usize> = (0..ids.len()).collect();
    rows.sort_by(|&a, &b| ids[a].total_cmp(&ids[b]));
    let told: Vec<[f64; 3]> = rows.iter().map(|&i| [start[i], size[i], base[i]]).collect();
    assert_eq!(told[..3], [[1.0, 70e3, 18e3], [1.0, 10e3, 20e3], [2.0, 3e3, 12e3]]);
    // In order of time, the fourth row gives neither size nor ends, and the fifth is after the end
    // of the run.
    assert_eq!((told.len(), told[3][0], told[3][1]), (4, 3.0, 10e3));
}

/// Runs users who fetch 20 kB and pause; `keys` are keys of their group.
fn users(count: u32, keys: &str) -> Records {
    run(&format!(
        r#"
        [run]
        duration = "500 s"
        sample = "none"
        [dumbbell]
        rate = "1 Gbit/s"
        queue = {{ kind = "fifo", limit = "100 MB" }}
        [flow.users]
        count = {count}
        rtt = "100 ms"
        {keys}
        workload = {{ kind = "bytes", size = "20 kB" }}
    "#
    ))
}

#[test]
fn users_fetch_one_file_after_the_other_at_the_rate_of_their_loop() {
    let records = users(20, r#"arrivals = { kind = "closed", pause = "exponential(700 ms)" }"#);
    let (start, took) = (column(&records.flows, "start_s"), column(&records.flows, "fct_s"));
    // SYN, ten segments, four segments: two and a half round trips to the last byte, and half of
    // one until its ACK arrives. At the start twenty files of 14 segments queue behind each other.
    let longest = 0.25 + 20.0 * 14.0 * 1500.0 * 8.0 / 1e9;
    assert!(took.iter().filter(|fct| !fct.is_nan()).all(|fct| (0.25..longest).contains(fct)));
    // Little's law: twenty users, each with a cycle of 300 ms and the pause.
    let (found, expected) = (start.len() as f64, 20.0 * 500.0 / (0.3 + 0.7));
    assert!((found - expected).abs() < 4.0 * expected.sqrt(), "{found} of {expected}");
    let at_once = |at: f64| {
        let open = |(&begin, fct): (&f64, &f64)| begin <= at && at < begin + fct + 0.05;
        start.iter().zip(&took).filter(|&each| open(each)).count()
    };
    assert!((1..5000).all(|tenth| at_once(f64::from(tenth) / 10.0) <= 20), "one at a time");
}

#[test]
fn a_user_whose_connection_is_given_up_goes_on_after_the_pause() {
    let records = run(r#"
        [run]
        duration = "60 s"
        sample = "none"
        [dumbbell]
        rate = "1 Mbit/s"
        loss = 1
        [flow.users]
        rtt = "10 ms"
        endpoint = { syn_retries = 1, rto_initial = "1 s" }
        arrivals = { kind = "closed", pause = "1 s" }
        workload = { kind = "bytes", size = "20 kB" }
    "#);
    let mut start = starts(&records);
    // A SYN, a second one after 1 s, the end of the attempt after 2 s more, then the pause.
    start.truncate(4);
    assert_eq!(start, [0.0, 4.0, 8.0, 12.0]);
}

#[test]
fn users_stop_when_they_are_told_to() {
    let keys = "stop = \"5 s\"\narrivals = { kind = \"closed\", pause = \"1 s\" }";
    let start = starts(&users(3, keys));
    assert!(start.len() == 12 && start.iter().all(|&at| at < 5.0), "{start:?}");
}

#[test]
fn nobody_waits_for_what_has_no_end() {
    let text = "[run]\nduration = \"1 s\"\n[dumbbell]\nrate = \"1 Mbit/s\"\n[flow.main]\n\
                rtt = \"1 ms\"\narrivals = { kind = \"closed\", pause = \"1 s\" }\n";
    let files = |_: &str| Err(String::new());
    let refused = Document::parse("test", text, &files).and_then(|d| d.plan()).unwrap_err();
    assert!(refused.to_string().contains("no end that another could wait for"), "{refused}");
}
