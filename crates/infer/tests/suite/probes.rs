//! Tail loss probes and timeouts, missing packets, and requests that did not reach the server.

use crate::conversation::{Conversation, MSS, PacketOptions, names, numbers, of_connection};

fn is(found: &[(String, String)], expected: &[(&str, &str)]) {
    let found: Vec<(&str, &str)> = found.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    assert_eq!(found, expected);
}

const PUSH: PacketOptions =
    PacketOptions { syn: false, fin: false, psh: true, window: None, dsack: None };

/// Length of the segments that follow four full ones, bytes.
const SHORT: u32 = 300;

/// Repeats the last segment about two round trips after the server received its ACK, `times` times.
/// No timeout is that short.
fn probing(times: u32) -> Conversation {
    let mut conversation = Conversation::new(4);
    for i in 0..times {
        let at = 1000.0 * f64::from(i + 1);
        let begins = 4 * MSS + i * SHORT;
        conversation.server_says(at, begins, SHORT, PUSH);
        conversation.client(at + 0.1, 0, begins + SHORT);
        conversation.server_says(at + 160.0, begins, SHORT, PUSH);
        conversation.client(at + 160.1, 0, begins + SHORT);
    }
    conversation
}

/// Repeats the only unacknowledged segment after about SRTT + 200 ms, and again after the same
/// time.
fn and_lost_acknowledgements(mut conversation: Conversation, shorts: u32) -> Conversation {
    for at in [9000.0, 9260.0, 9520.0] {
        conversation.server_says(at, 4 * MSS + shorts * SHORT, SHORT, PUSH);
    }
    conversation
}

#[test]
fn the_first_retransmission_of_a_server_that_probes_is_a_probe() {
    let found = and_lost_acknowledgements(probing(3), 3).found();
    let kinds = names(&found.silences, "kind");
    assert_eq!(kinds[kinds.len() - 2..], ["probe", "timeout"]);
    assert_eq!(of_connection(&found, "timeouts"), 1.0);
    assert_eq!(of_connection(&found, "consecutive"), 1.0, "a probe does not double a timer");
}

#[test]
fn of_a_server_of_which_nothing_is_known_it_may_be_either() {
    let found = and_lost_acknowledgements(Conversation::new(4), 0).found();
    let kinds = names(&found.silences, "kind");
    assert_eq!(kinds[kinds.len() - 2..], ["ambiguous", "timeout"]);
    assert_eq!(names(&found.connections, "backoff"), ["unclear"]);
}

#[test]
fn what_an_acknowledgement_announced_was_sent_before() {
    let mut conversation = Conversation::new(4);
    // A segment is lost. The ACK of a request has the sequence number behind it.
    conversation.server(200.0, 5 * MSS, 0);
    conversation.server(900.0, 4 * MSS, MSS);
    conversation.client(900.1, 0, 5 * MSS);
    is(&conversation.silences(), &[("timeout", "announced")]);
}

#[test]
fn what_was_announced_was_sent_when_the_request_came_first() {
    let mut conversation = Conversation::empty();
    conversation.identifications = true;
    conversation.open();
    conversation.flight(101.0, 0, 4);
    conversation.client(160.0, 100, 4 * MSS);
    // The response and the ACK of the request are lost. The request and its ACK are repeated.
    conversation.lose(1);
    conversation.client_again(410.0, 100, 4 * MSS);
    conversation.server(460.0, 4 * MSS + SHORT, 0);
    // RTO = 50 + 200 ms, then 500 ms; the first retransmission is lost.
    conversation.lose(1);
    conversation.server_says(960.0, 4 * MSS, SHORT, PUSH);
    let found = conversation.found();
    is(&crate::conversation::silences(&found), &[("timeout", "announced")]);
    assert_eq!(numbers(&found.silences, "offset"), [f64::from(4 * MSS)]);
}

#[test]
fn what_had_arrived_comes_again_although_more_was_written_meanwhile() {
    let mut conversation = Conversation::new(4);
    conversation.server(151.5, 4 * MSS, MSS);
    conversation.server_deaf_from = 151.5;
    conversation.client(151.6, 0, 5 * MSS);
    // The application writes while the timer runs.
    conversation.server_says(330.0, 5 * MSS, SHORT, PUSH);
    conversation.client(330.1, 0, 5 * MSS + SHORT);
    conversation.server(412.0, 4 * MSS, MSS);
    is(&conversation.silences(), &[("timeout", "repeated_data")]);
}

#[test]
fn data_behind_a_hole_are_no_timeout() {
    let mut conversation = Conversation::new(4);
    conversation.server(151.0, 5 * MSS, MSS);
    conversation.client(151.1, 0, 4 * MSS);
    // A timeout would send the missing segment.
    conversation.server(600.0, 6 * MSS, MSS);
    conversation.client(600.1, 0, 4 * MSS);
    is(&conversation.silences(), &[("pause", "beyond_hole")]);
}

