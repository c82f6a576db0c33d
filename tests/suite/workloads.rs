//! Workloads: the data that applications send, and its counters. Datagrams without a connection:
//! rate, pauses, counters, and the queue that they cause.

use cwnd_sim::World;

use crate::common::{BOTTLENECK, at, column, run, scenario};

#[test]
fn poisson_arrivals_come_at_their_rate_and_each_transfer_arrives_whole() {
    let records = run(r#"
        [run]
        duration = "200 s"
        sample = "none"
        [dumbbell]
        rate = "20 Mbit/s"
        [flow.web]
        count = 3
        rtt = "uniform(10 ms, 100 ms)"
        workload = { kind = "poisson", interval = "60 ms", size = "pareto(1.5, 20 kB)" }
    "#);
    // Three processes of 200 s / 60 ms; the standard deviation of a Poisson count is its square
    // root.
    let (flows, mean) = (records.flows.len() as f64, 3.0 * 200.0 / 0.06);
    assert!((flows - mean).abs() < 4.0 * mean.sqrt(), "{flows} arrivals, {mean} expected");
    let size = column(&records.flows, "size_bytes");
    let received = column(&records.flows, "bytes_received");
    let fct = column(&records.flows, "fct_s");
    let base = column(&records.flows, "rtt_base_us");
    let mut finished = 0;
    for i in 0..records.flows.len() {
        assert!(received[i] <= size[i]);
        if fct[i].is_nan() {
            continue;
        }
        finished += 1;
        assert_eq!(received[i], size[i]);
        // The handshake, and half a round trip for the data.
        assert!(fct[i] > 1.5 * base[i] / 1e6 + size[i] * 8.0 / 20e6, "{} of {i}", fct[i]);
    }
    assert!(finished as f64 > 0.99 * flows, "{finished} of {flows} finished");
    let mean_base = base.iter().sum::<f64>() / flows;
    // Uniform from 10 to 100 ms: the standard deviation of a draw is 26 ms.
    assert!((mean_base - 55_000.0).abs() < 4.0 * 26_000.0 / flows.sqrt(), "{mean_base}");
}

#[test]
fn the_next_flow_in_a_place_has_its_own_distance() {
    // Each flow sends one packet, nearly alone on the link: half of its own RTT and the
    // transmission. Most RTTs exceed the timeout of 15 ms, so flow slots are reused while
    // retransmitted packets are in flight.
    let records = run(r#"
        [run]
        duration = "100 s"
        sample = "none"
        [dumbbell]
        rate = "100 Mbit/s"
        reverse_rate = "none"
        [flow.short]
        rtt = "lognormal(50 ms, 1)"
        workload = { kind = "poisson", interval = "20 ms", size = "1000 B" }
        endpoint = { preset = "ns2", rto_initial = "15 ms", rto_min = "15 ms" }
        [flow.other]
        rtt = "lognormal(50 ms, 1)"
        workload = { kind = "poisson", interval = "20 ms", size = "1000 B" }
        endpoint = { preset = "ns2", rto_initial = "15 ms", rto_min = "15 ms" }
    "#);
    let fct = column(&records.flows, "fct_s");
    let base = column(&records.flows, "rtt_base_us");
    let mut repeated = 0.0;
    for i in (0..records.flows.len()).filter(|&i| !fct[i].is_nan()) {
        let late_us = fct[i] * 1e6 - base[i] / 2.0 - 80.0;
        assert!((-0.01..2000.0).contains(&late_us), "flow {i} of RTT {} µs: {late_us}", base[i]);
        repeated += at(&records.flows, i, "retrans");
    }
    assert!(repeated > 1000.0, "packets outlived their flows: {repeated}");
}

#[test]
fn what_ended_before_the_warm_up_counts_for_nothing() {
    let text = r#"
        [run]
        duration = "60 s"
        warmup = "30 s"
        sample = "none"
        [dumbbell]
        rate = "20 Mbit/s"
        [flow.web]
        rtt = "40 ms"
        workload = { kind = "poisson", interval = "50 ms", size = "exponential(30 kB)" }
        [flow.once]
        rtt = "40 ms"
        workload = { kind = "bytes", size = "100 kB" }
        [flow.bulk]
        rtt = "40 ms"
        start = "25 s"
        endpoint = { max_window = "20 kB" }
    "#;
    let records = run(text);
    let flows = |name: &str| column(&records.flows, name);
    let (start, fct, received) = (flows("start_s"), flows("fct_s"), flows("bytes_received"));
    let (counted, seconds) = (flows("delivered_bytes"), flows("duration_s"));
    let (goodput, sent) = (flows("goodput_bit_s"), flows("segments_sent"));
    let mut early = 0;
    for i in 0..records.flows.len() {
        if start[i] + fct[i] < 29.9 {
            early += 1;
            let counts = [counted[i], seconds[i], goodput[i], sent[i]];
            assert_eq!(counts, [0.0; 4], "flow {i} ended at {} s", start[i] + fct[i]);
            assert!(received[i] > 0.0);
        } else if start[i] >= 30.0 {
            assert_eq!(counted[i], received[i], "flow {i} began at {} s", start[i]);
        } else {
            assert!(counted[i] <= received[i]);
        }
        assert!((goodput[i] * seconds[i] - counted[i] * 8.0).abs() < 1.0);
    }
    assert!(early > 400, "{early}");
    // The run equals one without a warm-up, which changes only what is counted.
    let whole = run(&text.replace("warmup = \"30 s\"", ""));
    assert_eq!(column(&whole.flows, "bytes_received"), received);
    assert_eq!(whole.activity, records.activity);
    assert_eq!(whole.events + 1, records.events, "the end of the warm-up is an event");
}

#[test]
fn an_on_off_flow_sends_its_bursts_with_its_pauses_between_them() {
    let records = run(r#"
        [run]
        duration = "100 s"
        [dumbbell]
        rate = "10 Mbit/s"
        reverse_rate = "none"
        [flow.main]
        rtt = "100 ms"
        workload = { kind = "on-off", size = "2000 B", off = "300 ms" }
        endpoint = { preset = "ns2", clock = "1 ns" }
    "#);
    // Two packets of 0.8 ms are sent together; the second is acknowledged after a round trip.
    let cycle = 0.1 + 2.0 * 0.0008 + 0.3;
    let bursts = (100.0_f64 / cycle).ceil();
    let received = at(&records.flows, 0, "bytes_received");
    assert!((received - bursts * 2000.0).abs() <= 2000.0, "{received} in {bursts} bursts");
    assert!(at(&records.flows, 0, "size_bytes").is_nan());
}

#[test]
fn a_flow_that_is_told_to_stop_is_counted_until_then() {
    let records = run(r#"
        [run]
        duration = "100 s"
        [dumbbell]
        rate = "10 Mbit/s"
        [flow.first]
        rtt = "50 ms"
        stop = "30 s"
        [flow.second]
        rtt = "50 ms"
        start = "40 s"
    "#);
    // The flow lasts until all data is acknowledged: at most a round trip, a full queue of 1 BDP
    // and a delayed ACK of 200 ms later.
    let first = at(&records.flows, 0, "duration_s");
    assert!((30.0..30.31).contains(&first), "{first}");
    assert_eq!(at(&records.flows, 1, "duration_s"), 60.0);
    for row in 0..2 {
        let goodput = at(&records.flows, row, "goodput_bit_s");
        assert!((0.93e7..1448.0 / 1500.0 * 1e7).contains(&goodput), "flow {row}: {goodput}");
        assert!(at(&records.flows, row, "fct_s").is_nan());
    }
}

#[test]
fn a_hosts_own_interface_bounds_its_flow() {
    let records = run(r#"
        [run]
        duration = "30 s"
        warmup = "10 s"
        [dumbbell]
        rate = "100 Mbit/s"
        edge_rate = "8 Mbit/s"
        [flow.main]
        count = 3
        rtt = "20 ms"
        endpoint = { preset = "ns2", max_window = "50 kB" }
    "#);
    for row in 0..3 {
        let goodput = at(&records.flows, row, "goodput_bit_s");
        assert!((goodput - 8e6).abs() < 8000.0 / 20.0 + 1.0, "flow {row}: {goodput}");
    }
    assert_eq!(at(&records.links, 0, "qdelay_p50_us"), 0.0);
}

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
    // 1.6·10⁶ services is about 1 %.
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
