//! Golden tables of the main scenarios, one phenomenon each, meant to be read as well as compared.

use cwnd_aqm::QueueParams;
use cwnd_schema::ParamsChoice as _;
use cwnd_tables::Records;

use crate::common::{BOTTLENECK, activity, assert_golden, at, run};

/// Iterates over the names of all queues.
fn queues() -> impl Iterator<Item = &'static str> {
    QueueParams::KINDS.iter().map(|kind| kind.name)
}

fn one_flow(queue: &str, rtt: &str, controller: &str, ecn: bool, seconds: u32) -> Records {
    run(&format!(
        r#"
        [run]
        duration = "{seconds} s"
        sample = "none"
        [dumbbell]
        rate = "10 Mbit/s"
        queue = {queue}
        [flow.main]
        rtt = "{rtt}"
        controller = {controller}
        endpoint = {{ preset = "linux", ecn = {ecn} }}
        "#
    ))
}

#[test]
fn one_flow_over_every_queue() {
    let mut table =
        "# One flow, 10 Mbit/s, 80 ms, the first 60 s; rates in Mbit/s, delay in ms.\n".to_owned();
    table += "controller queue    ecn goodput utilisation qdelay_p50 drops marks by_loss by_ecn \
              timeouts\n";
    for controller in ["newreno", "cubic"] {
        for queue in queues() {
            for ecn in [false, true] {
                let records = one_flow(
                    &format!("\"{queue}\""),
                    "80 ms",
                    &format!("\"{controller}\""),
                    ecn,
                    60,
                );
                let link = |name: &str| at(&records.links, BOTTLENECK, name);
                let flow = |name: &str| at(&records.flows, 0, name);
                // Network and sender count independently.
                assert_eq!(activity(&records, "queue_marks") as f64, link("marked_pkts"));
                assert_eq!(
                    activity(&records, "ecn_reductions") as f64,
                    flow("cwnd_reductions_ecn")
                );
                assert!(ecn || link("marked_pkts") == 0.0, "a mark without ECN");
                table += &format!(
                    "{controller:10} {queue:8} {:3} {:7.2} {:11.3} {:10.1} {:5} {:5} {:7} {:6} \
                     {:8}\n",
                    if ecn { "on" } else { "off" },
                    flow("goodput_bit_s") / 1e6,
                    link("utilisation"),
                    link("qdelay_p50_us") / 1e3,
                    link("dropped_pkts"),
                    link("marked_pkts"),
                    flow("cwnd_reductions_loss"),
                    flow("cwnd_reductions_ecn"),
                    flow("rto_count"),
                );
            }
        }
    }
    assert_golden("one-flow.txt", &table);
}

#[test]
fn what_abe_wins() {
    const BETAS: [f64; 7] = [0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95];
    let mut table = "# Goodput of one NewReno flow in Mbit/s by beta_ecn, \
                     and below it the median queueing delay in ms:\n\
                     # 10 Mbit/s, the first 100 s, in the setting of ABE § IV-A.\nqueue rtt      "
        .to_owned();
    table += &BETAS.map(|beta| format!("{beta:6}")).join(" ");
    table += "\n";
    for (name, queue) in [("CoDel", "\"codel\""), ("PIE", "{ kind = \"pie\", preset = \"abe\" }")] {
        for rtt in ["100 ms", "200 ms", "400 ms"] {
            let cells = BETAS.map(|beta| {
                let controller =
                    format!("{{ kind = \"newreno\", preset = \"paper\", beta_ecn = {beta} }}");
                let records = one_flow(queue, rtt, &controller, true, 100);
                assert!(activity(&records, "ecn_reductions") > 0, "ECN never acted");
                let goodput = at(&records.flows, 0, "goodput_bit_s") / 1e6;
                let delay = at(&records.links, BOTTLENECK, "qdelay_p50_us") / 1e3;
                (goodput, delay)
            });
            table +=
                &format!("{name:5} {rtt:8} {}\n", cells.map(|c| format!("{:6.2}", c.0)).join(" "));
            table += &format!("{:14} {}\n", "", cells.map(|c| format!("{:6.2}", c.1)).join(" "));
            // ABE § IV-B: a smaller reduction in response to marks gains throughput, and more so at
            // long RTTs.
            assert!(cells[3].0 > cells[0].0, "{name} at {rtt}: 0.8 wins over 0.5");
        }
    }
    assert_golden("abe-gain.txt", &table);
}

#[test]
fn flows_that_share_a_queue() {
    let mut table = "# Two NewReno flows of 20 and 80 ms, 10 Mbit/s, 60 s after 20 s: \
                     goodput in Mbit/s, delay in ms.\nqueue    short  long  qdelay_p50 qdelay_p99\n"
        .to_owned();
    for queue in queues() {
        let records = run(&format!(
            r#"
            [run]
            duration = "80 s"
            warmup = "20 s"
            sample = "none"
            [dumbbell]
            rate = "10 Mbit/s"
            queue = "{queue}"
            jitter = "100 us"
            [flow.short]
            rtt = "20 ms"
            endpoint = "linux"
            [flow.long]
            rtt = "80 ms"
            endpoint = "linux"
            "#
        ));
        table += &format!(
            "{queue:8} {:5.2} {:5.2} {:11.1} {:10.1}\n",
            at(&records.flows, 0, "goodput_bit_s") / 1e6,
            at(&records.flows, 1, "goodput_bit_s") / 1e6,
            at(&records.links, BOTTLENECK, "qdelay_p50_us") / 1e3,
            at(&records.links, BOTTLENECK, "qdelay_p99_us") / 1e3,
        );
    }
    assert_golden("two-flows.txt", &table);
}
