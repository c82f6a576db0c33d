//! First transmissions of outstanding data: send times and segment boundaries.

use std::collections::VecDeque;

use cwnd_packet::Range;
use cwnd_quantity::{Divisor, Duration, Time};

use super::Deadline;
use super::columns::{Columns, Notes};

/// Send times of first transmissions of outstanding data, by sequence number.
///
/// Cost, with n bursts outstanding: a segment is recorded and acknowledged in O(1), and found in
/// O(log n) by its number or by its time, as both rise together.
#[derive(Clone, Debug, Default)]
pub(super) struct FirstTransmissions {
    /// First recorded byte; nothing is recorded below it.
    from: u64,
    /// End and send time of each burst, in the order of transmission: consecutive full segments of
    /// one instant share an entry, the last of them may be short.
    sent: VecDeque<(u64, Time)>,
    /// Start of the last segment sent.
    last: u64,
    /// From this byte on all segments are full.
    short: u64,
    /// Below this byte some data was retransmitted before a timeout, which forgot which.
    pub repeated: u64,
    /// Segments whose beginning the newest SACK blocks leave out, and those skipped since for that
    /// reason.
    pub left_out: Vec<Range>,
    /// Notes about each segment; with them each segment is an entry of its own.
    columns: Option<Box<Columns>>,
}

impl FirstTransmissions {
    pub fn new(notes: Notes) -> Self {
        Self { columns: Columns::new(notes), ..Self::default() }
    }

