//! Links: impairments, rate changes, traces and fair queueing.

use crate::common::{BOTTLENECK, at, column, run};

/// Writes a group of bulk flows through a bottleneck, with these further lines.
fn bulk(run_keys: &str, dumbbell: &str, flow: &str) -> String {
    format!(
        r#"
        [run]
        {run_keys}
        [dumbbell]
        reverse_rate = "none"
        {dumbbell}
        [flow.main]
        {flow}
        "#
    )
}

/// Asserts that `hits` of `n` draws of probability `p` are within four standard deviations of the
/// binomial mean.
fn assert_binomial(hits: f64, n: f64, p: f64) {
    let deviation = (n * p * (1.0 - p)).sqrt();
    let off = (hits - n * p) / deviation;
    assert!(off.abs() < 4.0, "{hits} of {n} for p = {p}: {off:.1} standard deviations off");
}

#[test]
fn a_link_loses_the_share_of_packets_it_is_asked_to() {
    for (seed, loss) in [(1, 0.001), (2, 0.01), (3, 0.05), (4, 0.3)] {
        let records = run(&bulk(
            &format!("duration = \"200 s\"\nseed = {seed}\nsample = \"none\""),
            &format!("rate = \"10 Mbit/s\"\nloss = {loss}"),
            "count = 10\nrtt = \"20 ms\"\nendpoint = { rto_max = \"1 s\" }",
        ));
        let lost = records.packets(BOTTLENECK, "dropped", "link_loss")[0] as f64;
        let sent = lost + at(&records.links, BOTTLENECK, "delivered_pkts");
        assert!(sent > 10_000.0, "too few packets to tell: {sent}");
        assert_binomial(lost, sent, loss);
        let data = at(&records.links, BOTTLENECK, "delivered_data_pkts");
        assert!(data <= sent - lost, "what was lost was not delivered: {data} of {sent} − {lost}");
    }
}

#[test]
fn round_trips_of_a_group_go_up_in_steps() {
    let records = run(&bulk(
        "duration = \"5 s\"",
        "rate = \"10 Mbit/s\"\ndelay = \"5 ms\"",
        "rtt = \"25 ms\"\nrtt_step = \"30 ms\"\ncount = 4",
    ));
    assert_eq!(column(&records.flows, "rtt_base_us"), [25e3, 55e3, 85e3, 115e3]);
}

#[test]
fn acks_served_first_do_not_wait_behind_data_of_the_other_direction() {
    let with = |dumbbell: &str| {
        let records = run(&format!(
            r#"
            [run]
            duration = "20 s"
            [dumbbell]
            rate = "10 Mbit/s"
            reverse_queue = {{ kind = "fifo", limit = "1 BDP" }}
            {dumbbell}
            [flow.there]
            rtt = "40 ms"
            endpoint = {{ receive_window = "8 kB" }}
            [flow.back]
            rtt = "40 ms"
            direction = "reverse"
            "#
        ));
        at(&records.flows, 0, "rtt_mean_us") / 1e3
    };
    // ACKs wait behind a BDP of data; those served first only behind the packet on the line.
    let (behind, first) = (with(""), with("acks_first = true"));
    assert!(first < behind - 20.0 && first > 40.0, "{first} ms, behind data {behind} ms");
}

#[test]
fn nothing_passes_a_link_that_loses_all() {
    let records = run(&bulk(
        "duration = \"200 s\"",
        "rate = \"10 Mbit/s\"\nloss = 1.0",
        "rtt = \"20 ms\"\nendpoint = { syn_retries = 3 }",
    ));
    assert_eq!(at(&records.flows, 0, "bytes_received"), 0.0);
    assert_eq!(at(&records.links, BOTTLENECK, "delivered_total_pkts"), 0.0);
    // A SYN and three retries.
    assert_eq!(at(&records.links, BOTTLENECK, "dropped_total_pkts"), 4.0);
}

#[test]
fn packets_held_back_longer_than_three_others_look_lost_and_others_do_not() {
    // A packet takes 1.2 ms: one or two packets pass another that is held back for 2 ms, more than
    // three pass one held back for 20 ms.
    let retransmissions = |delay: &str| {
        let records = run(&bulk(
            "duration = \"60 s\"\nsample = \"none\"",
            &format!("rate = \"10 Mbit/s\"\nreorder = 0.01\nreorder_delay = \"{delay}\""),
            "rtt = \"50 ms\"\nendpoint = { max_window = \"80 kB\", ack_every = 1 }",
        ));
        assert_eq!(at(&records.links, BOTTLENECK, "dropped_total_pkts"), 0.0);
        let delivered = at(&records.links, BOTTLENECK, "delivered_data_pkts");
        (at(&records.flows, 0, "retrans"), delivered)
    };
    let (few, sent) = retransmissions("2 ms");
    assert!(sent > 10_000.0);
    assert_eq!(few, 0.0);
    assert!(retransmissions("20 ms").0 > 0.0);
}

