//! BBR version 1, H-TCP and DCTCP in whole scenarios. Sections refer to
//! draft-cardwell-iccrg-bbr-congestion-control-00 for BBR, and to Alizadeh et al. 2010 for DCTCP,
//! whose steady state is that of § 3.3.

use cwnd_tables::Records;

use crate::common::{BOTTLENECK, activity, assert_golden, at, column, run, share_beside};

/// Runs one flow of BBR with the stack of Linux and a buffer given in bandwidth-delay products.
fn bbr_alone(rate: &str, rtt: &str, buffer: f64, run_of: &str) -> Records {
    run(&format!(
        r#"
        [run]
        {run_of}
        [dumbbell]
        rate = "{rate}"
        queue = {{ kind = "fifo", limit = "{buffer} BDP" }}
        [flow.main]
        rtt = "{rtt}"
        controller = {{ kind = "bbr", preset = "linux" }}
        endpoint = {{ preset = "linux" }}
        "#
    ))
}

const STEADY: &str = "duration = \"65 s\"\nwarmup = \"5 s\"\nsample = \"none\"";

fn link(records: &Records, name: &str) -> f64 {
    at(&records.links, BOTTLENECK, name)
}

/// BBR, § 4.3.2.1: 2 / ln 2 is the least gain with which the rate doubles each round trip.
#[test]
fn startup_doubles_what_arrives_in_each_round_trip() {
    let records = bbr_alone(
        "1 Gbit/s",
        "100 ms",
        8.0,
        "duration = \"1.2 s\"\nwarmup = \"0 s\"\nsample = \"100 ms\"",
    );
    let arrived = column(&records.flow_series, "delivered");
    let each: Vec<f64> = arrived.windows(2).map(|two| two[1] - two[0]).collect();
    // Intervals of fewer than twenty segments are left out: whole segments make their ratio
    // inexact.
    let doublings: Vec<f64> = each[2..].windows(2).map(|two| two[1] / two[0]).skip(1).collect();
    assert!(doublings.len() >= 5, "{each:?}");
    assert!(doublings.iter().all(|ratio| (1.85..2.15).contains(ratio)), "{doublings:?}");
}

/// BBR, § 4.3.4.1, 4.3.5: bandwidth probes queue a quarter of a BDP and drain it again. Probes for
/// RTprop take 0.2 s of 10.2 s. Linux paces at 99 % of the estimated bandwidth.
#[test]
fn one_flow_uses_the_link_but_for_its_probes_and_leaves_long_buffers_empty() {
    let mut table = "# One flow, 5 to 65 s, by path and buffer: utilisation, \
                     mean and largest queueing delay in round trips, probes for RTprop, drops.\n\
                     path             buffer  utilisation   mean most probes  drops\n"
        .to_owned();
    for (rate, rtt) in [("10 Mbit/s", "40 ms"), ("50 Mbit/s", "100 ms"), ("200 Mbit/s", "20 ms")] {
        for buffer in [0.25, 1.0, 8.0] {
            let records = bbr_alone(rate, rtt, buffer, STEADY);
            let round_trip = at(&records.flows, 0, "rtt_base_us");
            let [used, drops] =
                ["utilisation", "dropped_total_pkts"].map(|name| link(&records, name));
            let [mean, max] =
                ["qdelay_mean_us", "qdelay_max_us"].map(|name| link(&records, name) / round_trip);
            let probes = activity(&records, "rtt_probes");
            table += &format!(
                "{rate:10} {rtt:6} {buffer:5.2} {used:12.3} {mean:6.3} {max:4.2} {probes:6} \
                 {drops:6}\n"
            );
            assert!((0.955..0.985).contains(&used), "{rate} {rtt}: {used}");
            assert!((5..=6).contains(&probes), "{rate} {rtt}: {probes}");
            assert!(max < 0.45 && mean < 0.25, "{rate} {rtt}: {max}, {mean}");
            let wrong = column(&records.flows, "min_rtt_us")[0] / round_trip;
            assert!((1.0..1.04).contains(&wrong), "{rate} {rtt}: {wrong}");
        }
    }
    assert_golden("bbr.txt", &table);
}

