//! QUIC in whole scenarios. Sections refer to RFC 9002.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use cwnd_cc::ControllerParams;
use cwnd_packet::HasContract as _;
use cwnd_scenario::Document;
use cwnd_schema::ParamsChoice as _;
use cwnd_sim::World;
use cwnd_tables::Records;
use cwnd_tcp::quic;
use proptest::prelude::*;
use proptest::sample::select;

use crate::common::{
    BOTTLENECK, activity, assert_golden, at, column, jain, run, run_audited, scenario,
};

/// Writes one flow over 10 Mbit/s and 40 ms with these keys; `more` has keys of the dumbbell.
fn alone(run_of: &str, more: &str, flow: &str) -> String {
    format!(
        "schema = 2\n[run]\n{run_of}\nnoise = \"none\"\n[dumbbell]\nrate = \"10 Mbit/s\"\n{more}\n\
         [flow.main]\nrtt = \"40 ms\"\n{flow}\n"
    )
}

fn flow(records: &Records, name: &str) -> f64 {
    at(&records.flows, 0, name)
}

const QUIC: &str = "stack = \"quic\"\ncontroller = \"newreno\"";

/// Returns the controllers without strict requirements that need no more events than a QUIC sender
/// reports.
fn controllers() -> Vec<&'static str> {
    let fits = |kind: &&str| {
        let params = ControllerParams::of_kind(kind).expect("it is registered");
        let needs = params.contract().requirements.iter().any(|requirement| requirement.required);
        !needs && quic::Config::new(quic::Params::default(), &params).lacks().is_none()
    };
    ControllerParams::KINDS.iter().map(|kind| kind.name).filter(fits).collect()
}

/// Generates a QUIC sender for random scenarios.
pub fn sender() -> impl Strategy<Value = String> {
    let acks = (0..30u32, 0..8u32, 0..60u32);
    let initial = (1..40u32, 1200..3000u32, 50..500u32, 6_000..150_000u32);
    let loss = (3..9u32, 1.0..2.0f64);
    (select(controllers()), any::<bool>(), loss, acks, initial).prop_map(
        |(kind, ecn, (packets, time), (every, reordering, delay), (window, size, rtt, most))| {
            format!(
                "stack = \"quic\"\ncontroller = \"{kind}\"\nendpoint = {{ ecn = {ecn}, \
                 packet_threshold = {packets}, time_threshold = {time:.3}, \
                 ack_eliciting_threshold = {every}, reordering_threshold = {reordering}, \
                 max_ack_delay = \"{delay} ms\", initial_window = {window}, \
                 max_datagram_size = \"{size} B\", initial_rtt = \"{rtt} ms\", \
                 max_window = \"{most} B\" }}\n"
            )
        },
    )
}

/// § 7.3.1: the window doubles each round trip, from ten packets. Nothing is lost, and no PTO
/// expires although ACKs are delayed by 25 ms.
#[test]
fn a_transfer_over_a_clean_path_takes_the_round_trips_of_slow_start() {
    // 10 + 20 + 40 + 80 packets of 1439 B.
    let size = "workload = { kind = \"bytes\", size = \"215850 B\" }";
    let text = alone("duration = \"5 s\"\nsample = \"none\"", "", &format!("{QUIC}\n{size}"));
    let text = text.replace("10 Mbit/s", "1 Gbit/s");
    let records = run_audited(World::new(scenario(&text)));
    // Four flights; pacing spreads each but the first over 4/5 of a round trip (§ 7.7).
    let round_trips = flow(&records, "fct_s") / 0.040;
    assert!((3.5..5.3).contains(&round_trips), "{round_trips}");
    assert_eq!(flow(&records, "segments_sent"), 150.0);
    for none in ["retrans", "rto_count", "duplicates", "cwnd_reductions_loss"] {
        assert_eq!(flow(&records, none), 0.0, "{none}");
    }
}