#[test]
fn jitter_delays_packets_and_keeps_their_order() {
    let records = run(&bulk(
        "duration = \"60 s\"\nsample = \"none\"",
        "rate = \"10 Mbit/s\"\njitter = \"30 ms\"",
        "rtt = \"50 ms\"\nendpoint = { max_window = \"40 kB\", ack_every = 1, clock = \"1 us\" }",
    ));
    // A packet that three others pass would be retransmitted.
    assert_eq!(at(&records.flows, 0, "retrans"), 0.0);
    let (min, p99) = (at(&records.flows, 0, "rtt_min_us"), at(&records.flows, 0, "rtt_p99_us"));
    assert!((51_200.0..56_000.0).contains(&min), "{min}");
    // 50 ms, 30 ms of jitter, and up to a window of 27 packets that queue behind each other.
    assert!((75_000.0..51_200.0 + 30_000.0 + 27.0 * 1200.0).contains(&p99), "{p99}");
}

#[test]
fn jitter_of_any_distribution_keeps_the_order_whether_it_hangs_together_or_not() {
    for correlation in ["0 ms", "5 ms", "200 ms"] {
        let records = run(&bulk(
            "duration = \"60 s\"\nsample = \"none\"",
            &format!(
                "rate = \"10 Mbit/s\"\njitter = \"lognormal(14 ms, 0.8)\"\n\
                 jitter_correlation = \"{correlation}\""
            ),
            "rtt = \"50 ms\"\nendpoint = { max_window = \"40 kB\", ack_every = 1 }",
        ));
        assert!(at(&records.flows, 0, "segments_sent") > 9_000.0);
        assert_eq!(at(&records.flows, 0, "retrans"), 0.0, "{correlation}");
    }
}

#[test]
fn the_round_trip_of_packets_that_go_one_by_one_is_longer_by_the_mean_of_the_jitter() {
    // With a window of one segment no packet is ahead that it must not pass. The mean is 9 ms ·
    // exp(0.8² / 2).
    let jitter = 9.0 * f64::exp(0.32);
    for (more, noise) in [
        ("jitter = \"lognormal(9 ms, 0.8)\"", jitter),
        ("jitter = \"lognormal(9 ms, 0.8)\"\njitter_correlation = \"30 ms\"", jitter),
        ("jitter = \"exponential(7 ms)\"\njitter_correlation = \"10 ms\"", 7.0),
        ("jitter = \"30 ms\"\njitter_correlation = \"30 ms\"", 15.0),
    ] {
        let records = run(&bulk(
            "duration = \"1000 s\"\nsample = \"none\"",
            &format!("rate = \"10 Mbit/s\"\n{more}"),
            "rtt = \"50 ms\"\n\
             endpoint = { max_window = \"1448 B\", ack_every = 1, clock = \"1 us\" }",
        ));
        // A packet of 1500 B takes 1.2 ms.
        let expected = 1000.0 * (50.0 + 1.2 + noise);
        let mean = at(&records.flows, 0, "rtt_mean_us");
        assert!((mean / expected - 1.0).abs() < 0.01, "{more}: {mean} and {expected}");
        let goodput = 1448.0 * 8.0 / (expected / 1e6);
        let found = at(&records.flows, 0, "goodput_bit_s");
        assert!((found / goodput - 1.0).abs() < 0.01, "{more}: {found} and {goodput}");
    }
}

#[test]
fn a_step_changes_the_throughput_at_its_instant() {
    let records = run(&bulk(
        "duration = \"40 s\"\nsample = \"100 ms\"",
        r#"rate = { initial = "10 Mbit/s", steps = [
            { at = "20 s", rate = "4 Mbit/s" }, { at = "30050 ms", rate = "16 Mbit/s" }] }
        queue = { kind = "fifo", limit = "1000 packets" }"#,
        "rtt = \"40 ms\"\nendpoint = { preset = \"ns2\", max_window = \"400 kB\" }",
    ));
    let time = column(&records.link_series, "time_s");
    let sent = column(&records.link_series, "deq");
    let bottleneck: Vec<(f64, f64)> = time.into_iter().zip(sent).step_by(2).collect();
    let mut intervals = 0;
    for pair in bottleneck.windows(2) {
        let [(from, before), (_, after)] = pair else { panic!() };
        let packets = after - before;
        // Packets of 8000 bits in 100 ms on a link that never idles.
        let expected = match from {
            0.0..4.95 => continue,
            4.95..19.95 => 125.0,
            19.95..29.95 => 50.0,
            29.95..30.05 => 25.0 + 100.0,
            _ => 200.0,
        };
        assert!((packets - expected).abs() <= 1.0, "{packets} from {from} s, not {expected}");
        intervals += 1;
    }
    assert!(intervals > 340, "{intervals}");
    let utilisation = at(&records.links, BOTTLENECK, "utilisation");
    assert!((0.98..=1.0).contains(&utilisation), "{utilisation} of the mean rate");
}

