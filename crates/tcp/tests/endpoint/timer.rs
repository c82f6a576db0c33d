//! Opening a connection (RFC 9293 § 3.5, RFC 6928 § 2), and the retransmission timer: RFC 6298,
//! Karn's algorithm, TCP*(n), and coarse clocks.

use cwnd_cc::Backoff;
use cwnd_packet::Ecn;
use cwnd_quantity::{Duration, Time};
use cwnd_tcp::{Body, Flags, Params, Recovery, RttArithmetic, Segment};

use super::{Hand, World, at_ms, config, data, drops, ms, preset, simple};

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
    w.ack_fate = drops(&[(0, 1)]);
    w.run();
    assert_eq!(w.sent_at(at_ms(1000)).len(), 1, "the second SYN");
    assert_eq!(w.sent_at(at_ms(1100)), [0]);
    assert!(w.sender.is_drained());
}

/// Parameters whose bounds of the timeout do not apply.
fn exact() -> Params {
    simple().with(|p| p.rto.rto_min = ms(1))
}

#[test]
fn the_timeout_is_srtt_plus_four_times_rttvar() {
    let mut h = Hand::new(exact());
    h.sends();
    assert_eq!(h.sender.current_rto(), Duration::from_secs(1), "RFC 6298 § 2.1");
    h.ack(1);
    assert_eq!(h.sender.current_rto(), ms(100 + 4 * 50), "§ 2.2");
    h.rtt = ms(180);
    h.ack(2);
    // § 2.3: RTTVAR = ¾·50 + ¼·|100 − 180| = 57.5, then SRTT = ⅞·100 + ⅛·180 = 110.
    assert_eq!(h.sender.rtt_estimate(), Some((ms(110), Duration::from_micros(57_500))));
    assert_eq!(h.sender.current_rto(), ms(340));
}

#[test]
fn the_timeout_keeps_to_its_bounds_and_its_granularity() {
    let with = |rto_min, rto_max, rto_granularity| {
        let mut h = Hand::new(simple().with(|p| {
            p.rto.rto_min = rto_min;
            p.rto.rto_max = rto_max;
            p.rto.rto_initial = rto_max;
            p.rto.rto_granularity = rto_granularity;
        }));
        h.sends();
        h.ack(1);
        h.sender.current_rto()
    };
    assert_eq!(with(ms(1000), ms(60_000), ms(1)), ms(1000), "RFC 6298 § 2.4");
    assert_eq!(with(ms(1), ms(250), ms(1)), ms(250), "§ 2.5");
    assert_eq!(with(ms(1), ms(60_000), ms(70)), ms(350), "a multiple of the clock");
    // § 2.3: K·RTTVAR is at least G.
    assert_eq!(with(ms(1), ms(60_000), ms(500)), ms(1000));
}

#[test]
fn each_new_ack_starts_the_timer_anew_and_the_last_one_stops_it() {
    let mut h = Hand::new(simple());
    h.sends();
    assert_eq!(h.sender.next_timer(), at_ms(2000), "RFC 6298 § 5.1");
    h.wait(ms(600));
    h.ack(1);
    assert_eq!(h.sender.next_timer(), at_ms(2600), "§ 5.3");
    h.wait(ms(100));
    h.sack(1, &[(2, 3)]);
    assert_eq!(h.last.len(), 1);
    assert_eq!(h.sender.next_timer(), at_ms(2600), "neither a duplicate nor new data moves it");
    h.sack(1, &[(2, 5)]);
    assert_eq!(h.sender.next_timer(), at_ms(2700), "the fast retransmit does (RFC 6675 § 6)");
    h.sender.stop_writing();
    h.ack(13);
    assert!(h.sender.is_drained());
    assert_eq!(h.sender.next_timer(), Time::NEVER, "§ 5.2");
}

#[test]
fn an_early_or_spurious_call_of_the_timer_is_harmless() {
    let mut h = Hand::new(simple());
    h.sends();
    h.wait(ms(999));
    h.sender.on_timer(h.now);
    assert_eq!(h.sends(), [0; 0]);
    h.sender.stop_writing();
    h.ack(10);
    h.wait(Duration::from_secs(100));
    h.sender.on_timer(h.now);
    assert_eq!(h.sender.counters().timeouts, [0; 5]);
}

/// RFC 5681 § 3.1: the loss window is one segment, ssthresh half of FlightSize.
#[test]
fn a_timeout_sends_the_first_segment_again_and_slow_starts() {
    for recovery in [Recovery::Tahoe, Recovery::Reno, Recovery::NewReno, Recovery::Sack] {
        let mut h = Hand::new(simple().with(|p| p.recovery.recovery = recovery));
        h.sends();
        assert_eq!(h.expire(), [0], "{recovery:?}");
        assert_eq!((h.cwnd(), h.ssthresh()), (1.0, 5.0));
        assert_eq!(h.ack(1), [1, 2]);
        assert_eq!(h.ack(3), [3, 4, 5], "L = 1 after a timeout");
        assert_eq!(h.sender.counters().retransmissions, 6);
    }
}

