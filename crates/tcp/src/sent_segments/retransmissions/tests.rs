//! Tests of [`Retransmissions`], by hand and against a reference with plain lists.

use cwnd_packet::{Range, Ranges};
use cwnd_quantity::{Duration, Time};

use super::Retransmissions;
use crate::loss_detection::LossByOrder;

fn segment(n: u64) -> Range {
    Range { start: n * 1000, end: (n + 1) * 1000 }
}

fn report(retransmissions: &mut Retransmissions, sacked: &mut Ranges, n: u64) {
    let Range { start, end } = segment(n);
    retransmissions.sacked(start, end);
    sacked.insert(start, end);
}

/// Reviews arrivals; returns `true` if a retransmission is lost by its order, with a gap of
/// `apart`.
fn review(retransmissions: &mut Retransmissions, una: u64, sacked: &Ranges, apart: u32) -> bool {
    retransmissions.review(una, sacked);
    retransmissions.mark_lost_by_order(una, sacked, LossByOrder::new(apart))
}

/// scoreboard1.cc, UpdateScoreBoard: lost when `rtx + dupack_threshold + 1 < acked_rtx_id`; its
/// threshold and one are 4.
#[test]
fn a_retransmission_is_lost_when_one_that_went_five_later_arrived() {
    let mut retransmissions = Retransmissions::new(false);
    let mut sacked = Ranges::default();
    for n in [0, 2, 4, 6, 8, 10] {
        retransmissions.sent(segment(n), 20_000, Time::ZERO, &sacked);
    }
    report(&mut retransmissions, &mut sacked, 8);
    assert!(!review(&mut retransmissions, 0, &sacked, 4));
    report(&mut retransmissions, &mut sacked, 10);
    assert!(review(&mut retransmissions, 0, &sacked, 4));
    assert_eq!(retransmissions.first_lost(), Some(segment(0)));
    assert_eq!(retransmissions.lost_bytes(), 1000);
    retransmissions.sent(segment(0), 20_000, Time::ZERO, &sacked);
    assert_eq!((retransmissions.first_lost(), retransmissions.lost_bytes()), (None, 0));
    assert!(!review(&mut retransmissions, 0, &sacked, 4), "it counts from its new number");
}

#[test]
fn an_ack_that_ends_within_what_was_lost_leaves_the_rest() {
    let mut retransmissions = Retransmissions::new(false);
    let mut sacked = Ranges::default();
    retransmissions.sent(segment(0), 5000, Time::ZERO, &sacked);
    retransmissions.sent(segment(2), 5000, Time::ZERO, &sacked);
    report(&mut retransmissions, &mut sacked, 5);
    review(&mut retransmissions, 0, &sacked, 3);
    assert_eq!(retransmissions.lost_bytes(), 2000);
    review(&mut retransmissions, 400, &sacked, 3);
    assert_eq!(retransmissions.first_lost(), Some(Range { start: 400, end: 1000 }));
    assert_eq!(retransmissions.lost_bytes(), 1600);
}

#[test]
fn at_a_timeout_what_went_again_within_a_round_trip_is_on_its_way_and_all_else_is_lost() {
    let (now, rtt) = (Time(110_000_000), Duration::from_millis(50));
    let sacked = Ranges::default();
    let mut retransmissions = Retransmissions::new(true);
    for (n, ms) in [(0, 100), (2, 10), (4, 60), (6, 61)] {
        retransmissions.sent(segment(n), 9000, Time(ms * 1_000_000), &sacked);
    }
    assert!(retransmissions.has_recent(0, now, rtt));
    assert!(!retransmissions.has_recent(0, now + Duration::from_millis(1), rtt));
    retransmissions.forget_old(0, now, rtt);
    assert_eq!((retransmissions.sent_at(4000), retransmissions.sent_at(0)), (None, None));
    assert_eq!(retransmissions.sent_at(6000), Some(Time(61_000_000)));
    // 3000:4000 is SACKed.
    retransmissions.mark_lost_but_recent(Range { start: 0, end: 3000 }, 1000);
    retransmissions.mark_lost_but_recent(Range { start: 4000, end: 8500 }, 1000);
    let lost: Vec<(u64, u64)> = retransmissions.lost.iter().collect();
    assert_eq!(
        lost,
        [
            (0, 1000),
            (1000, 2000),
            (2000, 3000),
            (4000, 5000),
            (5000, 6000),
            (7000, 8000),
            (8000, 8500)
        ]
    );
}

