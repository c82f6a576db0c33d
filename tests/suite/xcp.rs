//! XCP in whole scenarios. Sections refer to Katabi, Handley, Rohrs, *Congestion control for high
//! bandwidth-delay product networks*, SIGCOMM 2002.

use crate::common::{BOTTLENECK, activity, assert_golden, at, column, jain, run};
use crate::explicit_feedback::ExplicitFeedback;

const XCP: ExplicitFeedback<'static> = ExplicitFeedback {
    name: "XCP",
    meter: "\"xcp\"",
    controller: "\"xcp\"",
    endpoint: "{ echo = \"sum\", ack_every = 1, initial_window = 2, clock = \"1 us\" }",
};

/// § 5.2: the link is busy without loss and with a short queue, for any rate, round trip and number
/// of flows.
#[test]
fn a_link_is_busy_and_its_queue_short_whatever_rate_round_trip_and_flows() {
    let table = XCP.links(|link, jain| {
        assert!(link("utilisation") > 0.95 && jain > 0.99, "{}, {jain}", link("utilisation"));
        assert_eq!(link("dropped_total_pkts"), 0.0);
    });
    assert_golden("xcp.txt", &table);
}

/// The sum of the routers' feedback equals the sum of the changes of windows, to the byte.
#[test]
fn what_routers_write_is_what_windows_change() {
    let sized = "start = \"uniform(0 s, 1 s)\"\nworkload = { kind = \"bytes\", size = \"2 MB\" }";
    let records = XCP.dumbbell(10, 80, [0, 60], &XCP.flows("main", 5, 80, sized));
    assert!(column(&records.flows, "fct_s").iter().all(|fct| *fct > 1.0), "all have ended");
    let counter = |name| activity(&records, name);
    assert!(counter("xcp_given_bytes") > 100_000 && counter("xcp_taken_bytes") > 10_000);
    let unused = records.activity.get("xcp_unused_bytes").unwrap_or(0);
    assert_eq!(counter("xcp_given_bytes"), counter("xcp_grown_bytes") + unused);
    assert_eq!(counter("xcp_taken_bytes"), counter("xcp_shrunk_bytes"));
    assert!(counter("xcp_intervals") > 100);
    // Data has headers, and the SYN of each flow.
    let sent: f64 = column(&records.flows, "segments_sent").iter().sum();
    assert_eq!(counter("xcp_headers"), sent as u64 + 5);
}

/// § 3.5.2 on a busy link: in each interval d a flow loses the fraction γ of its rate and gets γ of
/// the fair rate. After a time t a latecomer has the fraction 1 − exp(−γ t / d) of its share: 95 %
/// after d ln(20) / γ.
#[test]
fn a_latecomer_gets_its_share_as_shuffling_gives_it() {
    let groups = XCP.flows("first", 1, 80, "") + &XCP.flows("second", 1, 80, "start = \"20 s\"");
    let records = XCP.dumbbell(45, 80, [0, 40], &groups);
    let (time, delivered) =
        (column(&records.flow_series, "time_s"), column(&records.flow_series, "delivered"));
    let flow = column(&records.flow_series, "flow_id");
    let second = flow.iter().zip(time.iter().zip(&delivered)).filter(|(id, _)| **id == 1.0);
    let points: Vec<(f64, f64)> = second.map(|(_, (t, d))| (*t - 20.0, *d)).collect();
    // Packets of 1500 B carry 1448 B.
    let share = 45e6 / 8.0 / 2.0 * 1448.0 / 1500.0;
    let of_share = |pair: &&[(f64, f64)]| (pair[1].1 - pair[0].1) / (pair[1].0 - pair[0].0) / share;
    let reached = points.windows(2).find(|pair| of_share(pair) >= 0.95).expect("it gets it");
    let (d, gamma) = (0.08, 0.1);
    let expected = 20.0_f64.ln() / gamma * d;
    assert!((reached[1].0 / expected - 1.0).abs() < 0.1, "{reached:?}, not {expected} s");
}

/// § 5.2: throughput does not depend on the round trip.
#[test]
fn a_long_round_trip_costs_no_throughput() {
    let groups = XCP.flows("near", 2, 20, "") + &XCP.flows("far", 2, 200, "");
    let goodputs = column(&XCP.dumbbell(45, 200, [60, 120], &groups).flows, "goodput_bit_s");
    assert!(jain(&goodputs) > 0.999, "{goodputs:?}");
}

