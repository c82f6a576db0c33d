//! Windows that limit transmission: RFC 5681 § 3.1 and § 4.1, RFC 3465, RFC 6928, RFC 3042, and the
//! receive window.

use std::sync::Arc;

use cwnd_quantity::{Bytes, Duration, Time};
use cwnd_schema::Value;
use cwnd_tcp::{Config, Recovery};

use super::{Hand, MSS, World, at_ms, config, ms, newreno, preset, simple};

#[test]
fn the_first_window_is_ten_segments_and_two_in_ns2() {
    for (name, segments) in [("rfc", 10), ("linux", 10), ("ns2", 2)] {
        let params = preset(name).with(|p| p.connection.handshake = false);
        let mut sender = cwnd_tcp::Sender::new(config(params));
        sender.write(1 << 30);
        sender.open();
        let burst = core::iter::from_fn(|| sender.poll_transmit(Time::ZERO)).count();
        assert_eq!(burst, segments, "{name}");
    }
}

#[test]
fn the_presets_fix_the_sizes_on_the_wire() {
    for (name, payload, data, ack) in
        [("rfc", 1448, 1500, 52), ("linux", 1448, 1500, 52), ("ns2", 1000, 1000, 40)]
    {
        let params = preset(name).with(|p| p.connection.handshake = false);
        let mut w = World::new(config(params), 10_000, ms(100));
        w.run();
        assert_eq!((w.sent[0].segment.len, w.sent[0].segment.wire), (payload, data), "{name}");
        assert!(w.acks.iter().all(|(_, a)| a.wire == ack && a.len == 0), "{name}");
        let counters = w.sender.counters();
        assert_eq!(
            counters.wire_bytes_sent,
            10_000 + counters.segments_sent * u64::from(data as u32 - payload)
        );
    }
}

#[test]
fn slow_start_doubles_each_round_trip() {
    let mut w = World::segments(simple().with(|p| p.windows.initial_window = 1), 200, ms(100));
    w.run();
    assert_eq!(w.per_round(7), [1, 2, 4, 8, 16, 32, 64]);
}

/// RFC 3465 § 2.2: with L = 2 the window doubles although only every other segment is acknowledged.
#[test]
fn slow_start_doubles_with_delayed_acks_when_bytes_count() {
    let params = simple().with(|p| {
        p.windows.initial_window = 2;
        p.acks.ack_every = 2;
    });
    let mut w = World::segments(params, 200, ms(100));
    w.run();
    assert_eq!(w.per_round(6), [2, 4, 8, 16, 32, 64]);
}

#[test]
fn slow_start_grows_by_half_with_delayed_acks_when_acks_count() {
    let params = simple().with(|p| {
        p.windows.initial_window = 16;
        p.acks.ack_every = 2;
    });
    let per_ack = newreno(&[("increase", Value::Text("per-ack".to_owned()))]);
    let mut w = World::new(Arc::new(Config::new(params, per_ack)), 200 * MSS, ms(100));
    w.run();
    assert_eq!(w.per_round(4), [16, 24, 36, 54]);
}

/// RFC 3465 § 2.3: an ACK for many segments counts for at most L = 2.
#[test]
fn a_stretch_ack_grows_the_window_by_two_segments() {
    let mut h = Hand::new(simple());
    h.sends();
    h.ack(8);
    assert_eq!(h.cwnd(), 12.0);
}

#[test]
fn congestion_avoidance_adds_one_segment_a_round_trip() {
    let params = simple().with(|p| {
        p.windows.initial_window = 4;
        p.windows.initial_ssthresh = Some(Bytes(4 * MSS));
    });
    let mut w = World::segments(params, 60, ms(100));
    w.run();
    assert_eq!(w.per_round(5), [4, 5, 6, 7, 8]);
}

/// RFC 3042 § 2: the first two duplicate ACKs send a new segment each, and the window does not
/// change.
#[test]
fn the_first_two_duplicate_acks_send_new_data() {
    let mut h = Hand::new(simple().with(|p| p.recovery.recovery = Recovery::NewReno));
    assert_eq!(h.sends(), (0..10).collect::<Vec<_>>());
    assert_eq!(h.ack(0), [10]);
    assert_eq!(h.ack(0), [11]);
    assert_eq!(h.cwnd(), 10.0);
    assert_eq!(h.ack(0), [0], "the fast retransmit");
    // RFC 5681 § 3.2 (2): segments of limited transmit do not count in FlightSize.
    assert_eq!(h.ssthresh(), 5.0);
}

/// Segments of limited transmit before a timeout count as any other data after it.
#[test]
fn limited_transmit_before_a_timeout_is_forgotten() {
    let mut h = Hand::new(simple().with(|p| p.windows.initial_window = 30));
    h.sends();
    h.sack(0, &[(1, 2)]);
    h.sack(0, &[(1, 3)]);
    h.expire();
    for k in 3..=13 {
        h.ack(k);
    }
    h.ack(32);
    assert_eq!(h.cwnd(), 13.0);
    for nth in 1..=3 {
        h.duplicate(32, nth);
    }
    assert_eq!(h.ssthresh(), 6.5);
}