#[test]
fn a_second_timeout_of_the_same_segment_keeps_the_threshold() {
    let mut h = Hand::new(simple());
    h.sends();
    for nth in 1..=3 {
        assert_eq!(h.expire(), [0]);
        assert_eq!((h.cwnd(), h.ssthresh()), (1.0, 5.0), "timeout {nth}");
    }
}

/// Data marked lost is not in flight: another timeout halves the data sent since.
#[test]
fn a_timeout_in_the_slow_start_after_a_timeout_halves_what_was_sent_since() {
    for recovery in [Recovery::Tahoe, Recovery::NewReno, Recovery::Sack] {
        let mut h = Hand::new(simple().with(|p| {
            p.recovery.recovery = recovery;
            p.windows.initial_window = 40;
        }));
        h.sends();
        h.expire();
        assert_eq!(h.ssthresh(), 20.0);
        for k in 1..=6 {
            h.ack(k);
        }
        assert_eq!(h.cwnd(), 7.0);
        h.expire();
        assert_eq!(h.ssthresh(), 3.5, "{recovery:?}");
    }
}

/// Seconds before each of the first `n` expiries when nothing is acknowledged.
fn waits(rto_backoff: Backoff, rto_backoff_after: u32, n: usize) -> Vec<u64> {
    let mut h = Hand::new(simple().with(|p| {
        p.rto.rto_backoff = rto_backoff;
        p.rto.rto_backoff_after = rto_backoff_after;
        p.rto.rto_max = Duration::from_secs(64);
    }));
    h.sends();
    let wait = |h: &mut Hand| {
        let before = h.now;
        assert_eq!(h.expire(), [0]);
        h.now.since(before).as_nanos() / 1_000_000_000
    };
    (0..n).map(|_| wait(&mut h)).collect()
}

/// RFC 6298 § 5.5, and Fig. 1 of the TCP*(n) paper.
#[test]
fn the_timeout_doubles_at_once_later_or_never() {
    assert_eq!(waits(Backoff::Exponential, 0, 8), [1, 2, 4, 8, 16, 32, 64, 64]);
    assert_eq!(waits(Backoff::After, 1, 7), [1, 1, 2, 4, 8, 16, 32]);
    assert_eq!(waits(Backoff::After, 3, 7), [1, 1, 1, 1, 2, 4, 8]);
    assert_eq!(waits(Backoff::Off, 0, 7), [1; 7]);
}

#[test]
fn timeouts_are_counted_by_how_many_in_a_row() {
    let mut h = Hand::new(simple());
    h.sends();
    for _ in 0..7 {
        h.expire();
    }
    assert_eq!(h.sender.counters().timeouts, [1, 1, 1, 1, 3]);
    h.ack(1);
    h.expire();
    assert_eq!(h.sender.counters().timeouts, [2, 1, 1, 1, 3]);
}

/// Karn's algorithm; RFC 6298 § 5, note: the backed-off timeout stays until a segment sent once is
/// acknowledged.
#[test]
fn without_timestamps_the_backoff_stays_until_new_data_is_acknowledged() {
    let mut h = Hand::new(simple().with(|p| p.rtt.timestamps = false));
    h.sends();
    h.expire();
    h.expire();
    h.wait(ms(100));
    assert_eq!(h.ack(10), [10, 11], "after two timeouts all arrives");
    assert_eq!(h.sender.rtt_estimate(), None, "which transmission was it?");
    assert_eq!(h.sender.current_rto(), Duration::from_secs(4));
    h.wait(ms(100));
    h.ack(11);
    assert_eq!(h.sender.rtt_estimate(), Some((ms(100), ms(50))));
    assert_eq!(h.sender.current_rto(), Duration::from_secs(1));
}

/// RFC 7323 § 4: the echo identifies the transmission.
#[test]
fn with_timestamps_the_ack_of_a_retransmission_ends_the_backoff() {
    let mut h = Hand::new(simple());
    h.sends();
    h.expire();
    h.expire();
    assert_eq!(h.sender.current_rto(), Duration::from_secs(4));
    h.wait(ms(100));
    h.ack(1);
    assert_eq!(h.sender.rtt_estimate(), Some((ms(100), ms(50))));
    assert_eq!(h.sender.current_rto(), Duration::from_secs(1));
}