/// The rate of the link halves for twenty seconds and returns.
#[test]
fn windows_follow_a_link_that_becomes_slower_and_faster() {
    let text = format!(
        r#"
        [run]
        duration = "60 s"
        warmup = "50 s"
        sample = "500 ms"
        [dumbbell]
        rate.initial = "20 Mbit/s"
        rate.steps = [{{ at = "20 s", rate = "10 Mbit/s" }}, {{ at = "40 s", rate = "20 Mbit/s" }}]
        queue = {{ kind = "fifo", limit = "400 packets" }}
        meter = "xcp"
        {}
        "#,
        XCP.flows("main", 5, 80, "")
    );
    let records = run(&text);
    let link = |name| at(&records.links, BOTTLENECK, name);
    assert_eq!(link("dropped_total_pkts"), 0.0);
    assert!(link("utilisation") > 0.99, "{}", link("utilisation"));
    let series = &records.link_series;
    let rows = column(series, "link_id")
        .into_iter()
        .zip(column(series, "time_s"))
        .zip(column(series, "qlen_pkts"));
    let here = rows.filter(|((link, _), _)| *link == BOTTLENECK as f64);
    let (mut after, mut settled) = (0.0_f64, 0.0_f64);
    for ((_, time), packets) in here {
        if (20.0..24.0).contains(&time) {
            after = after.max(packets);
        } else if (28.0..40.0).contains(&time) {
            settled = settled.max(packets);
        }
    }
    // The data that half of the link carried in a round trip is queued, and then drains.
    assert!(after > 30.0 && settled < 10.0, "{after} {settled}");
}

/// A link crossed by a flow that is limited elsewhere: the local flow gets less than its max-min
/// share, because the other flow's share of the shuffled traffic is lost (Low, Andrew, Wydrowski,
/// *Understanding XCP: equilibrium and fairness*, INFOCOM 2005). In equilibrium the local flow's
/// feedback is zero: γ y / 2 = (γ y − α (C − y)) x / y for two flows at the link, with y = x + the
/// other's rate.
#[test]
fn beside_a_flow_that_is_held_back_elsewhere_a_link_is_less_busy_by_what_shuffling_loses() {
    let link = |name: &str, from: &str, to: &str, mbit: u32| {
        format!(
            "[link.{name}]\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"{mbit} Mbit/s\"\n\
             delay = \"10 ms\"\nduplex = true\n\
             queue = {{ kind = \"fifo\", limit = \"400 packets\" }}\nmeter = \"xcp\"\n"
        )
    };
    let group = |name: &str, from: &str, to: &str| {
        format!(
            "[flow.{name}]\nfrom = \"{from}\"\nto = \"{to}\"\nedge_rtt = \"60 ms\"\n\
             controller = \"xcp\"\n\
             endpoint = {{ echo = \"sum\", ack_every = 1, clock = \"1 us\" }}\n"
        )
    };
    let text = [
        "[run]\nduration = \"120 s\"\nwarmup = \"60 s\"\n".to_owned(),
        link("wide", "a", "b", 40),
        link("narrow", "b", "c", 20),
        group("both", "a", "c"),
        group("wide-only", "a", "b"),
        group("narrow-only", "b", "c"),
    ];
    let records = run(&text.concat());
    let goodputs = column(&records.flows, "goodput_bit_s");
    let payload = 1448.0 / 1500.0;
    let rates: Vec<f64> = goodputs.iter().map(|g| g / 1e6 / payload).collect();
    assert!((rates[0] + rates[2] - 20.0).abs() < 0.2, "{rates:?}");
    let (alpha, gamma, capacity, other) = (0.4, 0.1, 40.0, rates[0]);
    // As a quadratic equation of y: (α + γ/2) y² − (α C + (α + γ) o) y + α C o = 0.
    let (a, b, c) =
        (alpha + gamma / 2.0, alpha * capacity + (alpha + gamma) * other, alpha * capacity * other);
    let y = (b + (b * b - 4.0 * a * c).sqrt()) / (2.0 * a);
    assert!(y < 0.95 * capacity, "{y}");
    assert!((rates[1] - (y - other)).abs() < 0.03 * y, "{rates:?}, not {}", y - other);
}
