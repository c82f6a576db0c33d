//! Notes about each outstanding segment, for RTT samples and delivery rates.

use std::collections::VecDeque;

use cwnd_packet::Range;
use cwnd_quantity::Time;

use crate::delivery_rate::{Newest, SendState};

/// Kinds of notes that a sender needs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Notes {
    /// `true` for RTT samples of first transmissions.
    pub rtt: bool,
    /// `true` if SACKed segments give RTT samples, too.
    pub rtt_from_sack: bool,
    /// `true` for delivery rates.
    pub rates: bool,
}

/// Send times of segments that arrived, for RTT samples; untimed segments are left out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Arrivals {
    /// Send time of the oldest segment cumulatively acknowledged; if SACKed segments give samples,
    /// those SACKed before are left out.
    pub oldest: Option<Time>,
    /// Send time of the newest segment cumulatively acknowledged, with the same exception.
    pub newest: Option<Time>,
    /// Number of segments cumulatively acknowledged.
    pub segments: u32,
    /// `true` if any of these was retransmitted.
    pub again: bool,
    /// Send time of the newest segment SACKed that was sent once.
    pub sacked: Option<Time>,
}

/// Per-segment columns beside the send times: marks and delivery-rate notes, one entry a segment.
///
/// Cost: a segment is appended and removed in O(1), and found in O(1) where all are of one size, in
/// O(log n) otherwise. [`Columns::report`] is amortised O(log n): it passes over a run of reported
/// segments in one step, by links that each pass shortens (path compression of a disjoint-set
/// forest), and reports each segment once.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    rtt: bool,
    rtt_from_sack: bool,
    /// Size of the last segment, bytes.
    size: u64,
    marks: VecDeque<Mark>,
    rates: Option<VecDeque<SendState>>,
    arrivals: Arrivals,
    newest: Newest,
}

/// End and send time of each segment.
type Sent = VecDeque<(u64, Time)>;

/// Flags of a segment and a link of the disjoint-set forest: the distance in segments to the next
/// lower candidate for an unreported segment; 0 if this segment is not reported by SACK.
#[derive(Clone, Copy, Debug, Default)]
struct Mark(u32);

impl Mark {
    /// The segment was retransmitted.
    const AGAIN: u32 = 1 << 31;
    /// The segment gives no RTT sample, as its data was first sent with a retransmission or in a
    /// window probe.
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
    /// Creates empty columns; `None` if no notes are needed.
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

    /// Appends a segment of `size` bytes.
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

    /// Marks the segments of `[seq, end)` as retransmitted: their ACKs are ambiguous (Karn &
    /// Partridge 1987).
    pub fn mark_retransmitted(&mut self, sent: &Sent, seq: u64, end: u64) {
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

    /// Attaches a delivery-rate note to a transmission of `range`; `again` if some of it is a
    /// retransmission. Its segments are in `sent`, except new data sent with a retransmission: that
    /// is appended.
    pub fn record_send_state(
        &mut self,
        sent: &mut Sent,
        range: Range,
        note: SendState,
        again: bool,
    ) {
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

    /// Marks as SACKed the segments that end within `range`, from the highest down, until `new`
    /// bytes are accounted for. Returns the number of bytes left.
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
                // A segment that arrived late is older than one reported before it.
                self.arrivals.sacked = self.arrivals.sacked.max(Some(at));
            }
            if let Some(rates) = &self.rates {
                self.newest.add(rates[i], ends);
            }
            next = i.checked_sub(1);
        }
        new
    }

    /// Returns the number of segments that end at or below `byte`.
    fn ended_by(&self, sent: &Sent, byte: u64) -> usize {
        let segments = sent.len();
        let last_end = sent.back().map_or(0, |&(end, _)| end);
        if last_end <= byte {
            return segments;
        }
        // Most segments are full: the index follows from the last segment, and only memory at that
        // index is read.
        let above = (last_end - byte).div_ceil(self.size);
        let guess = usize::try_from(above).ok().and_then(|above| segments.checked_sub(above));
        let ends = |i: usize| sent.get(i).is_some_and(|&(end, _)| end <= byte);
        match guess {
            Some(0) if !ends(0) => 0,
            Some(place) if place > 0 && ends(place - 1) && !ends(place) => place,
            _ => sent.partition_point(|&(end, _)| end <= byte),
        }
    }

    /// Returns the highest segment at or below `i` that SACK has not reported.
    fn unreported(&mut self, i: usize) -> Option<usize> {
        let step = |run: u32, at: usize| at.checked_sub(run as usize);
        let mut found = Some(i);
        while let Some(at) = found.filter(|&at| self.marks[at].run() > 0) {
            found = step(self.marks[at].run(), at);
        }
        // Path compression: all visited links now lead to the result, or below the first entry.
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

    /// Removes the first segment, with this end and send time, as it is acknowledged.
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

    /// Takes the segments that arrived since the last call, for RTT samples.
    pub fn take_arrivals(&mut self) -> Arrivals {
        core::mem::take(&mut self.arrivals)
    }

    /// Takes the send time of the newest segment SACKed since the last call of this or of
    /// [`Columns::take_arrivals`].
    pub const fn take_sacked(&mut self) -> Option<Time> {
        self.arrivals.sacked.take()
    }

    /// Takes the most recently sent segment of those that arrived since the last call, for delivery
    /// rates.
    pub fn take_newest(&mut self) -> Newest {
        core::mem::take(&mut self.newest)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Checks the links against one flag per segment.
        #[test]
        fn each_segment_is_reported_once(
            blocks in prop::collection::vec((0u64..40, 1u64..30, 0u64..3), 1..60),
            short in 0u64..80,
        ) {
            let notes = Notes { rtt: true, rtt_from_sack: true, rates: false };
            let (mut columns, mut sent) = (Columns::new(notes).unwrap(), Sent::new());
            // The first segments are short, so that blocks begin and end inside others.
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
