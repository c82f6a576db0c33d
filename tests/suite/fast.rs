//! FAST TCP in whole scenarios. Equations refer to Wei, Jin, Low, Hegde 2006.

use crate::common::{BOTTLENECK, assert_golden, at, column, run};
use crate::latecomers::{HEAD, LatecomerResult, latecomer_result, queued, staggered_starts};

/// In equilibrium w = baseRTT / RTT · w + α, so α segments are queued.
#[test]
fn one_flow_keeps_alpha_segments_in_the_queue_and_loses_none() {
    for (alpha, gamma) in [(4.0, 0.5), (20.0, 0.5), (100.0, 0.5), (20.0, 1.0), (20.0, 0.1)] {
        let records = staggered_starts(
            1,
            &format!(r#"{{ kind = "fast", alpha = {alpha}, gamma = {gamma} }}"#),
        );
        assert_eq!(at(&records.links, BOTTLENECK, "dropped_total_pkts"), 0.0);
        assert!(at(&records.links, BOTTLENECK, "utilisation") > 0.999, "{alpha}");
        let packets = queued(&records);
        // The window is always a whole number of segments.
        assert!((packets - alpha).abs() < 1.5, "{alpha}, {gamma}: {packets}");
    }
}

/// All flows see the same queueing delay, so each has its α segments in the queue.
#[test]
fn flows_have_shares_as_alpha_where_each_knows_the_path() {
    let records = run(r#"
        [run]
        duration = "120 s"
        warmup = "60 s"
        sample = "none"
        [dumbbell]
        rate = "20 Mbit/s"
        queue = { kind = "fifo", limit = "2000 packets" }
        [flow.one]
        rtt = "60 ms"
        controller = { kind = "fast", alpha = 10.0 }
        endpoint = { ack_every = 1, clock = "1 us" }
        [flow.three]
        rtt = "60 ms"
        controller = { kind = "fast", alpha = 30.0 }
        endpoint = { ack_every = 1, clock = "1 us" }
        "#);
    let goodputs = column(&records.flows, "goodput_bit_s");
    let ratio = goodputs[1] / goodputs[0];
    let queue = at(&records.links, BOTTLENECK, "qdelay_mean_us") / 600.0;
    assert!((ratio / 3.0 - 1.0).abs() < 0.05, "{ratio}");
    assert!((queue / 40.0 - 1.0).abs() < 0.05, "{queue}");
}

/// Returns the queue of `flows` flows, in units of α, if each started with the queue of the earlier
/// ones and counts it as part of the path. Their rates α / (q − q') fill the link.
fn queue_of(flows: u32) -> f64 {
    let mut before: Vec<f64> = vec![0.0];
    for _ in 0..flows {
        let (mut low, mut high) = (before[before.len() - 1], 1000.0);
        for _ in 0..100 {
            let queue = f64::midpoint(low, high);
            let rates: f64 = before.iter().map(|other| 1.0 / (queue - other)).sum();
            (low, high) = if rates > 1.0 { (queue, high) } else { (low, queue) };
        }
        before.push(high);
    }
    before[before.len() - 1]
}

/// Claim D16 of McCullagh 2008: nothing empties the queue, so a late flow counts it as part of the
/// path, as with Vegas.
#[test]
fn late_flows_take_more_than_their_share() {
    let mut table = HEAD.to_owned();
    for alpha in [4.0, 20.0] {
        for flows in [1, 2, 5, 10] {
            let records =
                staggered_starts(flows, &format!(r#"{{ kind = "fast", alpha = {alpha} }}"#));
            let LatecomerResult { row, ratio, errors } =
                latecomer_result(&format!("fast {alpha}"), flows, &records);
            table += &row;
            let (found, expected) = (queued(&records), alpha * queue_of(flows));
            assert!((found / expected - 1.0).abs() < 0.05, "{alpha}, {flows}: {found}, {expected}");
            if flows == 10 {
                assert!(ratio > 1.5, "{alpha}: {ratio}");
                assert!(errors.is_sorted() && errors[9] > 10.0, "{alpha}: {errors:?}");
            }
        }
    }
    assert_golden("fast.txt", &table);
}
