//! RACK (RFC 8985 § 6): what went long enough before something that arrived is lost.

use std::collections::VecDeque;

use cwnd_quantity::{Divisor, Duration, Time};

use crate::ranges::Range;

/// Send times of outstanding data, and what its arrival tells (RACK).
///
/// Cost, with n bursts outstanding: a segment is noted and acknowledged in O(1), and found in O(log
/// n) by its number or by its time, as both rise together. An ACK looks for losses by two searches
/// ([`Late::due`]), not segment by segment: all that went before something that arrived is lost at
/// one time or waits for one time. [`Late::left_out`] is linear in the segments that the receiver
/// reports in part, and no receiver that takes whole segments does.
#[derive(Clone, Debug, Default)]
pub struct Late {
    /// Of what is below this there are no notes.
    from: u64,
    /// The ends of what went for the first time, in their order, and when; what went at one time in full segments, the last aside, is one.
    sent: VecDeque<(u64, Time)>,
    /// Where the last segment of these begins.
    last: u64,
    /// From here on all of them are full.
    short: u64,
    /// What went last of all that arrived: when, and where it ends (RACK.xmit_ts, RACK.end_seq).
    newest: (Time, u64),
    /// How long the last arrival took (RACK.rtt).
    rtt: Duration,
    /// Below this something went again that nobody remembers, as a timeout came since.
    repeated: u64,
    /// Whether anything arrived since losses were looked for.
    arrived: bool,
    /// Whether data that went once was seen to come out of its order, and how many segments late it was at most.
    reordered: bool,
    most_late: u64,
    /// By so many more steps the reordering window is wider than the first one, since when, and for how many recoveries more.
    wider: u64,
    widened: Time,
    recoveries: u32,
    /// Segments that arrived twice, as the other end tells.
    pub twice: u64,
    /// Of what an ACK newly tells of and went once: when the first and the last of it went.
    pub sacked: Option<(Time, Time)>,
    /// What the timer of both waits for.
    pub waits_for: Wait,
    /// The probe of the tail.
    pub tail: Tail,
    /// The instant at which a segment that went set the timer of the tail, and no ACK came since:
    /// others of that instant change nothing.
    pub tail_set: Option<Time>,
    /// `true` from a D-SACK to the next data that arrives.
    duplicate: bool,
    /// Bytes that the ACK tells to have arrived twice.
    pub told: u64,
    /// Segments that the SACK blocks of the newest ACK told of but for their beginnings, or passed over for that.
    pub left_out: Vec<Range>,
}

/// What is done when the time comes: Linux has one timer for both (tcp_timer.c, `tcp_write_timer_handler`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wait {
    #[default]
    Nothing,
    /// The reordering window of something that is missing is over.
    Order,
    /// No ACK came for long: the tail is probed.
    Tail,
}

/// A tail loss probe (RFC 8985 § 7).
#[derive(Clone, Copy, Debug, Default)]
pub struct Tail {
    /// It goes now.
    pub due: bool,
    /// Until this is acknowledged there is no other (TLP.end_seq).
    pub until: Option<u64>,
    /// Whether it was no new data (TLP.is_retrans).
    pub again: bool,
    /// Whether the other end told that what it sent again had arrived.
    pub told: bool,
    /// What it sent again and when, while that is on its way.
    pub under_way: Option<(Range, Time)>,
}

impl Late {
    /// Data of `[seq, end)` goes for the first time; full segments are so large.
    pub fn on_sent(&mut self, seq: u64, end: u64, now: Time, mss: u64) {
        let follows_full = seq == self.last + mss;
        self.last = seq;
        if end != seq + mss {
            self.short = end;
        }
        match self.sent.back_mut() {
            Some((last, at)) if *at == now && *last == seq && follows_full => *last = end,
            // Probes of a closed window are not noted.
            Some(&mut (last, at)) if last < seq => {
                self.short = self.short.max(seq);
                self.sent.extend([(seq, at), (end, now)]);
            }
            Some(_) => self.sent.push_back((end, now)),
            None => {
                self.from = seq;
                self.sent.push_back((end, now));
            }
        }
    }

