use crate::sorted_map::SortedMap;

/// A set of byte numbers as sorted, disjoint, non-touching half-open ranges.
///
/// Cost: amortised O(log n) in the number of ranges. [`Ranges::insert`], [`Ranges::remove`],
/// [`Ranges::remove_below`] and [`Ranges::covered`] take one more step for each range that they
/// merge, remove or count. Up to some thousand ranges ([`SortedMap`]) the lowest and the highest,
/// which SACK reads most, cost O(1).
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    /// Start and end of each range.
    ranges: SortedMap<u64, u64>,
}

/// Bytes from `start` up to, not including, `end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// Number of the first byte.
    pub start: u64,
    /// Number of the byte after the last.
    pub end: u64,
}

impl Range {
    const fn len(self) -> u64 {
        self.end - self.start
    }

    /// Returns the number of bytes that two ranges share.
    fn common(self, other: Self) -> u64 {
        self.end.min(other.end).saturating_sub(self.start.max(other.start))
    }
}

impl From<(u64, u64)> for Range {
    fn from((start, end): (u64, u64)) -> Self {
        Self { start, end }
    }
}

impl Ranges {
    /// Creates the empty set.
    pub const fn new() -> Self {
        Self { ranges: SortedMap::new() }
    }

    /// Prefetches the lowest and the highest range, as [`SortedMap::prefetch`] does.
    #[inline]
    pub fn prefetch(&self) {
        self.ranges.prefetch();
    }

