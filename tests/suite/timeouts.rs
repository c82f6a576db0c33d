//! Ground truth on timeouts, abandoned connections, dead packets and duplicates, which only the
//! simulator knows. Spurious timeouts, while the path is longer for a while and nothing is lost
//! (RFC 5682, RFC 3522, RFC 4015), and reordered packets that are not lost (RFC 8985 § 6.2).

use cwnd_sim::World;
use cwnd_tables::Records;

use crate::common::{activity, at, column, run, run_audited, scenario};

/// Runs flows over two links from `a` over `b` to `c`, and a reverse link. By default a link has no
/// rate and loses nothing.
fn in_a_row(run: &str, first: &str, second: &str, back: &str, flows: &str) -> Records {
    let first_delay = if first.contains("delay") { "" } else { "delay = \"10 ms\"" };
    let [first, second, back] = [first, second, back].map(|link| {
        let any = if link.contains("rate") { "" } else { "rate = \"none\"\n" };
        format!("{any}{link}")
    });
    run_audited(World::new(scenario(&format!(
        r#"
        [run]
        sample = "none"
        {run}
        [link.first]
        from = "a"
        to = "b"
        {first_delay}
        {first}
        [link.second]
        from = "b"
        to = "c"
        delay = "10 ms"
        {second}
        [link.back]
        from = "c"
        to = "a"
        delay = "10 ms"
        {back}
        {flows}
        "#
    ))))
}

const FIRST: usize = 0;
const SECOND: usize = 1;

/// Returns the ground truth on all timeouts of the first flow: total, data in flight, ACK late, ACK
/// lost.
fn timeouts(records: &Records) -> [f64; 4] {
    let flow = |name| at(&records.flows, 0, name);
    let all = flow("rto_count") + flow("rto_syn") + flow("rto_request");
    [all, flow("rto_under_way"), flow("rto_ack_late"), flow("rto_ack_lost")]
}

fn one(endpoint: &str) -> String {
    format!("[flow.main]\nfrom = \"a\"\nto = \"c\"\nendpoint = {{ {endpoint} }}\n")
}

#[test]
fn a_timeout_behind_a_loss_is_that_of_a_segment_that_is_gone() {
    let flow = one("rto_backoff = \"off\"");
    let records = in_a_row("duration = \"60 s\"", "rate = \"1 Mbit/s\"", "loss = 0.3", "", &flow);
    let [all, under_way, ack_late, ack_lost] = timeouts(&records);
    assert!(all > 20.0, "{all} timeouts");
    assert_eq!([under_way, ack_late, ack_lost], [0.0; 3]);
    assert_eq!(records.activity.get("timeouts_under_way"), None, "what never happened is not told");
}

#[test]
fn a_queue_that_grows_longer_than_the_timeout_makes_it_expire_for_what_still_waits() {
    // From 2 s on a packet takes 3 s, with more than a hundred in flight: nothing is lost, but all
    // packets are late.
    let first = "rate = { initial = \"10 Mbit/s\", steps = [{ at = \"2 s\", rate = \"4 kbit/s\" }, \
                 { at = \"250 s\", rate = \"10 Mbit/s\" }] }\n\
                 queue = { kind = \"fifo\", limit = \"100000 packets\" }";
    let flow = one("rto_backoff = \"off\", max_window = \"200 kB\"");
    let records = in_a_row("duration = \"300 s\"", first, "", "", &flow);
    let [all, under_way, ack_late, ack_lost] = timeouts(&records);
    assert!(all >= 2.0, "{all} timeouts");
    assert_eq!((under_way + ack_late, ack_lost), (all, 0.0), "RTO < RTT each time");
    assert!(under_way > 0.0);
    assert_eq!(activity(&records, "timeouts_under_way") as f64, under_way);
    // The retransmitted data had not been lost: it arrives as duplicates, over both links.
    let duplicates = at(&records.flows, 0, "duplicates");
    assert!(duplicates > 0.0);
    for link in [FIRST, SECOND] {
        assert_eq!(at(&records.links, link, "duplicate_pkts"), duplicates);
    }
}