#[test]
fn a_fin_that_comes_again_is_no_timeout_of_data() {
    let mut conversation = Conversation::new(4);
    let fin = PacketOptions { fin: true, ..PacketOptions::default() };
    conversation.server_says(151.0, 4 * MSS, 0, fin);
    conversation.server_says(451.0, 4 * MSS, 0, fin);
    let found = conversation.found();
    assert_eq!(names(&found.silences, "what"), ["fin"]);
    assert_eq!(of_connection(&found, "timeouts"), 0.0);
}

/// Packets after a long RTT sample: the ACKs of four segments were lost, and the next one, 600 ms
/// later, acknowledges them.
fn with_a_long_sample() -> Conversation {
    let mut conversation = Conversation::empty();
    conversation.open();
    conversation.server_deaf_from = 100.0;
    conversation.flight(101.0, 0, 4);
    conversation.server_says(650.0, 4 * MSS, SHORT, PUSH);
    conversation.server_deaf_from = f64::INFINITY;
    conversation.client(701.0, 0, 4 * MSS + SHORT);
    conversation.server_says(752.0, 4 * MSS + SHORT, SHORT, PUSH);
    conversation.client(752.1, 0, 4 * MSS + 2 * SHORT);
    conversation
}

/// Adds a timeout as long as the RTO after that sample.
fn with_a_long_timeout() -> Conversation {
    let mut conversation = with_a_long_sample();
    let next = 4 * MSS + 2 * SHORT;
    conversation.server(803.0, next + MSS, MSS);
    conversation.client(803.1, 0, next);
    conversation.server(1620.0, next, MSS);
    conversation.client(1620.1, 0, next + 2 * MSS);
    conversation
}

#[test]
fn an_acknowledgement_that_was_lost_makes_the_timeout_of_linux_long() {
    // With samples of 50 ms there would be two timeouts, of 250 and 500 ms; with one of 650 ms,
    // only one.
    let found = with_a_long_timeout().found();
    let timeouts = numbers(&found.silences, "timeouts");
    let timers = numbers(&found.silences, "rto_ms");
    assert_eq!(timeouts.last(), Some(&1.0), "{timers:?}");
    assert!(timers.last().is_some_and(|ms| (700.0..830.0).contains(ms)), "{timers:?}");
}

#[test]
fn what_was_sent_again_at_once_and_lost_is_no_timeout() {
    let mut conversation = Conversation::empty();
    conversation.identifications = true;
    conversation.open();
    conversation.flight(101.0, 0, 4);
    conversation.lose(1);
    conversation.server(152.0, 5 * MSS, MSS);
    conversation.client(152.1, 0, 4 * MSS);
    // The immediate repair of the hole is lost; the timer of 250 ms begins with it, or later.
    conversation.lose(1);
    conversation.server(952.0, 4 * MSS, MSS);
    let found = conversation.found();
    assert_eq!(of_connection(&found, "timeouts"), 1.0, "of two packets one was no timeout");
}

#[test]
fn a_server_remembers_how_far_its_client_is() {
    let fin = PacketOptions { fin: true, ..PacketOptions::default() };
    let mut first = with_a_long_timeout();
    let end = 6 * MSS + 2 * SHORT;
    first.client_says(1621.0, 0, end, fin);
    first.server_says(1672.0, end, 0, fin);
    first.client(1672.1, 0, end + 1);
    // The server receives no ACK of the second connection's data.
    let mut second = Conversation::empty();
    second.open();
    second.server_deaf_from = 100.0;
    second.server(101.0, MSS, MSS);
    second.client(101.1, 0, 0);
    second.server(415.0, 0, MSS);
    second.packets.iter_mut().for_each(|(at, _)| *at += 60_000.0);
    let timer = |talks: [&Conversation; 2]| {
        let mut inference = cwnd_infer::Inference::new(cwnd_infer::Limits::default());
        for conversation in talks {
            let file = conversation.pcap();
            let input = cwnd_infer::Input::of("conversation", &file);
            inference.read(&[input], || true).expect("it is a capture");
        }
        let timers = numbers(&inference.finish().silences, "rto_ms");
        timers[timers.len() - 1]
    };
    let after = timer([&first, &second]);
    assert!((300.5..350.0).contains(&after), "three of the round trips that it remembers: {after}");
    // Metrics of a connection that has not ended are not kept.
    first.packets.truncate(first.packets.len() - 3);
    let before = timer([&first, &second]);
    assert!(before < 300.5, "{before}");
}

