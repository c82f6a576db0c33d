//! Retransmissions that were lost in turn, as Linux found them before RACK-TLP (tcp_input.c until 4.x,
//! `tcp_mark_lost_retrans`) and ns-2's TCP-Linux does (scoreboard1.cc). RFC 6675 leaves them to the timer.

use cwnd_units::{Duration, Time};

use crate::late::Deadline;
use crate::ranges::{Range, Ranges};

/// What was retransmitted and has not arrived yet.
#[derive(Clone, Debug)]
pub struct Resent {
    /// Whether time tells which are lost (RACK).
    by_time: bool,
    /// So many more than one must have gone between a lost one and one that arrived.
    apart: u64,
    /// On their way, in the order in which they went.
    under_way: Vec<Retransmission>,
    /// Lost again, the lowest first.
    lost: Vec<Range>,
    /// Number of the next.
    next: u64,
    /// The highest number that arrived, if any did since the numbers began.
    arrived: Option<u64>,
    /// Whether some were found to be lost since it was last asked.
    found: bool,
    /// Whether any double their originals, or did.
    doubles: bool,
}

#[derive(Clone, Copy, Debug)]
struct Retransmission {
    range: Range,
    /// One past the highest byte that had been sent when it went.
    sent_up_to: u64,
    number: u64,
    at: Time,
    /// Whether its original is in flight, too, as it seems: neither is lost.
    doubles: bool,
}

impl Retransmission {
    fn is_young(&self, una: u64, now: Time, rtt: Duration) -> bool {
        self.range.start > una && self.at + rtt > now
    }
}

impl Resent {
    pub const fn new(apart: u32, by_time: bool) -> Self {
        Self {
            by_time,
            apart: apart as u64,
            under_way: Vec::new(),
            lost: Vec::new(),
            next: 0,
            arrived: None,
            found: false,
            doubles: false,
        }
    }

    /// A timeout, or a new recovery, begins anew.
    pub fn restart(&mut self) {
        *self = Self::new(self.apart as u32, self.by_time);
    }

    /// What was lost again is only late, as it seems. What is on its way then is so twice, original and retransmission, for as long as the
    /// latter is (Linux, `tcp_undo_cwnd_reduction`: nothing is lost any more, and `retrans_out` stays).
    pub fn find_again(&mut self) {
        self.lost.clear();
        if self.by_time {
            self.under_way.iter_mut().for_each(|sent| sent.doubles = true);
            self.doubles = !self.under_way.is_empty();
        }
    }

    /// Bytes of retransmissions from `una` to `edge` whose originals are in flight, too; `None` if there never were any.
    #[inline]
    pub fn doubled_bytes(&self, una: u64, edge: u64) -> Option<u64> {
        self.doubles.then(|| self.doubled(una, edge))
    }

    #[cold]
    fn doubled(&self, una: u64, edge: u64) -> u64 {
        let doubles = self.under_way.iter().filter(|sent| sent.doubles && sent.range.end <= edge);
        doubles.map(|sent| sent.range.end.saturating_sub(sent.range.start.max(una))).sum()
    }

    /// `range` goes again, now that everything up to `sent_up_to` has been sent.
    pub fn sent(&mut self, range: Range, sent_up_to: u64, at: Time) {
        self.lost.retain(|lost| lost.start != range.start);
        let number = self.next;
        self.under_way.push(Retransmission { range, sent_up_to, number, at, doubles: false });
        self.next += 1;
    }

    /// An ACK told something; returns whether a retransmission is now seen to be lost. One is if data that first went
    /// after it was SACKed, or one that went more than so many after it arrived. With RACK time tells: [`Resent::lose_by_time`].
    pub fn review(&mut self, una: u64, sacked: &Ranges) -> bool {
        let missing = |r: &Range| r.end > una && sacked.covered(r.start, r.end) == 0;
        self.lost.retain(missing);
        // An ACK may end within what was lost: the rest still is.
        self.lost.iter_mut().for_each(|range| range.start = range.start.max(una));
        let arrived = &mut self.arrived;
        self.under_way.retain(|sent| {
            let still = missing(&sent.range);
            if !still {
                *arrived = (*arrived).max(Some(sent.number));
            }
            still
        });
        if self.by_time {
            return false;
        }
        let top = sacked.highest().map_or(una, |range| range.end);
        let (apart, arrived, lost) = (self.apart, self.arrived, &mut self.lost);
        let before = lost.len();
        self.under_way.retain(|sent| {
            let overtaken = arrived.is_some_and(|number| number > sent.number + apart);
            let gone = top > sent.sent_up_to || overtaken;
            if gone {
                lost.push(Range { start: sent.range.start.max(una), ..sent.range });
            }
            !gone
        });
        lost.sort_unstable_by_key(|range| range.start);
        let found = lost.len() > before;
        self.found |= found;
        found
    }

