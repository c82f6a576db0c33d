//! Silences that look like timeouts but are none, and timeouts that do not look like one, with
//! their kind and evidence.

use crate::conversation::{Conversation, MSS, PacketOptions, names, of_connection};

fn is(found: &[(String, String)], expected: &[(&str, &str)]) {
    let found: Vec<(&str, &str)> = found.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_server_that_sends_several_segments_after_a_silence_had_paused() {
    let mut conversation = Conversation::new(4);
    conversation.flight(2000.0, 4, 4);
    is(&conversation.silences(), &[("pause", "burst")]);
    let found = conversation.found();
    assert_eq!(of_connection(&found, "rule_timeouts"), 1.0, "the paper's rule takes it for one");
    assert_eq!(of_connection(&found, "timeouts"), 0.0);
}

#[test]
fn a_short_segment_after_a_silence_may_be_either() {
    let mut conversation = Conversation::new(4);
    for i in 0..3 {
        let at = 1500.0 * f64::from(i + 1);
        conversation.server(at, 4 * MSS + i * 10, 10);
        conversation.client(at + 0.1, 0, 4 * MSS + (i + 1) * 10);
    }
    is(&conversation.silences(), &[("ambiguous", "none"); 3]);
}

#[test]
fn identifications_tell_what_was_sent_meanwhile() {
    let mut conversation = Conversation::empty();
    conversation.identifications = true;
    conversation.open();
    conversation.flight(101.0, 0, 10);
    conversation.server(1500.0, 10 * MSS, 10);
    conversation.client(1500.1, 0, 10 * MSS + 10);
    is(&conversation.silences(), &[("pause", "ip_id_next")]);
    let mut conversation = Conversation::empty();
    conversation.identifications = true;
    conversation.open();
    conversation.flight(101.0, 0, 10);
    // A segment that is sent and lost.
    let packets = conversation.packets.clone();
    conversation.server(110.0, 10 * MSS, MSS);
    conversation.packets = packets;
    conversation.server(500.0, 10 * MSS, MSS);
    conversation.client(500.1, 0, 11 * MSS);
    is(&conversation.silences(), &[("timeout", "ip_id_jump")]);
}

#[test]
fn a_hole_that_is_filled_after_a_silence_was_a_timeout() {
    let mut conversation = Conversation::new(4);
    conversation.server(151.0, 5 * MSS, MSS);
    conversation.client(151.1, 0, 4 * MSS);
    conversation.server(420.0, 4 * MSS, MSS);
    conversation.client(420.1, 0, 6 * MSS);
    is(&conversation.silences(), &[("timeout", "filled_hole")]);
    assert_eq!(of_connection(&conversation.found(), "filled"), 1.0);
}

#[test]
fn holes_are_filled_across_the_wrap_of_sequence_numbers() {
    let mut conversation = Conversation::new(13);
    // 2³² lies in segment 13.
    conversation.server(151.0, 14 * MSS, MSS);
    conversation.client(151.1, 0, 13 * MSS);
    conversation.server(420.0, 13 * MSS, MSS);
    conversation.client(420.1, 0, 15 * MSS);
    is(&conversation.silences(), &[("timeout", "filled_hole")]);
    assert_eq!(of_connection(&conversation.found(), "server_bytes"), f64::from(15 * MSS));
}

#[test]
fn a_retransmission_that_had_arrived_is_a_timeout_of_the_server_all_the_same() {
    let mut conversation = Conversation::new(4);
    conversation.server(420.0, 0, MSS);
    let dsack = Some((0, MSS));
    conversation.client_says(
        420.1,
        0,
        4 * MSS,
        PacketOptions { dsack, ..PacketOptions::default() },
    );
    is(&conversation.silences(), &[("timeout", "repeated_data")]);
    let found = conversation.found();
    assert_eq!(of_connection(&found, "repeated"), 1.0);
    assert_eq!(of_connection(&found, "dsacks"), 1.0);
}

#[test]
fn a_lost_tail_comes_again_alone_and_the_rest_when_it_is_acknowledged() {
    let mut conversation = Conversation::new(4);
    conversation.server(420.0, 4 * MSS, MSS);
    conversation.client(420.1, 0, 5 * MSS);
    conversation.flight(470.2, 5, 2);
    is(&conversation.silences(), &[("timeout", "slow_start")]);
}

#[test]
fn a_full_segment_without_push_was_not_the_last_of_a_write() {
    let mut conversation = Conversation::empty();
    conversation.open();
    conversation.server_says(
        101.0,
        0,
        500,
        PacketOptions { psh: true, ..PacketOptions::default() },
    );
    conversation.client(101.1, 0, 500);
    conversation.client(101.2, 100, 500);
    conversation.server(152.0, 500, MSS);
    conversation.client(152.1, 0, 500 + MSS);
    conversation.server_says(
        700.0,
        500 + MSS,
        300,
        PacketOptions { psh: true, ..PacketOptions::default() },
    );
    conversation.client(700.1, 0, 800 + MSS);
    is(&conversation.silences(), &[("timeout", "more_to_send")]);
}

#[test]
fn a_client_that_delays_its_acknowledgement_makes_the_silence_itself() {
    let mut conversation = Conversation::new(4);
    conversation.server(151.0, 4 * MSS, MSS);
    conversation.client(351.0, 0, 5 * MSS);
    conversation.flight(401.1, 5, 2);
    is(&conversation.silences(), &[("client", "ack_clocked")]);
}

#[test]
fn a_server_waits_for_a_window_that_is_closed() {
    let mut conversation = Conversation::new(4);
    let closed = PacketOptions { window: Some(0), ..PacketOptions::default() };
    conversation.server(151.0, 4 * MSS, MSS);
    conversation.client_says(151.1, 0, 5 * MSS, closed);
    // A window probe, which the client acknowledges.
    conversation.server(500.0, 5 * MSS, 1);
    conversation.client_says(500.1, 0, 5 * MSS, closed);
    conversation.client(1000.0, 0, 5 * MSS);
    conversation.flight(1050.1, 5, 3);
    is(&conversation.silences(), &[("window", "window")]);
    assert_eq!(of_connection(&conversation.found(), "keep_alives"), 1.0);
}

#[test]
fn segments_in_another_order_are_no_silence() {
    let mut conversation = Conversation::new(4);
    for (i, segment) in [5, 4, 7, 6].into_iter().enumerate() {
        conversation.server(151.0 + i as f64, segment * MSS, MSS);
    }
    conversation.client(155.0, 0, 8 * MSS);
    is(&conversation.silences(), &[]);
    assert_eq!(of_connection(&conversation.found(), "filled"), 2.0);
}

#[test]
fn keep_alives_are_counted_and_nothing_else() {
    let mut conversation = Conversation::new(4);
    for i in 1..4 {
        let at = 10_000.0 * f64::from(i);
        conversation.server(at, 4 * MSS - 1, 1);
        conversation.client(at + 0.1, 0, 4 * MSS);
    }
    is(&conversation.silences(), &[]);
    assert_eq!(of_connection(&conversation.found(), "keep_alives"), 3.0);
}

#[test]
fn a_server_that_was_not_asked_is_not_silent() {
    let mut conversation = Conversation::new(4);
    conversation.client(5000.0, 100, 4 * MSS);
    conversation.flight(5050.1, 4, 4);
    is(&conversation.silences(), &[]);
}

#[test]
fn a_server_that_was_asked_and_answers_late_is() {
    let mut conversation = Conversation::new(4);
    conversation.client(5000.0, 100, 4 * MSS);
    conversation.flight(5900.0, 4, 4);
    is(&conversation.silences(), &[("pause", "burst")]);
}

#[test]
fn a_connection_that_is_closed_late_had_paused() {
    let mut conversation = Conversation::new(4);
    conversation.server_says(
        5000.0,
        4 * MSS,
        0,
        PacketOptions { fin: true, ..PacketOptions::default() },
    );
    conversation.client(5000.1, 0, 4 * MSS + 1);
    is(&conversation.silences(), &[("pause", "fin_only")]);
}

#[test]
fn the_last_segment_alone_is_a_probe_if_others_were_not_acknowledged() {
    let mut conversation = Conversation::new(1);
    // The ACKs of three segments are lost beyond the capture point: the server echoes an older
    // timestamp.
    for i in 1..4 {
        conversation.server(151.0 + f64::from(i), i * MSS, MSS);
    }
    conversation.client(359.0, 0, 4 * MSS);
    conversation.server(360.0, 3 * MSS, MSS);
    conversation.client(360.1, 0, 4 * MSS);
    is(&conversation.silences(), &[("probe", "tail")]);
}

#[test]
fn timeouts_in_a_row_double_or_do_not() {
    for (gaps, backoff) in [([300.0, 600.0, 1200.0], "doubled"), ([300.0; 3], "constant")] {
        let mut conversation = Conversation::new(4);
        let mut at = 101.4;
        for gap in gaps {
            at += gap;
            // The client's ACK does not reach the server.
            conversation.server_says(at, 0, MSS, PacketOptions::default());
        }
        let found = conversation.found();
        is(&crate::conversation::silences(&found), &[("timeout", "repeated_data"); 3]);
        assert_eq!(of_connection(&found, "consecutive"), 3.0);
        assert_eq!(names(&found.connections, "backoff"), [backoff]);
    }
}

#[test]
fn timeouts_that_left_no_trace_are_in_the_length_of_a_silence() {
    let mut conversation = Conversation::new(4);
    let mut at = 151.0;
    let mut segment = 4;
    // RTO = 50 + 200 ms. At the third hole, the first retransmission is lost: 250 + 500 ms.
    for waits in [250.0, 250.0, 750.0] {
        conversation.server(at, (segment + 1) * MSS, MSS);
        conversation.client(at + 0.1, 0, segment * MSS);
        at += waits + 50.0;
        conversation.server(at, segment * MSS, MSS);
        segment += 2;
        conversation.client(at + 0.1, 0, segment * MSS);
        at += 50.2;
        conversation.flight(at, segment, 2);
        segment += 2;
        at += 50.5;
    }
    let found = conversation.found();
    is(&crate::conversation::silences(&found), &[("timeout", "filled_hole"); 3]);
    assert_eq!(crate::conversation::numbers(&found.silences, "timeouts"), [1.0, 1.0, 2.0]);
    assert_eq!(of_connection(&found, "timeouts"), 4.0);
    assert_eq!(of_connection(&found, "consecutive"), 2.0);
}

#[test]
fn syns_that_come_again_are_the_clients_timeouts() {
    let mut conversation = Conversation::empty();
    let syn = PacketOptions { syn: true, ..PacketOptions::default() };
    conversation.client_says(0.0, 0, 0, syn);
    conversation.client_says(1000.0, 0, 0, syn);
    conversation.client_says(3000.0, 0, 0, syn);
    conversation.server_says(3050.0, 0, 0, syn);
    conversation.server_says(4050.0, 0, 0, syn);
    conversation.client(4050.1, 0, 0);
    conversation.client(4050.2, 100, 0);
    conversation.flight(4100.3, 0, 2);
    let found = conversation.found();
    assert_eq!(names(&found.silences, "what"), ["syn", "syn", "syn_ack"]);
    assert_eq!(of_connection(&found, "syn_timeouts"), 2.0);
    assert_eq!(of_connection(&found, "syn_ack_timeouts"), 1.0);
    // Timestamps show which packet was answered.
    assert!((of_connection(&found, "rtt_ms") - 50.0).abs() < 1.0);
}

#[test]
fn without_timestamps_a_round_trip_is_that_of_the_handshake() {
    let mut conversation = Conversation::empty();
    conversation.timestamps = false;
    conversation.open();
    conversation.hole_filled_after_timeout();
    let found = conversation.found();
    is(&crate::conversation::silences(&found), &[("timeout", "filled_hole")]);
    assert_eq!(names(&found.connections, "rtt_from"), ["handshake"]);
    assert!((of_connection(&found, "rtt_ms") - 50.0).abs() < 1.0);
}