#[test]
fn without_timestamps_one_segment_a_round_trip_is_timed() {
    let mut h = Hand::new(exact().with(|p| p.rtt.timestamps = false));
    h.sends();
    h.wait(ms(100));
    assert_eq!(h.ack(1), [10, 11]);
    assert_eq!(h.sender.rtt_estimate(), Some((ms(100), ms(50))));
    h.wait(ms(70));
    h.ack(9);
    assert_eq!(h.sender.rtt_estimate(), Some((ms(100), ms(50))), "segment 10 is being timed");
    h.wait(ms(110));
    h.ack(11);
    assert_eq!(h.sender.rtt_estimate(), Some((ms(110), Duration::from_micros(57_500))), "180 ms");
}

#[test]
fn a_retransmission_ends_the_timing_under_way() {
    let mut h = Hand::new(exact().with(|p| {
        p.rtt.timestamps = false;
        p.recovery.recovery = Recovery::NewReno;
    }));
    h.sends();
    h.wait(ms(100));
    for _ in 0..3 {
        h.ack(0);
    }
    assert_eq!(h.last.len(), 1, "the fast retransmit");
    h.wait(ms(100));
    h.ack(12);
    assert_eq!(h.sender.rtt_estimate(), None);
}

/// RFC 6582 § 3.2 (3): only the first partial ACK restarts the timer ("impatient").
#[test]
fn newreno_restarts_its_timer_with_the_first_partial_ack_only() {
    let mut h = Hand::new(simple().with(|p| p.recovery.recovery = Recovery::NewReno));
    h.sends();
    for _ in 0..3 {
        h.ack(0);
    }
    for (k, deadline) in [(3, 2200), (5, 2200), (7, 2200)] {
        h.wait(ms(200));
        h.ack(k);
        assert_eq!(h.sender.next_timer(), at_ms(deadline), "after the ACK of {k}");
    }
}

#[test]
fn with_sack_each_partial_ack_starts_the_timer_anew() {
    let mut h = Hand::new(simple());
    h.sends();
    h.sack(0, &[(7, 10)]);
    for (k, deadline) in [(1, 2200), (2, 2400), (3, 2600)] {
        h.wait(ms(200));
        h.sack(k, &[(7, 10)]);
        assert_eq!(h.sender.next_timer(), at_ms(deadline), "after the ACK of {k}");
    }
}

/// ns-2's 100 ms clock: an RTT of 40 ms is one tick, and the timeout a multiple of ticks above the
/// 200 ms minimum.
#[test]
fn the_coarse_clock_of_ns2_lengthens_the_timeout() {
    let timeouts = |params: Params| {
        let mut w = World::segments(params, 400, ms(40));
        let mut seen = vec![w.sender.current_rto()];
        for round in 1..8 {
            w.run_until(at_ms(40 * round));
            let now = w.sender.current_rto();
            if seen.last() != Some(&now) {
                seen.push(now);
            }
        }
        (seen, w.sender.rtt_estimate().unwrap().0)
    };
    // An RTT of one tick, 100 ms: 1 + 4·½ = 3 ticks. In quarters of a tick an RTTVAR of ½ decays by
    // ⌊2/4⌋ = 0: it stays.
    let ns2 = timeouts(preset("ns2"));
    assert_eq!(ns2, (vec![ms(3000), ms(300)], ms(100)));
    // Computed exactly: 100 + max(100, 4·50) = 300, and 200 once RTTVAR is below 25 ms.
    let exact = preset("ns2").with(|p| p.rtt.rtt_arithmetic = RttArithmetic::Exact);
    assert_eq!(timeouts(exact), (vec![ms(3000), ms(300), ms(200)], ms(100)));
    // The exact clock: 40 + 4·20 = 120, below the minimum of 200.
    let fine = preset("ns2").with(|p| {
        p.rtt.clock = Duration(1);
        p.rto.rto_granularity = ms(1);
        p.rtt.rtt_arithmetic = RttArithmetic::Exact;
    });
    assert_eq!(timeouts(fine), (vec![ms(3000), ms(200)], ms(40)));
}

/// Both ends of a measurement are rounded down to the clock: 250 ms are two or three ticks.
#[test]
fn a_coarse_clock_measures_in_ticks() {
    for (begin, ticks) in [(1000, 2), (1040, 2), (1050, 3), (1099, 3)] {
        let mut h = Hand::new(simple().with(|p| p.rtt.clock = ms(100)));
        h.now = at_ms(begin);
        h.sends();
        h.wait(ms(250));
        h.rtt = ms(250);
        h.ack(1);
        assert_eq!(h.sender.rtt_estimate().unwrap().0, ms(100 * ticks), "sent at {begin} ms");
    }
}

#[test]
fn the_first_timeout_of_ns2_comes_after_three_seconds() {
    let mut w = World::segments(preset("ns2"), 2, ms(40));
    w.data_fate = drops(&[(0, 1), (1, 1)]);
    w.run();
    assert_eq!(
        w.sent.iter().map(|s| (s.at, s.k)).collect::<Vec<_>>(),
        [(at_ms(0), 0), (at_ms(0), 1), (at_ms(3000), 0), (at_ms(3040), 1),]
    );
}
