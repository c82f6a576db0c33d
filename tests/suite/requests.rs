//! Connections opened by clients: requests, their losses, and response times.

use cwnd_sim::World;
use cwnd_tables::{ColumnData, Records};

use crate::common::{activity, column, run, run_audited, scenario};

/// Writes links of 10 Gbit/s and 25 ms in both directions, with further keys for each, and a group
/// of clients.
fn world(forward: &str, reverse: &str, flow: &str) -> String {
    format!(
        r#"
        [run]
        duration = "2000 s"
        sample = "none"
        [link.down]
        from = "server"
        to = "client"
        rate = "10 Gbit/s"
        delay = "25 ms"
        {forward}
        [link.up]
        from = "client"
        to = "server"
        rate = "10 Gbit/s"
        delay = "25 ms"
        {reverse}
        [flow.web]
        from = "server"
        to = "client"
        {flow}
    "#
    )
}

const RTT: f64 = 0.05;

fn outcomes(records: &Records) -> Vec<&str> {
    match records.requests.column("outcome") {
        Some(ColumnData::Name { codes, labels }) => {
            codes.iter().map(|code| labels[code.0 as usize].as_str()).collect()
        }
        other => panic!("{other:?}"),
    }
}

/// Returns the rounds of slow start for a number of segments if each ACK grows the window by one
/// segment.
fn rounds(segments: u64, initial: u64) -> u32 {
    (1..).find(|&n| initial * ((1 << n) - 1) >= segments).expect("it grows")
}

#[test]
fn without_loss_a_response_takes_the_handshake_the_request_and_the_rounds_of_slow_start() {
    for segments in [1, 4, 10, 11, 30, 31, 200] {
        let size = 1448 * segments;
        let records = run(&world(
            "",
            "",
            &format!(
                "endpoint = {{ ack_every = 1 }}\n\
                 workload = {{ kind = \"web\", size = \"{size} B\" }}"
            ),
        ));
        let took = column(&records.requests, "response_s")[0];
        // The last round takes half a round trip for the data, and the request took the other half.
        let expected = RTT * f64::from(1 + rounds(segments, 10));
        let on_the_wire = (size + 52 * (segments + 20)) as f64 * 8.0 / 10e9;
        assert!(took >= expected, "{segments} segments: {took} s, {expected} s expected");
        assert!(took < expected + on_the_wire, "{segments} segments: {took} s, {expected} s");
        assert_eq!(column(&records.flows, "fct_s")[0], took, "of one request both are the same");
        assert_eq!(outcomes(&records), ["answered"]);
        assert_eq!(activity(&records, "timeouts") + activity(&records, "retransmissions"), 0);
    }
}

