//! Loss recovery without SACK, SACK recovery (RFC 6675), and proportional rate reduction (RFC
//! 6937).

use cwnd_cc::{Cause, Phase};
use cwnd_packet::Echo;
use cwnd_tcp::{Body, Params, Recovery, SackBlock, SackBlocks, Segment};

use super::{Hand, World, at_ms, config, data, drops, ms, simple};

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

fn window_of(initial_window: u32) -> Params {
    simple().with(|p| p.windows.initial_window = initial_window)
}

#[test]
fn three_segments_sacked_above_a_hole_start_recovery() {
    let mut h = Hand::new(simple());
    assert_eq!(h.sends().len(), 10);
    assert_eq!(h.sack(0, &[(1, 2)]), [10], "limited transmit");
    assert_eq!(h.sack(0, &[(1, 3)]), [11]);
    assert_eq!(h.sender.phase(), Phase::Open);
    assert_eq!(h.sack(0, &[(1, 4)]), [0]);
    assert_eq!(h.sender.phase(), Phase::Recovery);
    // FlightSize without the two segments of limited transmit is 10.
    assert_eq!((h.cwnd(), h.ssthresh()), (5.0, 5.0));
    assert_eq!(h.sender.in_flight(), 9000, "4 to 11, and 0 again");
}

/// RFC 6675 § 5 (2): one ACK that reports three segments is enough, as ACKs may be lost.
#[test]
fn one_ack_that_reports_three_segments_starts_recovery() {
    let mut h = Hand::new(simple());
    h.sends();
    assert_eq!(h.sack(0, &[(1, 4)])[0], 0);
    let mut h = Hand::new(simple());
    h.sends();
    assert_eq!(h.sack(0, &[(5, 6), (3, 4), (1, 2)])[0], 0, "discontiguous ones, too");
}

/// Body of an ACK with these blocks.
fn reports(sack: SackBlocks) -> Body {
    Body::Ack { window: 1 << 30, echo: Echo::None, sack }
}

/// RFC 6675 § 4, IsLost: DupThresh discontiguous ranges are enough, however short.
#[test]
fn three_short_ranges_make_a_hole_lost() {
    let mut h = Hand::new(simple());
    h.sends();
    let sack = [5000, 3000, 1000].map(|offset| SackBlock { offset, len: 10 });
    let ack = Segment { body: reports(sack), ..data(0, 0, h.now) };
    h.sender.on_segment(h.now, &ack);
    assert_eq!(h.sender.phase(), Phase::Recovery);
}

/// RFC 6675 § 2: an ACK that reports new data by SACK is a duplicate ACK even if it advances. § 5
/// (1): three are enough, also with segments too small for IsLost.
#[test]
fn an_ack_that_advances_and_reports_counts_as_a_duplicate() {
    let mut h = Hand::new(simple());
    h.sends();
    for nth in 1..=3 {
        assert_eq!(h.sender.phase(), Phase::Open);
        let first = SackBlock { offset: 2000, len: 100 * nth };
        let body = reports([first, SackBlock::default(), SackBlock::default()]);
        let ack = Segment { body, ..data(1000, 0, h.now) };
        h.sender.on_segment(h.now, &ack);
    }
    assert_eq!(h.sender.phase(), Phase::Recovery);
    assert_eq!(h.sends(), [1]);
}

#[test]
fn acks_that_report_nothing_new_start_nothing() {
    let mut h = Hand::new(simple());
    h.sends();
    h.sack(0, &[(1, 2)]);
    for _ in 0..10 {
        assert_eq!(h.sack(0, &[(1, 2)]), NOTHING, "RFC 3042 § 2, note");
    }
    assert_eq!(h.sender.phase(), Phase::Open);
}

/// § 5 (C): with cwnd = 5 nothing is sent until fewer than 5 segments are in flight.
#[test]
fn in_recovery_pipe_keeps_to_the_window() {
    let mut h = Hand::new(simple());
    h.sends();
    for to in 2..=4 {
        h.sack(0, &[(1, to)]);
    }
    for (to, pipe) in [(5, 8), (6, 7), (7, 6), (8, 5)] {
        assert_eq!(h.sack(0, &[(1, to)]), NOTHING);
        assert_eq!(h.sender.in_flight(), pipe * 1000);
    }
    assert_eq!(h.sack(0, &[(1, 9)]), [12]);
    assert_eq!(h.sack(0, &[(1, 10)]), [13]);
}

#[test]
fn recovery_ends_when_all_that_was_outstanding_is_acknowledged() {
    let mut h = Hand::new(simple());
    h.sends();
    for to in 2..=4 {
        h.sack(0, &[(1, to)]);
    }
    h.ack(11);
    assert_eq!(h.sender.phase(), Phase::Recovery, "11 was sent before recovery began");
    h.ack(12);
    assert_eq!(h.sender.phase(), Phase::Open);
    assert_eq!(h.cwnd(), 5.0);
}

