//! XCP and RCP in whole scenarios: flows over a dumbbell with a buffer of one BDP, and other paths.
//! Sections refer to Katabi, Handley, Rohrs, *Congestion control for high bandwidth-delay product
//! networks*, SIGCOMM 2002, for XCP; and to Dukkipati, Kobayashi, Zhang-Shen, McKeown, *Processor
//! sharing flows in the Internet*, IWQoS 2005, for RCP.

use cwnd_tables::Records;

use crate::common::{BOTTLENECK, activity, assert_golden, at, column, jain, run};

/// Meter, controller and endpoint of a scheme, as a scenario names them.
struct ExplicitFeedback<'a> {
    name: &'static str,
    meter: &'a str,
    controller: &'static str,
    endpoint: &'static str,
}

impl ExplicitFeedback<'_> {
    /// Runs groups of flows over a link of this rate; `rtt_ms` sizes its buffer, and the times are
    /// in s.
    fn dumbbell(
        &self,
        mbit: u32,
        rtt_ms: u32,
        [warmup, seconds]: [u32; 2],
        groups: &str,
    ) -> Records {
        run(&format!(
            r#"
            [run]
            duration = "{seconds} s"
            warmup = "{warmup} s"
            sample = "80 ms"
            [dumbbell]
            rate = "{mbit} Mbit/s"
            queue = {{ kind = "fifo", limit = "1 BDP" }}
            bdp_rtt = "{rtt_ms} ms"
            meter = {}
            {groups}
            "#,
            self.meter
        ))
    }

    /// Writes a group of flows.
    fn flows(&self, name: &str, count: u32, rtt_ms: u32, more: &str) -> String {
        format!(
            r#"
            [flow.{name}]
            rtt = "{rtt_ms} ms"
            count = {count}
            controller = {}
            endpoint = {}
            {more}
            "#,
            self.controller, self.endpoint
        )
    }

    /// Returns a table over links of several rates, round trips and numbers of flows. `holds`
    /// checks each run: its arguments are a reader of the bottleneck's columns, and Jain's index.
    fn links(&self, holds: impl Fn(&dyn Fn(&str) -> f64, f64)) -> String {
        let mut table = format!(
            "# {} after half a minute: a link's use, what waits in packets of 1500 B, losses, \
             Jain's index.\nMbit/s  RTT ms  flows  utilisation  queue  drops  jain\n",
            self.name
        );
        for (mbit, rtt_ms, count) in LINKS {
            let groups = self.flows("main", count, rtt_ms, "start = \"uniform(0 s, 1 s)\"");
            let records = self.dumbbell(mbit, rtt_ms, [30, 60], &groups);
            let link = |name: &str| at(&records.links, BOTTLENECK, name);
            let jain = jain(&column(&records.flows, "goodput_bit_s"));
            let queue = link("qlen_mean_bytes") / 1500.0;
            table += &format!(
                "{mbit:6} {rtt_ms:7} {count:6} {:12.3} {queue:6.1} {:6} {jain:5.3}\n",
                link("utilisation"),
                link("dropped_total_pkts"),
            );
            holds(&link, jain);
        }
        table
    }
}

/// Rate in Mbit/s, round trip in ms, number of flows.
const LINKS: [(u32, u32, u32); 7] = [
    (10, 20, 1),
    (10, 20, 30),
    (10, 80, 5),
    (10, 400, 5),
    (45, 80, 30),
    (155, 20, 5),
    (155, 80, 100),
];

const XCP: ExplicitFeedback<'static> = ExplicitFeedback {
    name: "XCP",
    meter: "\"xcp\"",
    controller: "\"xcp\"",
    endpoint: "{ echo = \"sum\", ack_every = 1, initial_window = 2, clock = \"1 us\" }",
};

/// XCP, § 5.2: the link is busy without loss and with a short queue, for any rate, round trip and
/// number of flows.
#[test]
fn with_xcp_a_link_is_busy_and_its_queue_short_whatever_rate_round_trip_and_flows() {
    let table = XCP.links(|link, jain| {
        assert!(link("utilisation") > 0.95 && jain > 0.99, "{}, {jain}", link("utilisation"));
        assert_eq!(link("dropped_total_pkts"), 0.0);
    });
    assert_golden("xcp.txt", &table);
}

/// XCP: the sum of the routers' feedback equals the sum of the changes of windows, to the byte.
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

/// XCP, § 3.5.2 on a busy link: in each interval d a flow loses the fraction γ of its rate and gets
/// γ of the fair rate. After a time t a latecomer has the fraction 1 − exp(−γ t / d) of its share:
/// 95 % after d ln(20) / γ.
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

/// XCP, § 5.2: throughput does not depend on the round trip.
#[test]
fn a_long_round_trip_costs_no_throughput() {
    let groups = XCP.flows("near", 2, 20, "") + &XCP.flows("far", 2, 200, "");
    let goodputs = column(&XCP.dumbbell(45, 200, [60, 120], &groups).flows, "goodput_bit_s");
    assert!(jain(&goodputs) > 0.999, "{goodputs:?}");
}

/// XCP: the rate of the link halves for twenty seconds and returns.
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

/// XCP: a link crossed by a flow that is limited elsewhere: the local flow gets less than its
/// max-min share, because the other flow's share of the shuffled traffic is lost (Low, Andrew,
/// Wydrowski, *Understanding XCP: equilibrium and fairness*, INFOCOM 2005). In equilibrium the
/// local flow's feedback is zero: γ y / 2 = (γ y − α (C − y)) x / y for two flows at the link, with
/// y = x + the other's rate.
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

const RCP: ExplicitFeedback<'static> = ExplicitFeedback {
    name: "RCP",
    meter: "\"rcp\"",
    controller: "\"rcp\"",
    endpoint: "{ echo = \"last\" }",
};

/// RCP, § 4: the link is busy and its queue short for any rate, round trip and number of flows.
#[test]
fn with_rcp_a_link_is_busy_and_its_queue_short_whatever_rate_round_trip_and_flows() {
    let table = RCP.links(|link, jain| {
        assert!(link("utilisation") > 0.93 && jain > 0.999, "{}, {jain}", link("utilisation"));
        assert_eq!(link("dropped_pkts"), 0.0);
    });
    assert_golden("rcp.txt", &table);
}

/// RCP: in equilibrium the change of § 3 is zero: utilisation is γ less the queue's term, where the
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

/// RCP, § 3: a new flow has the rate of the others from its first packet on, because its SYN asks
/// for it.
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

/// RCP: the lowest rate on a path counts, so three flows over two links get their max-min shares: a
/// flow limited by the narrow link leaves the rest of the wide link to the other.
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

/// RCP, § 2 and 4: flows finish nearly as under processor sharing: 1.5 RTT for the handshake and
/// the first bytes, and E[L] / (C (1 − ρ)) in the mean. The setting has buffer for simultaneous
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

/// RCP: losses are repaired at the router's rate: a lossy path costs the lost packets and no more.
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