    /// RACK: which retransmissions are lost by now, and when the last of the others would be that something overtook; `Time::ZERO` if none.
    pub fn lose_by_time(&mut self, una: u64, now: Time, by: Deadline) -> (bool, Time) {
        let before = self.lost.len();
        let lost = &mut self.lost;
        let mut waits = Time::ZERO;
        self.under_way.retain(|sent| {
            let over = by.of((sent.at, sent.range.end));
            if over <= now {
                lost.push(Range { start: sent.range.start.max(una), ..sent.range });
            } else if over != Time::NEVER {
                waits = waits.max(over);
            }
            over > now
        });
        lost.sort_unstable_by_key(|range| range.start);
        let found = lost.len() > before;
        self.found |= found;
        (found, waits)
    }

    /// Whether anything but the first went again within `rtt`.
    pub fn has_young(&self, una: u64, now: Time, rtt: Duration) -> bool {
        self.under_way.iter().any(|sent| sent.is_young(una, now, rtt))
    }

    /// All else is not known any more.
    pub fn forget_old(&mut self, una: u64, now: Time, rtt: Duration) {
        self.under_way.retain(|sent| sent.is_young(una, now, rtt));
        self.lost.clear();
    }

    /// What of a hole is not on its way is lost, segment by segment.
    pub fn lose_but_young(&mut self, hole: Range, mss: u64) {
        let mut kept: Vec<Range> = self.under_way.iter().map(|sent| sent.range).collect();
        kept.sort_unstable_by_key(|range| range.start);
        let mut at = hole.start;
        for young in kept.iter().filter(|young| young.end > hole.start) {
            self.lose_all(at, young.start.min(hole.end), mss);
            at = at.max(young.end);
        }
        self.lose_all(at, hole.end, mss);
    }

    fn lose_all(&mut self, mut at: u64, end: u64, mss: u64) {
        while at < end {
            let next = (at + mss).min(end);
            self.lost.push(Range { start: at, end: next });
            at = next;
        }
    }

    /// When this byte went, if it is on its way.
    pub fn sent_at(&self, byte: u64) -> Option<Time> {
        let has = |sent: &&Retransmission| sent.range.start <= byte && byte < sent.range.end;
        self.under_way.iter().find(has).map(|sent| sent.at)
    }

    /// How many are on their way.
    pub const fn under_way(&self) -> u64 {
        self.under_way.len() as u64
    }

