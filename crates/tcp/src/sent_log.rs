//! Notes about each outstanding segment, in the order of their sequence numbers.

use std::collections::VecDeque;

/// A note `T` for each outstanding segment, and which of them SACK reported.
///
/// Cost: a segment is appended and removed in O(1), and found in O(1) where all are of one size, in
/// O(log n) otherwise. [`SentLog::report`] is amortised O(log n): it passes over a run of reported
/// segments in one step, by links that each pass shortens (path compression of a disjoint-set
/// forest), and reports each segment once.
#[derive(Clone, Debug)]
pub struct SentLog<T> {
    entries: VecDeque<Entry<T>>,
    /// End and size of the last segment.
    last_end: u64,
    size: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry<T> {
    end: u64,
    note: T,
    /// The entry that is so many below comes next in the run of reported ones; 0 if this is not
    /// reported.
    run: u32,
}

impl<T> Default for SentLog<T> {
    fn default() -> Self {
        Self { entries: VecDeque::new(), last_end: 0, size: 1 }
    }
}

impl<T: Copy> SentLog<T> {
    /// Appends a segment that ends at `end`, above all others.
    pub fn push(&mut self, end: u64, note: T) {
        self.size = end.saturating_sub(self.last_end).max(1);
        self.last_end = end;
        self.entries.push_back(Entry { end, note, run: 0 });
    }

    /// Passes the note of each segment with bytes of `[seq, end)` to `change`, and `true` if it was
    /// reported. Returns `true` if the log reaches to `end`.
    pub fn change(&mut self, seq: u64, end: u64, mut change: impl FnMut(&mut T, bool)) -> bool {
        if self.last_end <= seq {
            return false;
        }
        let first = self.ended_by(seq);
        for entry in self.entries.range_mut(first..) {
            change(&mut entry.note, entry.run > 0);
            if entry.end >= end {
                return true;
            }
        }
        false
    }

    /// Reports by SACK the segments that end in `(seq, end]`, from the highest down, until so many
    /// new bytes are accounted for; `reported` gets each with its end. Returns how many bytes are
    /// left.
    pub fn report(
        &mut self,
        seq: u64,
        end: u64,
        mut new: u64,
        mut reported: impl FnMut(u64, T),
    ) -> u64 {
        if new == 0 {
            return 0;
        }
        let mut next = self.ended_by(end).checked_sub(1);
        while new > 0 {
            let Some(i) = next.and_then(|i| self.unreported(i)) else { break };
            let before = i.checked_sub(1).map_or(0, |before| self.entries[before].end);
            let entry = &mut self.entries[i];
            if entry.end <= seq {
                break;
            }
            entry.run = 1;
            new = new.saturating_sub(entry.end - before.max(seq));
            reported(entry.end, entry.note);
            next = i.checked_sub(1);
        }
        new
    }

    /// The number of segments that end at or below `byte`.
    fn ended_by(&self, byte: u64) -> usize {
        let segments = self.entries.len();
        if self.last_end <= byte {
            return segments;
        }
        // Most segments are full: the place follows from the last one, and no memory but that of
        // the place is touched.
        let above = (self.last_end - byte).div_ceil(self.size);
        let guess = usize::try_from(above).ok().and_then(|above| segments.checked_sub(above));
        let ends = |i: usize| self.entries.get(i).is_some_and(|entry| entry.end <= byte);
        match guess {
            Some(0) if !ends(0) => 0,
            Some(place) if place > 0 && ends(place - 1) && !ends(place) => place,
            _ => self.entries.partition_point(|entry| entry.end <= byte),
        }
    }

    /// The highest entry at or below `i` that is not reported.
    fn unreported(&mut self, i: usize) -> Option<usize> {
        let step = |run: u32, at: usize| at.checked_sub(run as usize);
        let mut found = Some(i);
        while let Some(at) = found.filter(|&at| self.entries[at].run > 0) {
            found = step(self.entries[at].run, at);
        }
        // All that were passed now lead there at once. Below the first entry nothing is left to
        // find.
        let mut at = i;
        while found.is_none_or(|found| at > found) {
            let entry = &mut self.entries[at];
            let next = step(entry.run, at);
            let whole = found.map_or(at + 1, |found| at - found);
            entry.run = u32::try_from(whole).unwrap_or(entry.run);
            match next {
                Some(next) => at = next,
                None => break,
            }
        }
        found
    }

    /// Removes the first segment if it ends at or below `ack`: its end, its note, and `true` if it
    /// was reported.
    pub fn pop_acknowledged(&mut self, ack: u64) -> Option<(u64, T, bool)> {
        let first = self.entries.front().filter(|first| first.end <= ack)?;
        let popped = (first.end, first.note, first.run > 0);
        self.entries.pop_front();
        Some(popped)
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
            let mut log = SentLog::default();
            // Some end in the middle of others.
            let ends = (1..=70).map(|n| if n > short { n * 10 } else { n * 5 });
            let mut flags: Vec<(u64, bool)> = ends.map(|end| (end, false)).collect();
            flags.dedup();
            flags.iter().for_each(|&(end, _)| log.push(end, ()));
            let mut acked = 0;
            for (from, len, advance) in blocks {
                let (seq, end) = ((from * 10).max(acked), (from + len) * 10);
                let mut expected = Vec::new();
                let within = |(e, f): &&mut (u64, bool)| !*f && seq < *e && *e <= end;
                for (end, flag) in flags.iter_mut().rev().filter(within) {
                    *flag = true;
                    expected.push(*end);
                }
                let mut reported = Vec::new();
                log.report(seq, end, u64::MAX, |end, ()| reported.push(end));
                prop_assert_eq!(reported, expected);
                acked += advance * 10;
                while let Some((end, (), was_reported)) = log.pop_acknowledged(acked) {
                    prop_assert_eq!((end, was_reported), flags.remove(0));
                }
            }
        }
    }
}