#[test]
fn where_acks_are_lost_the_segment_had_arrived() {
    let flow = one("handshake = false");
    let records = in_a_row("duration = \"60 s\"", "rate = \"1 Mbit/s\"", "", "loss = 1.0", &flow);
    let [all, under_way, ack_late, ack_lost] = timeouts(&records);
    assert!(all >= 5.0);
    assert_eq!([under_way, ack_late, ack_lost], [0.0, 0.0, all]);
    // Each timeout retransmits a segment that has already arrived.
    assert_eq!(at(&records.flows, 0, "duplicates"), all);
}

#[test]
fn an_ack_that_takes_longer_than_the_timeout_is_late() {
    let transfer = "workload = { kind = \"bytes\", size = \"10 kB\" }\n";
    let flow = one("handshake = false, rto_backoff = \"off\"") + transfer;
    let records = in_a_row("duration = \"60 s\"", "", "", "rate = \"100 bit/s\"", &flow);
    let [all, under_way, ack_late, ack_lost] = timeouts(&records);
    assert!(all >= 3.0, "{all}");
    assert_eq!([under_way, ack_late, ack_lost], [0.0, all, 0.0]);
}

#[test]
fn a_syn_times_out_because_it_or_its_answer_is_lost_or_because_both_take_long() {
    let flow = one("syn_retries = 3");
    let none = "duration = \"60 s\"";
    let lost = in_a_row(none, "", "loss = 1.0", "", &flow);
    assert_eq!(timeouts(&lost), [4.0, 0.0, 0.0, 0.0]);
    let answer_lost = in_a_row(none, "", "", "loss = 1.0", &flow);
    assert_eq!(timeouts(&answer_lost), [4.0, 0.0, 0.0, 4.0]);
    // 52 B at 20 bit/s take 20.8 s. SYNs are sent at 0, 1, 3 and 7 s, and the attempt ends at 15 s.
    let slow = in_a_row(none, "rate = \"20 bit/s\"", "", "", &flow);
    assert_eq!(timeouts(&slow), [4.0, 4.0, 0.0, 0.0]);
    for records in [lost, answer_lost, slow] {
        assert_eq!(at(&records.flows, 0, "rto_syn"), 4.0);
        assert_eq!(at(&records.flows, 0, "gave_up"), 1.0, "the second name: syn");
        assert_eq!(activity(&records, "given_up_at_syn"), 1);
    }
}

#[test]
fn data_that_is_given_up_is_counted_and_nothing_is_sent_any_more() {
    let flow = one("handshake = false, data_retries = 2");
    let records = in_a_row("duration = \"600 s\"", "", "loss = 1.0", "", &flow);
    assert_eq!(at(&records.flows, 0, "rto_count"), 3.0);
    assert_eq!(at(&records.flows, 0, "gave_up"), 2.0, "the third name: data");
    assert_eq!(activity(&records, "given_up_at_data"), 1);
    // Ten initial segments, and two retransmissions.
    assert_eq!(at(&records.links, SECOND, "dropped_pkts"), 12.0);
}

/// Mondal & Kuzmanovic 2008, § 4.1: with random loss, p^k of the connections are abandoned after k
/// SYNs.
#[test]
fn connections_are_given_up_at_their_syns_as_often_as_the_loss_says() {
    for (loss, retries) in [(0.5, 2), (0.5, 4), (0.3, 2)] {
        let records = run(&format!(
            r#"
            [run]
            duration = "300 s"
            sample = "none"
            [dumbbell]
            rate = "1 Gbit/s"
            reverse_rate = "none"
            loss = {loss}
            [flow.web]
            rtt = "10 ms"
            workload = {{ kind = "poisson", interval = "30 ms", size = "1 kB" }}
            endpoint = {{ syn_retries = {retries}, rto_backoff = "off" }}
            "#
        ));
        // Connections of the last seconds may still be retrying.
        let started = column(&records.flows, "start_s");
        let gave_up = column(&records.flows, "gave_up");
        let early: Vec<_> =
            started.into_iter().zip(gave_up).filter(|&(at, _)| at < 290.0).collect();
        let all = early.len() as f64;
        let given_up = early.iter().filter(|&&(_, name)| name == 1.0).count() as f64;
        assert!(activity(&records, "given_up_at_syn") as f64 >= given_up);
        let p = f64::powi(loss, retries + 1);
        let deviation = (all * p * (1.0 - p)).sqrt();
        assert!(
            all > 9000.0 && (given_up - all * p).abs() < 4.0 * deviation,
            "{given_up} of {all}, {p}"
        );
    }
}