#[test]
fn on_a_connection_that_stays_only_the_first_request_waits_for_the_handshake() {
    let records = run_audited(World::new(scenario(&world(
        "",
        "",
        "workload = { kind = \"web\", pages = 3, objects = 2, size = \"1448 B\", \
         request = \"500 B\", server_time = \"7 ms\", object_gap = \"11 ms\", reading = \"2 s\" }",
    ))));
    let took = column(&records.requests, "response_s");
    let start = column(&records.requests, "start_s");
    let sent = 1e-5;
    assert_eq!(took.len(), 6);
    for (i, (took, start)) in took.into_iter().zip(start).enumerate() {
        let handshake = if i == 0 { RTT } else { 0.0 };
        assert!((took - handshake - RTT - 0.007).abs() < sent, "request {i}: {took}");
        let pauses = (i / 2) as f64 * 2.0 + i.div_ceil(2) as f64 * 0.011;
        let before = if i == 0 { 0.0 } else { RTT + i as f64 * (RTT + 0.007) };
        assert!((start - before - pauses).abs() < 1e-3, "request {i} at {start}");
    }
    assert_eq!(column(&records.requests, "request"), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(column(&records.requests, "request_bytes"), [500.0; 6]);
    assert_eq!(column(&records.requests, "response_bytes"), [1448.0; 6]);
    assert_eq!(activity(&records, "timeouts"), 0, "pauses are no losses");
}

#[test]
fn data_acknowledges_what_it_answers() {
    // Responses and next requests are sent at once and carry the ACKs; only the last response has a
    // pure ACK. Client packets: SYN, request, two requests, ACK.
    let records =
        run(&world("", "", "workload = { kind = \"web\", objects = 3, size = \"1448 B\" }"));
    let [down, up] = [0, 1].map(|link| column(&records.links, "delivered_pkts")[link]);
    assert_eq!((down, up), (4.0, 5.0), "SYN-ACK and three responses; SYN, three requests, an ACK");
}

#[test]
fn a_connection_is_rejected_as_often_as_all_its_syns_or_answers_are_lost() {
    // (loss towards clients, loss from clients, SYNs)
    for (down, up, syns) in [(0.0, 0.5, 3), (0.0, 0.5, 5), (0.3, 0.2, 3)] {
        let text = world(
            &format!("loss = {down}"),
            &format!("loss = {up}"),
            &format!(
                "endpoint = {{ syn_retries = {} }}\n\
                 workload = {{ kind = \"web\", interval = \"100 ms\", size = \"1448 B\" }}",
                syns - 1
            ),
        );
        let records = run(&text);
        let outcomes = outcomes(&records);
        let over = outcomes.iter().filter(|&&o| o != "open").count() as f64;
        let rejected = outcomes.iter().filter(|&&o| o == "rejected").count() as f64;
        let p: f64 = 1.0 - (1.0 - down) * (1.0 - up);
        let expected = p.powi(syns);
        let deviation = (expected * (1.0 - expected) / over).sqrt();
        assert!(over > 15_000.0, "{over} connections");
        assert!(
            (rejected / over - expected).abs() < 4.0 * deviation,
            "{rejected} of {over}, {expected} expected"
        );
        assert_eq!(activity(&records, "given_up_at_syn") as f64, rejected);
    }
}

/// Runs 20 requests of 1 kB on a connection whose client loses packets (SYN, request, ACK); all are
/// answered in the end.
fn lossy_requests(loss: &str, endpoint: &str) -> Records {
    let records = run_audited(World::new(scenario(&world(
        "",
        loss,
        &format!(
            "endpoint = {{ preset = \"linux\", {endpoint} }}\n\
             workload = {{ kind = \"web\", pages = 20, reading = \"10 s\", request = \"1 kB\", \
             size = \"5 kB\" }}"
        ),
    ))));
    assert_eq!(outcomes(&records), ["answered"; 20]);
    records
}

/// Returns the timeouts of all requests, and the number of responses that took more than 0.2 s, as
/// those do whose request has a timeout.
fn timeouts_and_slow(records: &Records) -> (f64, usize) {
    let slow = column(&records.requests, "response_s").into_iter().filter(|&s| s > 0.2).count();
    (column(&records.requests, "request_timeouts")[19], slow)
}

#[test]
fn what_is_lost_of_a_request_has_a_timer_of_its_own() {
    let (timeouts, slow) =
        timeouts_and_slow(&lossy_requests("loss_every = 3", "tail_loss_probe = false"));
    assert!(timeouts > 3.0, "{timeouts}");
    assert!(slow as f64 >= timeouts, "each shows in the response time: {slow} of {timeouts}");
}

#[test]
fn what_is_lost_of_a_request_a_probe_sends_again_where_the_endpoint_has_one() {
    // RFC 8985 § 7.2: for a single segment the probe replaces the timeout and is sent no later. A
    // timeout means that the probe was lost, too.
    let at = |probe| lossy_requests("loss = 0.3", &format!("tail_loss_probe = {probe}"));
    let (timeouts, slow) = timeouts_and_slow(&at(true));
    let (without, _) = timeouts_and_slow(&at(false));
    assert!(without > 3.0 && timeouts * 2.0 <= without, "{timeouts}, {without} without probes");
    assert!(slow as f64 > timeouts, "others were lost, too: {slow} slow, {timeouts} timeouts");
}

#[test]
fn requests_of_before_the_end_of_the_warm_up_are_not_there() {
    let text = world("", "", "workload = { kind = \"web\", interval = \"1 s\", size = \"9 kB\" }")
        .replace("sample =", "warmup = \"1000 s\"\nsample =");
    let records = run(&text);
    let start = column(&records.requests, "start_s");
    assert!((800..1200).contains(&start.len()), "{}", start.len());
    assert!(start.iter().all(|&s| s >= 1000.0));
}

/// Returns the columns `start_s` and `acked_s` of all requests, in order of time.
fn started_and_acked(records: &Records) -> Vec<(f64, f64)> {
    let (start, acked) =
        (column(&records.requests, "start_s"), column(&records.requests, "acked_s"));
    let mut both: Vec<(f64, f64)> = start.into_iter().zip(acked).collect();
    both.sort_by(|a, b| a.0.total_cmp(&b.0));
    both
}

/// Runs a user who fetches objects of one segment, each over its own connection.
fn user(more: &str) -> Records {
    run_audited(World::new(scenario(&world(
        "",
        "",
        &format!(
            "endpoint = {{ ack_every = 1 }}\n\
             workload = {{ kind = \"web\", connections = \"object\", size = \"1448 B\", \
             object_gap = \"10 ms\", reading = \"1 s\", {more} }}"
        ),
    ))))
}

#[test]
fn a_user_opens_a_connection_for_each_object_and_reads_when_the_last_is_over() {
    // Handshake and response take two round trips; half of another one later the last ACK is at the
    // server.
    let object = 2.5 * RTT;
    let page = |begin: f64, starts: [f64; 3]| starts.map(|start| begin + start);
    for (parallel, starts) in [
        ("\"none\"", [0.0, 0.01, 0.02]),
        ("2", [0.0, 0.01, object + 0.01]),
        ("1", [0.0, object + 0.01, 2.0 * (object + 0.01)]),
    ] {
        let records = user(&format!("pages = 2, objects = 3, parallel = {parallel}"));
        let second = starts[2] + object + 1.0;
        let expected = [page(0.0, starts), page(second, starts)].concat();
        let found = started_and_acked(&records);
        assert_eq!((found.len(), records.flows.len()), (6, 6), "a connection for each object");
        for ((start, acked), expected) in found.into_iter().zip(expected) {
            assert!((start - expected).abs() < 1e-4, "{parallel}: {start}, not {expected}");
            assert!((acked - object).abs() < 1e-4, "{acked}");
        }
        assert!(column(&records.requests, "request").into_iter().all(|n| n == 1.0));
    }
}

#[test]
fn the_last_acknowledgement_comes_after_the_response_or_with_the_next_request() {
    let session = "endpoint = { ack_every = 1 }\n\
                   workload = { kind = \"web\", objects = 3, size = \"30 kB\" }";
    let records = run_audited(World::new(scenario(&world("", "", session))));
    let (response, acked) =
        (column(&records.requests, "response_s"), column(&records.requests, "acked_s"));
    for (response, acked) in response.into_iter().zip(acked) {
        assert!((acked - response - RTT / 2.0).abs() < 1e-6, "{response} and {acked}");
    }
}

#[test]
fn pages_and_objects_are_drawn_and_sessions_come_at_random() {
    for connections in ["session", "object"] {
        let records = run(&world(
            "",
            "",
            &format!(
                "stop = \"1900 s\"\n\
                 workload = {{ kind = \"web\", interval = \"1 s\", \
                 connections = \"{connections}\", parallel = 6, pages = \"exponential(2)\", \
                 objects = \"lomax(2.5, 3)\", size = \"2 kB\" }}"
            ),
        ));
        // An exponential number with mean 2, rounded up, is geometric with mean 1 / (1 − e^(−1/2))
        // = 2.54. For lomax(2.5, 3), rounded up, the mean is about 3.5, the sum of
        // (1 + k/4.5)^−2.5 over k. The standard deviations are about one and two times the means.
        let expected = 1900.0 * 2.54 * 3.53;
        let found = records.requests.len() as f64;
        assert!((found / expected - 1.0).abs() < 0.15, "{connections}: {found} of {expected}");
        assert!(outcomes(&records).iter().all(|&outcome| outcome == "answered"));
    }
}

#[test]
fn a_load_counts_all_objects_of_a_session() {
    for connections in ["session", "object"] {
        let records = run(&format!(
            "[run]\nduration = \"1000 s\"\nsample = \"none\"\n[dumbbell]\nrate = \"10 Mbit/s\"\n\
             [flow.web]\nrtt = \"20 ms\"\narrivals = {{ kind = \"poisson\", load = 0.4 }}\n\
             workload = {{ kind = \"web\", connections = \"{connections}\", pages = 2, \
             objects = \"exponential(3)\", size = \"5 kB\" }}\n"
        ));
        let carried = column(&records.links, "utilisation")[0];
        // Some 13,000 sessions of 7 objects; ACKs of requests take the same direction.
        assert!((carried - 0.4).abs() < 0.025, "{connections}: {carried}");
    }
}
