//! Test of [`Retransmissions`] against a reference with plain lists.

use cwnd_packet::{Range, Ranges};
use cwnd_quantity::{Duration, Time};

use super::Retransmissions;
use crate::loss_detection::LossByOrder;

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