    /// Records the first transmission of `[seq, end)`; full segments have `mss` bytes.
    pub fn on_sent(&mut self, seq: u64, end: u64, now: Time, mss: u64) {
        let follows_full = seq == self.last + mss;
        self.last = seq;
        if end != seq + mss {
            self.short = end;
        }
        if let Some(columns) = &mut self.columns {
            if columns.ends_untimed() {
                self.from = seq;
            }
            let before = self.sent.back().map_or(0, |&(last, _)| last);
            columns.push(end - before);
            self.sent.push_back((end, now));
            return;
        }
        match self.sent.back_mut() {
            Some((last, at)) if *at == now && *last == seq && follows_full => *last = end,
            // Window probes leave a gap, as they are not recorded.
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

    /// Returns the start of the segment that first carried this byte, by the size of full segments;
    /// the byte itself if that is unknown.
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

    /// Shrinks a range to the segments that lie within it as a whole; empty (end ≤ start) if none
    /// does.
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

    /// Returns the start of the last segment that was sent for the first time.
    pub const fn last(&self) -> u64 {
        self.last
    }

    /// Returns the time of the first transmission of this byte; `None` if it is not outstanding or
    /// was not recorded.
    #[inline]
    pub fn sent_at(&self, byte: u64) -> Option<Time> {
        // Most look-ups are of the first outstanding byte.
        if let Some(&(end, at)) = self.sent.front()
            && byte < end
        {
            return (byte >= self.from).then_some(at);
        }
        let i = self.sent.partition_point(|&(end, _)| end <= byte);
        self.sent.get(i).map(|&(_, at)| at).filter(|_| byte >= self.from)
    }

    /// Returns the times of the first transmission of two bytes, the first of which is no higher;
    /// one search serves both if they were sent together.
    pub fn sent_at_both(&self, first: u64, last: u64) -> Option<(Option<Time>, Time)> {
        if last < self.from {
            return None;
        }
        let i = self.sent.partition_point(|&(end, _)| end <= last);
        let &(_, at) = self.sent.get(i)?;
        let first = if first >= self.end_of_first(i) { Some(at) } else { self.sent_at(first) };
        Some((first, at))
    }

    /// Removes entries below `ack`, which arrived in order; returns the send times of the first and
    /// the last segment acknowledged.
    #[inline]
    pub fn take_in_order(&mut self, ack: u64) -> (Option<Time>, Option<Time>) {
        if self.columns.is_some() {
            self.forget_untimed(ack);
        }
        let first = self.sent.front().map(|&(_, at)| at);
        while let Some(&entry) = self.sent.front() {
            if entry.0 > ack {
                return (first, Some(entry.1));
            }
            self.forget(entry);
            if entry.0 == ack {
                return (first, Some(entry.1));
            }
        }
        (first, None)
    }

    /// Removes entries that end at or below `una`.
    pub fn forget_below(&mut self, una: u64) {
        while let Some(&entry) = self.sent.front()
            && entry.0 <= una
        {
            self.forget(entry);
        }
    }

    /// Removes untimed entries at the front, from which no RTT sample is taken.
    #[cold]
    fn forget_untimed(&mut self, ack: u64) {
        while let Some(&entry) = self.sent.front()
            && entry.0 <= ack
            && self.columns.as_ref().is_some_and(|columns| columns.begins_untimed())
        {
            self.forget(entry);
        }
    }

    /// Removes the first entry, which is `entry`.
    #[inline(always)]
    fn forget(&mut self, entry: (u64, Time)) {
        self.sent.pop_front();
        if let Some(columns) = &mut self.columns {
            self.from = self.from.max(entry.0);
            columns.pop(entry);
        } else {
            self.from = entry.0;
        }
    }

    /// Returns the columns, and the ends and send times of the same segments.
    #[inline]
    pub fn columns(&mut self) -> Option<(&mut Columns, &mut VecDeque<(u64, Time)>)> {
        Some((self.columns.as_mut()?, &mut self.sent))
    }

    /// Returns the end of the first `i` entries.
    fn end_of_first(&self, i: usize) -> u64 {
        if i == 0 { self.from } else { self.from.max(self.sent[i - 1].0) }
    }

    /// Returns the number up to which all data was first sent at least `age` ago.
    pub fn older_than(&self, now: Time, age: Duration) -> u64 {
        self.end_of_first(self.sent.partition_point(|&(_, sent)| sent + age <= now))
    }

    /// Returns two numbers: up to the first, all data was first sent before the newest arrival; up
    /// to the second, its deadline has passed, too (RACK).
    pub fn due(&self, now: Time, lost: Deadline) -> (u64, u64) {
        let (at, end) = lost.newest;
        // Of segments sent at the same time the lower numbers were sent first.
        let i = self.sent.partition_point(|&(last, sent)| (sent, last) <= (at, end));
        let before = match self.sent.get(i) {
            Some(&(_, sent)) if sent == at => end.max(self.end_of_first(i)),
            _ => self.end_of_first(i),
        };
        if at + lost.after <= now {
            // The deadline of the newest arrival has passed, so those of all segments before it
            // have, too.
            return (before, before);
        }
        (before, self.older_than(now, lost.after).min(before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A burst of segments of 1000, 1000, 300, 1000 and 500 bytes.
    #[test]
    fn of_a_burst_it_is_known_where_segments_begin() {
        let mut first = FirstTransmissions::default();
        let mut at = 0;
        for len in [1000, 1000, 300, 1000, 500] {
            first.on_sent(at, at + len, Time::ZERO, 1000);
            at += len;
        }
        let begins = [0, 999, 1000, 1999, 2299, 2300, 3299, 3799, 3800];
        let begins = begins.map(|byte| first.begin_of(byte, Divisor::new(1000)));
        assert_eq!(begins, [0, 0, 1000, 1000, 2000, 2300, 2300, 3300, 3800]);
        let whole = |start, end| {
            let of = first.whole(Range { start, end }, Divisor::new(1000));
            (of.start, of.end)
        };
        assert_eq!(whole(500, 2300), (1000, 2300));
        assert_eq!(whole(2000, 3700), (2000, 3300));
        assert_eq!(whole(2100, 3800), (2300, 3800));
        // No segment lies within the range as a whole.
        assert_eq!(whole(2400, 3299), (3300, 2300));
        first.on_sent(4300, 5300, Time::ZERO, 1000);
        assert_eq!(
            [4299, 4300, 5299].map(|byte| first.begin_of(byte, Divisor::new(1000))),
            [3800, 4300, 4300]
        );
        first.take_in_order(2000);
        assert_eq!(
            [2000, 2299, 2300].map(|byte| first.begin_of(byte, Divisor::new(1000))),
            [2000, 2000, 2300]
        );
    }

    proptest::proptest! {
        /// Entries per segment give the same answers as entries per burst.
        #[test]
        fn segments_say_what_bursts_do(
            ops in proptest::collection::vec((0u8..8, 1u64..4, 0u64..200), 1..120),
        ) {
            const MSS: u64 = 10;
            let divisor = Divisor::new(MSS);
            let mut bursts = FirstTransmissions::new(Notes::default());
            let notes = Notes { rtt: true, ..Notes::default() };
            let mut segments = FirstTransmissions::new(notes);
            let (mut high, mut una, mut now) = (0, 0, Time(1000));
            for (op, size, at) in ops {
                match op {
                    0..=3 => {
                        let len = if op == 0 { size * 3 } else { MSS };
                        bursts.on_sent(high, high + len, now, MSS);
                        segments.on_sent(high, high + len, now, MSS);
                        high += len;
                    }
                    4 | 5 => now += Duration(size),
                    6 => {
                        una = (una + at).min(high);
                        let taken = [&mut bursts, &mut segments].map(|of| of.take_in_order(una));
                        proptest::prop_assert_eq!(taken[0], taken[1]);
                    }
                    // A window probe, which is not recorded.
                    _ if una == high => (high, una) = (high + 1, una + 1),
                    _ => {}
                }
                let (low, up) = (una + at.min(high - una), high);
                let lost = Deadline { newest: (Time(1000 + at), low), after: Duration(size * 7) };
                let all = [&bursts, &segments].map(|of| {
                    let whole = of.whole(Range { start: low, end: up }, divisor);
                    // Answers below `una` are not used.
                    let (before, over) = of.due(now, lost);
                    (
                        (of.begin_of(low, divisor), whole.start, whole.end),
                        (of.sent_at(low), of.last(), before.max(una), over.max(una)),
                        (of.older_than(now, Duration(size * 5)).max(una)),
                        up.checked_sub(1).and_then(|last| of.sent_at_both(low.min(last), last)),
                    )
                });
                proptest::prop_assert_eq!(all[0], all[1], "{} {} {}", una, low, high);
            }
        }
    }
}
