//! Delay-based AIMD and adaptive backoff in whole scenarios, against closed forms. Sections and
//! equations without a document refer to McCullagh, *Exploring Delay-Based TCP Congestion Control*,
//! 2008.

use cwnd_tables::Records;

use crate::common::{BOTTLENECK, activity, assert_golden, at, column, jain, run};

/// Size of a packet on the wire, bytes.
const PACKET: f64 = 1500.0;

fn link(records: &Records, name: &str) -> f64 {
    at(&records.links, BOTTLENECK, name)
}

fn sum(records: &Records, name: &str) -> f64 {
    column(&records.flows, name).iter().sum()
}

/// Fig. 2.5: 50 Mbit/s, 120 ms, 400 packets, τ0 20 ms. The queueing delay oscillates between 0 and
/// slightly more than τ0, without loss. A backoff leaves δ · B · minRTT (§ 4.3), 0.8 · 500 packets.
#[test]
fn one_flow_goes_up_and_down_between_an_empty_queue_and_the_threshold() {
    let records = run(r#"
        [run]
        duration = "120 s"
        warmup = "20 s"
        sample = "10 ms"
        [dumbbell]
        rate = "50 Mbit/s"
        queue = { kind = "fifo", limit = "400 packets" }
        [flow.main]
        rtt = "120 ms"
        controller = { kind = "delay-aimd", threshold = "20 ms", slow_start = "hystart++" }
        endpoint = { ack_every = 1, clock = "1 us" }
        "#);
    assert_eq!(link(&records, "dropped_total_pkts"), 0.0);
    let packet_ms = PACKET * 8.0 / 50e3;
    let max = link(&records, "qdelay_max_us") / 1e3;
    // The least RTT is that of the SYN, whose transmission is shorter than a packet's. The flow
    // learns of an excess delay a round trip later; one more segment has been added then, and
    // another one while the ACK was on its way.
    assert!((20.0 - packet_ms..20.0 + 3.0 * packet_ms).contains(&max), "{max} ms");
    let empty = column(&records.link_series, "qlen_pkts").into_iter().skip(2000).any(|n| n == 0.0);
    assert!(empty, "each backoff empties the queue");
    let reductions = at(&records.flows, 0, "cwnd_reductions_delay");
    assert!(reductions >= 3.0, "{reductions}");
    assert_eq!(at(&records.flows, 0, "cwnd_reductions_loss"), 0.0);
    let windows: Vec<f64> = column(&records.flow_series, "snd_cwnd_pkts")
        .into_iter()
        .zip(column(&records.flow_series, "time_s"))
        .filter_map(|(window, time)| (time > 20.0).then_some(window))
        .collect();
    let min = windows.iter().copied().fold(f64::INFINITY, f64::min);
    // B · minRTT in segments.
    let bdp = at(&records.flows, 0, "min_rtt_us") / 1e3 / packet_ms;
    assert!((min / (0.8 * bdp) - 1.0).abs() < 0.01, "{min} of {bdp}");
}

/// Eq. 3.7: if each backoff brings the queue below q0, the queue never exceeds q0 + Σ max(α, 1)
/// packets; otherwise eq. 3.8 holds.
#[test]
fn the_queue_of_many_flows_keeps_to_its_bound() {
    for (flows, rtt) in [
        (1, "100 ms"),
        (4, "100 ms"),
        (16, "100 ms"),
        (48, "100 ms"),
        (32, "uniform(20 ms, 200 ms)"),
    ] {
        let records = run(&format!(
            r#"
            [run]
            duration = "120 s"
            warmup = "40 s"
            sample = "none"
            [dumbbell]
            rate = "10 Mbit/s"
            queue = {{ kind = "fifo", limit = "2000 packets" }}
            [flow.main]
            rtt = "{rtt}"
            count = {flows}
            start = "uniform(0 s, 5 s)"
            controller = "delay-aimd"
            endpoint = {{ ack_every = 1, clock = "1 us" }}
            "#
        ));
        assert_eq!(link(&records, "dropped_total_pkts"), 0.0, "{flows}");
        let max = link(&records, "qdelay_max_us") / 1e3;
        let bound = 50.0 + (f64::from(flows) + 1.0) * PACKET * 8.0 / 10e3;
        // Eq. 3.8, for flows with different round trips: some still grow while others back off, and
        // the queue stays above q0. β is at most δ.
        let bound = if rtt.starts_with("uniform") { 50.0 + (bound - 50.0) / 0.2 } else { bound };
        assert!(max <= bound, "{flows} flows, {rtt}: {max} of {bound} ms");
        assert!(max > 50.0 - PACKET * 8.0 / 10e3, "{flows} flows, {rtt}: {max} ms");
        assert!(sum(&records, "cwnd_reductions_delay") >= f64::from(flows), "{flows}");
    }
}

/// § 3.4.5: a window of one segment would stay there for ever if the receiver delays its ACK by τ0
/// or more.
#[test]
fn a_flow_whose_acks_are_delayed_fills_an_empty_line() {
    for (stack, rate, rtt, flows) in [
        ("rfc6675", "10 Mbit/s", "100 ms", 1),
        ("rfc6675", "1 Mbit/s", "200 ms", 1),
        ("rfc", "10 Mbit/s", "100 ms", 1),
        ("rfc", "1 Mbit/s", "200 ms", 1),
        ("linux", "1 Mbit/s", "200 ms", 1),
        ("freebsd", "1 Mbit/s", "200 ms", 4),
    ] {
        let records = run(&format!(
            r#"
            schema = 2
            [run]
            duration = "60 s"
            warmup = "20 s"
            sample = "none"
            noise = "none"
            [dumbbell]
            rate = "{rate}"
            [flow.main]
            rtt = "{rtt}"
            count = {flows}
            controller = {{ kind = "delay-aimd", preset = "thesis" }}
            endpoint = {{ preset = "{stack}" }}
            "#
        ));
        let used = link(&records, "utilisation");
        assert!(used > 0.8, "{stack}, {rate}, {rtt}, {flows} flows: {used}");
    }
}

/// Fig. 3.5 (a), 3.6 (a) and 3.7: from B (baseRTT + τ0) flows on, B in packets, all have one
/// segment; each further flow adds the transmission of a packet to the delay.
#[test]
fn peak_and_mean_delay_by_the_number_of_flows() {
    let mut table =
        "# Delay-based AIMD, 10 Mbit/s, 100 ms, tau0 50 ms, 40 to 120 s; delays in ms, \
         bound of eq. 3.7; share of\n\
         # windows below two segments, and the worst error of minRTT in ms at the \
         end.\npacket flows   mean   peak  bound utilisation drops jain below2  error\n"
            .to_owned();
    for (mss, sizes) in
        [(1448, [1, 16, 64, 112, 128, 160, 192]), (460, [1, 48, 192, 320, 384, 480, 560])]
    {
        for flows in sizes {
            let records = run(&format!(
                r#"
                [run]
                duration = "120 s"
                warmup = "40 s"
                sample = "10 s"
                [dumbbell]
                rate = "10 Mbit/s"
                queue = {{ kind = "fifo", limit = "4000 packets" }}
                [flow.main]
                rtt = "100 ms"
                count = {flows}
                start = "uniform(0 s, 10 s)"
                controller = "delay-aimd"
                endpoint = {{ ack_every = 1, clock = "1 us", mss = "{mss} B", initial_window = 2 }}
                "#
            ));
            let goodputs = column(&records.flows, "goodput_bit_s");
            let jain = jain(&goodputs);
            let windows: Vec<f64> = column(&records.flow_series, "time_s")
                .into_iter()
                .zip(column(&records.flow_series, "snd_cwnd_pkts"))
                .filter_map(|(time, window)| (time > 40.0).then_some(window))
                .collect();
            let packet_ms = f64::from(mss + 52) * 8.0 / 10e3;
            let base = column(&records.flows, "rtt_base_us");
            let found = column(&records.flows, "min_rtt_us");
            let errors = found.iter().zip(&base).map(|(found, base)| (found - base) / 1e3);
            let error = errors.fold(0.0, f64::max);
            table += &format!(
                "{:6} {flows:5} {:6.1} {:6.1} {:6.1} {:11.3} {:5} {jain:.2} {:6.2} {error:6.1}\n",
                mss + 52,
                link(&records, "qdelay_mean_us") / 1e3,
                link(&records, "qdelay_max_us") / 1e3,
                50.0 + f64::from(flows) * packet_ms,
                link(&records, "utilisation"),
                link(&records, "dropped_total_pkts"),
                windows.iter().filter(|&&window| window < 2.0).count() as f64
                    / windows.len() as f64,
            );
        }
    }
    assert_golden("delay-aimd.txt", &table);
}

/// Windows below one segment (§ 3.4.3) remove the limit of Fig. 3.6: for any number of flows the
/// mean delay stays below 1.5 τ0, no minRTT is more than 4 ms too long, and no flow starves.
#[test]
fn any_number_of_flows_fits_below_one_segment() {
    let mut table =
        "# Delay-based AIMD whose windows may be below one segment, 10 Mbit/s, 100 ms, \
         tau0 50 ms, started within 60 s, 100\n\
         # to 400 s; delays in ms, bound of eq. 3.7, \
         and the worst error of minRTT in ms at the end.\n\
         below_one     flows   mean   peak  bound utilisation timeouts jain  error\n"
            .to_owned();
    for law in ["per-ack", "in-proportion"] {
        for flows in [64, 300, 1000] {
            let records = run(&format!(
                r#"
                [run]
                duration = "400 s"
                warmup = "100 s"
                sample = "none"
                [dumbbell]
                rate = "10 Mbit/s"
                queue = {{ kind = "fifo", limit = "4000 packets" }}
                [flow.main]
                rtt = "100 ms"
                count = {flows}
                start = "uniform(0 s, 60 s)"
                controller = {{ kind = "delay-aimd", below_one = "{law}" }}
                endpoint = {{ ack_every = 1, clock = "1 us", initial_window = 2 }}
                "#
            ));
            let goodputs = column(&records.flows, "goodput_bit_s");
            let jain = jain(&goodputs);
            let base = column(&records.flows, "rtt_base_us");
            let found = column(&records.flows, "min_rtt_us");
            let errors = found.iter().zip(&base).map(|(found, base)| (found - base) / 1e3);
            let error = errors.fold(0.0, f64::max);
            let (mean, peak) =
                (link(&records, "qdelay_mean_us") / 1e3, link(&records, "qdelay_max_us") / 1e3);
            let bound = 50.0 + f64::from(flows) * 1.2;
            assert!(mean < 75.0 && peak <= bound, "{law}, {flows}: {mean}, {peak} of {bound} ms");
            assert!(goodputs.iter().all(|&goodput| goodput > 0.0), "{law}, {flows}");
            assert!(activity(&records, "acks_below_one_segment") > 0, "{law}, {flows}");
            table += &format!(
                "{law:13} {flows:5} {mean:6.1} {peak:6.1} {bound:6.1} {:11.3} {:8} {jain:.2} \
                 {error:6.1}\n",
                link(&records, "utilisation"),
                sum(&records, "rto_count"),
            );
        }
    }
    assert_golden("delay-below-one.txt", &table);
}

/// A backoff for delay acts at once even if the endpoint spreads the response to ECN echoes over a
/// round trip (PRR of Linux), as Linux's controllers do. If it were spread, windows of one or two
/// segments would not fall, and packets would queue for 120 ms in the mean.
#[test]
fn a_backoff_for_delay_is_at_once_with_the_endpoint_of_linux() {
    let mean_ms = |without: &str| {
        let records = run(&format!(
            r#"
            [run]
            duration = "60 s"
            warmup = "20 s"
            sample = "none"
            [dumbbell]
            rate = "10 Mbit/s"
            queue = {{ kind = "fifo", limit = "1000 packets" }}
            [flow.main]
            rtt = "100 ms"
            count = 64
            start = "uniform(0 s, 100 ms)"
            controller = {{ kind = "delay-aimd", preset = "linux", least_window = 1 }}
            stack = {{ base = "linux", without = {without} }}
            endpoint = {{ ack_every = 1, initial_window = 3 }}
            "#
        ));
        assert_eq!(sum(&records, "cwnd_reductions_loss"), 0.0);
        link(&records, "qdelay_mean_us") / 1e3
    };
    let (with, without) = (mean_ms("[]"), mean_ms(r#"["prr"]"#));
    assert!(with < 60.0 && (with - without).abs() < 1.0, "{with} {without}");
}

/// Half of a link of 200 Mbit/s and 120 ms becomes free. Reno needs 1000 round trips for the 1000
/// segments. The increase of H-TCP (Leith & Shorten 2004) is α = 1 in the first second after a
/// backoff and α = 1 + 10 t + t² / 4 at t seconds after that: 1000 segments in 6 s.
#[test]
fn with_the_increase_of_htcp_what_becomes_free_is_soon_used() {
    let used = |increase: &str, from: u32| {
        let records = run(&format!(
            r#"
            [run]
            duration = "{} s"
            warmup = "{from} s"
            sample = "none"
            [dumbbell]
            rate = {{ initial = "100 Mbit/s", steps = [{{ at = "60 s", rate = "200 Mbit/s" }}] }}
            reverse_rate = "200 Mbit/s"
            queue = {{ kind = "fifo", limit = "2000 packets" }}
            [flow.main]
            rtt = "120 ms"
            controller.kind = "delay-aimd"
            controller.increase = "{increase}"
            controller.slow_start = "hystart++"
            endpoint = {{ ack_every = 1, clock = "1 us" }}
            "#,
            from + 5,
        ));
        at(&records.flows, 0, "goodput_bit_s") / 1e6
    };
    for from in [70, 80] {
        let (reno, htcp) = (used("reno", from), used("h-tcp", from));
        assert!(reno < 140.0 && htcp > 160.0, "{from} s: {reno}, {htcp} Mbit/s");
    }
}

/// Returns the successive values of a single flow's minRTT estimate.
fn estimates(records: &Records) -> Vec<f64> {
    let mut all = column(&records.flow_series, "min_rtt_us");
    all.retain(|value| !value.is_nan());
    all.dedup();
    all
}

/// § 4.3.1: q_k ≤ δ q_(k−1) − (1 − δ) baseRTT; for one flow minRTT_k = δ minRTT_(k−1), until the
/// queue empties.
#[test]
fn a_wrong_estimate_shrinks_by_delta_with_each_backoff_and_the_smaller_the_sooner() {
    let mut ends = Vec::new();
    for delta in [0.95, 0.9, 0.8] {
        let records = run(&format!(
            r#"
            [run]
            duration = "600 s"
            sample = "100 ms"
            [dumbbell]
            rate = "10 Mbit/s"
            queue = {{ kind = "fifo", limit = "3000 packets" }}
            [flow.main]
            rtt = "200 ms"
            controller = {{ kind = "delay-aimd", delta = {delta}, initial_min_rtt = "1 s" }}
            endpoint = {{ ack_every = 1, clock = "1 us", initial_ssthresh = "20 kB" }}
            "#
        ));
        // The measured RTT includes the transmission of a packet and its ACK.
        let base = at(&records.flows, 0, "rtt_base_us") + 1.25e3;
        let series = estimates(&records);
        let highest = series.iter().copied().fold(0.0, f64::max);
        assert!(highest > base + 40e3, "it was wrong: {highest} of {base}");
        assert!((series[series.len() - 1] / base - 1.0).abs() < 0.001, "{delta}: {series:?}");
        let from = series.iter().position(|&value| value == highest).expect("is there");
        let times = column(&records.flow_series, "time_s");
        let all = column(&records.flow_series, "min_rtt_us");
        let end = all.iter().rposition(|&value| value > base * 1.001).expect("is there");
        ends.push(times[end]);
        // Until the queue empties, each value is δ times the one before; the rest is the packet by
        // which the window grows in a round trip.
        let falls: Vec<f64> = series[from..].to_vec();
        for pair in falls.windows(2).filter(|pair| delta * pair[0] > base * 1.01) {
            assert!((pair[1] / (delta * pair[0]) - 1.0).abs() < 0.01, "{delta}: {falls:?}");
        }
    }
    assert!(ends.is_sorted_by(|a, b| a > b), "{ends:?}");
}

/// Fig. 4.2: 16 Reno flows with adaptive backoff, 125 kB, 20 to 200 ms, all with wrong estimates;
/// each estimate recovers.
#[test]
fn wrong_estimates_of_reno_with_adaptive_backoff_come_back() {
    let records = run(r#"
        [run]
        duration = "300 s"
        sample = "none"
        [dumbbell]
        rate = "10 Mbit/s"
        queue = { kind = "fifo", limit = "125 kB" }
        [flow.main]
        rtt = "uniform(20 ms, 200 ms)"
        count = 16
        start = "uniform(0 s, 20 s)"
        controller = { kind = "newreno", preset = "adaptive-backoff", initial_min_rtt = "1 s" }
        endpoint = { ack_every = 1, clock = "1 us" }
        "#);
    let (found, base) =
        (column(&records.flows, "min_rtt_us"), column(&records.flows, "rtt_base_us"));
    for (found, base) in found.iter().zip(&base) {
        // The buffer holds 100 ms, and a packet takes 1.2 ms to send.
        assert!((found - base) / 1e3 < 6.0, "{found} of {base}");
    }
}