/// Mondal & Kuzmanovic 2008, eq. 7, in packets: data that the first link served and the second lost
/// is dead.
#[test]
fn what_a_later_link_loses_is_dead_at_the_earlier_ones() {
    let flows = r#"
        [flow.both]
        count = 4
        from = "a"
        to = "c"
        workload = { kind = "bytes", size = "1448 kB" }
        endpoint = { handshake = false, rto_max = "1 s" }
        "#;
    let duration = "duration = \"400 s\"";
    let first = "rate = \"10 Mbit/s\"\nloss = 0.01";
    let records = in_a_row(duration, first, "rate = \"10 Mbit/s\"\nloss = 0.05", "", flows);
    assert!(column(&records.flows, "fct_s").iter().all(|t| !t.is_nan()), "all are through");
    let link = |row, name| at(&records.links, row, name);
    let lost = link(SECOND, "dropped_pkts");
    assert!(lost > 100.0);
    assert_eq!((link(FIRST, "dead_pkts"), link(SECOND, "dead_pkts")), (lost, 0.0));
    assert_eq!(link(FIRST, "dead_bytes"), lost * 1500.0);
    assert_eq!(activity(&records, "dead_packets") as f64, lost);
    // Each of 1,000 segments of four flows arrived once; all other packets served were dead or
    // duplicates.
    for row in [FIRST, SECOND] {
        let wasted = link(row, "dead_pkts") + link(row, "duplicate_pkts");
        assert_eq!(link(row, "delivered_data_pkts") - wasted, 4000.0);
    }
    // α of the packets arriving at the first link: (1 − p1) p2 with L1 = 0.
    let alpha = lost / (link(FIRST, "arrived_pkts"));
    assert!((alpha - 0.99 * 0.05).abs() < 0.01, "{alpha}");
}

#[test]
fn a_count_of_dead_packets_begins_after_the_warm_up() {
    let flow = one("handshake = false, rto_backoff = \"off\", initial_window = 1");
    let run = |warmup: &str| {
        let keys = format!("duration = \"10500 ms\"\nwarmup = \"{warmup}\"");
        at(&in_a_row(&keys, "", "loss = 1.0", "", &flow).links, FIRST, "dead_pkts")
    };
    assert_eq!((run("0 s"), run("4500 ms")), (11.0, 6.0));
}

/// Runs a client at `c` that opens a connection to a server at `a` and requests 1 kB.
fn asked(first: &str, back: &str) -> Records {
    let flow = "[flow.main]\nfrom = \"a\"\nto = \"c\"\n\
                endpoint = { rto_initial = \"1 s\", syn_retries = 4 }\n\
                workload = { kind = \"web\", size = \"1 kB\" }\n";
    in_a_row("duration = \"60 s\"", first, "", back, flow)
}