/// § 4, NextSeg: lost data, then new data, then holes that may be lost, then the highest segment
/// once.
#[test]
fn the_next_segment_is_chosen_by_the_four_rules() {
    // Ten segments are outstanding, 1, 6 and 10 are lost, and there is no more data.
    let mut h = Hand::with(config(simple()), 11);
    assert_eq!(h.sends().len(), 10);
    assert_eq!(h.ack(1), [10]);
    for to in 3..=4 {
        assert_eq!(h.sack(1, &[(2, to)]), NOTHING);
    }
    assert_eq!(h.sack(1, &[(2, 5)]), [1]);
    assert_eq!(h.sack(1, &[(2, 6)]), NOTHING, "pipe: 6 to 10, and 1");
    assert_eq!(h.sack(1, &[(7, 8), (2, 6)]), NOTHING, "pipe: 6, 8, 9, 10, and 1");
    // Only 2000 bytes above 6 are SACKed: it is not lost, but rule 3 sends it, as rules 1 and 2
    // find nothing.
    assert_eq!(h.sack(1, &[(7, 9), (2, 6)]), [6]);
    // Rule 4 waits until the fast retransmit has arrived (§ 5, 4.3).
    assert_eq!(h.sack(1, &[(7, 10), (2, 6)]), NOTHING);
    assert_eq!(h.sack(6, &[(7, 10)]), [10], "the rescue");
    assert_eq!(h.sender.in_flight(), 2000, "6 and 10: HighRxt is not updated");
    assert_eq!(h.ack(10), NOTHING, "once");
    h.ack(11);
    assert_eq!(h.sender.counters().retransmissions, 3);
    assert_eq!(h.sender.phase(), Phase::Open);
}

/// § 5 (4.3): HighRxt is reset, so that a retransmission lost in the last recovery is repeated.
#[test]
fn a_new_recovery_repairs_again_what_the_last_one_repaired_in_vain() {
    let mut h = Hand::new(simple());
    h.sends();
    for to in 2..=10 {
        h.sack(0, &[(1, to)]);
    }
    // 12 and 14, sent in recovery, are lost, and so are their retransmissions.
    assert_eq!(h.sack(0, &[(1, 12)]), [14, 15]);
    assert_eq!(h.sack(0, &[(15, 16), (13, 14), (1, 12)]), [16, 17]);
    assert_eq!(h.sack(0, &[(15, 18), (13, 14), (1, 12)]), [12, 14, 18, 19]);
    assert_eq!(h.sack(12, &[(15, 20), (13, 14)])[..2], [12, 14]);
    assert_eq!(h.sender.counters().reductions_for(Cause::Loss), 2);
}

#[test]
fn what_is_lost_goes_before_new_data_and_new_data_before_doubtful_holes() {
    let mut h = Hand::new(window_of(20));
    h.sends();
    // 0, 2 and 14 are missing, but only two segments above 14 are SACKed. In flight: 14, 17 to 19,
    // and the retransmission of 0.
    assert_eq!(h.sack(0, &[(15, 17), (3, 14), (1, 2)]), [0, 2, 20, 21, 22, 23]);
    assert_eq!(h.sender.in_flight(), 10_000);
    // Three segments above 14 are SACKed: it is lost.
    assert_eq!(h.sack(0, &[(15, 18), (3, 14), (1, 2)])[0], 14);
}

#[test]
fn a_burst_of_losses_is_repaired_from_below_and_each_segment_once() {
    let mut w = World::segments(window_of(20), 60, ms(100));
    let lost: Vec<_> = (3..11).map(|k| (k, 1)).collect();
    w.data_fate = drops(&lost);
    w.run();
    assert_eq!(w.timeouts(), 0);
    let mut order = w.sent.iter().filter(|s| s.segment.is_retransmission());
    assert!((3..11).all(|k| order.next().is_some_and(|s| s.k == k)));
    assert!(order.next().is_none());
}

/// RFC 6675 leaves a lost retransmission to the timer.
#[test]
fn a_lost_retransmission_waits_for_the_timer() {
    let mut w = World::segments(simple(), 200, ms(100));
    w.data_fate = drops(&[(20, 1), (20, 2)]);
    w.run();
    assert_eq!(w.sender.counters().timeouts, [1, 0, 0, 0, 0]);
    assert_eq!(w.sent.iter().filter(|s| s.k == 20).count(), 3);
    assert_eq!(w.sender.counters().retransmissions, 2, "what was SACKed is not sent again");
}

