//! Simulated results against closed forms.

use crate::common::{BOTTLENECK, at, column, run};

/// Rate of the bottleneck, packets of 1000 B per second.
const RATE: f64 = 1250.0;
/// Propagation round-trip time, s.
const RTT: f64 = 0.1;

/// Writes one NewReno flow over a FIFO with the endpoint of ns-2: packets of 1000 B without
/// headers, an ACK for each.
fn saw_tooth(beta: f64, buffer: f64, seconds: u32) -> String {
    format!(
        r#"
        [run]
        duration = "{seconds} s"
        warmup = "20 s"
        sample = "none"
        [dumbbell]
        rate = "10 Mbit/s"
        reverse_rate = "none"
        queue = {{ kind = "fifo", limit = "{buffer} BDP" }}
        [flow.main]
        rtt = "100 ms"
        controller = {{ kind = "newreno", beta = {beta} }}
        endpoint = {{ preset = "ns2", initial_ssthresh = "10 kB" }}
        "#
    )
}

/// Returns the utilisation of a link by one flow whose window is a regular saw-tooth, in the fluid
/// limit.
///
/// Let T be the round-trip time without queueing, δ = C·T, b the buffer. The window grows by one
/// packet each round trip until it fills path and buffer, W = δ + b, and then falls to βW. Over one
/// tooth:
/// - While w < δ the queue is empty: a round trip takes T and carries w packets. From βW to δ that
///   takes (δ − βW)·T and carries ∫w dw = (δ² − β²W²)/2 packets.
/// - From δ on the link is busy; from δ to W it carries (W² − δ²)/2 packets, in as many packet
///   times.
///
/// So U = ((W² − β²W²)/2) / (δ(δ − βW) + (W² − δ²)/2) if βW < δ, and 1 otherwise: ABE § II eq. (2).
fn utilisation(beta: f64, delta: f64, buffer: f64) -> f64 {
    let top = delta + buffer;
    let bottom = beta * top;
    if bottom >= delta {
        return 1.0;
    }
    let carried = (top * top - bottom * bottom) / 2.0;
    let packet_times = delta * (delta - bottom) + (top * top - delta * delta) / 2.0;
    carried / packet_times
}

#[test]
fn utilisation_against_buffer_and_beta_is_that_of_the_saw_tooth() {
    for buffer in [0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5] {
        for beta in [0.5, 0.6, 0.7, 0.8, 0.9, 0.95] {
            let records = run(&saw_tooth(beta, buffer, 220));
            let found = at(&records.links, BOTTLENECK, "utilisation");
            // The packet being sent is neither in the buffer nor propagating, so the path holds one
            // more.
            let delta = RATE * RTT + 1.0;
            let expected = utilisation(beta, delta, (buffer * RATE * RTT).floor());
            assert!(
                (found - expected).abs() < 0.02,
                "b = {buffer} δ, β = {beta}: utilisation {found:.4}, \
                 by the closed form {expected:.4}"
            );
            // The fluid limit omits about a round trip of each tooth, at βW, where the window is
            // still above δ.
            if beta * (delta + buffer * RATE * RTT) > delta + 3.0 {
                assert!(found > 0.999, "b = {buffer} δ, β = {beta}: {found} where eq. (2) says 1");
            }
        }
    }
}

#[test]
fn a_slow_start_that_overshoots_leads_to_the_same_saw_tooth() {
    // The overshoot loses many packets at once, and a recovery that repairs one per round trip ends
    // in timeouts. These reduce the window relative to the data in flight, not to all data sent
    // since.
    for beta in [0.5, 0.7, 0.8, 0.9] {
        let text = saw_tooth(beta, 0.1, 220).replace("\"10 kB\"", "\"60 kB\"");
        let records = run(&text);
        let found = at(&records.links, BOTTLENECK, "utilisation");
        let expected = utilisation(beta, RATE * RTT + 1.0, 12.0);
        assert!((found - expected).abs() < 0.02, "β = {beta}: {found:.4}, not {expected:.4}");
    }
}

#[test]
fn a_stream_of_packets_takes_exactly_its_bits_over_the_rate() {
    // The transmission time of each packet is rounded to nanoseconds, that of the stream must not
    // be; these sizes and rates do not divide evenly.
    let (packets, wire) = (2000_u64, 1499_u64);
    for rate in [
        10_000_u64,
        56_000,
        9_999_999,
        1_000_000_007,
        3_000_000_000,
        100_000_000_000,
        400_000_000_000,
    ] {
        let ns = u128::from(packets * wire * 8) * 1_000_000_000 / u128::from(rate);
        let records = run(&format!(
            r#"
            [run]
            duration = "{} ns"
            sample = "none"
            [dumbbell]
            rate = "{rate} bit/s"
            reverse_rate = "none"
            queue = {{ kind = "fifo", limit = "{packets} packets" }}
            [flow.main]
            rtt = "20 ms"
            workload = {{ kind = "bytes", size = "{} B" }}
            endpoint.preset = "ns2"
            endpoint.mss = "1447 B"
            endpoint.header = "52 B"
            endpoint.initial_window = {packets}
            "#,
            ns + 1_000_000_000,
            packets * 1447,
        ));
        let fct_ns = (at(&records.flows, 0, "fct_s") * 1e9).round() as u128;
        assert_eq!(fct_ns, ns + 10_000_000, "at {rate} bit/s");
        assert_eq!(at(&records.flows, 0, "segments_sent"), packets as f64);
    }
}