#[test]
fn without_limited_transmit_the_first_duplicate_acks_send_nothing() {
    for recovery in [Recovery::NewReno, Recovery::Sack] {
        let mut h = Hand::new(simple().with(|p| {
            p.recovery.recovery = recovery;
            p.recovery.limited_transmit = false;
        }));
        h.sends();
        assert_eq!(h.duplicate(0, 1), [0; 0]);
        assert_eq!(h.duplicate(0, 2), [0; 0]);
        assert_eq!(h.duplicate(0, 3), [0]);
        assert_eq!(h.ssthresh(), 5.0);
    }
}

#[test]
fn limited_transmit_keeps_to_the_receive_window() {
    let receive_window = Bytes(11 * MSS);
    let mut h = Hand::new(simple().with(|p| {
        p.recovery.recovery = Recovery::NewReno;
        p.windows.receive_window = receive_window;
    }));
    h.sends();
    assert_eq!(h.ack(0), [10]);
    assert_eq!(h.ack(0), [0; 0], "an eleventh is allowed, a twelfth is not");
}

/// Data that the window allows anyway is part of FlightSize, also when it is written after a
/// duplicate ACK.
#[test]
fn data_within_the_window_counts_in_flight_size_after_a_duplicate_ack() {
    let params = simple().with(|p| p.recovery.recovery = Recovery::NewReno);
    let mut h = Hand::with(config(params), 6);
    assert_eq!(h.sends().len(), 6);
    h.ack(0);
    h.sender.write(2 * MSS);
    assert_eq!(h.sends(), [6, 7]);
    h.ack(0);
    assert_eq!(h.ack(0), [0]);
    assert_eq!(h.ssthresh(), 4.0);
}

#[test]
fn no_more_than_the_receive_window_is_outstanding_and_the_window_does_not_grow() {
    let mut h = Hand::new(simple().with(|p| p.windows.receive_window = Bytes(3500)));
    assert_eq!(h.sends(), [0, 1, 2], "a fourth would not fit");
    for k in 1..10 {
        assert_eq!(h.ack(k), [k + 2]);
    }
    // RFC 7661: a window that was not the limit is not validated, and does not grow.
    assert_eq!(h.cwnd(), 10.0);
}

#[test]
fn the_window_does_not_grow_past_its_maximum() {
    let params = simple().with(|p| {
        p.windows.initial_window = 1;
        p.windows.max_window = Some(Bytes(6 * MSS));
    });
    let mut w = World::segments(params, 60, ms(100));
    w.run();
    assert_eq!(w.per_round(6), [1, 2, 4, 6, 6, 6]);
}

#[test]
fn an_application_that_writes_little_does_not_grow_the_window() {
    let mut h = Hand::with(config(simple()), 3);
    h.sends();
    for k in 1..=3 {
        h.ack(k);
    }
    assert_eq!(h.cwnd(), 10.0);
}

/// The window is not validated in slow start after a timeout either.
#[test]
fn the_window_does_not_grow_after_a_timeout_when_nothing_is_left_to_send() {
    for recovery in [Recovery::NewReno, Recovery::Sack] {
        let mut h = Hand::with(config(simple().with(|p| p.recovery.recovery = recovery)), 10);
        h.sends();
        assert_eq!(h.expire(), [0]);
        assert_eq!(h.ack(8), [8, 9]);
        assert_eq!(h.cwnd(), 2.0, "after a timeout L = 1");
        assert_eq!(h.ack(9), [0; 0]);
        assert_eq!(h.cwnd(), 2.0, "{recovery:?}");
    }
}

fn grown_to_twenty(idle_restart: bool) -> Hand {
    let mut h = Hand::new(simple().with(|p| p.validation.idle_restart = idle_restart));
    h.sends();
    for k in 1..=10 {
        h.ack(k);
    }
    h.sender.stop_writing();
    h.sends();
    h.ack(30);
    assert!(h.sender.is_drained());
    assert_eq!(h.cwnd(), 20.0);
    h
}

/// RFC 5681 § 4.1: RW = min(IW, cwnd) after an idle time longer than the timeout, here 1 s.
#[test]
fn the_window_restarts_after_an_idle_time_longer_than_the_timeout() {
    for (idle_restart, idle, expected) in [(true, 1001, 10), (true, 1000, 20), (false, 5000, 20)] {
        let mut h = grown_to_twenty(idle_restart);
        h.wait(ms(idle));
        h.sender.write(100 * MSS);
        assert_eq!(h.sends().len(), expected, "{idle} ms, restart {idle_restart}");
    }
}

#[test]
fn the_start_of_a_connection_is_no_idle_time() {
    let mut h = Hand::with(config(simple().with(|p| p.windows.initial_window = 4)), 0);
    h.wait(Duration::from_secs(10));
    h.sender.write(100 * MSS);
    assert_eq!(h.sends().len(), 4);
}

#[test]
fn a_stopped_sender_repairs_what_it_sent_and_sends_nothing_new() {
    let mut w = World::segments(simple(), 100, ms(100));
    w.data_fate = super::drops(&[(12, 1), (29, 1)]);
    w.run_until(at_ms(100));
    w.sender.stop_writing();
    w.run();
    assert!(w.sender.is_drained());
    assert_eq!(w.receiver.counters().delivered_bytes, 30 * MSS);
    assert!(w.sent.iter().all(|s| s.k < 30));
}

#[test]
fn a_short_last_segment_carries_what_is_left() {
    let mut w = World::new(config(simple()), 2500, ms(100));
    w.run();
    assert_eq!(w.sent.iter().map(|s| s.segment.len).collect::<Vec<_>>(), [1000, 1000, 500]);
    assert!(w.sender.is_drained());
}
