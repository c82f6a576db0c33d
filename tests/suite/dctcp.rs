//! DCTCP in whole scenarios against the steady state of Alizadeh et al. 2010, § 3.3.

use cwnd_tables::Records;

use crate::common::{BOTTLENECK, assert_golden, at, column, run};

/// Rate of the bottleneck, packets of 1500 B per second at 10 Gbit/s.
const RATE: f64 = 10e9 / 8.0 / 1500.0;
/// Length of the measured interval, s.
const LOOKED_AT: f64 = 0.15;

fn link(records: &Records, name: &str) -> f64 {
    at(&records.links, BOTTLENECK, name)
}

/// Writes flows over 10 Gbit/s with an ACK for each packet, as in the model.
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

/// Steady state of N synchronized flows. A window grows by a packet a round trip until the queue
/// exceeds K; the data of the next round trip is then marked, and the window falls by α / 2 of
/// itself.
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

/// Eq. 13: one flow keeps the link busy if K is above a seventh of the path's capacity. At a
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
