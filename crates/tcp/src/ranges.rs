use std::collections::BTreeMap;

/// A set of byte numbers as sorted, disjoint, non-touching half-open ranges.
///
/// The highest range stands apart from the others: nearly every SACK block extends it, and most sets hold no
/// other. What concerns it alone costs O(1). Everything else costs O(log n) in the number of ranges, and
/// [`Ranges::insert`], [`Ranges::remove`], [`Ranges::remove_below`] and [`Ranges::covered`] one step more for
/// each range that they merge, remove or count.
// The last word says whether there are any.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct Ranges {
    /// Start and end of all ranges but the highest.
    below: BTreeMap<u64, u64>,
    /// The highest range; it ends at 0 if the set is empty.
    highest: Range,
}

/// Bytes from `start` up to, not including, `end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Range {
    pub start: u64,
    pub end: u64,
}

impl Range {
    const fn len(self) -> u64 {
        self.end - self.start
    }

    /// Bytes that both have.
    fn common(self, other: Self) -> u64 {
        self.end.min(other.end).saturating_sub(self.start.max(other.start))
    }
}

impl From<(&u64, &u64)> for Range {
    fn from((&start, &end): (&u64, &u64)) -> Self {
        Self { start, end }
    }
}

impl Ranges {
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.highest.end == 0
    }

    /// The ranges from the highest down.
    pub fn descending(&self) -> impl Iterator<Item = Range> + '_ {
        self.highest().into_iter().chain(self.below.iter().rev().map(Range::from))
    }

    #[inline]
    pub fn highest(&self) -> Option<Range> {
        (!self.is_empty()).then_some(self.highest)
    }

    #[inline]
    pub fn lowest(&self) -> Option<Range> {
        self.below.first_key_value().map(Range::from).or_else(|| self.highest())
    }

    /// The first range that ends above `at`. Mostly that is the lowest or the highest of all, or there is none.
    #[inline]
    fn first_above(&self, at: u64) -> Option<Range> {
        if at >= self.highest.start || self.below.is_empty() {
            return self.highest().filter(|r| r.end > at);
        }
        match self.lowest() {
            Some(lowest) if lowest.end > at => Some(lowest),
            _ => self.before(at).filter(|r| r.end > at).or_else(|| self.from(at)),
        }
    }

    /// The last range below the highest that begins at or before `at`.
    fn before(&self, at: u64) -> Option<Range> {
        self.below.range(..=at).next_back().map(Range::from)
    }

    /// The first range that begins at or above `at`.
    fn from(&self, at: u64) -> Option<Range> {
        let below = self.below.range(at..).next().map(Range::from);
        below.or_else(|| self.highest().filter(|r| r.start >= at))
    }

    /// The range that contains byte `at`.
    pub fn containing(&self, at: u64) -> Option<Range> {
        self.first_above(at).filter(|r| r.start <= at)
    }

    /// `true` if all of `[start, end)` is in the set.
    #[inline]
    pub fn covers(&self, start: u64, end: u64) -> bool {
        self.first_above(start).is_some_and(|r| r.start <= start && end <= r.end)
    }

    /// `true` if any byte of `[start, end)` is in the set.
    #[inline]
    pub fn overlaps(&self, start: u64, end: u64) -> bool {
        self.first_in(start, end).is_some()
    }

    /// The lowest run of bytes of `[start, end)` that is in the set.
    #[inline]
    pub fn first_in(&self, start: u64, end: u64) -> Option<Range> {
        let range = self.first_above(start).filter(|r| r.start < end)?;
        Some(Range { start: range.start.max(start), end: range.end.min(end) })
    }

    /// Adds `[start, end)`; returns how many bytes of it were new.
    pub fn insert(&mut self, start: u64, end: u64) -> u64 {
        debug_assert!(start < end);
        let new = Range { start, end };
        // Most arrivals extend the highest range or lie above it.
        if start > self.highest.end || self.is_empty() {
            if let Some(highest) = self.highest() {
                self.below.insert(highest.start, highest.end);
            }
            self.highest = new;
            return new.len();
        }
        if start >= self.highest.start {
            let grown = end.saturating_sub(self.highest.end);
            self.highest.end += grown;
            return grown;
        }
        // Everything that `new` touches becomes one range with it.
        let (mut merged, mut known) = (new, 0);
        if let Some(before) = self.before(start).filter(|r| r.end >= start) {
            known += before.common(new);
            merged = Range { start: before.start, end: end.max(before.end) };
        }
        while let Some((&next, &next_end)) = self.below.range(start + 1..=end).next() {
            known += Range { start: next, end: next_end }.common(new);
            merged.end = merged.end.max(next_end);
            self.below.remove(&next);
        }
        if end >= self.highest.start {
            known += self.highest.common(new);
            self.below.remove(&merged.start);
            self.highest = Range { start: merged.start, end: end.max(self.highest.end) };
        } else {
            self.below.insert(merged.start, merged.end);
        }
        new.len() - known
    }

    /// Removes all bytes below `edge`.
    pub fn remove_below(&mut self, edge: u64) {
        while let Some(entry) = self.below.first_entry().filter(|lowest| *lowest.key() < edge) {
            let (_, end) = entry.remove_entry();
            if end > edge {
                self.below.insert(edge, end);
                return;
            }
        }
        if self.highest.end <= edge {
            self.highest = Range::default();
        } else {
            self.highest.start = self.highest.start.max(edge);
        }
    }

    /// Removes `[start, end)`.
    pub fn remove(&mut self, start: u64, end: u64) {
        while let Some(range) = self.first_above(start).filter(|r| r.start < end) {
            if range == self.highest {
                let next = self.below.pop_last();
                self.highest = next.map_or_else(Range::default, |(start, end)| Range { start, end });
            } else {
                self.below.remove(&range.start);
            }
            for left in [Range { end: start, ..range }, Range { start: end, ..range }] {
                if left.start < left.end {
                    self.insert(left.start, left.end);
                }
            }
        }
    }

    /// How many bytes of `[start, end)` are in the set.
    pub fn covered(&self, start: u64, end: u64) -> u64 {
        let within = Range { start, end };
        let Some(first) = self.first_above(start).filter(|r| r.start < end) else { return 0 };
        let mut bytes = first.common(within);
        if first.end < end && first != self.highest {
            bytes += self.below.range(first.end..end).map(|r| Range::from(r).common(within)).sum::<u64>();
            bytes += self.highest.common(within);
        }
        bytes
    }

    /// The first maximal run of bytes at or above `from` that is *not* in the set, cut at `limit`.
    pub fn hole_from(&self, from: u64, limit: u64) -> Option<Range> {
        let (start, next) = match self.first_above(from) {
            Some(r) if r.start <= from => (r.end, self.from(r.end)),
            next => (from, next),
        };
        let end = next.map_or(limit, |r| r.start.min(limit));
        (start < end).then_some(Range { start, end })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against the obvious set of bytes.
        #[test]
        fn ranges_are_a_set_of_bytes(ops in prop::collection::vec((0u64..60, 1u64..12, 0u8..6), 1..60)) {
            let mut ranges = Ranges::default();
            let mut bytes = BTreeSet::new();
            for (at, len, op) in ops {
                match op {
                    0..=3 => {
                        let before = bytes.len();
                        bytes.extend(at..at + len);
                        let new = (bytes.len() - before) as u64;
                        prop_assert_eq!(ranges.insert(at, at + len), new);
                    }
                    4 => {
                        ranges.remove(at, at + len);
                        bytes.retain(|b| !(at..at + len).contains(b));
                    }
                    _ => {
                        ranges.remove_below(at / 2);
                        bytes.retain(|&b| b >= at / 2);
                    }
                }
                let inside = (at..at + len).filter(|b| bytes.contains(b)).count() as u64;
                prop_assert_eq!(ranges.covered(at, at + len), inside);
                prop_assert_eq!(ranges.overlaps(at, at + len), inside > 0);
                let first = (at..at + len).find(|b| bytes.contains(b));
                prop_assert_eq!(ranges.first_in(at, at + len).map(|r| r.start), first);
                prop_assert_eq!(ranges.covers(at, at + len), inside == len);
                prop_assert_eq!(ranges.containing(at).is_some(), bytes.contains(&at));
                prop_assert_eq!(ranges.is_empty(), bytes.is_empty());
                let hole = (at..75).find(|b| !bytes.contains(b));
                prop_assert_eq!(ranges.hole_from(at, 75).map(|h| h.start), hole);
                let hole_end = hole.and_then(|h| (h..75).find(|b| bytes.contains(b)).or(Some(75)));
                prop_assert_eq!(ranges.hole_from(at, 75).map(|h| h.end), hole_end);
                let mut up: Vec<Range> = ranges.descending().collect();
                up.reverse();
                prop_assert!(up.windows(2).all(|pair| pair[0].end < pair[1].start), "{:?}", up);
                prop_assert_eq!(ranges.lowest(), up.first().copied());
                let all: Vec<u64> = up.iter().flat_map(|r| r.start..r.end).collect();
                prop_assert!(all.iter().eq(&bytes));
            }
        }
    }
}
