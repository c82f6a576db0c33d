//! Workloads: the data that applications send, and its counters.

use crate::common::{at, column, run};

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