/// BBR, § 4.2.3.2: the bound is two bandwidth-delay products and three quanta.
#[test]
fn no_more_than_two_bandwidth_delay_products_are_in_flight() {
    let records = bbr_alone(
        "50 Mbit/s",
        "100 ms",
        8.0,
        "duration = \"30 s\"\nwarmup = \"5 s\"\nsample = \"10 ms\"",
    );
    let times = column(&records.flow_series, "time_s");
    let windows = column(&records.flow_series, "snd_cwnd_pkts");
    let max = times.iter().zip(windows).filter(|(time, _)| **time > 5.0);
    let max = max.map(|(_, window)| window).fold(0.0, f64::max);
    // Payload: a packet of 1500 B carries 1448 B. RTprop may be that of the handshake, or that of a
    // segment, which is 0.24 ms longer.
    let product = 50e6 / 8.0 * 0.100 * 1448.0 / 1500.0 / 1448.0;
    let quanta = 3.0 * 50e6 / 8.0 * 1e-3 / 1448.0;
    let bound = (2.0 * product + quanta) * 1.01;
    assert!((0.97 * bound..bound * 1.02).contains(&max), "{max}, {bound}");
}

/// BBR: the draft lets an RTT equal to the minimum refresh it. On a path without noise that happens
/// after each bandwidth probe.
#[test]
fn where_an_equal_round_trip_counts_a_path_without_noise_is_seldom_probed() {
    let count = |equal: bool| {
        let records = run(&format!(
            r#"
            [run]
            duration = "65 s"
            warmup = "5 s"
            sample = "none"
            [dumbbell]
            rate = "50 Mbit/s"
            queue = {{ kind = "fifo", limit = "0.25 BDP" }}
            [flow.main]
            rtt = "100 ms"
            controller = {{ kind = "bbr", equal_refreshes = {equal} }}
            "#
        ));
        activity(&records, "rtt_probes")
    };
    assert!(count(true) < 3 && count(false) >= 5);
}

