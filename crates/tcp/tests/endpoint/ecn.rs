//! ECN: RFC 3168 § 6.1.

use cwnd_cc::{Cause, Phase};
use cwnd_packet::Ecn;
use cwnd_quantity::Bytes;
use cwnd_tcp::{Flags, Params, Receiver, Recovery, Segment};

use super::{Fate, Hand, MSS, World, at_ms, config, data, drops, marks, ms, simple};

fn ecn() -> Params {
    simple().with(|p| p.ecn.ecn = true)
}

fn cwr(segment: &Segment) -> bool {
    segment.flags.has(Flags::CWR)
}

/// Delivers segment `k` with an ECN field and flags; returns `true` if its ACK has ECE, `None`
/// without an ACK.
fn echo(r: &mut Receiver, k: u64, ecn: Ecn, flags: Flags) -> Option<bool> {
    let segment = Segment { ecn, flags, ..data(k * MSS, MSS, at_ms(0)) };
    r.on_segment(at_ms(0), &segment).map(|ack| ack.flags.has(Flags::ECE))
}

#[test]
fn a_mark_is_echoed_until_cwr_arrives() {
    let mut r = Receiver::new(config(ecn()));
    let none = Flags::default();
    assert_eq!(echo(&mut r, 0, Ecn::Ect0, none), Some(false));
    assert_eq!(echo(&mut r, 1, Ecn::Ce, none), Some(true));
    assert_eq!(echo(&mut r, 2, Ecn::Ect0, none), Some(true));
    assert_eq!(echo(&mut r, 3, Ecn::Ect0, none), Some(true));
    assert_eq!(echo(&mut r, 4, Ecn::Ect0, Flags::CWR), Some(false));
    assert_eq!(echo(&mut r, 5, Ecn::Ect0, none), Some(false));
    assert_eq!(echo(&mut r, 6, Ecn::Ce, none), Some(true));
    assert_eq!(echo(&mut r, 7, Ecn::Ce, Flags::CWR), Some(true), "a new mark on the CWR");
    assert_eq!(r.counters().ce_segments, 3);
}

/// § 6.1.3: ECE is set if any of the segments acknowledged together was marked.
#[test]
fn a_delayed_ack_echoes_a_mark_on_any_of_its_segments() {
    for marked in 0..3 {
        let mut r = Receiver::new(config(ecn().with(|p| p.acks.ack_every = 3)));
        let arrive = |k| if k == marked { Ecn::Ce } else { Ecn::Ect0 };
        let acks: Vec<_> = (0..3).map(|k| echo(&mut r, k, arrive(k), Flags::default())).collect();
        assert_eq!(acks, [None, None, Some(true)]);
    }
}

/// § 6.1.5: marks on segments outside the receive window are ignored.
#[test]
fn a_mark_on_a_duplicate_is_not_echoed() {
    let mut r = Receiver::new(config(ecn()));
    echo(&mut r, 0, Ecn::Ect0, Flags::default());
    assert_eq!(echo(&mut r, 0, Ecn::Ce, Flags::default()), Some(false));
}

#[test]
fn new_data_is_ecn_capable_and_retransmissions_are_not() {
    let mut w = World::segments(ecn(), 100, ms(100));
    w.data_fate = drops(&[(12, 1), (14, 1), (14, 2)]);
    w.run();
    assert!(w.sender.counters().retransmissions >= 3);
    for s in &w.sent {
        let again = s.segment.is_retransmission();
        assert_eq!(s.segment.ecn, if again { Ecn::NotEct } else { Ecn::Ect0 }, "{s:?}");
    }
    assert!(w.acks.iter().all(|(_, ack)| ack.ecn == Ecn::NotEct), "§ 6.1.4");
}

#[test]
fn without_ecn_nothing_is_capable_and_an_echo_is_ignored() {
    let mut h = Hand::new(simple());
    h.sends();
    assert!(h.last.iter().all(|s| s.ecn == Ecn::NotEct));
    h.ack_ece(1);
    assert_eq!(h.cwnd(), 10.0);
    assert_eq!(h.sender.counters().reductions_for(Cause::Ecn), 0);
}

/// § 6.1.2: "once every window of data".
#[test]
fn the_window_is_halved_once_a_window_of_data() {
    let mut h = Hand::new(ecn());
    h.sends();
    h.ack_ece(1);
    assert_eq!((h.cwnd(), h.ssthresh()), (5.0, 5.0));
    assert_eq!(h.sender.phase(), Phase::Cwr);
    for k in 2..=10 {
        h.ack_ece(k);
        assert_eq!(h.cwnd(), 5.0, "the ACK of {k}");
    }
    assert_eq!(h.sender.counters().reductions_for(Cause::Ecn), 1);
    assert_eq!(h.sender.phase(), Phase::Open);
    h.ack_ece(11);
    assert_eq!(h.sender.counters().reductions_for(Cause::Ecn), 2);
    assert_eq!(h.cwnd(), 2.5);
    assert_eq!(h.sender.counters().ece_acks, 11);
}

#[test]
fn the_first_new_segment_after_a_reduction_carries_cwr() {
    let mut h = Hand::new(ecn());
    h.sends();
    assert!(h.last.iter().all(|s| !cwr(s)));
    for k in 1..=5 {
        assert_eq!(h.ack_ece(k), [0; 0], "more than the new window is in flight");
    }
    assert_eq!(h.ack_ece(6), [10]);
    assert!(cwr(&h.last[0]));
    assert_eq!(h.ack_ece(7), [11]);
    assert!(!cwr(&h.last[0]));
}