#[test]
fn what_went_again_before_a_timeout_was_taken_back_is_on_its_way_twice_until_it_is_lost() {
    let ms = |n: u64| Time(n * 1_000_000);
    let sacked = Ranges::default();
    let mut retransmissions = Retransmissions::new(true);
    retransmissions.sent(segment(0), 9000, ms(0), &sacked);
    retransmissions.sent(segment(2), 9000, ms(10), &sacked);
    assert_eq!(retransmissions.duplicated_bytes(0), None);
    retransmissions.undo_losses(0);
    assert_eq!(retransmissions.duplicated_bytes(0), Some(0), "nothing is lost");
    retransmissions.sent(segment(4), 9000, ms(60), &sacked);
    retransmissions.advance_lost_edge(2000);
    assert_eq!(retransmissions.duplicated_bytes(0), Some(1000));
    assert_eq!(retransmissions.duplicated_bytes(500), Some(500));
    retransmissions.advance_lost_edge(9000);
    assert_eq!(retransmissions.duplicated_bytes(0), Some(2000));
    retransmissions.forget_old(3000, ms(61), Duration::from_millis(50));
    assert_eq!(retransmissions.duplicated_bytes(0), Some(0));
}

#[test]
fn bytes_that_are_lost_again_in_two_segments_count_once() {
    let mut retransmissions = Retransmissions::new(true);
    for (start, end) in [(1000, 2000), (204, 1204), (1500, 2500), (0, 3000), (0, 3000)] {
        retransmissions.mark_lost(Range { start, end });
    }
    assert_eq!(retransmissions.lost_bytes(), 3000);
    let lost: Vec<(u64, u64)> = retransmissions.lost.iter().collect();
    assert_eq!(lost, [(0, 204), (204, 1000), (1000, 2000), (2000, 2500), (2500, 3000)]);
}

#[test]
fn what_arrives_after_all_is_lost_no_more() {
    let mut retransmissions = Retransmissions::new(false);
    let mut sacked = Ranges::default();
    retransmissions.sent(segment(0), 5000, Time::ZERO, &sacked);
    retransmissions.sent(segment(2), 5000, Time::ZERO, &sacked);
    report(&mut retransmissions, &mut sacked, 5);
    assert!(review(&mut retransmissions, 0, &sacked, 3));
    assert_eq!(retransmissions.lost_bytes(), 2000);
    report(&mut retransmissions, &mut sacked, 2);
    review(&mut retransmissions, 0, &sacked, 3);
    assert_eq!(retransmissions.lost_bytes(), 1000);
    review(&mut retransmissions, 1000, &sacked, 3);
    assert_eq!(retransmissions.first_lost(), None);
}

/// Reference for [`Retransmissions`]: lists that each review scans from end to end, as the rules
/// are stated.
#[derive(Default)]
struct ReferenceModel {
    in_flight: Vec<(Range, u64, u64, u64)>,
    lost: Vec<Range>,
    arrived: Option<u64>,
}

impl ReferenceModel {
    fn review(&mut self, una: u64, sacked: &Ranges, apart: Option<u64>) {
        let missing = |r: &Range| r.end > una && sacked.covered(r.start, r.end) == 0;
        self.lost.retain(missing);
        self.lost.iter_mut().for_each(|range| range.start = range.start.max(una));
        let arrived = self.in_flight.iter().filter(|(range, ..)| !missing(range));
        self.arrived = self.arrived.max(arrived.map(|&(_, number, ..)| number).max());
        self.in_flight.retain(|(range, ..)| missing(range));
        if let Some(apart) = apart {
            let top = sacked.highest().map_or(una, |range| range.end);
            let arrived = self.arrived;
            self.mark_lost(una, |&(_, number, sent_up_to, _)| {
                top > sent_up_to || arrived.is_some_and(|last| last > number + apart)
            });
        }
    }

