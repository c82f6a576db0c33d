//! LEDBAT++ and LEDBAT in whole scenarios. Sections refer to draft-irtf-iccrg-ledbat-plus-plus-01.

use cwnd_tables::Records;

use crate::common::{BOTTLENECK, activity, assert_golden, at, run};
use crate::latecomers::{HEAD, LatecomerResult, latecomer_result, staggered_starts};

fn alone(controller: &str, endpoint: &str) -> Records {
    run(&format!(
        r#"
        [run]
        duration = "300 s"
        warmup = "30 s"
        sample = "none"
        [dumbbell]
        rate = "10 Mbit/s"
        queue = {{ kind = "fifo", limit = "1000 packets" }}
        [flow.main]
        rtt = "60 ms"
        controller = {controller}
        endpoint = {{ ack_every = 1, clock = "1 us", {endpoint} }}
        "#
    ))
}

/// Returns mean and largest queueing delay in ms, and the utilisation.
fn kept(records: &Records) -> [f64; 3] {
    let link = |name| at(&records.links, BOTTLENECK, name);
    assert_eq!(link("dropped_total_pkts"), 0.0);
    [link("qdelay_mean_us") / 1e3, link("qdelay_max_us") / 1e3, link("utilisation")]
}

/// Without loss, the queueing delay is the target within a packet of 1.2 ms, and the link is busy.
#[test]
fn one_flow_keeps_the_delay_at_the_target() {
    let one_way = r#"rtt_from = "one-way", echo = "delay""#;
    for (target, controller, endpoint) in [
        (60.0, r#"{ kind = "ledbat", slowdown_interval = "none" }"#, ""),
        (100.0, r#"{ kind = "ledbat", preset = "rfc6817" }"#, ""),
        (100.0, r#"{ kind = "ledbat", preset = "rfc6817" }"#, one_way),
    ] {
        let [mean, max, utilisation] = kept(&alone(controller, endpoint));
        assert!((mean - target).abs() < 1.2, "{controller}: {mean}");
        assert!((max - target).abs() < 1.2, "{controller}: {max}");
        assert!(utilisation > 0.9999, "{controller}: {utilisation}");
    }
}

/// § 4.4: slowdowns cost at most a tenth of the link, and empty the queue.
#[test]
fn slowdowns_cost_a_tenth_of_the_link_at_most() {
    let records = alone(r#""ledbat""#, "");
    let [mean, max, utilisation] = kept(&records);
    assert!((0.9..0.99).contains(&utilisation), "{utilisation}");
    assert!(mean < 60.0 && max < 62.0, "{mean} {max}");
    // A slowdown takes two round trips of 120 ms, then slow start, in which GAIN = 1/2 adds half of
    // the window per round trip. The next one begins nine times its duration after its end.
    let slowdowns = activity(&records, "slowdowns");
    assert!((30..40).contains(&slowdowns), "{slowdowns}");
}

/// Claim D16 for both: latecomers of LEDBAT count the queue as part of the path, those of LEDBAT++
/// do not.
#[test]
fn late_flows_of_ledbat_take_it_all_and_those_of_ledbat_plus_plus_their_share() {
    let mut table = HEAD.to_owned();
    for (name, controller) in [
        ("ledbat++", r#""ledbat""#),
        ("ledbat++, no slow.", r#"{ kind = "ledbat", slowdown_interval = "none" }"#),
        ("ledbat rfc6817", r#"{ kind = "ledbat", preset = "rfc6817" }"#),
    ] {
        for flows in [1, 2, 5, 10] {
            let LatecomerResult { row, ratio, errors } =
                latecomer_result(name, flows, &staggered_starts(flows, controller));
            table += &row;
            if name == "ledbat++" {
                assert!((ratio - 1.0).abs() < 0.1, "{ratio}");
                assert!(errors.iter().all(|error| *error < 1.3), "{errors:?}");
            }
            if name == "ledbat rfc6817" && flows > 1 {
                assert!(ratio > 10.0 && errors[1] > 60.0, "{ratio}, {errors:?}");
            }
        }
    }
    assert_golden("ledbat.txt", &table);
}