#[test]
fn the_timers_of_clients_are_judged_like_those_of_servers() {
    let syns = |records: &Records| at(&records.flows, 0, "rto_syn");
    // All SYNs are lost.
    let gone = asked("", "loss = 1");
    assert_eq!((timeouts(&gone), syns(&gone)), ([5.0, 0.0, 0.0, 0.0], 5.0));
    // A SYN takes 1.04 s to send: its timer expires before it has left.
    let slow =
        asked("", "rate = \"400 bit/s\"\nqueue = { kind = \"fifo\", limit = \"100 packets\" }");
    assert!(syns(&slow) >= 1.0 && at(&slow.flows, 0, "rto_under_way") >= 1.0);
    assert_eq!(at(&slow.flows, 0, "rto_ack_lost"), 0.0);
    // The answer takes two seconds.
    let late = asked("delay = \"2 s\"", "");
    assert_eq!((at(&late.flows, 0, "rto_ack_late"), syns(&late)), (1.0, 1.0));
    // Every answer is lost.
    let unheard = asked("loss = 1", "");
    assert_eq!((timeouts(&unheard), syns(&unheard)), ([5.0, 0.0, 0.0, 5.0], 5.0));
    assert_eq!(activity(&unheard, "timeouts_ack_lost"), 5);
}

#[test]
fn a_request_that_arrived_and_whose_response_is_lost_is_told_apart() {
    // Every second packet of the server is lost: the SYN-ACK arrives, but the response that
    // acknowledges the request does not.
    let records = asked("loss_every = 2", "");
    let flow = |name| at(&records.flows, 0, name);
    assert!(flow("rto_request") >= 1.0 && flow("rto_syn") == 0.0);
    assert!(flow("rto_ack_lost") >= flow("rto_request"), "{}", flow("rto_ack_lost"));
    assert_eq!(flow("rto_under_way") + flow("rto_ack_late"), 0.0);
}

/// Runs Reno of Linux over 50 Mbit/s and 100 ms. Six times the path is a second longer for a
/// second, so that no packet arrives meanwhile.
fn reno(endpoint: &str) -> Records {
    run(&format!(
        r#"
        [run]
        duration = "60 s"
        sample = "none"
        [dumbbell]
        rate = "50 Mbit/s"
        queue = {{ kind = "fifo", limit = "1 BDP" }}
        bdp_rtt = "100 ms"
        delay_steps = [{{ at = "5 s", added = "1 s" }}, {{ at = "6 s", added = "0 ms" }}]
        delay_steps_period = "10 s"
        [flow.main]
        rtt = "100 ms"
        controller = {{ kind = "newreno", preset = "linux" }}
        endpoint = {endpoint}
        "#
    ))
}

fn mbit_s(records: &Records) -> f64 {
    at(&records.flows, 0, "goodput_bit_s") / 1e6
}

