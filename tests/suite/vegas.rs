//! Vegas in whole scenarios. Equations without a document refer to McCullagh, *Exploring
//! Delay-Based TCP Congestion Control*, 2008.

use crate::common::{BOTTLENECK, activity, assert_golden, at, column, run};
use crate::latecomers::{HEAD, LatecomerResult, latecomer_result, queued, staggered_starts};

/// Eq. 2.4: the window stays constant while between α and β segments of it are queued. A packet's
/// own transmission is part of its RTT and of baseRTT.
#[test]
fn one_flow_keeps_between_alpha_and_beta_packets_in_the_queue_and_loses_none() {
    for (preset, min, max) in
        [("thesis", 2.0, 4.0), ("paper", 1.0, 3.0), ("ns2", 1.0, 3.0), ("linux", 2.0, 4.0)]
    {
        let records = staggered_starts(1, &format!(r#"{{ kind = "vegas", preset = "{preset}" }}"#));
        let link = |name| at(&records.links, BOTTLENECK, name);
        assert_eq!(link("dropped_total_pkts"), 0.0, "{preset}");
        assert!(link("utilisation") > 0.9999, "{preset}");
        let packets = queued(&records);
        // The window is a whole number of segments, the path's capacity is not.
        assert!((min - 1.0..max + 1.0).contains(&packets), "{preset}: {packets}");
        // Most round trips leave the window unchanged.
        assert!(activity(&records, "rounds_same") > 2000, "{preset}");
    }
}

/// § 2.3.1: the queue grows with the number of flows. A late flow counts the queue as part of the
/// path and gets more than its share (claim D16).
#[test]
fn late_flows_of_vegas_take_more_than_their_share_and_those_of_delay_aimd_do_not() {
    let mut table = HEAD.to_owned();
    for (name, controller) in [
        ("vegas", r#""vegas""#),
        ("vegas paper", r#"{ kind = "vegas", preset = "paper" }"#),
        ("vegas ns2", r#"{ kind = "vegas", preset = "ns2" }"#),
        ("vegas linux", r#"{ kind = "vegas", preset = "linux" }"#),
        ("delay-aimd", r#""delay-aimd""#),
    ] {
        for flows in [1, 2, 5, 10] {
            let records = staggered_starts(flows, controller);
            let LatecomerResult { row, ratio, errors } = latecomer_result(name, flows, &records);
            table += &row;
            if flows != 10 {
                continue;
            }
            let late = name != "delay-aimd";
            assert_eq!(ratio > 1.5, late, "{name}: {ratio}");
            // Each Vegas flow met a longer queue than the flow before it.
            assert_eq!(errors.is_sorted() && errors[9] > 10.0, late, "{name}: {errors:?}");
        }
    }
    assert_golden("vegas.txt", &table);
}

/// Slow start of Brakmo & Peterson doubles every other round trip, that of Linux each one.
#[test]
fn slow_start_doubles_as_often_as_it_is_told() {
    let reached = |preset: &str| {
        let records = run(&format!(
            r#"
            [run]
            duration = "1.06 s"
            sample = "50 ms"
            [dumbbell]
            rate = "1 Gbit/s"
            [flow.main]
            rtt = "100 ms"
            controller = {{ kind = "vegas", preset = "{preset}" }}
            endpoint = {{ ack_every = 1, clock = "1 us", initial_window = 2 }}
            "#
        ));
        column(&records.flow_series, "snd_cwnd_pkts").pop().expect("was sampled")
    };
    // One round trip for the handshake, one for the first window, then eight.
    assert_eq!(reached("paper"), 32.0);
    assert_eq!(reached("linux"), 1024.0);
}
