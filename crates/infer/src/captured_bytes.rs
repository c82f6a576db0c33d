//! Bytes of a stream that were captured.

use cwnd_packet::{Range, Ranges};

/// Maximum number of ranges kept; a window full of SACK holes has fewer.
const MOST: usize = 512;

/// Relation of a segment's bytes to those captured before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fresh {
    /// They begin at the highest position.
    Next,
    /// They begin beyond the highest position: bytes in between are missing.
    Beyond,
    /// Some of them were missing below the highest position.
    Fills,
    /// All of them were captured before.
    Nothing,
}

/// Set of captured bytes: all below a position, and ranges above it. Positions do not wrap.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Position below which all bytes were captured.
    next: u64,
    /// Position behind the highest captured byte.
    high: u64,
    /// Captured ranges above `next`.
    ranges: Ranges,
    forgotten: u64,
}

impl Seen {
    /// Creates an empty set of a stream that begins at `start`.
    pub const fn from(start: u64) -> Self {
        Self { next: start, high: start, ranges: Ranges::new(), forgotten: 0 }
    }

    /// Returns the position below which all bytes were captured or acknowledged.
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// Returns the position behind the highest captured or acknowledged byte.
    pub const fn high(&self) -> u64 {
        self.high
    }

    /// `true` if bytes are missing below the highest.
    pub const fn has_holes(&self) -> bool {
        self.next < self.high
    }

    /// Returns the number of ranges that were not kept, because there were too many.
    pub const fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Adds a range of bytes, and returns its relation to those before.
    #[inline]
    pub fn add(&mut self, start: u64, end: u64) -> Fresh {
        if start == self.high && self.ranges.is_empty() {
            (self.next, self.high) = (end, end);
            return Fresh::Next;
        }
        self.add_elsewhere(start, end)
    }

    fn add_elsewhere(&mut self, start: u64, end: u64) -> Fresh {
        let high = self.high;
        let fresh = if start > high {
            Fresh::Beyond
        } else if start == high {
            Fresh::Next
        } else if self.has(start, end) {
            Fresh::Nothing
        } else {
            Fresh::Fills
        };
        self.high = high.max(end);
        if fresh != Fresh::Nothing {
            self.insert(start.max(self.next), end);
        }
        fresh
    }

    /// Adds all bytes below `to`: they were received, captured or not.
    pub fn acknowledged(&mut self, to: u64) {
        if to > self.next {
            self.high = self.high.max(to);
            self.insert(self.next, to);
        }
    }

    fn has(&self, start: u64, end: u64) -> bool {
        let within = |range: Range| end <= range.end;
        end <= self.next || self.ranges.containing(start.max(self.next)).is_some_and(within)
    }

    fn insert(&mut self, start: u64, end: u64) {
        if end <= start {
            return;
        }
        if start > self.next && self.ranges.len() >= MOST && !self.ranges.touches(start, end) {
            self.forgotten += 1;
            return;
        }
        let (merged, _) = self.ranges.insert(start, end);
        if merged.start <= self.next {
            self.next = merged.end;
            self.ranges.remove_below(merged.end);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn holes_are_filled_and_what_was_seen_is_nothing_new() {
        let mut seen = Seen::from(10);
        assert_eq!(seen.add(10, 20), Fresh::Next);
        assert_eq!(seen.add(30, 40), Fresh::Beyond);
        assert_eq!((seen.next(), seen.high()), (20, 40));
        assert_eq!(seen.add(30, 35), Fresh::Nothing);
        assert_eq!(seen.add(5, 15), Fresh::Nothing);
        assert_eq!(seen.add(15, 30), Fresh::Fills);
        assert_eq!((seen.next(), seen.high()), (40, 40));
        assert_eq!(seen.add(40, 41), Fresh::Next);
        seen.acknowledged(60);
        assert_eq!((seen.next(), seen.high()), (60, 60));
    }

    proptest! {
        /// Comparison with a table that has an entry for each byte.
        #[test]
        fn bytes_are_accounted_for_one_by_one(
            stretches in proptest::collection::vec((0_u64..120, 1_u64..20), 0..60)
        ) {
            let mut seen = Seen::from(0);
            let mut table = [false; 200];
            for (start, length) in stretches {
                let end = start + length;
                let high = table.iter().rposition(|&t| t).map_or(0, |at| at as u64 + 1);
                let bytes = &mut table[start as usize..end as usize];
                let expected = if start > high {
                    Fresh::Beyond
                } else if start == high {
                    Fresh::Next
                } else if bytes.iter().all(|&t| t) {
                    Fresh::Nothing
                } else {
                    Fresh::Fills
                };
                bytes.fill(true);
                prop_assert_eq!(seen.add(start, end), expected);
                let next = table.iter().position(|&t| !t).unwrap_or(200) as u64;
                prop_assert_eq!(seen.next(), next);
                prop_assert_eq!(seen.has_holes(), next < seen.high());
            }
        }
    }
}