    /// Beginning of the segment that this byte went with, by the size of full ones; the byte
    /// itself, if that is not known.
    pub fn begin_of(&self, byte: u64, segments: Divisor) -> u64 {
        if self.sent.back().is_none_or(|&(end, _)| byte >= end) {
            return byte;
        }
        if self.from >= self.short {
            let beyond = byte.saturating_sub(self.from);
            return byte - segments.divide(beyond).1;
        }
        let i = self.sent.partition_point(|&(end, _)| end <= byte);
        let from = self.end_of_first(i);
        byte - segments.divide(byte.saturating_sub(from)).1
    }

    /// The segments that went with these bytes and lie within them as a whole.
    pub fn whole(&self, of: Range, segments: Divisor) -> Range {
        let begin = self.begin_of(of.start, segments);
        let start = if begin < of.start {
            let i = self.sent.partition_point(|&(end, _)| end <= begin);
            self.sent.get(i).map_or(of.start, |&(end, _)| end.min(begin + segments.get()))
        } else {
            of.start
        };
        Range { start, end: self.begin_of(of.end, segments) }
    }

    /// Where the last segment that went for the first time begins.
    pub const fn last(&self) -> u64 {
        self.last
    }

    /// When this byte went first, if it is outstanding.
    #[inline]
    pub fn sent_at(&self, byte: u64) -> Option<Time> {
        // Mostly the first outstanding byte is asked for.
        if let Some(&(end, at)) = self.sent.front()
            && byte < end
        {
            return (byte >= self.from).then_some(at);
        }
        let i = self.sent.partition_point(|&(end, _)| end <= byte);
        self.sent.get(i).map(|&(_, at)| at).filter(|_| byte >= self.from)
    }

    /// The same of two bytes, the first of which is no higher.
    pub fn sent_at_both(&self, first: u64, last: u64) -> Option<(Option<Time>, Time)> {
        if last < self.from {
            return None;
        }
        let i = self.sent.partition_point(|&(end, _)| end <= last);
        let &(_, at) = self.sent.get(i)?;
        let first = if first >= self.end_of_first(i) { Some(at) } else { self.sent_at(first) };
        Some((first, at))
    }

    /// All below `una` has arrived, in its order; when the first of it went.
    pub fn on_in_order(&mut self, now: Time, una: u64) -> Option<Time> {
        let first = self.sent.front().map(|&(_, at)| at);
        while self.sent.front().is_some_and(|&(end, _)| end < una) {
            self.forget_first();
        }
        if let Some(&(end, at)) = self.sent.front() {
            self.on_arrival(now, (at, una), None);
            if end == una {
                self.forget_first();
            }
        }
        self.on_delivery(now);
        first
    }

    /// A timeout comes, and up to `end` something went again before.
    pub fn forget_retransmissions(&mut self, end: u64) {
        self.repeated = self.repeated.max(end);
    }

    /// Whether all from `una` on went once, as far as it went before the last timeout.
    pub const fn went_once(&self, una: u64) -> bool {
        una >= self.repeated
    }

