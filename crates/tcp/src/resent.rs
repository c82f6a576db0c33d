//! Retransmissions that were lost in turn, as Linux found them before RACK-TLP (tcp_input.c until 4.x,
//! `tcp_mark_lost_retrans`) and ns-2's TCP-Linux does (scoreboard1.cc). RFC 6675 leaves them to the timer.

use cwnd_units::{Duration, Time};

use crate::ranges::{Range, Ranges};

/// What was retransmitted and has not arrived yet.
#[derive(Clone, Debug)]
pub struct Resent {
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
    /// When the ACK came that is looked at.
    now: Time,
    /// With RACK: what arrives sooner than this after its retransmission may be the original, and says nothing.
    least: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Retransmission {
    range: Range,
    /// One past the highest byte that had been sent when it went.
    sent_up_to: u64,
    number: u64,
    at: Time,
}

impl Resent {
    pub const fn new(apart: u32) -> Self {
        Self {
            apart: apart as u64,
            under_way: Vec::new(),
            lost: Vec::new(),
            next: 0,
            arrived: None,
            found: false,
            now: Time::ZERO,
            least: Duration::ZERO,
        }
    }

    /// A timeout, or a new recovery, begins anew.
    pub fn restart(&mut self) {
        *self = Self::new(self.apart as u32);
    }

    /// An ACK comes; the least round-trip time before it.
    pub fn hear(&mut self, now: Time, least: Option<Duration>) {
        self.now = now;
        // The older rules have no such check.
        if self.apart == 0 {
            self.least = least.unwrap_or(Duration::ZERO);
        }
    }

    /// `range` goes again, now that everything up to `sent_up_to` has been sent.
    pub fn sent(&mut self, range: Range, sent_up_to: u64, at: Time) {
        self.lost.retain(|lost| lost.start != range.start);
        self.under_way.push(Retransmission { range, sent_up_to, number: self.next, at });
        self.next += 1;
    }

    /// An ACK told something; returns whether a retransmission is now seen to be lost. One is if data that first went
    /// after it was SACKed, or one that went more than so many after it arrived.
    pub fn review(&mut self, una: u64, sacked: &Ranges) -> bool {
        let missing = |r: &Range| r.end > una && sacked.covered(r.start, r.end) == 0;
        self.lost.retain(missing);
        // An ACK may end within what was lost: the rest still is.
        self.lost.iter_mut().for_each(|range| range.start = range.start.max(una));
        let (arrived, now, least) = (&mut self.arrived, self.now, self.least);
        self.under_way.retain(|sent| {
            let still = missing(&sent.range);
            // RFC 8985 § 6.2, step 1 (`tcp_rack_advance`): sooner than any round trip, it was the original that came late.
            if !still && now.since(sent.at) >= least {
                *arrived = (*arrived).max(Some(sent.number));
            }
            still
        });
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
        let mut resent = Resent::new(4);
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
        let mut resent = Resent::new(3);
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
    fn what_arrives_after_all_is_lost_no_more() {
        let mut resent = Resent::new(3);
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

    /// tcp_rack_advance by hand: a round trip is 100 ms at least, and what arrives 5 ms after its retransmission is the original.
    #[test]
    fn what_arrives_too_soon_is_the_original_and_finds_nothing() {
        let ms = |ms| Time::ZERO + Duration::from_millis(ms);
        let mut resent = Resent::new(0);
        let mut sacked = Ranges::default();
        for n in [0, 2, 4] {
            resent.sent(segment(n), 20_000, ms(0));
        }
        sacked.insert(2000, 3000);
        resent.hear(ms(5), Some(Duration::from_millis(100)));
        assert!(!resent.review(0, &sacked));
        sacked.insert(4000, 5000);
        resent.hear(ms(100), Some(Duration::from_millis(100)));
        assert!(resent.review(0, &sacked));
        assert_eq!(resent.first_lost(0), Some(segment(0)));
    }
}
