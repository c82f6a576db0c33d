//! Notes about each outstanding segment, for round-trip times and delivery rates.

use std::collections::VecDeque;

use cwnd_packet::Range;
use cwnd_quantity::Time;

use crate::delivery_rate::{Newest, Note};

/// Notes that are asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Notes {
    /// Round-trip times of first transmissions.
    pub rtt: bool,
    /// `true` if segments that SACK reports give such, too.
    pub rtt_from_sack: bool,
    /// Delivery rates.
    pub rates: bool,
}

/// First transmissions of segments that arrived, for round-trip times.
#[derive(Clone, Copy, Debug, Default)]
pub struct Arrivals {
    /// Send time of the oldest segment acknowledged that SACK had not reported.
    pub oldest: Option<Time>,
    /// The same of the newest.
    pub newest: Option<Time>,
    /// Segments acknowledged.
    pub segments: u32,
    /// `true` if any of these went again.
    pub again: bool,
    /// Send time of the newest segment that SACK reported and that went once.
    pub sacked: Option<Time>,
}

/// Columns beside the send times of segments: one entry a segment.
///
/// Cost: a segment is appended and removed in O(1), and found in O(1) where all are of one size, in
/// O(log n) otherwise. [`Columns::report`] is amortised O(log n): it passes over a run of reported
/// segments in one step, by links that each pass shortens (path compression of a disjoint-set
/// forest), and reports each segment once.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    rtt: bool,
    rtt_from_sack: bool,
    /// Size of the last segment.
    size: u64,
    marks: VecDeque<Mark>,
    rates: Option<VecDeque<Note>>,
    arrivals: Arrivals,
    newest: Newest,
}

/// Ends and send times of the segments.
type Sent = VecDeque<(u64, Time)>;

/// Flags of a segment, and a link: the segment that is so many below comes next in the run of
/// reported ones; 0 if this is not reported.
#[derive(Clone, Copy, Debug, Default)]
struct Mark(u32);

impl Mark {
    /// It went again.
    const AGAIN: u32 = 1 << 31;
    /// It is of data that went for the first time with a retransmission, or after probes of the
    /// window: no round trip is timed.
    const UNTIMED: u32 = 1 << 30;

    const fn run(self) -> u32 {
        self.0 & !(Self::AGAIN | Self::UNTIMED)
    }

    const fn has(self, flag: u32) -> bool {
        self.0 & flag > 0
    }

    fn set_run(&mut self, run: usize) {
        let flags = self.0 & (Self::AGAIN | Self::UNTIMED);
        if let Some(run) = u32::try_from(run).ok().filter(|&run| run < Self::UNTIMED) {
            self.0 = flags | run;
        }
    }
}

impl Columns {
    /// `None` if nothing is asked for.
    pub fn new(notes: Notes) -> Option<Box<Self>> {
        (notes.rtt || notes.rates).then(|| {
            Box::new(Self {
                rtt: notes.rtt,
                rtt_from_sack: notes.rtt && notes.rtt_from_sack,
                size: 1,
                marks: VecDeque::new(),
                rates: notes.rates.then(VecDeque::new),
                arrivals: Arrivals::default(),
                newest: Newest::default(),
            })
        })
    }

    /// A segment of this size is appended.
    pub fn push(&mut self, size: u64) {
        self.size = size.max(1);
        self.marks.push_back(Mark::default());
    }

    /// `true` if the last segment is not timed, or there is none.
    pub fn ends_untimed(&self) -> bool {
        self.marks.back().is_none_or(|mark| mark.has(Mark::UNTIMED))
    }

    /// `true` if the first segment is not timed.
    pub fn begins_untimed(&self) -> bool {
        self.marks.front().is_some_and(|mark| mark.has(Mark::UNTIMED))
    }

    /// Bytes of `[seq, end)` went again: no echo tells which of the two an ACK is for (Karn &
    /// Partridge 1987).
    pub fn mark_again(&mut self, sent: &Sent, seq: u64, end: u64) {
        if !self.rtt {
            return;
        }
        let first = self.ended_by(sent, seq);
        for (mark, &(ends, _)) in self.marks.range_mut(first..).zip(sent.range(first..)) {
            mark.0 |= Mark::AGAIN;
            if ends >= end && !mark.has(Mark::UNTIMED) {
                break;
            }
        }
    }

    /// Notes a transmission of `[seq, end)` for delivery rates; `again` if some of it went before.
    /// The segments are in `sent`, but for data that goes for the first time with such.
    pub fn note_rate(&mut self, sent: &mut Sent, range: Range, note: Note, again: bool) {
        let Range { start: seq, end } = range;
        let first = if again { self.ended_by(sent, seq) } else { 0 };
        let Some(rates) = &mut self.rates else { return };
        if !again {
            rates.push_back(note);
            return;
        }
        for (i, rate) in rates.iter_mut().enumerate().skip(first) {
            if self.marks[i].run() == 0 {
                *rate = note.repeated();
            }
            if sent[i].0 >= end {
                return;
            }
        }
        let last = sent.back().map_or(0, |&(last, _)| last);
        rates.push_back(note);
        sent.push_back((end, note.at));
        self.push(end.saturating_sub(last));
        self.marks.back_mut().into_iter().for_each(|mark| mark.0 = Mark::UNTIMED);
    }

