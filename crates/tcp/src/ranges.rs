use std::collections::VecDeque;

/// A set of byte numbers as sorted, disjoint, non-touching half-open ranges.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    ranges: VecDeque<Range>,
}

/// Bytes from `start` up to, not including, `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub start: u64,
    pub end: u64,
}

impl Ranges {
    /// What its ends are kept in will be read soon.
    #[inline]
    pub fn soon(&self) {
        self.ranges.front().into_iter().chain(self.ranges.back()).for_each(cwnd_memory::soon);
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The ranges from the highest down.
    pub fn descending(&self) -> impl Iterator<Item = Range> + '_ {
        self.ranges.iter().rev().copied()
    }

    pub fn highest(&self) -> Option<Range> {
        self.ranges.back().copied()
    }

    /// Which range is the first that ends above `at`. Mostly it is the first or the last of all, or `at` is above them.
    #[inline]
    fn first_above(&self, at: u64) -> usize {
        let (Some(first), Some(last)) = (self.ranges.front(), self.ranges.back()) else { return 0 };
        if first.end > at {
            0
        } else if last.start <= at {
            self.ranges.len() - usize::from(last.end > at)
        } else {
            self.ranges.partition_point(|r| r.end <= at)
        }
    }

    /// The range that contains byte `at`.
    pub fn containing(&self, at: u64) -> Option<Range> {
        let i = self.first_above(at);
        self.ranges.get(i).copied().filter(|r| r.start <= at)
    }

    /// Whether all of `[start, end)` is in the set.
    #[inline]
    pub fn covers(&self, start: u64, end: u64) -> bool {
        let i = self.first_above(start);
        self.ranges.get(i).is_some_and(|r| r.start <= start && end <= r.end)
    }

    /// Adds `[start, end)`; returns how many bytes of it were new.
    pub fn insert(&mut self, start: u64, end: u64) -> u64 {
        debug_assert!(start < end);
        // Most arrivals extend the highest range or lie above it.
        match self.ranges.back_mut() {
            None => {
                self.ranges.push_back(Range { start, end });
                return end - start;
            }
            Some(last) if start > last.end => {
                self.ranges.push_back(Range { start, end });
                return end - start;
            }
            Some(last) if start >= last.start => {
                let new = end.saturating_sub(last.end);
                last.end += new;
                return new;
            }
            Some(_) => {}
        }
        // What it touches is one with it.
        let first = self.first_above(start.saturating_sub(1));
        let mut merged = Range { start, end };
        let mut known = 0;
        let mut past = first;
        while let Some(r) = self.ranges.get(past).filter(|r| r.start <= end) {
            known += r.end.min(end).saturating_sub(r.start.max(start));
            merged.start = merged.start.min(r.start);
            merged.end = merged.end.max(r.end);
            past += 1;
        }
        if past == first {
            self.ranges.insert(first, merged);
        } else {
            self.ranges[first] = merged;
            self.ranges.drain(first + 1..past);
        }
        (end - start) - known
    }

    /// Forgets all bytes below `edge`.
    pub fn remove_below(&mut self, edge: u64) {
        while let Some(r) = self.ranges.front_mut() {
            if r.end <= edge {
                self.ranges.pop_front();
            } else {
                r.start = r.start.max(edge);
                break;
            }
        }
    }

    /// How many bytes of `[start, end)` are in the set.
    pub fn covered(&self, start: u64, end: u64) -> u64 {
        let first = self.first_above(start);
        self.ranges
            .range(first..)
            .take_while(|r| r.start < end)
            .map(|r| r.end.min(end) - r.start.max(start))
            .sum()
    }

    /// The first maximal run of bytes at or above `from` that is *not* in the set, cut at `limit`.
    pub fn hole_from(&self, from: u64, limit: u64) -> Option<Range> {
        let i = self.first_above(from);
        let (start, next) = match self.ranges.get(i) {
            Some(r) if r.start <= from => (r.end, i + 1),
            _ => (from, i),
        };
        let end = self.ranges.get(next).map_or(limit, |r| r.start.min(limit));
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
        fn ranges_are_a_set_of_bytes(ops in prop::collection::vec((0u64..60, 1u64..12, any::<bool>()), 1..60)) {
            let mut ranges = Ranges::default();
            let mut bytes = BTreeSet::new();
            for (at, len, insert) in ops {
                if insert {
                    let before = bytes.len();
                    bytes.extend(at..at + len);
                    prop_assert_eq!(ranges.insert(at, at + len), (bytes.len() - before) as u64);
                } else if len == 1 {
                    ranges.remove_below(at);
                    bytes.retain(|&b| b >= at);
                }
                prop_assert_eq!(ranges.covered(at, at + len), bytes.range(at..at + len).count() as u64);
                prop_assert_eq!(ranges.containing(at).is_some(), bytes.contains(&at));
                prop_assert_eq!(ranges.covers(at, at + len), (at..at + len).all(|b| bytes.contains(&b)));
                let hole = (at..70).find(|b| !bytes.contains(b));
                prop_assert_eq!(ranges.hole_from(at, 70).map(|h| h.start), hole);
                let inside: Vec<u64> = ranges.descending().flat_map(|r| r.start..r.end).collect();
                prop_assert_eq!(inside.len(), bytes.len());
            }
        }
    }
}