#[test]
fn a_packet_takes_the_sum_of_its_transmissions_and_of_the_delays_on_its_way() {
    let records = run(r#"
        [run]
        duration = "1 s"
        [link.first]
        from = "a"
        to = "b"
        rate = "8 Mbit/s"
        delay = "3 ms"
        [link.second]
        from = "b"
        to = "c"
        rate = "2 Mbit/s"
        delay = "5 ms"
        [link.back]
        from = "c"
        to = "a"
        rate = "1 Mbit/s"
        delay = "11 ms"
        [flow.main]
        from = "a"
        to = "c"
        edge_rtt = "7 ms"
        edge_rate = "4 Mbit/s"
        workload = { kind = "bytes", size = "1000 B" }
        endpoint = { preset = "ns2", ack_size = "50 B", clock = "1 ns" }
    "#);
    // 8000 bits at 4, 8 and 2 Mbit/s, 3 + 5 ms of links, and half of 7 ms at the hosts.
    let there_us = 2000.0 + 1000.0 + 4000.0 + 8000.0 + 3500.0;
    // 400 bits at 4 and 1 Mbit/s, 11 ms of links, and the other half.
    let back_us = 100.0 + 400.0 + 11_000.0 + 3500.0;
    assert_eq!((at(&records.flows, 0, "fct_s") * 1e9).round(), there_us * 1e3);
    assert_eq!(at(&records.flows, 0, "rtt_min_us"), there_us + back_us);
    assert_eq!(at(&records.flows, 0, "rtt_base_us"), 26_000.0);
}

#[test]
fn a_window_that_fits_the_path_gives_window_over_round_trip_time() {
    // 20 packets of 1000 B each 100 ms, where 125 would fit: no queue, no loss, throughput W/RTT.
    let records = run(r#"
        [run]
        duration = "60 s"
        warmup = "10 s"
        [dumbbell]
        rate = "10 Mbit/s"
        reverse_rate = "none"
        [flow.main]
        rtt = "100 ms"
        endpoint = { preset = "ns2", max_window = "20 kB" }
    "#);
    // The round trip consists of propagation and the packet's own transmission, 0.8 ms.
    let expected = 20.0 * 8000.0 / 0.1008;
    let found = at(&records.flows, 0, "goodput_bit_s");
    // 50 s are not a whole number of round trips: the tolerance is one window.
    assert!((found - expected).abs() <= 20.0 * 8000.0 / 50.0, "{found} instead of {expected}");
    assert_eq!(at(&records.links, BOTTLENECK, "dropped_total_pkts"), 0.0);
}

#[test]
fn throughput_under_random_loss_is_that_of_the_inverse_square_root() {
    // Mathis, Semke, Mahdavi, Ott 1997, eq. 3 and table 1: rate = C · MSS / (RTT · √p). C = 1.31
    // holds for random losses and a window that grows by a segment each round trip, as byte
    // counting gives with or without delayed ACKs.
    const C: f64 = 1.31;
    for ack_every in [1, 2] {
        for loss in [0.0005, 0.001, 0.002] {
            let records = run(&format!(
                r#"
                [run]
                duration = "1020 s"
                warmup = "20 s"
                sample = "none"
                [link.there]
                from = "a"
                to = "b"
                rate = "none"
                delay = "50 ms"
                loss = {loss}
                [link.back]
                from = "b"
                to = "a"
                rate = "none"
                delay = "50 ms"
                [flow.main]
                from = "a"
                to = "b"
                count = 5
                endpoint = {{ mss = "1000 B", ack_every = {ack_every}, rto_min = "200 ms" }}
                "#
            ));
            let found = column(&records.flows, "goodput_bit_s").iter().sum::<f64>() / 5.0;
            let expected = C * 8000.0 / (0.1 * f64::sqrt(loss));
            // The model omits the round trips until a loss is detected and repaired: about two for
            // each 1/p packets, which take √(1/p)/C round trips.
            let rounds = 1.0 / (f64::sqrt(loss) * C);
            let part = found / expected;
            assert!(
                (rounds / (rounds + 2.0)..1.01).contains(&part),
                "p = {loss}, an ACK for each {ack_every}: {found:.0} bit/s, {part:.3} of the model"
            );
        }
    }
}