    /// Nobody will ask for what is below `una`.
    pub fn forget_below(&mut self, una: u64) {
        while self.sent.front().is_some_and(|&(end, _)| end <= una) {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        if let Some((end, _)) = self.sent.pop_front() {
            self.from = end;
        }
    }

    /// Something arrived: when it went and where it ends; if it went again, the least round trip (RFC 8985 § 6.2, steps 1 and 2;
    /// Linux, `tcp_rack_advance`).
    pub fn on_arrival(&mut self, now: Time, sent: (Time, u64), again: Option<Duration>) {
        let rtt = now.since(sent.0);
        if again.is_some_and(|least| rtt < least) {
            // Sooner than any round trip: the original came late.
            return;
        }
        self.arrived = true;
        self.rtt = rtt;
        self.newest = self.newest.max(sent);
    }

    /// How long the last arrival took.
    pub const fn rtt(&self) -> Duration {
        self.rtt
    }

    /// Data that went once came below something that had arrived before it, so many segments higher (RFC 8985 § 6.2, step 3).
    pub fn see_reordering(&mut self, segments: u64) {
        self.reordered = true;
        self.most_late = self.most_late.max(segments);
    }

    /// By how many segments anything was late at most (Linux, `tp->reordering`).
    pub const fn most_late(&self) -> u64 {
        self.most_late
    }

    /// Losses are to be looked for, whether anything arrives or not.
    pub const fn look(&mut self) {
        self.arrived = true;
    }

    /// Whether anything arrived since this was last asked.
    pub const fn take_arrived(&mut self) -> bool {
        core::mem::replace(&mut self.arrived, false)
    }

    /// The reordering window (RFC 8985 § 6.2, step 4; Linux, `tcp_rack_reo_wnd`); `sure` once enough arrived, and in recovery.
    pub fn window(&self, sure: bool, least: Duration, srtt: Duration) -> Duration {
        if sure && !self.reordered {
            return Duration::ZERO;
        }
        Duration(least.0 / PART_OF_LEAST * (1 + self.wider)).min(srtt)
    }

    /// Data that went again had arrived (D-SACK).
    pub const fn on_duplicate(&mut self) {
        self.duplicate = true;
    }

    /// An ACK was taken in that reported data. After a duplicate the window is a step wider where
    /// data comes late, too late for it, once a round trip, for the next recoveries (RFC 8985
    /// § 6.2, step 4; Linux, `tcp_rack_update_reo_wnd`).
    pub fn on_delivery(&mut self, now: Time) {
        let duplicate = core::mem::take(&mut self.duplicate);
        if duplicate && self.reordered && self.newest.0 >= self.widened {
            self.wider = (self.wider + 1).min(MOST_STEPS - 1);
            self.widened = now;
            self.recoveries = RECOVERIES;
        }
    }

    /// A recovery is over; needless, if it was taken back as all that went again had arrived.
    pub fn on_recovered(&mut self, needless: bool) {
        if needless {
            self.recoveries = (self.recoveries + 1).min(RECOVERIES);
        } else {
            self.recoveries = self.recoveries.saturating_sub(1);
        }
        if self.recoveries == 0 {
            self.wider = 0;
        }
    }

    /// How long after it went something is lost, given the window, if anything that went after it arrived.
    pub fn patience(&self, window: Duration) -> Deadline {
        Deadline { newest: self.newest, after: self.rtt + window }
    }

    /// Where the first `i` of what went end.
    fn end_of_first(&self, i: usize) -> u64 {
        if i == 0 { self.from } else { self.sent[i - 1].0 }
    }

    /// Up to where all went longer ago than the last arrival took (Linux, `tcp_rack_skb_timeout`), a probe of the tail included.
    pub fn old(&self, now: Time) -> u64 {
        let old = self.end_of_first(self.sent.partition_point(|&(_, sent)| sent + self.rtt <= now));
        match self.tail.under_way {
            Some((probe, sent)) if sent + self.rtt > now => old.min(probe.start),
            _ => old,
        }
    }

    /// Up to where all that went once went before something that arrived, and up to where its time is over, too.
    pub fn due(&self, now: Time, lost: Deadline) -> (u64, u64) {
        let (at, end) = self.newest;
        // Of what went at the same time the lower numbers went first.
        let i = self.sent.partition_point(|&(last, sent)| (sent, last) <= (at, end));
        let before = match self.sent.get(i) {
            Some(&(_, sent)) if sent == at => end.max(self.end_of_first(i)),
            _ => self.end_of_first(i),
        };
        if at + lost.after <= now {
            // The time of the newest is over, and so is that of all before it.
            return (before, before);
        }
        let over =
            self.end_of_first(self.sent.partition_point(|&(_, sent)| sent + lost.after <= now));
        (before, over.min(before))
    }
}

/// When what has not arrived is lost.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    newest: (Time, u64),
    after: Duration,
}

impl Deadline {
    /// Send time and end of the segment that went last of all that arrived.
    pub const fn newest(&self) -> (Time, u64) {
        self.newest
    }

    /// When something that went then, and ends there, is lost; never, if nothing that went after it arrived.
    pub fn of(&self, sent: (Time, u64)) -> Time {
        if sent < self.newest { sent.0 + self.after } else { Time::NEVER }
    }
}

