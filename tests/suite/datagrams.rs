//! Datagrams without a connection: rate, pauses, counters, and the queue that they cause.

use cwnd_sim::World;

use crate::common::{BOTTLENECK, at, column, run, scenario};

#[test]
fn datagrams_at_a_constant_rate_carry_exactly_that_rate() {
    // 997 B at 3 Mbit/s are 2 658 666.67 ns apart: rounding errors must not accumulate.
    let text = r#"
        [run]
        duration = "1000 s"
        warmup = "10 s"
        sample = "none"
        [dumbbell]
        rate = "10 Mbit/s"
        [flow.voice]
        rtt = "40 ms"
        start = "2 s"
        workload = { kind = "udp", rate = "3 Mbit/s", size = "997 B", header = "40 B" }
    "#;
    let records = run(text);
    let flow = |name: &str| at(&records.flows, 0, name);
    let gap = 997.0 * 8.0 / 3e6;
    assert_eq!(
        records.delivered_data_packets,
        ((1000.0 - 2.0 - 0.02 - 997.0 * 8.0 / 10e6) / gap) as u64 + 1
    );
    assert_eq!(flow("bytes_received"), records.delivered_data_packets as f64 * 957.0);
    // 990 s after the warm-up, within one datagram.
    assert!((flow("segments_sent") - 990.0 / gap).abs() <= 1.0);
    assert!((flow("throughput_bit_s") - 3e6).abs() <= 997.0 * 8.0 / 990.0);
    assert!((flow("goodput_bit_s") - 3e6 * 957.0 / 997.0).abs() <= 957.0 * 8.0 / 990.0);
    assert_eq!((flow("start_s"), flow("duration_s")), (2.0, 990.0));
    assert!(flow("rtt_min_us").is_nan(), "nothing is measured without an answer");
    assert_eq!(at(&records.links, BOTTLENECK, "qdelay_max_us"), 0.0);
    assert_eq!(at(&records.links, 1, "arrived_total_pkts"), 0.0, "nothing goes back");
    let names = records.flows.column("controller").cloned();
    assert!(format!("{names:?}").contains(r#"labels: ["none"]"#), "{names:?}");
}

#[test]
fn poisson_datagrams_come_in_counts_whose_variance_is_their_mean() {
    let records = run(r#"
        [run]
        duration = "4000 s"
        sample = "1 s"
        [dumbbell]
        rate = "none"
        [flow.noise]
        rtt = "2 ms"
        workload = { kind = "udp", rate = "400 kbit/s", size = "500 B", arrivals = "poisson" }
    "#);
    // 100 a second. Of n counts with mean m, the mean has standard deviation √(m/n), the variance
    // about m·√(2/n).
    let (m, n) = (100.0, 3999.0);
    let seen = column(&records.link_series, "enq");
    let seen: Vec<f64> = seen.into_iter().step_by(2).collect();
    let counts: Vec<f64> = seen.windows(2).map(|w| w[1] - w[0]).collect();
    assert_eq!(counts.len() as f64, n);
    let mean = counts.iter().sum::<f64>() / n;
    let variance = counts.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / (n - 1.0);
    assert!((mean - m).abs() < 4.0 * f64::sqrt(m / n), "mean {mean}");
    assert!((variance - m).abs() < 4.0 * m * f64::sqrt(2.0 / n), "variance {variance}");
}

#[test]
fn a_queue_of_poisson_datagrams_waits_as_pollaczek_and_khinchine_say() {
    // M/D/1: W = ρ·S / (2·(1 − ρ)), S = 1 ms. At ρ = 0.8 the standard deviation of the mean over
    // 2·10⁶ services is about 1 %.
    for (rate, rho) in [("2 Mbit/s", 0.25), ("4 Mbit/s", 0.5), ("6.4 Mbit/s", 0.8)] {
        let records = run(&format!(
            r#"
            [run]
            duration = "2000 s"
            sample = "none"
            [dumbbell]
            rate = "8 Mbit/s"
            queue = {{ kind = "fifo", limit = "1000000 packets" }}
            [flow.noise]
            rtt = "2 ms"
            workload = {{ kind = "udp", rate = "{rate}", size = "1000 B", arrivals = "poisson" }}
            "#
        ));
        let found = at(&records.links, BOTTLENECK, "qdelay_mean_us");
        let expected = 1000.0 * rho / (2.0 * (1.0 - rho));
        assert!((found / expected - 1.0).abs() < 0.03, "ρ = {rho}: {found} µs, not {expected} µs");
    }
}

#[test]
fn datagrams_come_in_their_on_times_and_stop_when_they_are_told_to() {
    // Cycles of 24 s: 16 s with a datagram each 10 ms, then 8 s without. The stop after 100 s is 4
    // s into the fifth cycle.
    let records = run(r#"
        [run]
        duration = "200 s"
        sample = "1 s"
        [dumbbell]
        rate = "10 Mbit/s"
        [flow.crowd]
        count = 2
        rtt = "20 ms"
        start = "5 ms"
        stop = "100 s"
        workload = { kind = "udp", rate = "800 kbit/s", size = "1000 B", on = "16 s", off = "8 s" }
    "#);
    let enq: Vec<f64> = column(&records.link_series, "enq").into_iter().step_by(2).collect();
    for (second, pair) in enq.windows(2).enumerate() {
        let on = second < 100 && second % 24 < 16;
        assert_eq!(pair[1] - pair[0], if on { 200.0 } else { 0.0 }, "second {second}");
    }
    for flow in 0..2 {
        assert_eq!(at(&records.flows, flow, "segments_sent"), 100.0 * (4.0 * 16.0 + 4.0));
        // From 5 ms to the last arrival: sent at 99.995 s, with 10 ms of propagation and one
        // transmission of 0.8 ms for the first flow, two for the second.
        let end = [99.995 + 0.0008 + 0.01, 99.995 + 0.0016 + 0.01][flow];
        assert!((at(&records.flows, flow, "duration_s") - (end - 0.005)).abs() < 1e-9);
    }
}

/// TCP before, between and after datagrams of both kinds, which overload the link at times.
const MIXED: &str = r#"
    [run]
    duration = "30 s"
    warmup = "3 s"
    [dumbbell]
    rate = "5 Mbit/s"
    queue = "fq-codel"
    loss = 0.001
    [flow.first]
    rtt = "40 ms"
    [flow.crowd]
    count = 3
    rtt = "uniform(10 ms, 80 ms)"
    workload.kind = "udp"
    workload.rate = "3 Mbit/s"
    workload.size = "700 B"
    workload.arrivals = "poisson"
    workload.on = "exponential(1 s)"
    workload.off = "exponential(3 s)"
    [flow.web]
    rtt = "30 ms"
    workload = { kind = "poisson", interval = "200 ms", size = "exponential(20 kB)" }
    [flow.back]
    rtt = "40 ms"
    direction = "reverse"
    start = "1 s"
    stop = "20 s"
    workload = { kind = "udp", rate = "6 Mbit/s", size = "1500 B" }
    [flow.last]
    rtt = "40 ms"
    controller = "cubic"
    endpoint = { ecn = true }
"#;

#[test]
fn no_datagram_appears_or_vanishes_beside_tcp() {
    let mut world = World::new(scenario(MIXED));
    let mut steps = 0_u64;
    while world.step() {
        steps += 1;
        if steps.is_multiple_of(97) {
            world.audit().expect("every packet is somewhere");
        }
    }
    world.audit().expect("every packet is somewhere");
    let records = world.finish();
    let group = column(&records.flows, "group");
    let sum = |name: &str, of: f64| -> f64 {
        let values = column(&records.flows, name);
        values.iter().zip(&group).filter(|(_, g)| **g == of).map(|(v, _)| v).sum()
    };
    let crowd = (sum("segments_sent", 1.0), sum("delivered_bytes", 1.0) / 672.0);
    assert!(crowd.1 < crowd.0, "an overloaded link drops datagrams: {crowd:?}");
    assert!(sum("goodput_bit_s", 3.0) < 5e6 && sum("goodput_bit_s", 3.0) > 4e6);
    assert!(sum("delivered_bytes", 0.0) > 0.0 && sum("delivered_bytes", 4.0) > 0.0);
    let ids = column(&records.flows, "flow_id");
    let fixed: Vec<f64> =
        ids.iter().zip(&group).filter(|(_, g)| **g != 2.0).map(|(i, _)| *i).collect();
    assert_eq!(fixed, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], "rows in the order of the file");
}

#[test]
fn a_run_with_datagrams_repeats_itself_and_another_seed_does_not() {
    let digest = run(MIXED).digest();
    assert_eq!(run(MIXED).digest(), digest);
    assert_ne!(run(&MIXED.replace("[run]", "[run]\nseed = 2")).digest(), digest);
}

#[test]
fn datagrams_that_never_come_leave_the_draws_of_the_others_as_they_were() {
    let (before, after) = MIXED.split_once("[flow.crowd]").expect("the group");
    let without = format!("{before}[flow.web]{}", after.split_once("[flow.web]").expect("web").1);
    let late =
        MIXED.replace("rtt = \"uniform(10 ms, 80 ms)\"", "rtt = \"20 ms\"\nstart = \"29.9 s\"");
    let starts = |text: &str, group: f64| -> Vec<f64> {
        let records = run(text);
        let rows =
            column(&records.flows, "group").into_iter().zip(column(&records.flows, "start_s"));
        let mut starts: Vec<f64> = rows.filter(|(g, _)| *g == group).map(|(_, s)| s).collect();
        starts.sort_by(f64::total_cmp);
        starts
    };
    assert_eq!(starts(&late, 2.0), starts(&without, 1.0), "web arrivals");
}
