//! BBR version 1 in whole scenarios. Sections refer to
//! draft-cardwell-iccrg-bbr-congestion-control-00.

use cwnd_tables::Records;

use crate::common::{BOTTLENECK, activity, assert_golden, at, column, run, share_beside};

/// Runs one flow with the stack of Linux and a buffer given in bandwidth-delay products.
fn alone(rate: &str, rtt: &str, buffer: f64, run_of: &str) -> Records {
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

/// § 4.3.2.1: 2 / ln 2 is the least gain with which the rate doubles each round trip.
#[test]
fn startup_doubles_what_arrives_in_each_round_trip() {
    let records = alone(
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

/// § 4.3.4.1, 4.3.5: bandwidth probes queue a quarter of a BDP and drain it again. Probes for
/// RTprop take 0.2 s of 10.2 s. Linux paces at 99 % of the estimated bandwidth.
#[test]
fn one_flow_uses_the_link_but_for_its_probes_and_leaves_long_buffers_empty() {
    let mut table = "# One flow, 5 to 65 s, by path and buffer: utilisation, \
                     mean and largest queueing delay in round trips, probes for RTprop, drops.\n\
                     path             buffer  utilisation   mean most probes  drops\n"
        .to_owned();
    for (rate, rtt) in [("10 Mbit/s", "40 ms"), ("50 Mbit/s", "100 ms"), ("200 Mbit/s", "20 ms")] {
        for buffer in [0.25, 1.0, 8.0] {
            let records = alone(rate, rtt, buffer, STEADY);
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

/// § 4.2.3.2: the bound is two bandwidth-delay products and three quanta.
#[test]
fn no_more_than_two_bandwidth_delay_products_are_in_flight() {
    let records = alone(
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

/// The draft lets an RTT equal to the minimum refresh it. On a path without noise that happens
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

/// Hock, Bless, Zitterbart 2017; Ware et al. 2019: below two bandwidth-delay products BBR takes
/// nearly all of the goodput; in long buffers its window limits it.
#[test]
fn beside_cubic_it_takes_nearly_all_of_short_buffers_and_less_of_long_ones() {
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

/// § 4.3.4.4, 4.3.5: an idle period replaces a probe for RTprop, and sending resumes at the
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