#[test]
fn after_a_timeout_only_what_was_not_sacked_is_sent_again() {
    let mut h = Hand::new(simple().with(|p| p.recovery.limited_transmit = false));
    h.sends();
    h.sack(0, &[(2, 4)]);
    assert_eq!(h.expire(), [0]);
    assert_eq!(h.sack(1, &[(2, 4)]), [1, 4]);
    assert_eq!(h.ack(5), [5, 6, 7]);
}

/// RFC 2018 § 8: the first unacknowledged segment was SACKed and then discarded.
#[test]
fn a_receiver_that_reneged_gets_everything_again() {
    let mut h = Hand::new(simple().with(|p| p.recovery.limited_transmit = false));
    h.sends();
    h.sack(0, &[(1, 3)]);
    assert_eq!(h.ack(1), [10, 11], "as if 1 had never been SACKed");
    assert_eq!(h.expire(), [1]);
    assert_eq!(h.ack(2), [2, 3]);
}

/// Blocks outside the outstanding data are invalid.
#[test]
fn blocks_beyond_what_was_sent_are_ignored() {
    let mut h = Hand::new(simple());
    h.sends();
    h.sack(0, &[(8, 14)]);
    assert_eq!(h.sender.in_flight(), 10_000);
    assert_eq!(h.sender.phase(), Phase::Open);
}

/// Numbers sent for each ACK when the first `lost` of twenty segments are lost and the others
/// arrive one by one.
fn replies(prr: bool, lost: u64) -> Vec<Vec<u64>> {
    let mut h = Hand::new(window_of(20).with(|p| p.prr.prr = prr));
    h.sends();
    let sent = (lost + 1..=20).map(|to| h.sack(0, &[(lost, to)])).collect();
    assert_eq!(h.ssthresh(), 10.0);
    sent
}

/// RFC 6937 § 3.1, first example: a single loss out of 20.
#[test]
fn prr_spreads_the_reduction_over_the_round_trip() {
    let counts = |prr| replies(prr, 1).iter().map(Vec::len).collect::<Vec<_>>();
    // RFC 6675: silence for half a window. (The RFC's figure has cwnd 11, as its FlightSize
    // includes limited transmit.)
    let silent = [1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1];
    assert_eq!(counts(false), silent);
    // PRR: a segment whenever prr_delivered · 10 / 22 reaches the next integer; near the end pipe
    // falls to ssthresh and the bound applies ("s" in the RFC's figure).
    let spread = [1, 1, 1, 0, 0, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 0, 1, 1, 1];
    assert_eq!(counts(true), spread);
    assert_eq!(
        silent.iter().sum::<usize>(),
        spread.iter().sum::<usize>(),
        "all algorithms send the same amount"
    );
}

/// RFC 6937 § 3.1, second example: the first fifteen of 20 are lost.
#[test]
fn prr_sends_two_segments_for_each_ack_after_a_burst_of_losses() {
    // "N N 2R 2R 2R", PRR-SSRB.
    assert_eq!(replies(true, 15), [vec![20], vec![21], vec![0, 1], vec![2, 3], vec![4, 5]]);
    // "N N 7R R R" with cwnd 11; here cwnd is 10.
    let burst = vec![0, 1, 2, 3, 4, 5];
    assert_eq!(replies(false, 15), [vec![20], vec![21], burst, vec![6], vec![7]]);
}

/// RFC 6937 § 3: DeliveredData includes cumulatively acknowledged data.
#[test]
fn prr_counts_what_a_partial_ack_acknowledges() {
    let mut h = Hand::new(window_of(20).with(|p| p.prr.prr = true));
    h.sends();
    for to in 16..=22 {
        h.sack(0, &[(15, to)]);
    }
    assert_eq!(h.sender.in_flight(), 10_000, "0 to 9, sent again");
    // One ACK delivers three segments: sndcnt = min(10 − 7, max(7 − 10, 3) + 1).
    assert_eq!(h.sack(3, &[(15, 22)]), [10, 11, 12]);
}

#[test]
fn prr_ends_with_the_flight_at_the_threshold() {
    let mut h = Hand::new(window_of(20).with(|p| p.prr.prr = true));
    h.sends();
    for to in 2..=20 {
        h.sack(0, &[(1, to)]);
    }
    assert_eq!(h.sender.in_flight(), 10_000);
}

#[test]
fn a_tail_loss_is_left_to_the_timer() {
    let mut w = World::segments(simple(), 10, ms(100));
    w.data_fate = drops(&[(9, 1)]);
    w.run();
    assert_eq!(w.timeouts(), 1);
    assert_eq!(w.sent.last().map(|s| (s.at, s.k)), Some((at_ms(1100), 9)));
}