#[test]
fn a_trace_of_a_line_each_millisecond_is_12_mbit_s_whatever_the_packets() {
    for (mss, per_second) in [(1500, 1000.0), (750, 2000.0), (3000, 500.0), (500, 3000.0)] {
        let records = run(&bulk(
            "duration = \"20 s\"\nwarmup = \"10 s\"",
            "rate = { trace_ms = [1] }\nqueue = { kind = \"fifo\", limit = \"100 kB\" }",
            &format!(
                "rtt = \"20 ms\"\n\
                 endpoint = {{ preset = \"ns2\", mss = \"{mss} B\", max_window = \"90 kB\" }}"
            ),
        ));
        assert_eq!(at(&records.links, BOTTLENECK, "rate_bit_s"), 12e6);
        let delivered = at(&records.links, BOTTLENECK, "delivered_pkts") / 10.0;
        assert!((delivered - per_second).abs() <= 0.3, "{delivered} packets of {mss} B a second");
        assert_eq!(at(&records.flows, 0, "retrans"), 0.0);
    }
}

#[test]
fn utilisation_of_a_trace_is_of_the_part_that_was_run() {
    // 1000 slots in the first second, then one at the end of a minute: a run of 1 s covers only the
    // fast part.
    let fast: Vec<String> = (1..=1000).map(|ms| ms.to_string()).collect();
    let records = run(&bulk(
        "duration = \"1 s\"\nwarmup = \"500 ms\"",
        &format!(
            "rate = {{ trace_ms = [{}, 60000] }}\n\
             queue = {{ kind = \"fifo\", limit = \"200 kB\" }}",
            fast.join(", ")
        ),
        "rtt = \"20 ms\"\n\
         endpoint = { preset = \"ns2\", mss = \"1500 B\", max_window = \"100 kB\" }",
    ));
    assert_eq!(at(&records.links, BOTTLENECK, "rate_bit_s"), 12e6);
    let utilisation = at(&records.links, BOTTLENECK, "utilisation");
    assert!((0.99..=1.0).contains(&utilisation), "{utilisation}");
}

#[test]
fn fq_codel_keeps_a_sparse_flow_out_of_the_queue_of_a_bulk_flow() {
    let sparse_p99 = |queue: &str| {
        let records = run(&format!(
            r#"
            [run]
            duration = "60 s"
            warmup = "10 s"
            [dumbbell]
            rate = "10 Mbit/s"
            reverse_rate = "none"
            queue = "{queue}"
            [flow.bulk]
            rtt = "50 ms"
            [flow.sparse]
            rtt = "50 ms"
            workload = {{ kind = "on-off", size = "100 B", off = "40 ms" }}
            endpoint = {{ ack_every = 1, clock = "1 us" }}
            "#
        ));
        at(&records.flows, 1, "rtt_p99_us")
    };
    // A new flow waits at most for the packet being sent, and for its own transmission (RFC 8290 §
    // 4.2).
    let packet_us = 1500.0 * 8.0 / 10.0;
    let own_us = 152.0 * 8.0 / 10.0;
    let isolated = sparse_p99("fq-codel");
    // Quantiles are exact to 1/128.
    assert!(isolated <= (50_000.0 + packet_us + own_us) * (1.0 + 1.0 / 128.0), "{isolated}");
    assert!(sparse_p99("fifo") > 80_000.0);
}

#[test]
fn links_without_a_rate_count_what_passes() {
    let records = run(&bulk(
        "duration = \"10 s\"",
        "rate = \"10 Mbit/s\"\nreverse_queue = \"fifo\"",
        "rtt = \"50 ms\"\ndirection = \"reverse\"\n\
         endpoint = { preset = \"ns2\", max_window = \"50 kB\" }",
    ));
    // Data crosses `reverse`, which has no rate here.
    let reverse = 1;
    assert!(at(&records.links, reverse, "utilisation").is_nan());
    let data = at(&records.links, reverse, "delivered_data_pkts");
    assert_eq!(data, at(&records.flows, 0, "segments_sent"));
    assert_eq!(data, at(&records.links, reverse, "delivered_pkts"));
}