/// RFC 5681 and QUIC have the same saw-tooth. With one loss in n packets the mean window is √(3 n /
/// 2) packets if each packet is acknowledged (Mathis et al. 1997), and √(3 n / 4) if every second
/// is and growth counts ACKs; QUIC counts bytes.
#[test]
fn one_newreno_flow_has_the_goodput_of_the_closed_form_as_tcp_does() {
    let mut table =
        "# One NewReno flow, one packet in n lost, 40 ms, 60 s after 10 s: goodput over that of \
                     √(3n/2) packets a round trip.\n   n   quic  rfc6675\n"
            .to_owned();
    for n in [200_u32, 800, 3200] {
        let ratio = |sender: &str, payload: f64| {
            let run_of = "duration = \"70 s\"\nwarmup = \"10 s\"\nsample = \"none\"";
            let text = alone(run_of, &format!("loss_every = {n}"), sender);
            let records = run(&text.replace("10 Mbit/s", "1 Gbit/s"));
            let formula = (1.5 * f64::from(n)).sqrt() * payload * 8.0 / 0.040;
            flow(&records, "goodput_bit_s") / formula
        };
        let quic = ratio(QUIC, 1439.0);
        let tcp = ratio(
            "stack = \"rfc6675\"\ncontroller = { kind = \"newreno\", preset = \"linux\" }",
            1448.0,
        );
        table += &format!("{n:4} {quic:6.3} {tcp:8.3}\n");
        assert!((0.85..1.1).contains(&quic), "{n}: {quic}");
    }
    assert_golden("quic-newreno.txt", &table);
}

/// § 6.1.1: three packets after a lost one declare it lost, and no PTO is needed.
#[test]
fn a_lost_packet_is_found_by_those_behind_it() {
    let run_of = "duration = \"20 s\"\nsample = \"none\"";
    let flow_of = format!("{QUIC}\nendpoint = {{ initial_ssthresh = \"30 kB\" }}");
    let records = run(&alone(run_of, "loss_every = 400", &flow_of));
    let (again, lost) = (flow(&records, "retrans"), flow(&records, "cwnd_reductions_loss"));
    // The last loss may be detected at the end of the run.
    assert!(again >= 15.0 && (0.0..=1.0).contains(&(lost - again)), "{again} of {lost}");
    assert_eq!(flow(&records, "rto_count"), 0.0);
    assert_eq!(flow(&records, "duplicates"), 0.0, "nothing that arrived went again");
}

/// § 6.2: in an outage PTOs back off, and the flow resumes after it.
#[test]
fn an_outage_backs_the_pto_off_and_the_flow_goes_on() {
    let steps = "steps = [{ at = \"5 s\", rate = \"1 kbit/s\" }, \
                 { at = \"9 s\", rate = \"10 Mbit/s\" }]";
    let outage = format!("rate = {{ initial = \"10 Mbit/s\", {steps} }}");
    let queue = "queue = { kind = \"fifo\", limit = \"20 packets\" }";
    let text = alone("duration = \"20 s\"\nsample = \"none\"", queue, QUIC);
    let records = run(&text.replace("rate = \"10 Mbit/s\"", &outage));
    let ptos = flow(&records, "rto_count");
    assert!((3.0..=5.0).contains(&ptos), "{ptos}");
    assert!(flow(&records, "rto_nth_2") >= 1.0);
    // The packets held in the queue have RTTs of 4 s, so three PTOs are then longer than the outage
    // (§ 7.6.1).
    assert_eq!(flow(&records, "cwnd_reductions_rto"), 0.0);
    assert!(flow(&records, "goodput_bit_s") > 4e6);
}