/// § 6.1.2: CWR follows any reduction, "because of a retransmit timeout, a Fast Retransmit, or in
/// response to an ECN notification".
#[test]
fn a_loss_is_followed_by_cwr_as_well() {
    for recovery in [Recovery::Tahoe, Recovery::Reno, Recovery::NewReno, Recovery::Sack] {
        for timeout in [false, true] {
            let mut h = Hand::new(ecn().with(|p| {
                p.recovery.recovery = recovery;
                p.recovery.limited_transmit = false;
            }));
            h.sends();
            if timeout {
                h.expire();
            } else {
                for nth in 1..=3 {
                    h.duplicate(0, nth);
                }
            }
            assert_eq!(h.last.len(), 1);
            assert!(!cwr(&h.last[0]), "not on what is sent again");
            h.ack(10);
            assert_eq!(h.last.iter().map(cwr).filter(|c| *c).count(), 1, "{recovery:?} {timeout}");
            assert!(cwr(&h.last[0]) && h.last[0].seq == 10 * MSS);
        }
    }
}

/// § 6.1.2: no growth "in response to the receipt of an ECN-Echo ACK packet".
#[test]
fn acks_with_ece_do_not_open_the_window() {
    let params = ecn().with(|p| p.windows.initial_ssthresh = Some(Bytes(10 * MSS)));
    let mut with = Hand::new(params.clone());
    let mut without = Hand::new(params);
    for h in [&mut with, &mut without] {
        h.sends();
        h.ack_ece(1);
    }
    for k in 2..=25 {
        with.ack_ece(k.min(10));
        without.ack(k);
    }
    assert_eq!(with.cwnd(), 5.0);
    assert!(without.cwnd() > 7.0, "{}", without.cwnd());
}

/// RFC 3168 § 6.1.2: one reduction for the marks and losses of one window.
#[test]
fn a_loss_in_a_window_that_was_reduced_for_a_mark_reduces_no_further() {
    for recovery in [Recovery::Reno, Recovery::NewReno, Recovery::Sack] {
        let mut h = Hand::new(ecn().with(|p| p.recovery.recovery = recovery));
        h.sends();
        h.ack_ece(1);
        for nth in 1..=3 {
            h.duplicate(1, nth);
        }
        assert_eq!(h.last[0].seq, MSS, "the fast retransmit");
        assert_eq!(h.sender.phase(), Phase::Recovery);
        assert_eq!((h.cwnd(), h.ssthresh()), (5.0, 5.0), "{recovery:?}");
        let c = h.sender.counters();
        assert_eq!(
            (c.reductions_for(Cause::Ecn), c.reductions_for(Cause::Loss), c.losses_in_cwr),
            (1, 0, 1)
        );
    }
}

/// § 6.1.2: "If that data packet is dropped … the sending TCP will have to reduce the congestion
/// window again".
#[test]
fn the_loss_of_the_segment_with_cwr_reduces_again() {
    let mut marked = World::segments(ecn(), 200, ms(100));
    marked.data_fate = marks(&[(15, 1)]);
    marked.run();
    assert_eq!(marked.sender.counters().reductions_for(Cause::Ecn), 1);
    let with_cwr = marked.sent.iter().find(|s| cwr(&s.segment)).unwrap().k;

    let mut w = World::segments(ecn(), 200, ms(100));
    w.data_fate = Box::new(move |k, nth| match (k, nth) {
        (15, 1) => Fate::Mark,
        (k, 1) if k == with_cwr => Fate::Drop,
        _ => Fate::Deliver,
    });
    w.run();
    let c = w.sender.counters();
    assert_eq!(
        (c.reductions_for(Cause::Ecn), c.reductions_for(Cause::Loss), c.losses_in_cwr),
        (1, 1, 0)
    );
}

/// Reno leaves recovery with the first new ACK; an echo in the same window still does not reduce
/// again.
#[test]
fn a_mark_in_a_window_that_was_reduced_for_a_loss_reduces_no_further() {
    for recovery in [Recovery::Tahoe, Recovery::Reno, Recovery::NewReno, Recovery::Sack] {
        let mut h = Hand::new(ecn().with(|p| {
            p.recovery.recovery = recovery;
            p.recovery.limited_transmit = false;
        }));
        h.sends();
        for nth in 1..=3 {
            h.duplicate(0, nth);
        }
        for k in [2, 5, 10] {
            h.ack_ece(k);
        }
        assert_eq!(h.sender.counters().reductions_for(Cause::Ecn), 0, "{recovery:?}");
        h.ack_ece(11);
        assert_eq!(h.sender.counters().reductions_for(Cause::Ecn), 1, "a new window");
    }
}

#[test]
fn a_marked_connection_slows_down_without_losing_anything() {
    let mut w = World::segments(ecn(), 300, ms(100));
    w.data_fate = marks(&[(35, 1), (36, 1), (40, 1)]);
    w.run();
    let c = w.sender.counters();
    assert_eq!((c.reductions_for(Cause::Ecn), c.retransmissions, w.timeouts()), (1, 0, 0));
    // The echo of a mark lasts until CWR arrives, a round trip later: on the ACKs for the rest of
    // its window.
    let first_cwr = w.sent.iter().find(|s| cwr(&s.segment)).unwrap().k;
    assert_eq!(c.ece_acks, first_cwr - 35);
    assert_eq!(w.sent.iter().filter(|s| cwr(&s.segment)).count(), 1);
}