#[test]
fn a_server_that_was_idle_fills_a_hole_by_its_timer_whatever_follows() {
    let mut conversation = Conversation::new(4);
    conversation.server(151.0, 5 * MSS, MSS);
    conversation.client(151.1, 0, 4 * MSS);
    // The immediate retransmission is lost. The application writes more just before the timer
    // expires …
    conversation.server(365.0, 6 * MSS, MSS);
    conversation.client(365.1, 0, 4 * MSS);
    conversation.server(412.0, 4 * MSS, MSS);
    conversation.client(412.1, 0, 7 * MSS);
    // … and the client's ACK of that releases more.
    conversation.server(416.0, 7 * MSS, MSS);
    conversation.server(416.1, 8 * MSS, MSS);
    is(&conversation.silences(), &[("pause", "beyond_hole"), ("timeout", "stalled")]);
}

/// Four segments of a server that numbers its packets. If the SYN-ACK has the number zero, it is
/// Linux.
fn counting(zero: bool) -> Conversation {
    let mut conversation = Conversation::empty();
    (conversation.identifications, conversation.zero_identification) = (true, zero);
    conversation.open();
    conversation.flight(101.0, 0, 4);
    conversation
}

#[test]
fn linux_repairs_a_hole_when_it_hears_of_what_came_last() {
    let timeouts = |linux| {
        let mut conversation = counting(linux);
        conversation.lose(1);
        conversation.server(152.0, 5 * MSS, MSS);
        conversation.client(152.1, 0, 4 * MSS);
        // The server misses that ACK and receives the next; its immediate retransmission is lost.
        conversation.server(220.0, 6 * MSS, MSS);
        conversation.client(220.1, 0, 4 * MSS);
        conversation.lose(1);
        conversation.server(970.0, 4 * MSS, MSS);
        of_connection(&conversation.found(), "timeouts")
    };
    assert_eq!(timeouts(true), 1.0, "the packet that is missing was no timeout");
    assert_eq!(timeouts(false), 2.0, "of others it is not known");
}

#[test]
fn more_packets_than_a_timer_sends_were_the_end_of_what_was_written() {
    let after = |lost| {
        let mut conversation = counting(true);
        // The ACK of this is lost, and so are the following segment and its probe.
        conversation.server_deaf_from = 150.0;
        conversation.server(152.0, 4 * MSS, MSS);
        conversation.client(152.1, 0, 5 * MSS);
        conversation.lose(lost);
        conversation.server(460.0, 4 * MSS, MSS);
        let twice = PacketOptions { dsack: Some((4 * MSS, 5 * MSS)), ..PacketOptions::default() };
        conversation.client_says(460.1, 0, 5 * MSS, twice);
        conversation.server_deaf_from = f64::INFINITY;
        conversation.server_says(1100.0, 5 * MSS, SHORT, PUSH);
        conversation.silences().pop().expect("there are some")
    };
    assert_eq!(after(2), ("timeout".to_owned(), "announced".to_owned()));
    // A single missing packet may have been the probe of the segment that was repeated.
    assert_eq!(after(1), ("pause".to_owned(), "ip_id_next".to_owned()));
}

#[test]
fn a_server_of_which_only_a_late_syn_ack_comes_is_none_that_times_out() {
    let mut conversation = Conversation::empty();
    let syn = PacketOptions { syn: true, ..PacketOptions::default() };
    for at in [0.0, 1000.0, 3020.0] {
        conversation.client_says(at, 0, 0, syn);
    }
    // The server responds to the second SYN after the third was sent.
    conversation.server_says(3050.0, 0, 0, syn);
    conversation.client(3050.1, 0, 0);
    conversation.client(3050.2, 100, 0);
    for at in [3300.0, 3800.0, 4800.0] {
        conversation.client_again(at, 100, 0);
    }
    let found = conversation.found();
    assert_eq!(of_connection(&found, "server_port"), 80.0);
    assert_eq!(of_connection(&found, "timeouts"), 0.0, "its client's are others");
}

#[test]
fn linux_has_the_timers_of_linux_though_others_would_fit_better() {
    let timer = |linux| {
        let mut conversation = Conversation::empty();
        (conversation.identifications, conversation.zero_identification) = (true, linux);
        conversation.open();
        // No packet of the client after its request arrives: 300 ms after the request, the first
        // segment comes again.
        conversation.server_deaf_from = 100.0;
        conversation.flight(101.0, 0, 4);
        conversation.server(402.0, 0, MSS);
        numbers(&conversation.found().silences, "rto_ms")[0]
    };
    assert!((245.0..265.0).contains(&timer(true)), "{}", timer(true));
    assert!(timer(false) > 290.0, "{}", timer(false));
}

#[test]
fn a_timer_that_is_longer_than_known_was_as_many_as_packets_are_missing() {
    let mut conversation = counting(true);
    conversation.lose(1);
    conversation.server(152.0, 5 * MSS, MSS);
    conversation.client(152.1, 0, 4 * MSS);
    // Sent at once, by the timer, and now: after 6.7 s, and 13.3 s later.
    conversation.lose(2);
    conversation.server(20_200.0, 4 * MSS, MSS);
    assert_eq!(of_connection(&conversation.found(), "timeouts"), 2.0);
}