/// Linux 6.18 carries 33.3 Mbit/s: it undoes each of the six.
#[test]
fn a_second_without_arrivals_costs_linux_no_window() {
    let records = reno(r#""linux""#);
    assert!((mbit_s(&records) - 33.3).abs() < 2.0, "{} Mbit/s", mbit_s(&records));
    assert_eq!(activity(&records, "timeouts_undone"), 6);
    // F-RTO or Eifel alone detects all of them.
    for off in ["timeout_frto", "timeout_eifel"] {
        let records = reno(&format!(r#"{{ preset = "linux", {off} = false }}"#));
        assert_eq!(activity(&records, "timeouts_undone"), 6, "without {off}");
    }
}

/// Without F-RTO, Eifel and D-SACK none is undone: the window falls to one segment, the threshold
/// to half of the window before, and late packets are retransmitted.
#[test]
fn without_a_way_to_see_it_each_is_taken_for_a_loss() {
    let records =
        reno(r#"{ preset = "linux", timeout_frto = false, timeout_eifel = false, dsack = false }"#);
    assert!(mbit_s(&records) < 24.0, "{} Mbit/s", mbit_s(&records));
    assert!(records.activity.get("timeouts_undone").is_none());
    let again = activity(&records, "retransmissions");
    assert!(again > 2 * activity(&reno(r#""linux""#), "retransmissions"), "{again}");
}

/// Runs CUBIC of Linux, without parts of its stack, over 20 Mbit/s and 40 ms; a fraction of the
/// packets is `late` ms late.
fn cubic(part: f64, late: u64, without: &str) -> Records {
    run(&format!(
        r#"
        [run]
        duration = "30 s"
        sample = "none"
        [dumbbell]
        rate = "20 Mbit/s"
        queue = {{ kind = "fifo", limit = "1 BDP" }}
        bdp_rtt = "40 ms"
        reorder = {part}
        reorder_delay = "{late} ms"
        [flow.main]
        rtt = "40 ms"
        controller = {{ kind = "cubic", preset = "linux" }}
        stack = {{ base = "linux", without = {without} }}
        "#
    ))
}

/// Linux 6.18 carries 19.3 Mbit/s if one packet in a thousand is 5 ms late, and if one in a hundred
/// is.
#[test]
fn a_tenth_of_a_round_trip_late_costs_linux_nothing() {
    for part in [0.001, 0.01] {
        let records = cubic(part, 5, "[]");
        let mbit_s = at(&records.flows, 0, "goodput_bit_s") / 1e6;
        assert!((mbit_s - 19.3).abs() < 0.2, "{part}: {mbit_s} Mbit/s");
        assert!(activity(&records, "loss_reductions_undone") > 0, "{part}");
        // Without a rule for reordering each late packet is taken for lost.
        let records = cubic(part, 5, r#"["rack"]"#);
        let mbit_s = at(&records.flows, 0, "goodput_bit_s") / 1e6;
        assert!(mbit_s < 14.0, "{part}: {mbit_s} Mbit/s");
    }
}

/// On a path without reordering no reduction is undone.
#[test]
fn losses_alone_are_never_taken_back() {
    let records = cubic(0.0, 5, "[]");
    assert!(activity(&records, "loss_reductions") > 5);
    // The activity omits this counter if it is zero.
    assert!(records.activity.get("loss_reductions_undone").is_none());
}

/// Linux 6.18 carries 19.1 Mbit/s if one packet in a hundred is 20 ms late, twice the initial
/// reordering window: DSACK widens it.
#[test]
fn half_a_round_trip_late_widens_the_window_of_linux() {
    let records = cubic(0.01, 20, "[]");
    let mbit_s = at(&records.flows, 0, "goodput_bit_s") / 1e6;
    assert!((mbit_s - 19.1).abs() < 0.4, "{mbit_s} Mbit/s");
    let widened = activity(&records, "retransmissions");
    // A receiver without DSACK leaves the window as it is: late packets are retransmitted, 492
    // times on Linux in 30 s, and the timestamp echo undoes each reduction.
    let records = cubic(0.01, 20, r#"["dsack"]"#);
    let mbit_s = at(&records.flows, 0, "goodput_bit_s") / 1e6;
    assert!((mbit_s - 19.0).abs() < 0.4, "{mbit_s} Mbit/s");
    let again = activity(&records, "retransmissions");
    assert!(
        again > 300 && again > 5 * widened,
        "{again} with the first window, {widened} with wider ones"
    );
}

/// Transfers of 15 kB at 2 % loss: eleven segments, whose tail loss no later segment reveals. Linux
/// probes for it; RFC 6675 waits for the timer more than five times as often.
#[test]
fn short_transfers_hardly_ever_wait_for_the_timer() {
    let timeouts = |without: &str| {
        let records = run(&format!(
            r#"
            [run]
            duration = "60 s"
            sample = "none"
            [dumbbell]
            rate = "20 Mbit/s"
            queue = {{ kind = "fifo", limit = "1 BDP" }}
            bdp_rtt = "40 ms"
            loss = 0.02
            [flow.main]
            count = 10
            rtt = "40 ms"
            controller = {{ kind = "cubic", preset = "linux" }}
            stack = {{ base = "linux", without = {without} }}
            workload = {{ kind = "poisson", interval = "1 s", size = "15 kB" }}
            "#
        ));
        (activity(&records, "timeouts"), records.flows.len())
    };
    let (with, flows) = timeouts("[]");
    let (without, _) = timeouts(r#"["rack"]"#);
    // The rest are lost retransmissions with nothing sent after them.
    assert!(flows > 500 && 50 * with < flows as u64, "{with} of {flows}");
    assert!(without > 5 * with, "{with} with, {without} without");
}