/// § 7.1: an increase of the CE count reduces the window once per round trip.
#[test]
fn marks_reduce_the_window_and_nothing_is_lost() {
    let run_of = "duration = \"30 s\"\nsample = \"none\"";
    let ecn = format!("{QUIC}\nendpoint = {{ ecn = true }}");
    let records = run(&alone(run_of, "queue = \"codel\"", &ecn));
    let marks = at(&records.links, BOTTLENECK, "marked_total_pkts");
    let reductions = flow(&records, "cwnd_reductions_ecn");
    assert!(reductions > 5.0 && reductions <= marks, "{reductions} of {marks}");
    // A marked packet may be in flight at the end.
    assert!((0.0..=1.0).contains(&(marks - flow(&records, "ce_received"))));
    assert_eq!(activity(&records, "ecn_reductions") as f64, reductions);
    assert_eq!(flow(&records, "rto_count"), 0.0);
}

/// No controller overflows a queue with its losses, and each uses the link.
#[test]
fn each_controller_that_fits_uses_the_link_and_floods_no_queue() {
    let mut bad = Vec::new();
    for kind in controllers() {
        for (queue, ecn) in [("codel", true), ("fifo", false), ("pie", false)] {
            let flow = format!(
                "stack = \"quic\"\ncontroller = \"{kind}\"\nendpoint = {{ ecn = {ecn} }}\n\
                 count = 4\nstart = \"uniform(0 s, 100 ms)\""
            );
            let run_of = "duration = \"30 s\"\nsample = \"none\"";
            let records = run(&alone(run_of, &format!("queue = \"{queue}\""), &flow));
            let link = |name| at(&records.links, BOTTLENECK, name);
            let arrivals = link("arrived_total_pkts") / link("delivered_total_pkts");
            let shares = jain(&column(&records.flows, "goodput_bit_s"));
            if arrivals > 1.1 || link("utilisation") < 0.5 || shares < 0.3 {
                let used = link("utilisation");
                bad.push(format!("{kind}, {queue}: {arrivals:.2}, {used:.2}, {shares:.2}"));
            }
        }
    }
    assert!(bad.is_empty(), "{bad:#?}");
    assert!(controllers().contains(&"cubic") && !controllers().contains(&"bbr"));
}

/// The receiver decides on the delay and the number of ACKs (RFC 9000 § 13.2, ACK frequency).
#[test]
fn fewer_acks_go_with_a_higher_threshold() {
    let acks = |threshold: u32| {
        let endpoint = format!("endpoint = {{ ack_eliciting_threshold = {threshold} }}");
        let run_of = "duration = \"20 s\"\nsample = \"none\"";
        let reverse = "reverse_rate = \"10 Mbit/s\"";
        let records = run(&alone(run_of, reverse, &format!("{QUIC}\n{endpoint}")));
        at(&records.links, 1, "delivered_total_pkts") / flow(&records, "segments_sent")
    };
    let [each, second, tenth] = [0, 1, 9].map(acks);
    assert!((0.97..=1.0).contains(&each), "{each}");
    assert!((0.49..0.56).contains(&second), "{second}");
    assert!((0.10..0.16).contains(&tenth), "{tenth}");
}

/// An ACK ends the backoff, and the probe timeout of data sent long before is then overdue (§ A.8):
/// its timer is set in the past.
#[test]
fn a_probe_timeout_that_is_overdue_fires_at_once() {
    let records = run_audited(World::new(scenario(
        r#"
        [run]
        duration = "2 s"
        seed = 538427764
        sample = "90 ms"
        [dumbbell]
        rate = "200 kbit/s"
        queue = { kind = "fifo", limit = "1 packets" }
        reverse_rate = "434 kbit/s"
        reverse_queue = { kind = "fq-codel" }
        bdp_rtt = "50 ms"
        [flow.main]
        rtt = "1 ms"
        count = 2
        stack = "quic"
        direction = "reverse"
        workload = { kind = "bytes", size = "1 B" }
        [flow.main.endpoint]
        time_threshold = 1.869
        ack_eliciting_threshold = 0
        reordering_threshold = 0
        max_ack_delay = "0 ms"
        initial_window = 16
        max_datagram_size = "1486 B"
        initial_rtt = "50 ms"
        max_window = "6000 B"
        [flow.main.arrivals]
        kind = "list"
        rows = """1030 ms, , , 4359 B; 0 ms, , , 5121 B; 0 ms, , , 8718 B; 1287 ms, , , 662 B; \
                  0 ms, , , 8718 B; 704 ms, , , 4359 B; 0 ms, , , 1419 B"""
        "#,
    )));
    assert!(column(&records.flows, "fct_s").iter().any(|fct| !fct.is_nan()));
}

