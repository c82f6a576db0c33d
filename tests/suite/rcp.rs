//! RCP in whole scenarios. Sections refer to Dukkipati, Kobayashi, Zhang-Shen, McKeown, *Processor
//! sharing flows in the Internet*, IWQoS 2005.

use crate::common::{BOTTLENECK, activity, assert_golden, at, column, run};
use crate::explicit_feedback::ExplicitFeedback;

const RCP: ExplicitFeedback<'static> = ExplicitFeedback {
    name: "RCP",
    meter: "\"rcp\"",
    controller: "\"rcp\"",
    endpoint: "{ echo = \"last\" }",
};

/// § 4: the link is busy and its queue short for any rate, round trip and number of flows.
#[test]
fn a_link_is_busy_and_its_queue_short_whatever_rate_round_trip_and_flows() {
    let table = RCP.links(|link, jain| {
        assert!(link("utilisation") > 0.93 && jain > 0.999, "{}, {jain}", link("utilisation"));
        assert_eq!(link("dropped_pkts"), 0.0);
    });
    assert_golden("rcp.txt", &table);
}

/// In equilibrium the change of § 3 is zero: utilisation is γ less the queue's term, where the
/// queue comes from packets that arrive together: y = γ C − (β / α) q / d.
#[test]
fn a_link_is_used_to_the_part_that_is_aimed_at() {
    for gamma in [0.8, 0.95] {
        let meter = format!("{{ kind = \"rcp\", gamma = {gamma} }}");
        let rcp = ExplicitFeedback { meter: &meter, ..RCP };
        let records = rcp.dumbbell(45, 80, [30, 60], &rcp.flows("main", 5, 80, ""));
        let link = |name| at(&records.links, BOTTLENECK, name);
        let queue = link("qlen_mean_bytes");
        assert!(queue < 2.0 * 1500.0, "{queue}");
        let expected = gamma - 1.0 / 0.4 * queue / (0.08 * 45e6 / 8.0);
        assert!(
            (link("utilisation") - expected).abs() < 0.004,
            "{} {expected}",
            link("utilisation")
        );
        let counter = |name| activity(&records, name);
        assert!(counter("rcp_updates") > 2500 && counter("rcp_rates") > 100);
        assert_eq!(counter("rcp_headers"), counter("rcp_lowered"), "nobody else is lower");
    }
}

/// § 3: a new flow has the rate of the others from its first packet on, because its SYN asks for
/// it.
#[test]
fn a_latecomer_has_the_rate_of_the_others_at_once() {
    let groups = RCP.flows("first", 4, 80, "") + &RCP.flows("second", 1, 80, "start = \"20 s\"");
    let records = RCP.dumbbell(45, 80, [0, 30], &groups);
    let (time, delivered) =
        (column(&records.flow_series, "time_s"), column(&records.flow_series, "delivered"));
    let flow = column(&records.flow_series, "flow_id");
    let of = |id: f64, from: f64, to: f64| {
        let rows = flow.iter().zip(time.iter().zip(&delivered)).filter(|(flow, _)| **flow == id);
        let at = |when: f64| {
            rows.clone()
                .map(|(_, (t, d))| (*t, *d))
                .find(|(t, _)| *t >= when)
                .expect("it is sampled")
        };
        let (from, to) = (at(from), at(to));
        (to.1 - from.1) / (to.0 - from.0)
    };
    // From the third round trip on: one for the SYN, one until the first ACK.
    let (late, other) = (of(4.0, 20.2, 20.8), of(0.0, 20.2, 20.8));
    assert!((late / other - 1.0).abs() < 0.1, "{late} {other}");
    let share = 45e6 / 8.0 / 5.0 * 1448.0 / 1500.0;
    let settled = of(4.0, 23.0, 29.0);
    assert!((settled / share - 1.0).abs() < 0.03, "{settled} {share}");
}

/// The lowest rate on a path counts, so three flows over two links get their max-min shares: a flow
/// limited by the narrow link leaves the rest of the wide link to the other.
#[test]
fn flows_over_two_links_have_their_max_min_shares() {
    let link = |name: &str, from: &str, to: &str, mbit: u32| {
        format!(
            "[link.{name}]\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"{mbit} Mbit/s\"\n\
             delay = \"10 ms\"\nduplex = true\n\
             queue = {{ kind = \"fifo\", limit = \"400 packets\" }}\nmeter = \"rcp\"\n"
        )
    };
    let group = |name: &str, from: &str, to: &str| {
        format!(
            "[flow.{name}]\nfrom = \"{from}\"\nto = \"{to}\"\nedge_rtt = \"60 ms\"\n\
             controller = \"rcp\"\nendpoint = {{ echo = \"last\" }}\n"
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
    let goodputs = column(&run(&text.concat()).flows, "goodput_bit_s");
    let payload = 1448.0 / 1500.0;
    for (goodput, fair) in goodputs.iter().zip([10.0, 30.0, 10.0]) {
        let rate = goodput / 1e6 / payload;
        assert!((rate / fair - 1.0).abs() < 0.03, "{goodputs:?}");
    }
}

/// § 2 and 4: flows finish nearly as under processor sharing: 1.5 RTT for the handshake and the
/// first bytes, and E[L] / (C (1 − ρ)) in the mean. The setting has buffer for simultaneous
/// arrivals and a small weight of the queue: with β = 1 a burst reduces R to nearly zero if d is
/// near T.
#[test]
fn flows_finish_nearly_as_under_processor_sharing() {
    let workload =
        r#"workload = { kind = "poisson", interval = "16 ms", size = "exponential(100 kB)" }"#;
    let text = format!(
        "[run]\nduration = \"40 s\"\nwarmup = \"2 s\"\n[dumbbell]\nrate = \"100 Mbit/s\"\n\
         queue = {{ kind = \"fifo\", limit = \"5 BDP\" }}\nbdp_rtt = \"20 ms\"\n\
         meter = {{ kind = \"rcp\", beta = 0.1 }}\n{}",
        RCP.flows("main", 1, 20, workload)
    );
    let records = run(&text);
    let fct: Vec<f64> =
        column(&records.flows, "fct_s").into_iter().filter(|fct| *fct > 0.0).collect();
    assert!(fct.len() > 2000, "{}", fct.len());
    let mean = fct.iter().sum::<f64>() / fct.len() as f64;
    let load = 100e3 * 8.0 / 0.016 / 100e6 * 1500.0 / 1448.0;
    let shared = 100e3 * 8.0 * 1500.0 / 1448.0 / 100e6 / (1.0 - load);
    let expected = 1.5 * 0.02 + shared;
    assert!((mean / expected - 1.0).abs() < 0.25, "{mean} s, not {expected} s");
    assert_eq!(at(&records.links, BOTTLENECK, "dropped_total_pkts"), 0.0);
}

/// Losses are repaired at the router's rate: a lossy path costs the lost packets and no more.
#[test]
fn losses_that_are_no_congestion_cost_what_is_lost() {
    let text = r#"
        [run]
        duration = "40 s"
        warmup = "10 s"
        [dumbbell]
        rate = "20 Mbit/s"
        queue = { kind = "fifo", limit = "200 packets" }
        meter = "rcp"
        loss = 0.01
        [flow.main]
        rtt = "60 ms"
        count = 2
        controller = "rcp"
        endpoint = { echo = "last" }
    "#;
    let records = run(text);
    let goodput: f64 = column(&records.flows, "goodput_bit_s").iter().sum();
    let expected = 20e6 * 1448.0 / 1500.0 * 0.99;
    assert!((goodput / expected - 1.0).abs() < 0.02, "{goodput}");
}