    fn mark_lost(&mut self, una: u64, is_lost: impl Fn(&(Range, u64, u64, u64)) -> bool) {
        for sent in self.in_flight.extract_if(.., |sent| is_lost(sent)) {
            // Each byte counts once; the test ends at two segments that begin at the same byte.
            let (start, end) = (sent.0.start.max(una), sent.0.end);
            let same = self.lost.iter().any(|lost| lost.start == start);
            let is_new =
                |byte: &u64| same || !self.lost.iter().any(|l| (l.start..l.end).contains(byte));
            let bytes: Vec<u64> = (start..end).filter(is_new).collect();
            for run in bytes.chunk_by(|a, b| a + 1 == *b) {
                self.lost.push(Range { start: run[0], end: run[run.len() - 1] + 1 });
            }
        }
        self.lost.sort_unstable_by_key(|range| range.start);
    }
}

proptest::proptest! {
    /// Retransmissions of any length, also overlapping ones, but no two that begin at the same
    /// byte.
    #[test]
    fn lists_that_are_searched_from_end_to_end_say_the_same(
        by_time in proptest::bool::ANY,
        ops in proptest::collection::vec((0u8..6, 0u64..60, 1u64..9), 1..80),
    ) {
        let (mut map, mut lists) = (Retransmissions::new(by_time), ReferenceModel::default());
        let (mut sacked, mut una, mut now, mut number) = (Ranges::default(), 0, 0, 0);
        for (op, at, len) in ops {
            let (start, end) = (at.max(una), at.max(una) + len);
            now += 1;
            match op {
                0..=2 => {
                    let taken = lists.in_flight.iter().any(|sent| sent.0.start == start);
                    if taken || sacked.overlaps(start, end) {
                        continue;
                    }
                    let range = Range { start, end };
                    map.sent(range, 30 + now, Time(now), &sacked);
                    lists.lost.retain(|lost| lost.start != start);
                    lists.in_flight.push((range, number, 30 + now, now));
                    number += 1;
                    continue;
                }
                3 => {
                    map.sacked(start, end);
                    sacked.insert(start, end);
                }
                4 => {
                    una = una.max(at / 3);
                    sacked.remove_below(una);
                }
                _ if by_time => {
                    let mut rack = crate::rack::Rack::default();
                    rack.on_arrival(Time(now), (Time(at.min(now)), end), None);
                    let by = rack.deadline(Duration(len));
                    map.mark_lost_by_time(una, Time(now), by);
                    let is_over = |&(range, _, _, at): &(Range, u64, u64, u64)| {
                        by.of((Time(at), range.end)) <= Time(now)
                    };
                    lists.mark_lost(una, is_over);
                }
                _ => {}
            }
            map.review(una, &sacked);
            if !by_time {
                map.mark_lost_by_order(una, &sacked, LossByOrder::new(2));
            }
            lists.review(una, &sacked, (!by_time).then_some(2));
            let mut starts: Vec<u64> = lists.lost.iter().map(|lost| lost.start).collect();
            starts.dedup();
            if starts.len() < lists.lost.len() {
                // [`Retransmissions`] keeps one range per first byte.
                return Ok(());
            }
            let lost: Vec<Range> = map.lost.iter().map(Range::from).collect();
            proptest::prop_assert_eq!(lost, lists.lost.clone());
            let bytes: u64 = lists.lost.iter().map(|lost| lost.end - lost.start).sum();
            proptest::prop_assert_eq!(map.lost_bytes(), bytes);
            let mut in_flight: Vec<Range> = lists.in_flight.iter().map(|sent| sent.0).collect();
            in_flight.sort_unstable_by_key(|range| range.start);
            let found: Vec<Range> =
                map.in_flight.iter().map(|(start, sent)| Range { start, end: sent.end }).collect();
            proptest::prop_assert_eq!(found, in_flight);
            if by_time {
                let sent = lists.in_flight.iter().filter(|s| s.0.start <= at && at < s.0.end);
                let first = sent.map(|&(.., sent_at)| Time(sent_at)).min();
                proptest::prop_assert_eq!(map.sent_at(at), first);
            }
        }
    }
}
