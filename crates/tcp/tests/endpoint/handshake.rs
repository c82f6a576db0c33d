//! Opening a connection: RFC 9293 § 3.5, RFC 6298 § 5, RFC 6928 § 2.

use cwnd_packet::Ecn;
use cwnd_quantity::{Duration, Time};
use cwnd_tcp::{Body, Flags, Params, Segment};

use crate::common::{Hand, World, at_ms, config, data, ms, simple};

fn with_handshake() -> Params {
    simple().with(|p| p.connection.handshake = true)
}

fn syn_ack(echo: Time) -> Segment {
    Segment { body: Body::ack(1 << 20), flags: Flags::SYN, ..data(0, 0, echo) }
}

#[test]
fn a_syn_opens_the_connection_and_data_follows_the_syn_ack() {
    let mut w = World::segments(with_handshake(), 10, ms(100));
    w.run();
    let syn = w.sent[0].segment;
    assert_eq!((syn.flags, syn.len, syn.ecn, syn.wire), (Flags::SYN, 0, Ecn::NotEct, 40));
    assert_eq!((w.acks[0].1.flags, w.acks[0].1.is_ack()), (Flags::SYN, true));
    assert!(w.sent[1..].iter().all(|s| s.at == at_ms(100)));
    assert_eq!(w.finished, at_ms(150));
    assert_eq!(w.sender.counters().segments_sent, 10, "a SYN is no data segment");
}

#[test]
fn the_handshake_gives_the_first_rtt_sample() {
    let mut w = World::segments(with_handshake(), 1, ms(120));
    w.run_until(at_ms(120));
    assert_eq!(w.sender.rtt_estimate(), Some((ms(120), ms(60))));
}

#[test]
fn without_a_handshake_data_flows_at_once() {
    let mut w = World::segments(simple(), 10, ms(100));
    w.run_until(Time::ZERO);
    assert_eq!(w.sent_at(Time::ZERO), (0..10).collect::<Vec<_>>());
}

#[test]
fn a_closed_sender_sends_nothing() {
    let mut sender = cwnd_tcp::Sender::new(config(simple()));
    sender.write(1000);
    assert_eq!(sender.poll_transmit(Time::ZERO), None);
    assert_eq!(sender.next_timer(), Time::NEVER);
}

/// RFC 6298 § 2.1, § 5.5: 1 s, doubled with each expiry up to the largest timeout, here 60 s.
#[test]
fn syns_are_sent_again_after_1_2_4_seconds_until_the_connection_is_given_up() {
    let mut h = Hand::new(with_handshake());
    let start = h.now;
    assert_eq!(h.sends().len(), 1);
    let mut at = Vec::new();
    for _ in 0..6 {
        assert_eq!(h.expire().len(), 1);
        assert_eq!(h.last[0].flags, Flags::SYN);
        at.push(h.now.since(start).as_nanos() / 1_000_000_000);
    }
    assert_eq!(at, [1, 3, 7, 15, 31, 63]);
    assert!(!h.sender.has_failed());
    assert_eq!(h.expire(), [0; 0]);
    assert_eq!(h.now.since(start), Duration::from_secs(123));
    assert!(h.sender.has_failed());
    assert_eq!(h.sender.next_timer(), Time::NEVER);
    assert_eq!(h.sender.counters().syn_timeouts, 7);
    h.sender.on_segment(h.now, &syn_ack(start));
    assert_eq!(h.sends(), [0; 0], "too late");
}

#[test]
fn syn_retries_bound_the_number_of_syns() {
    for retries in [0, 2] {
        let mut h = Hand::new(with_handshake().with(|p| p.connection.syn_retries = retries));
        h.sends();
        let mut syns = 1;
        while !h.sender.has_failed() {
            syns += h.expire().len() as u32;
        }
        assert_eq!(syns, 1 + retries);
    }
}

/// RFC 5681 § 3.1: one segment; RFC 6298 § 5.7: 3 s, however many SYNs were lost.
#[test]
fn after_a_lost_syn_the_window_is_one_segment_and_the_timeout_three_seconds() {
    for lost in [1, 2, 3] {
        let mut h = Hand::new(with_handshake().with(|p| p.rtt.timestamps = false));
        h.sends();
        for _ in 0..lost {
            h.expire();
        }
        h.wait(ms(100));
        h.sender.on_segment(h.now, &syn_ack(Time::ZERO));
        assert_eq!(h.sends().len(), 1);
        assert_eq!(h.sender.rtt_estimate(), None, "Karn: which SYN was answered?");
        assert_eq!(h.sender.current_rto(), Duration::from_secs(3), "{lost} SYNs lost");
    }
}

#[test]
fn with_timestamps_the_answer_to_a_repeated_syn_is_a_valid_sample() {
    let mut h = Hand::new(with_handshake());
    h.sends();
    h.expire();
    let sent = h.now;
    h.wait(ms(500));
    h.sender.on_segment(h.now, &syn_ack(sent));
    assert_eq!(h.sender.rtt_estimate(), Some((ms(500), ms(250))));
    assert_eq!(h.sender.current_rto(), ms(1500));
    assert_eq!(h.sends().len(), 1);
}

#[test]
fn a_repeated_syn_ack_changes_nothing() {
    let mut h = Hand::new(with_handshake());
    h.sends();
    h.wait(ms(100));
    h.sender.on_segment(h.now, &syn_ack(at_ms(1000)));
    assert_eq!(h.sends().len(), 10);
    let before = (h.sender.window(), h.sender.rtt_estimate(), h.sender.next_timer());
    h.wait(ms(10));
    h.sender.on_segment(h.now, &syn_ack(at_ms(1000)));
    assert_eq!(h.sends(), [0; 0]);
    assert_eq!(before, (h.sender.window(), h.sender.rtt_estimate(), h.sender.next_timer()));
}

#[test]
fn a_lost_syn_ack_is_replaced_when_the_syn_comes_again() {
    let mut w = World::segments(with_handshake(), 3, ms(100));
    w.ack_fate = crate::common::drops(&[(0, 1)]);
    w.run();
    assert_eq!(w.sent_at(at_ms(1000)).len(), 1, "the second SYN");
    assert_eq!(w.sent_at(at_ms(1100)), [0]);
    assert!(w.sender.is_drained());
}