/// The shipped scenario as a table: goodput and retransmissions of each flow, by controller and
/// queue.
#[test]
fn quic_and_linux_share_a_link() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios/quic-beside-tcp.toml");
    let text = fs::read_to_string(file).expect("it is shipped");
    let no_files = |name: &str| Err(format!("no file `{name}`"));
    let document = Document::parse("quic-beside-tcp.toml", &text, &no_files);
    let plan = document.and_then(|document| document.plan()).expect("it is right");
    let mut points: Vec<(String, Vec<[f64; 5]>)> = Vec::new();
    for cell in plan.cells {
        let labels = cell.axes.iter().map(|axis| format!("{:8}", axis.label));
        let labels = labels.collect::<Vec<_>>().join(" ");
        let records = World::new(Arc::new(cell.scenario)).run(|_| true).expect("nothing stops it");
        let of = |row, name| at(&records.flows, row, name);
        let measured = [
            of(0, "goodput_bit_s") / 1e6,
            of(1, "goodput_bit_s") / 1e6,
            100.0 * of(0, "loss_ratio"),
            100.0 * of(1, "loss_ratio"),
            of(1, "rto_count"),
        ];
        match points.iter_mut().find(|(point, _)| *point == labels) {
            Some((_, runs)) => runs.push(measured),
            None => points.push((labels, vec![measured])),
        }
    }
    let mut table =
        "# scenarios/quic-beside-tcp.toml, means of 5 runs: goodput in Mbit/s, packets \
                     sent again in %, PTOs of QUIC.\n# controller queue   tcp   quic tcp_again \
                     quic_again ptos\n"
            .to_owned();
    for (labels, runs) in points {
        let mean = |i: usize| runs.iter().map(|run| run[i]).sum::<f64>() / runs.len() as f64;
        let [tcp, quic, tcp_again, quic_again, ptos] = [0, 1, 2, 3, 4].map(mean);
        table += &format!(
            "{labels} {tcp:6.2} {quic:6.2} {tcp_again:9.3} {quic_again:10.3} {ptos:4.1}\n"
        );
        assert!(tcp + quic > 14.0, "{labels}: {tcp} and {quic}");
    }
    assert_golden("quic-beside-tcp.txt", &table);
}

/// Returns the rows that end with decimal numbers: the words before these, without table marks and
/// `FIFO`, and the numbers.
fn rows(text: &str) -> Vec<(String, Vec<String>)> {
    let row = |line: &str| {
        let words: Vec<&str> =
            line.split([' ', '|', ',']).filter(|word| !word.is_empty()).collect();
        let is_value = |word: &&str| word.contains('.') && word.parse::<f64>().is_ok();
        let first = words.iter().rposition(|word| !is_value(word)).map_or(0, |last| last + 1);
        let values: Vec<String> = words[first..].iter().map(|&word| word.to_owned()).collect();
        (words[..first].join(" ").replace("FIFO ", ""), values)
    };
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(row)
        .filter(|row| !row.1.is_empty())
        .collect()
}

#[test]
fn the_page_has_the_numbers_of_the_goldens() {
    let page = rows(include_str!("../../docs/reference/quic.md"));
    let goldens =
        [include_str!("../golden/quic-newreno.txt"), include_str!("../golden/quic-beside-tcp.txt")];
    for (what, values) in goldens.into_iter().flat_map(rows) {
        // The page may omit the last columns: retransmissions and PTOs.
        let shown = |row: &&(String, Vec<String>)| row.0 == what && values.starts_with(&row.1);
        assert_eq!(page.iter().filter(shown).count(), 1, "{what}: {values:?} of {page:?}");
    }
}