/// The first reordering window is this part of the least round trip (RFC 8985 § 6.2, step 4).
const PART_OF_LEAST: u64 = 4;
/// So many recoveries a wider window lasts (RFC 8985 § 6.2, step 4: RACK.reo_wnd_persist; Linux, `TCP_RACK_RECOVERY_THRESH`).
const RECOVERIES: u32 = 16;
/// No window is wider than so many of the first (Linux, `tcp_rack_update_reo_wnd`).
const MOST_STEPS: u64 = 255;

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Time {
        Time(ms * 1_000_000)
    }

    /// Segments of 1000 bytes leave each millisecond, from 0 on.
    fn twenty() -> Late {
        let mut late = Late::default();
        for n in 0..20 {
            late.on_sent(n * 1000, (n + 1) * 1000, ms(n), 1000);
        }
        late
    }

    /// By hand: a round trip takes 40 ms, and the window of 10 ms is over for what went at 3 ms when 53 are.
    #[test]
    fn what_is_missing_waits_for_the_window() {
        let mut late = twenty();
        late.on_in_order(ms(42), 3000);
        late.on_arrival(ms(45), (late.sent_at(5999).unwrap(), 6000), None);
        let lost = late.patience(Duration::from_millis(10));
        assert_eq!(late.due(ms(52), lost), (6000, 3000));
        assert_eq!(lost.of((late.sent_at(3999).unwrap(), 4000)), ms(53));
        assert_eq!(late.due(ms(53), lost), (6000, 4000));
        assert_eq!(late.due(ms(100), lost), (6000, 6000), "what went later may be on its way");
    }

    /// Of 1000, 1000, 300, 1000 and 500 bytes at one time.
    #[test]
    fn of_a_burst_it_is_known_where_segments_begin() {
        let mut late = Late::default();
        let mut at = 0;
        for len in [1000, 1000, 300, 1000, 500] {
            late.on_sent(at, at + len, ms(0), 1000);
            at += len;
        }
        let begins = [0, 999, 1000, 1999, 2299, 2300, 3299, 3799, 3800];
        let begins = begins.map(|byte| late.begin_of(byte, Divisor::new(1000)));
        assert_eq!(begins, [0, 0, 1000, 1000, 2000, 2300, 2300, 3300, 3800]);
        let whole = |start, end| {
            let of = late.whole(Range { start, end }, Divisor::new(1000));
            (of.start, of.end)
        };
        assert_eq!(whole(500, 2300), (1000, 2300));
        assert_eq!(whole(2000, 3700), (2000, 3300));
        assert_eq!(whole(2100, 3800), (2300, 3800));
        // None of it is whole.
        assert_eq!(whole(2400, 3299), (3300, 2300));
        late.on_sent(4300, 5300, ms(0), 1000);
        assert_eq!(
            [4299, 4300, 5299].map(|byte| late.begin_of(byte, Divisor::new(1000))),
            [3800, 4300, 4300]
        );
        late.on_in_order(ms(40), 2000);
        assert_eq!(
            [2000, 2299, 2300].map(|byte| late.begin_of(byte, Divisor::new(1000))),
            [2000, 2000, 2300]
        );
    }

    #[test]
    fn of_a_burst_what_is_below_an_arrival_went_before_it() {
        let mut late = Late::default();
        for n in 0..4 {
            late.on_sent(n * 1000, (n + 1) * 1000, ms(0), 1000);
        }
        late.on_arrival(ms(40), (ms(0), 3000), None);
        assert_eq!(late.due(ms(40), late.patience(Duration::ZERO)), (3000, 3000));
        assert_eq!(late.patience(Duration::ZERO).of((ms(0), 4000)), Time::NEVER);
    }

    #[test]
    fn what_went_within_the_last_round_trip_is_not_old() {
        let mut late = twenty();
        assert_eq!(late.old(ms(19)), 20_000, "no arrival has told how long that is");
        late.on_in_order(ms(40), 1000);
        assert_eq!(late.old(ms(50)), 11_000);
        assert_eq!(late.old(ms(59)), 20_000);
        late.tail.under_way = Some((Range { start: 19_000, end: 20_000 }, ms(30)));
        assert_eq!((late.old(ms(59)), late.old(ms(70))), (19_000, 20_000));
    }

    /// RFC 8985 § 6.2, step 1: 5 ms after its retransmission comes the original.
    #[test]
    fn what_comes_sooner_than_any_round_trip_after_it_went_again_tells_nothing() {
        let mut late = twenty();
        late.on_arrival(ms(45), (ms(40), 1000), Some(Duration::from_millis(40)));
        assert!(!late.take_arrived());
        late.on_arrival(ms(80), (ms(40), 1000), Some(Duration::from_millis(40)));
        assert!(late.take_arrived());
        assert_eq!(late.due(ms(80), late.patience(Duration::ZERO)), (20_000, 20_000));
    }

    /// By hand: a step of 10 ms once a round trip, until sixteen recoveries are over.
    #[test]
    fn duplicates_widen_the_window_for_sixteen_recoveries() {
        let mut late = twenty();
        let (least, srtt) = (Duration::from_millis(40), Duration::from_millis(45));
        let window = |late: &Late| late.window(true, least, srtt);
        late.on_duplicate();
        late.on_delivery(ms(50));
        assert_eq!(window(&late), Duration::ZERO, "nothing came out of order");
        late.see_reordering(1);
        late.on_arrival(ms(50), (ms(9), 10_000), None);
        late.on_duplicate();
        assert_eq!(window(&late), Duration::from_millis(10), "not before data arrives");
        late.on_delivery(ms(50));
        late.on_duplicate();
        late.on_delivery(ms(51));
        assert_eq!(window(&late), Duration::from_millis(20), "once a round trip");
        for round in 1..4 {
            late.on_duplicate();
            late.on_arrival(ms(100 * round), (ms(100 * round - 41), 20_000), None);
            late.on_delivery(ms(100 * round));
        }
        assert_eq!(window(&late), srtt, "and no more than the smoothed round trip");
        (0..15).for_each(|_| late.on_recovered(false));
        assert_eq!(window(&late), srtt);
        late.on_recovered(true);
        late.on_recovered(false);
        assert_eq!(window(&late), srtt, "one that was needless does not count");
        late.on_recovered(false);
        assert_eq!(window(&late), Duration::from_millis(10));
    }

    #[test]
    fn without_reordering_there_is_a_window_until_enough_arrived() {
        let mut late = twenty();
        let (least, srtt) = (Duration::from_millis(40), Duration::from_millis(60));
        assert_eq!(late.window(false, least, srtt), Duration::from_millis(10));
        assert_eq!(late.window(true, least, srtt), Duration::ZERO);
        late.see_reordering(1);
        assert_eq!(late.window(true, least, srtt), Duration::from_millis(10));
    }

    proptest::proptest! {
        /// The edge is what RFC 8985 § 6.2, step 5, says of each segment by itself: it went before the newest arrival, or at the same time
        /// and lies below it, and its time is over.
        #[test]
        fn the_edge_is_what_each_segment_by_itself_says(
            gaps in proptest::collection::vec(0u64..4, 1..40),
            arrivals in proptest::collection::vec((0usize..40, 1u64..60), 1..8),
            (window, more) in (0u64..20, 0u64..40),
        ) {
            let mut late = Late::default();
            let mut went = Vec::new();
            let mut at = 0;
            for (n, gap) in gaps.iter().enumerate() {
                at += gap;
                late.on_sent(n as u64, n as u64 + 1, ms(at), 1);
                went.push(ms(at));
            }
            let mut now = ms(at);
            let (mut newest, mut rtt) = ((Time::ZERO, 0), Duration::ZERO);
            for (n, later) in arrivals {
                let n = n % went.len();
                now += Duration::from_millis(later);
                late.on_arrival(now, (late.sent_at(n as u64).unwrap(), n as u64 + 1), None);
                rtt = now.since(went[n]);
                if (went[n], n as u64 + 1) > newest {
                    newest = (went[n], n as u64 + 1);
                }
            }
            now += Duration::from_millis(more);
            let window = Duration::from_millis(window);
            let (_, edge) = late.due(now, late.patience(window));
            for (n, &sent) in went.iter().enumerate() {
                let end = n as u64 + 1;
                let overtaken = sent < newest.0 || sent == newest.0 && end < newest.1;
                let lost = overtaken && now.since(sent) >= rtt + window;
                // The newest arrival itself is none that is missing.
                if (sent, end) != newest {
                    proptest::prop_assert_eq!(lost, end <= edge, "{} {:?} {}", n, newest, edge);
                }
            }
        }
    }
}