    /// `true` if no byte is in the set.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Number of ranges.
    #[inline]
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Iterates over the ranges from the highest down.
    pub fn descending(&self) -> impl Iterator<Item = Range> + '_ {
        self.ranges.iter().rev().map(Range::from)
    }

    /// Returns the range with the highest numbers.
    #[inline]
    pub fn highest(&self) -> Option<Range> {
        self.ranges.last().map(Range::from)
    }

    /// Returns the range with the lowest numbers.
    #[inline]
    pub fn lowest(&self) -> Option<Range> {
        self.ranges.first().map(Range::from)
    }

    /// Returns the last range that begins below `at`.
    pub fn below(&self, at: u64) -> Option<Range> {
        self.ranges.below(at).map(Range::from)
    }

    /// Returns the first range that ends above `at`.
    #[inline]
    fn first_above(&self, at: u64) -> Option<Range> {
        let (before, next) = self.around(at);
        before.filter(|r| r.end > at).or(next)
    }

    /// Returns the last range that begins at or before `at`, and the one that follows it.
    #[inline]
    fn around(&self, at: u64) -> (Option<Range>, Option<Range>) {
        let (before, next) = self.ranges.around(at + 1);
        (before.map(Range::from), next.map(Range::from))
    }

    /// Returns the last range that begins at or before `at`.
    #[inline]
    fn before(&self, at: u64) -> Option<Range> {
        self.ranges.below(at + 1).map(Range::from)
    }

    /// Returns the first range that begins at or above `at`.
    #[inline]
    fn from(&self, at: u64) -> Option<Range> {
        self.ranges.from(at).map(Range::from)
    }

    /// Returns the range that contains byte `at`.
    #[inline]
    pub fn containing(&self, at: u64) -> Option<Range> {
        self.before(at).filter(|r| r.end > at)
    }

    /// `true` if any byte of `[start, end)` is in the set.
    #[inline]
    pub fn overlaps(&self, start: u64, end: u64) -> bool {
        start < end && self.ranges.below(end).is_some_and(|(_, last)| last > start)
    }

    /// `true` if `[start, end)` and a range of the set overlap or adjoin.
    pub fn touches(&self, start: u64, end: u64) -> bool {
        self.before(end).is_some_and(|r| r.end >= start)
    }

    /// Returns the lowest run of bytes of `[start, end)` that is in the set.
    #[inline]
    pub fn first_in(&self, start: u64, end: u64) -> Option<Range> {
        let range = self.first_above(start).filter(|r| r.start < end)?;
        Some(Range { start: range.start.max(start), end: range.end.min(end) })
    }

    /// Adds `[start, end)`, which must not be empty. Returns the range that now contains it, and
    /// the number of bytes of `[start, end)` that were new.
    #[inline(never)]
    pub fn insert(&mut self, start: u64, end: u64) -> (Range, u64) {
        debug_assert!(start < end);
        let new = Range { start, end };
        // All ranges that `new` overlaps or adjoins merge with it.
        let (mut merged, mut known) = (new, 0);
        let (before, mut next) = self.around(start);
        if let Some(before) = before.filter(|r| r.end >= start) {
            if before.end >= end {
                return (before, 0);
            }
            known = before.end - start;
            merged.start = before.start;
        }
        while let Some(range) = next.filter(|r| r.start <= end) {
            known += range.common(new);
            merged.end = merged.end.max(range.end);
            self.ranges.remove(range.start);
            next = if range.end <= end { self.from(range.end) } else { None };
        }
        self.ranges.insert(merged.start, merged.end);
        (merged, new.len() - known)
    }

    /// Removes all bytes below `edge`.
    pub fn remove_below(&mut self, edge: u64) {
        while let Some(lowest) = self.lowest().filter(|r| r.start < edge) {
            self.ranges.pop_first();
            if lowest.end > edge {
                self.ranges.insert(edge, lowest.end);
            }
        }
    }

    /// Removes `[start, end)`.
    pub fn remove(&mut self, start: u64, end: u64) {
        while let Some(range) = self.first_above(start).filter(|r| r.start < end && start < end) {
            self.ranges.remove(range.start);
            if range.start < start {
                self.ranges.insert(range.start, start);
            }
            if end < range.end {
                self.ranges.insert(end, range.end);
            }
        }
    }

    /// Returns the number of bytes of `[start, end)` that are in the set.
    pub fn covered(&self, start: u64, end: u64) -> u64 {
        let within = Range { start, end };
        let mut bytes = 0;
        let mut next = self.first_above(start);
        while let Some(range) = next.filter(|r| r.start < end) {
            bytes += range.common(within);
            next = if range.end < end { self.from(range.end) } else { None };
        }
        bytes
    }

    /// Returns the first run of bytes from `from` on that is *not* in the set, cut at `limit`;
    /// `None` if `[from, limit)` has no such byte.
    #[inline]
    pub fn hole_from(&self, from: u64, limit: u64) -> Option<Range> {
        if from >= limit {
            return None;
        }
        let (before, next) = self.around(from);
        let start = before.map_or(from, |r| r.end.max(from));
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
        /// Compares with a plain set of byte numbers.
        #[test]
        fn ranges_are_a_set_of_bytes(
            ops in prop::collection::vec((0u64..60, 1u64..12, 0u8..6), 1..60),
        ) {
            let mut ranges = Ranges::default();
            let mut bytes = BTreeSet::new();
            for (at, len, op) in ops {
                match op {
                    0..=3 => {
                        let before = bytes.len();
                        bytes.extend(at..at + len);
                        let new = (bytes.len() - before) as u64;
                        let (range, added) = ranges.insert(at, at + len);
                        prop_assert_eq!(added, new);
                        prop_assert_eq!(Some(range), ranges.containing(at));
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
                let mut near = (at..at + len + 1).chain(at.checked_sub(1));
                let touched = near.any(|b| bytes.contains(&b));
                prop_assert_eq!(ranges.touches(at, at + len), touched);
                let first = (at..at + len).find(|b| bytes.contains(b));
                prop_assert_eq!(ranges.first_in(at, at + len).map(|r| r.start), first);
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
                prop_assert_eq!(ranges.len(), up.len());
                let all: Vec<u64> = up.iter().flat_map(|r| r.start..r.end).collect();
                prop_assert!(all.iter().eq(&bytes));
            }
        }
    }
}