    /// Reports by SACK the segments that end above the start of `range` and not above its end, from
    /// the highest down, until so many new bytes are accounted for. Returns how many bytes are
    /// left.
    pub fn report(&mut self, sent: &Sent, range: Range, mut new: u64) -> u64 {
        let Range { start: seq, end } = range;
        if new == 0 || self.rates.is_none() && !self.rtt_from_sack {
            return 0;
        }
        let mut next = self.ended_by(sent, end).checked_sub(1);
        while new > 0 {
            let Some(i) = next.and_then(|i| self.unreported(i)) else { break };
            let before = i.checked_sub(1).map_or(0, |before| sent[before].0);
            let (ends, at) = sent[i];
            if ends <= seq {
                break;
            }
            let mark = &mut self.marks[i];
            mark.set_run(1);
            new = new.saturating_sub(ends - before.max(seq));
            if self.rtt_from_sack && mark.0 & (Mark::AGAIN | Mark::UNTIMED) == 0 {
                // A segment that came late is below what was reported before it.
                self.arrivals.sacked = self.arrivals.sacked.max(Some(at));
            }
            if let Some(rates) = &self.rates {
                self.newest.add(rates[i], ends);
            }
            next = i.checked_sub(1);
        }
        new
    }

    /// The number of segments that end at or below `byte`.
    fn ended_by(&self, sent: &Sent, byte: u64) -> usize {
        let segments = sent.len();
        let last_end = sent.back().map_or(0, |&(end, _)| end);
        if last_end <= byte {
            return segments;
        }
        // Most segments are full: the place follows from the last one, and no memory but that of
        // the place is touched.
        let above = (last_end - byte).div_ceil(self.size);
        let guess = usize::try_from(above).ok().and_then(|above| segments.checked_sub(above));
        let ends = |i: usize| sent.get(i).is_some_and(|&(end, _)| end <= byte);
        match guess {
            Some(0) if !ends(0) => 0,
            Some(place) if place > 0 && ends(place - 1) && !ends(place) => place,
            _ => sent.partition_point(|&(end, _)| end <= byte),
        }
    }

    /// The highest segment at or below `i` that is not reported.
    fn unreported(&mut self, i: usize) -> Option<usize> {
        let step = |run: u32, at: usize| at.checked_sub(run as usize);
        let mut found = Some(i);
        while let Some(at) = found.filter(|&at| self.marks[at].run() > 0) {
            found = step(self.marks[at].run(), at);
        }
        // All that were passed now lead there at once. Below the first entry nothing is left to
        // find.
        let mut at = i;
        while found.is_none_or(|found| at > found) {
            let mark = &mut self.marks[at];
            let next = step(mark.run(), at);
            mark.set_run(found.map_or(at + 1, |found| at - found));
            match next {
                Some(next) => at = next,
                None => break,
            }
        }
        found
    }

    /// The first segment, which ends and went then, is acknowledged.
    pub fn pop(&mut self, (end, at): (u64, Time)) {
        let Some(mark) = self.marks.pop_front() else { return };
        let sacked = mark.run() > 0;
        if self.rtt && !mark.has(Mark::UNTIMED) {
            self.arrivals.segments += 1;
            self.arrivals.again |= mark.has(Mark::AGAIN);
            if !(sacked && self.rtt_from_sack) {
                self.arrivals.oldest = self.arrivals.oldest.or(Some(at));
                self.arrivals.newest = Some(at);
            }
        }
        let rate = self.rates.as_mut().and_then(VecDeque::pop_front);
        if let Some(rate) = rate.filter(|_| !sacked) {
            self.newest.add(rate, end);
        }
    }

    /// Segments that arrived since the last call, for round-trip times.
    pub fn take_arrivals(&mut self) -> Arrivals {
        core::mem::take(&mut self.arrivals)
    }

    /// Send time of the newest segment that SACK reported since the last call of either.
    pub const fn take_sacked(&mut self) -> Option<Time> {
        self.arrivals.sacked.take()
    }

    /// The segment that went last of those that arrived since the last call, for delivery rates.
    pub fn take_newest(&mut self) -> Newest {
        core::mem::take(&mut self.newest)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a flag for each segment that is looked at one by one.
        #[test]
        fn each_segment_is_reported_once(
            blocks in prop::collection::vec((0u64..40, 1u64..30, 0u64..3), 1..60),
            short in 0u64..80,
        ) {
            let notes = Notes { rtt: true, rtt_from_sack: true, rates: false };
            let (mut columns, mut sent) = (Columns::new(notes).unwrap(), Sent::new());
            // Some end in the middle of others.
            let ends = (1..=70).map(|n| if n > short { n * 10 } else { n * 5 });
            let mut flags: Vec<(u64, bool)> = ends.map(|end| (end, false)).collect();
            flags.dedup();
            for &(end, _) in &flags {
                let before = sent.back().map_or(0, |&(end, _)| end);
                sent.push_back((end, Time(end)));
                columns.push(end - before);
            }
            let mut acked = 0;
            for (from, len, advance) in blocks {
                let (seq, end) = ((from * 10).max(acked), (from + len) * 10);
                let within = |(e, f): &&mut (u64, bool)| !*f && seq < *e && *e <= end;
                let mut newest = None;
                for (end, flag) in flags.iter_mut().filter(within) {
                    *flag = true;
                    newest = Some(Time(*end));
                }
                columns.report(&sent, Range { start: seq, end }, u64::MAX);
                let reported = columns.marks.iter().map(|mark| mark.run() > 0);
                let expected = flags.iter().map(|&(_, flag)| flag);
                prop_assert!(reported.eq(expected));
                prop_assert_eq!(columns.take_sacked(), newest);
                acked += advance * 10;
                while let Some(first) = sent.front().copied().filter(|&(end, _)| end <= acked) {
                    let was_reported = columns.marks[0].run() > 0;
                    prop_assert_eq!((first.0, was_reported), flags.remove(0));
                    columns.pop(first);
                    sent.pop_front();
                }
            }
        }
    }
}
