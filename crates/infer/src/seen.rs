//! Bytes of a stream that were seen.

use cwnd_packet::{Range, Ranges};

/// More ranges than these are not remembered; a window full of SACK holes has fewer.
const MOST: usize = 512;

/// Relation of a run of bytes to those seen before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fresh {
    /// It begins where all had ended.
    Next,
    /// It begins further on: something before it is missing.
    Beyond,
    /// It has bytes that were missing among those seen.
    Fills,
    /// All of it was seen before.
    Nothing,
}

/// All bytes below a point, and ranges above it. Numbers of bytes are not wrapped.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// All before it was seen.
    next: u64,
    /// The end of the last byte that was seen.
    high: u64,
    /// Above `next`.
    ranges: Ranges,
    forgotten: u64,
}

impl Seen {
    /// Nothing was seen, and what comes begins here.
    pub const fn from(start: u64) -> Self {
        Self { next: start, high: start, ranges: Ranges::new(), forgotten: 0 }
    }

    /// All before it was seen.
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// The end of the last byte that was seen.
    pub const fn high(&self) -> u64 {
        self.high
    }

    /// `true` if bytes are missing below the highest.
    pub const fn has_holes(&self) -> bool {
        self.next < self.high
    }

    /// Ranges that were not remembered, since there were too many.
    pub const fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Adds a run of bytes.
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

    /// All before this was received, whether it was seen or not.
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
        /// Beside a table of every byte.
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