    /// When those went that lie within this, and where they end.
    pub fn within(&self, range: Range) -> impl Iterator<Item = (Time, u64)> + '_ {
        let inside = move |r: &Range| range.start <= r.start && r.end <= range.end;
        self.under_way.iter().filter(move |sent| inside(&sent.range)).map(|s| (s.at, s.range.end))
    }

    /// Whether reviews found lost retransmissions that nobody took note of.
    pub const fn has_found(&self) -> bool {
        self.found
    }

    /// Whether reviews since the last call found lost retransmissions.
    pub const fn take_found(&mut self) -> bool {
        core::mem::replace(&mut self.found, false)
    }

    /// The lowest from `una` on that was lost again. An ACK may have come for it since, before anything let it go.
    pub fn first_lost(&self, una: u64) -> Option<Range> {
        let mut from_una = self.lost.iter().filter(|range| range.end > una);
        from_una.next().map(|range| Range { start: range.start.max(una), ..*range })
    }

    /// Bytes from `una` on that were lost again, and are not in the network.
    pub fn lost_bytes(&self, una: u64) -> u64 {
        self.lost.iter().map(|range| range.end.saturating_sub(range.start.max(una))).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(n: u64) -> Range {
        Range { start: n * 1000, end: (n + 1) * 1000 }
    }

    /// scoreboard1.cc, UpdateScoreBoard: lost when `rtx + dupack_threshold + 1 < acked_rtx_id`; its threshold and one are 4.
    #[test]
    fn a_retransmission_is_lost_when_one_that_went_five_later_arrived() {
        let mut resent = Resent::new(4, false);
        let mut sacked = Ranges::default();
        for n in [0, 2, 4, 6, 8, 10] {
            resent.sent(segment(n), 20_000, Time::ZERO);
        }
        sacked.insert(8000, 9000);
        assert!(!resent.review(0, &sacked));
        sacked.insert(10_000, 11_000);
        assert!(resent.review(0, &sacked));
        assert_eq!(resent.first_lost(0), Some(segment(0)));
        assert_eq!(resent.lost_bytes(0), 1000);
        resent.sent(segment(0), 20_000, Time::ZERO);
        assert_eq!((resent.first_lost(0), resent.lost_bytes(0)), (None, 0));
        assert!(!resent.review(0, &sacked), "it counts from its new number");
    }

    #[test]
    fn an_ack_that_ends_within_what_was_lost_leaves_the_rest() {
        let mut resent = Resent::new(3, false);
        let mut sacked = Ranges::default();
        resent.sent(segment(0), 5000, Time::ZERO);
        resent.sent(segment(2), 5000, Time::ZERO);
        sacked.insert(5000, 6000);
        resent.review(0, &sacked);
        assert_eq!((resent.lost_bytes(0), resent.lost_bytes(400)), (2000, 1600));
        resent.review(400, &sacked);
        assert_eq!(resent.first_lost(0), Some(Range { start: 400, end: 1000 }));
        assert_eq!(resent.lost_bytes(400), 1600);
    }

    #[test]
    fn at_a_timeout_what_went_again_within_a_round_trip_is_on_its_way_and_all_else_is_lost() {
        let (now, rtt) = (Time(110_000_000), Duration::from_millis(50));
        let mut resent = Resent::new(3, true);
        for (n, ms) in [(0, 100), (2, 10), (4, 60), (6, 61)] {
            resent.sent(segment(n), 9000, Time(ms * 1_000_000));
        }
        assert!(resent.has_young(0, now, rtt));
        assert!(!resent.has_young(0, now + Duration::from_millis(1), rtt));
        resent.forget_old(0, now, rtt);
        assert_eq!((resent.sent_at(4000), resent.sent_at(0)), (None, None));
        assert_eq!(resent.sent_at(6000), Some(Time(61_000_000)));
        // 3000:4000 is SACKed.
        resent.lose_but_young(Range { start: 0, end: 3000 }, 1000);
        resent.lose_but_young(Range { start: 4000, end: 8500 }, 1000);
        let lost: Vec<_> = resent.lost.iter().map(|range| (range.start, range.end)).collect();
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
        let mut resent = Resent::new(3, true);
        resent.sent(segment(0), 9000, ms(0));
        resent.sent(segment(2), 9000, ms(10));
        assert_eq!(resent.doubled_bytes(0, 9000), None);
        resent.find_again();
        resent.sent(segment(4), 9000, ms(60));
        assert_eq!(resent.doubled_bytes(0, 9000), Some(2000));
        assert_eq!(resent.doubled_bytes(500, 2000), Some(500));
        resent.forget_old(3000, ms(61), Duration::from_millis(50));
        assert_eq!(resent.doubled_bytes(0, 9000), Some(0));
    }

    #[test]
    fn what_arrives_after_all_is_lost_no_more() {
        let mut resent = Resent::new(3, false);
        let mut sacked = Ranges::default();
        resent.sent(segment(0), 5000, Time::ZERO);
        resent.sent(segment(2), 5000, Time::ZERO);
        sacked.insert(5000, 6000);
        assert!(resent.review(0, &sacked));
        assert_eq!(resent.lost_bytes(0), 2000);
        sacked.insert(2000, 3000);
        resent.review(0, &sacked);
        assert_eq!(resent.lost_bytes(0), 1000);
        resent.review(1000, &sacked);
        assert_eq!(resent.first_lost(0), None);
    }
}
