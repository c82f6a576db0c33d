//! Loss recovery without SACK.

use cwnd_cc::Cause;
use cwnd_cc::Phase;
use cwnd_tcp::{Params, Recovery};

use crate::common::{Hand, simple};

const NOTHING: [u64; 0] = [];

fn without_limited_transmit(recovery: Recovery) -> Params {
    simple().with(|p| {
        p.recovery.recovery = recovery;
        p.recovery.limited_transmit = false;
    })
}

/// A sender with ten segments in flight, the first of which is lost, after the third duplicate ACK.
fn in_recovery(recovery: Recovery) -> Hand {
    let mut h = Hand::new(without_limited_transmit(recovery));
    assert_eq!(h.sends().len(), 10);
    assert_eq!(h.ack(0), NOTHING);
    assert_eq!(h.ack(0), NOTHING);
    assert_eq!(h.ack(0), [0], "the fast retransmit");
    h
}

/// RFC 5681 § 3.2 (2)–(4): cwnd = ssthresh + 3, one more for each duplicate ACK.
#[test]
fn the_window_is_inflated_by_what_left_the_network() {
    for recovery in [Recovery::Reno, Recovery::NewReno] {
        let mut h = in_recovery(recovery);
        assert_eq!((h.cwnd(), h.ssthresh()), (5.0, 5.0));
        // 8 segments may be outstanding, 10 are; the third further duplicate ACK allows an
        // eleventh.
        assert_eq!(h.ack(0), NOTHING);
        assert_eq!(h.ack(0), NOTHING);
        assert_eq!(h.ack(0), [10]);
        assert_eq!(h.ack(0), [11]);
        // § 3.2 (6): after deflation 5 segments may be outstanding.
        assert_eq!(h.ack(10), [12, 13, 14]);
        assert_eq!(h.sender.phase(), Phase::Open);
        assert_eq!(h.cwnd(), 5.0);
    }
}

/// RFC 6582 § 3.2 (3): partial acknowledgement.
#[test]
fn a_partial_ack_sends_the_next_hole_and_deflates_the_window() {
    // Segments 0 and 3 are lost.
    let mut h = in_recovery(Recovery::NewReno);
    for expected in [&[][..], &[], &[10], &[11], &[12]] {
        assert_eq!(h.ack(0), expected);
    }
    // The window was 5 + 8; less the three acknowledged, plus one, it is 11, and ten are
    // outstanding.
    assert_eq!(h.ack(3), [3, 13]);
    assert_eq!(h.sender.phase(), Phase::Recovery);
    // A full ACK: 5 segments may be outstanding, one is.
    assert_eq!(h.ack(13), [14, 15, 16, 17]);
    assert_eq!(h.sender.phase(), Phase::Open);
    assert_eq!(h.sender.counters().reductions_for(Cause::Loss), 1);
}

#[test]
fn reno_leaves_recovery_with_the_first_new_ack_and_halves_again() {
    let mut h = in_recovery(Recovery::Reno);
    for _ in 0..5 {
        h.ack(0);
    }
    assert_eq!(h.ack(3), NOTHING, "13 were sent, 5 may be outstanding");
    assert_eq!(h.sender.phase(), Phase::Open);
    for _ in 0..2 {
        assert_eq!(h.ack(3), NOTHING);
    }
    assert_eq!(h.ack(3), [3]);
    assert_eq!(h.sender.counters().reductions_for(Cause::Loss), 2);
}

#[test]
fn tahoe_slow_starts_after_its_fast_retransmit() {
    let mut h = in_recovery(Recovery::Tahoe);
    assert_eq!((h.cwnd(), h.ssthresh()), (1.0, 5.0));
    assert_eq!(h.ack(0), NOTHING, "no fast recovery");
    assert_eq!(h.ack(1), [1, 2]);
    assert_eq!(h.ack(10), [10, 11, 12]);
    assert_eq!(h.sender.counters().reductions_for(Cause::Loss), 1);
    assert_eq!(h.sender.counters().timeouts, [0; 5]);
}

/// RFC 6582 § 4: three segments retransmitted without need give three duplicate ACKs.
#[test]
fn newreno_does_not_take_duplicates_of_a_timeout_for_a_loss() {
    for (recovery, again) in
        [(Recovery::NewReno, false), (Recovery::Tahoe, false), (Recovery::Reno, true)]
    {
        let mut h = Hand::new(without_limited_transmit(recovery));
        h.sends();
        // A spurious timeout: the original segments arrive late.
        assert_eq!(h.expire(), [0]);
        assert_eq!(h.ack(1), [1, 2]);
        assert_eq!(h.ack(10), [10, 11, 12]);
        let before = h.cwnd();
        for _ in 0..3 {
            h.ack(10);
        }
        let reduced = h.cwnd() < before;
        assert_eq!(
            (h.last.first().map(|s| s.seq), reduced),
            (again.then_some(10_000), again),
            "{recovery:?}"
        );
    }
}

/// RFC 3042 § 2: at most two segments beyond the window, for any number of duplicate ACKs.
#[test]
fn duplicates_that_start_no_recovery_send_two_segments_at_most() {
    let mut h = Hand::new(simple().with(|p| p.recovery.recovery = Recovery::NewReno));
    h.sends();
    h.expire();
    assert_eq!(h.ack(10), [10, 11]);
    let sent: Vec<_> = (0..6).flat_map(|_| h.ack(10)).collect();
    assert_eq!(sent, [12, 13]);
}

/// The condition is "covers more than recover": one byte beyond it is enough.
#[test]
fn newreno_recovers_again_from_what_was_sent_later() {
    let mut h = in_recovery(Recovery::NewReno);
    h.ack(10);
    h.ack(11);
    for _ in 0..2 {
        assert_eq!(h.ack(11), NOTHING);
    }
    assert_eq!(h.ack(11), [11]);
    assert_eq!(h.sender.counters().reductions_for(Cause::Loss), 2);
}

#[test]
fn an_old_ack_changes_nothing() {
    let mut h = Hand::new(without_limited_transmit(Recovery::NewReno));
    h.sends();
    h.ack(5);
    for _ in 0..5 {
        assert_eq!(h.ack(3), NOTHING);
    }
    assert_eq!(h.ack(100), NOTHING, "nor one for what was never sent");
    assert_eq!(h.sender.acknowledged(), 5000);
}

/// The threshold of duplicate ACKs is a parameter: RFC 5681's three, or any other number.
#[test]
fn as_many_duplicate_acks_as_the_threshold_says_mean_a_loss() {
    for dup_thresh in 1..6 {
        for recovery in [Recovery::Tahoe, Recovery::Reno, Recovery::NewReno, Recovery::Sack] {
            let mut h = Hand::new(
                without_limited_transmit(recovery).with(|p| p.detection.dup_thresh = dup_thresh),
            );
            h.sends();
            for n in 1..=u64::from(dup_thresh) {
                let sent = h.duplicate(0, n);
                let due = n == u64::from(dup_thresh);
                assert_eq!(sent.first(), due.then_some(&0), "{recovery:?}, {n} of {dup_thresh}");
            }
        }
    }
}