/// BBR; Hock, Bless, Zitterbart 2017; Ware et al. 2019: below two bandwidth-delay products BBR
/// takes nearly all of the goodput; in long buffers its window limits it.
#[test]
fn beside_cubic_bbr_takes_nearly_all_of_short_buffers_and_less_of_long_ones() {
    let mut table = "# Two flows beside two of CUBIC, 20 Mbit/s, 40 ms, 30 to 150 s, \
                     by buffer in BDPs: share of the goodput, drops.\nbuffer share  drops\n"
        .to_owned();
    let mut shares = Vec::new();
    for buffer in [0.25, 0.5, 1.0, 2.0, 4.0, 8.0] {
        let linux =
            |controller| format!("controller = {controller}\nendpoint = {{ preset = \"linux\" }}");
        let bbr = linux(r#"{ kind = "bbr", preset = "linux" }"#);
        let pairs = [("bbr", &*bbr), ("cubic", &*linux(r#""cubic""#))];
        let (share, records) = share_beside(buffer, 5, pairs);
        let drops = link(&records, "dropped_total_pkts");
        table += &format!("{buffer:6.2} {share:5.2} {drops:6}\n");
        shares.push(share);
    }
    assert_golden("bbr-cubic.txt", &table);
    assert!(shares[..3].iter().all(|share| *share > 0.9), "{shares:?}");
    assert!(shares[4..].iter().all(|share| *share < 0.55), "{shares:?}");
}

/// BBR, § 4.3.4.4, 4.3.5: an idle period replaces a probe for RTprop, and sending resumes at the
/// estimated bandwidth.
#[test]
fn requests_with_pauses_are_answered_at_the_bandwidth_that_was_found() {
    let records = run(r#"
        [run]
        duration = "60 s"
        warmup = "0 s"
        sample = "none"
        [dumbbell]
        rate = "20 Mbit/s"
        queue = { kind = "fifo", limit = "4 BDP" }
        [flow.main]
        rtt = "40 ms"
        controller = { kind = "bbr", preset = "linux" }
        workload = { kind = "on-off", size = "500 kB", off = "1 s" }
        endpoint = { preset = "linux" }
        "#);
    // RTprop expires within a transfer now and then.
    assert!(activity(&records, "rtt_probes") <= 3);
    assert_eq!(link(&records, "dropped_total_pkts"), 0.0);
    // Lower bound: the transfer at link rate, and a round trip.
    let min = 500e3 * 8.0 * 1500.0 / 1448.0 / 20e6 + 0.040;
    let took = 500e3 * 8.0 / at(&records.flows, 0, "goodput_bit_s") - 1.0;
    assert!((min..1.15 * min).contains(&took), "{took} s, {min} s");
}

/// Returns H-TCP's window in segments after each millisecond from the first ACK on. It solves dw/dt
/// = α w(t − R) / (w R), since each ACK of the window one round trip earlier adds α / w. With β =
/// 1/2, α is 1 up to Δ = 1 s, then 1 + 10 (Δ − 1 s) + ((Δ − 1 s) / 2)². Steps are a millisecond,
/// evaluated at their midpoints.
fn window_of_the_equation(milliseconds: usize, first: f64, round_trip: usize) -> Vec<f64> {
    let mut windows = vec![first; round_trip + 1];
    let before = windows.len() - 1;
    for step in 0..milliseconds {
        let beyond = ((step as f64 + 0.5) / 1000.0 - 1.0).max(0.0);
        let alpha = 1.0 + 10.0 * beyond + beyond * beyond / 4.0;
        let now = windows[before + step];
        let acked =
            (windows[before + step - round_trip] + windows[before + step + 1 - round_trip]) / 2.0;
        let half = now + alpha * acked / now / round_trip as f64 / 2.0;
        windows.push(now + alpha * acked / half / round_trip as f64);
    }
    windows.split_off(before)
}

#[test]
fn the_window_grows_as_the_equation_says() {
    let records = run(r#"
        [run]
        duration = "10.2 s"
        sample = "100 ms"
        [dumbbell]
        rate = "1 Gbit/s"
        edge_rate = "10 Gbit/s"
        [flow.main]
        rtt = "100 ms"
        controller = "htcp"
        endpoint.ack_every = 1
        endpoint.clock = "1 us"
        endpoint.initial_ssthresh = "14480 B"
        endpoint.receive_window = "1 GB"
        "#);
    let windows = column(&records.flow_series, "snd_cwnd_pkts");
    let times = column(&records.flow_series, "time_s");
    let due = window_of_the_equation(10_000, 10.0, 100);
    let mut compared = 0;
    for (time, window) in times.iter().zip(&windows) {
        // One round trip for the handshake, one until the first ACK.
        let t = time - 0.2;
        if t < 0.5 {
            continue;
        }
        // ACKs of a window arrive as a burst: the growth of a round trip in the equation comes at
        // once.
        let now = (1000.0 * t).round() as usize;
        let (min, max) = (0.97 * due[now - 100], 1.03 * due[now]);
        assert!((min..=max).contains(window), "{time} s: {window}, not {min} to {max}");
        compared += 1;
    }
    assert!(compared > 90, "{compared}");
}

/// H-TCP: β = minRTT / maxRTT empties the queue and keeps the link busy, for any buffer from a
/// quarter of the path's capacity to all of it.
#[test]
fn a_backoff_empties_the_queue_and_leaves_the_link_busy() {
    let mut table = "# One flow, 20 Mbit/s, 100 ms, 60 to 180 s, \
                     by the buffer in parts of what the path holds; delays in ms.\n\
                     controller             buffer utilisation   mean   peak drops reductions\n"
        .to_owned();
    for (name, controller) in [
        ("newreno", r#""newreno""#),
        ("htcp", r#""htcp""#),
        ("htcp linux", r#"{ kind = "htcp", preset = "linux" }"#),
        ("htcp adaptive-backoff", r#"{ kind = "htcp", preset = "adaptive-backoff" }"#),
    ] {
        for buffer in [0.1, 0.25, 0.5, 1.0, 2.0] {
            let records = run(&format!(
                r#"
                [run]
                duration = "180 s"
                warmup = "60 s"
                sample = "none"
                [dumbbell]
                rate = "20 Mbit/s"
                queue = {{ kind = "fifo", limit = "{buffer} BDP" }}
                [flow.main]
                rtt = "100 ms"
                controller = {controller}
                endpoint = {{ ack_every = 1, clock = "1 us" }}
                "#
            ));
            let utilisation = link(&records, "utilisation");
            if name == "htcp" && (0.25..=1.0).contains(&buffer) {
                assert!(utilisation > 0.99, "{buffer}: {utilisation}");
            }
            table += &format!(
                "{name:22} {buffer:6} {utilisation:11.3} {:6.1} {:6.1} {:5} {:10}\n",
                link(&records, "qdelay_mean_us") / 1e3,
                link(&records, "qdelay_max_us") / 1e3,
                link(&records, "dropped_pkts"),
                at(&records.flows, 0, "cwnd_reductions_loss"),
            );
        }
    }
    assert_golden("htcp.txt", &table);
}

/// Rate of DCTCP's bottleneck, packets of 1500 B per second at 10 Gbit/s.
const RATE: f64 = 10e9 / 8.0 / 1500.0;
/// Length of the measured interval, s.
const LOOKED_AT: f64 = 0.15;

/// Writes flows of DCTCP over 10 Gbit/s with an ACK for each packet, as in the model.
fn text(flows: u32, rtt_us: u32, threshold: u32, controller: &str) -> String {
    format!(
        r#"
        [run]
        duration = "250 ms"
        warmup = "100 ms"
        sample = "10 us"
        [dumbbell]
        rate = "10 Gbit/s"
        queue = {{ kind = "fifo", limit = "4 MB" }}
        meter = {{ kind = "step", threshold = "{threshold} packets" }}
        [flow.main]
        rtt = "{rtt_us} us"
        count = {flows}
        controller = {controller}
        endpoint.ecn = true
        endpoint.echo = "changes"
        endpoint.ack_every = 1
        endpoint.clock = "1 us"
        endpoint.rto_min = "5 ms"
        endpoint.receive_window = "8 MB"
        "#
    )
}

/// Steady state of DCTCP with N synchronized flows. A window grows by a packet a round trip until
/// the queue exceeds K; the data of the next round trip is then marked, and the window falls by α /
/// 2 of itself.
struct Steady {
    /// Fraction of marked data, α.
    alpha: f64,
    /// D: amplitude of one window in packets (eq. 7), and period in round trips (eq. 9).
    swing: f64,
    /// Amplitude N·D of the queue in packets (eq. 8); `queue_most` is its maximum, K + N (eq. 10).
    queue_swing: f64,
    queue_most: f64,
}

impl Steady {
    fn of(flows: u32, rtt_us: u32, threshold: u32) -> Self {
        let (flows, threshold) = (f64::from(flows), f64::from(threshold));
        // W*: window of one flow at which the queue reaches K.
        let critical = (RATE * f64::from(rtt_us) * 1e-6 + threshold) / flows;
        // Eq. 6 before its simplification: α² (1 − α / 4) = (2 W* + 1) / (W* + 1)².
        let right = (2.0 * critical + 1.0) / (critical + 1.0).powi(2);
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..60 {
            let alpha: f64 = (low + high) / 2.0;
            if alpha * alpha * (1.0 - alpha / 4.0) < right { low = alpha } else { high = alpha }
        }
        let swing = (critical + 1.0) * low / 2.0;
        Self { alpha: low, swing, queue_swing: flows * swing, queue_most: threshold + flows }
    }
}

/// Returns the bottleneck's queue in packets over time, from the end of the warm-up on.
fn queue(records: &Records) -> Vec<f64> {
    let (times, links) =
        (column(&records.link_series, "time_s"), column(&records.link_series, "link_id"));
    let waits = column(&records.link_series, "qlen_pkts");
    let rows = times.iter().zip(&links).zip(&waits);
    rows.filter(|((time, link), _)| **time >= 0.1 && **link == BOTTLENECK as f64)
        .map(|(_, q)| *q)
        .collect()
}

#[test]
fn the_queue_swings_below_the_threshold_as_the_model_says() {
    let mut table = "# Flows over 10 Gbit/s, by RTT and K in packets, 100 to 250 ms: simulated, \
                     and by Alizadeh et al. 2010, § 3.3.\n\
                     flows   RTT    K utilisation  queue: least  most      swing  reductions, \
                     round trips apart        marked\n"
        .to_owned();
    for (flows, rtt, threshold) in
        [(1, 100, 40), (2, 100, 40), (1, 100, 65), (1, 200, 40), (1, 300, 80), (10, 100, 40)]
    {
        let records = run(&text(flows, rtt, threshold, "\"dctcp\""));
        let due = Steady::of(flows, rtt, threshold);
        let waits = queue(&records);
        let min = waits.iter().copied().fold(f64::INFINITY, f64::min);
        let max = waits.iter().copied().fold(0.0, f64::max);
        let sum = |name: &str| column(&records.flows, name).iter().sum::<f64>() / f64::from(flows);
        let apart = LOOKED_AT * 1e6 / sum("rtt_mean_us") / sum("cwnd_reductions_ecn");
        let marked = link(&records, "mark_ratio");
        let utilisation = link(&records, "utilisation");
        assert!(utilisation > 0.999 && link(&records, "dropped_pkts") == 0.0, "{utilisation}");
        table += &format!(
            "{flows:5} {rtt:5} {threshold:4} {utilisation:11.3} {min:14.0} {max:5.0} ({:3.0}) \
             {:5.0} ({:4.1}) {apart:20.1} ({:4.1}) {marked:19.3} ({:.3})\n",
            due.queue_most,
            max - min,
            due.queue_swing,
            due.swing,
            due.alpha,
        );
        if flows <= 2 {
            // The packet being sent is not in the queue, and sampled windows are whole packets.
            assert!((max - due.queue_most).abs() <= 1.0, "{flows} {rtt} {threshold}: {max}");
            assert!(
                (max - min - due.queue_swing).abs() <= 2.0,
                "{flows} {rtt} {threshold}: {min} to {max}"
            );
            // A cycle is a whole number of round trips, and the response to the mark that ends it
            // comes in the next one.
            assert!((apart - due.swing).abs() <= 1.5, "{flows} {rtt} {threshold}: {apart}");
            assert!((marked - due.alpha).abs() <= 0.02, "{flows} {rtt} {threshold}: {marked}");
        }
    }
    assert_golden("dctcp.txt", &table);
}

/// DCTCP, eq. 13: one flow keeps the link busy if K is above a seventh of the path's capacity. At a
/// hundredth of it, the link is still busy for more than 90 % of the time.
#[test]
fn a_threshold_of_a_seventh_of_the_path_keeps_the_line_busy() {
    let used = |parts_of_100: u32, controller: &str| {
        // The path holds 167 packets.
        link(&run(&text(1, 200, 167 * parts_of_100 / 100, controller)), "utilisation")
    };
    assert!(used(17, "\"dctcp\"") > 0.999);
    assert!(used(15, "\"dctcp\"") > 0.999);
    let short = used(1, "\"dctcp\"");
    assert!((0.9..0.995).contains(&short), "{short}");
    // A flow that halves its window needs K to be all of the path's capacity.
    let halves = used(17, "{ kind = \"dctcp\", gain = 0.000001 }");
    assert!((0.7..0.95).contains(&halves), "{halves}");
}
