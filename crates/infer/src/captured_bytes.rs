//! Bytes of a stream that were captured.

use cwnd_packet::{Range, Ranges};

/// Maximum number of ranges kept; a window full of SACK holes has fewer.
const MAX_RANGES: usize = 512;

/// Relation of a segment's bytes to those captured before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Novelty {
    /// They begin at the highest position.
    InOrder,
    /// They begin beyond the highest position: bytes in between are missing.
    BeyondHole,
    /// They begin below the highest position, and some of them were not captured before.
    FillsHole,
    /// All of them were captured or acknowledged before.
    Duplicate,
}

impl Novelty {
    /// Names in the column `novelty`, in the order of the variants.
    pub const NAMES: [&'static str; 4] = ["in_order", "beyond_hole", "fills_hole", "duplicate"];
}

/// Set of captured or acknowledged bytes: all below a position, and ranges above it. Positions do
/// not wrap.
#[derive(Clone, Debug, Default)]
pub struct CapturedBytes {
    /// Position below which all bytes were captured or acknowledged.
    next: u64,
    /// Position behind the highest captured or acknowledged byte.
    high: u64,
    /// Captured ranges above `next`.
    ranges: Ranges,
    forgotten: u64,
}

impl CapturedBytes {
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
    pub fn add(&mut self, start: u64, end: u64) -> Novelty {
        if start == self.high && self.ranges.is_empty() {
            (self.next, self.high) = (end, end);
            return Novelty::InOrder;
        }
        self.add_slow(start, end)
    }

    fn add_slow(&mut self, start: u64, end: u64) -> Novelty {
        let high = self.high;
        let novelty = if start > high {
            Novelty::BeyondHole
        } else if start == high {
            Novelty::InOrder
        } else if self.has(start, end) {
            Novelty::Duplicate
        } else {
            Novelty::FillsHole
        };
        self.high = high.max(end);
        if novelty != Novelty::Duplicate {
            self.insert(start.max(self.next), end);
        }
        novelty
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
        if start > self.next && self.ranges.len() >= MAX_RANGES && !self.ranges.touches(start, end)
        {
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
        let mut captured = CapturedBytes::from(10);
        assert_eq!(captured.add(10, 20), Novelty::InOrder);
        assert_eq!(captured.add(30, 40), Novelty::BeyondHole);
        assert_eq!((captured.next(), captured.high()), (20, 40));
        assert_eq!(captured.add(30, 35), Novelty::Duplicate);
        assert_eq!(captured.add(5, 15), Novelty::Duplicate);
        assert_eq!(captured.add(15, 30), Novelty::FillsHole);
        assert_eq!((captured.next(), captured.high()), (40, 40));
        assert_eq!(captured.add(40, 41), Novelty::InOrder);
        captured.acknowledged(60);
        assert_eq!((captured.next(), captured.high()), (60, 60));
    }

    proptest! {
        /// Comparison with a table that has an entry for each byte.
        #[test]
        fn bytes_are_accounted_for_one_by_one(
            stretches in proptest::collection::vec((0_u64..120, 1_u64..20), 0..60)
        ) {
            let mut captured = CapturedBytes::from(0);
            let mut table = [false; 200];
            for (start, length) in stretches {
                let end = start + length;
                let high = table.iter().rposition(|&t| t).map_or(0, |at| at as u64 + 1);
                let bytes = &mut table[start as usize..end as usize];
                let expected = if start > high {
                    Novelty::BeyondHole
                } else if start == high {
                    Novelty::InOrder
                } else if bytes.iter().all(|&t| t) {
                    Novelty::Duplicate
                } else {
                    Novelty::FillsHole
                };
                bytes.fill(true);
                prop_assert_eq!(captured.add(start, end), expected);
                let next = table.iter().position(|&t| !t).unwrap_or(200) as u64;
                prop_assert_eq!(captured.next(), next);
                prop_assert_eq!(captured.has_holes(), next < captured.high());
            }
        }
    }
}
