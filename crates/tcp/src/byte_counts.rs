//! Counts per byte, such as retransmissions or losses, stored as ranges.

use cwnd_packet::SortedMap;

/// Counts per byte of a connection, as disjoint pieces with one count each.
///
/// Cost: each method takes O(log n) in the number of pieces; [`ByteCounts::add`] and
/// [`ByteCounts::forget_below`] take one more step for each piece that they increment or drop. An
/// added range is at most a segment and adds a few pieces, so both are amortised O(log n).
#[derive(Clone, Debug, Default)]
pub struct ByteCounts(SortedMap<u64, Piece>);

/// A piece, whose start is its key: its end and the count of its bytes.
#[derive(Clone, Copy, Debug)]
struct Piece {
    end: u64,
    times: u64,
}

impl ByteCounts {
    /// Drops the pieces that end at or below `una`, and increments the counts of `[start, end)`.
    #[cold]
    pub fn add(&mut self, start: u64, end: u64, una: u64) {
        self.forget_below(una);
        if start >= end {
            return;
        }
        // Most ranges are added upwards.
        if self.end().is_none_or(|last| last <= start) {
            self.0.insert(start, Piece { end, times: 1 });
            return;
        }
        self.split_at(start);
        self.split_at(end);
        let mut at = start;
        while at < end {
            let next = self.0.from(at).filter(|&(next, _)| next < end);
            let (piece_end, times) = match next {
                Some((next, piece)) if next == at => (piece.end, piece.times + 1),
                _ => (next.map_or(end, |(next, _)| next), 1),
            };
            self.0.insert(at, Piece { end: piece_end, times });
            at = piece_end;
        }
    }

    /// Splits the piece that contains `byte` in its inside.
    fn split_at(&mut self, byte: u64) {
        if let Some((start, piece)) = self.0.below(byte).filter(|(_, piece)| piece.end > byte) {
            self.0.insert(start, Piece { end: byte, ..piece });
            self.0.insert(byte, piece);
        }
    }

    /// Drops pieces that end at or below `una`.
    pub fn forget_below(&mut self, una: u64) {
        while self.0.first().is_some_and(|(_, piece)| piece.end <= una) {
            self.0.pop_first();
        }
    }

    /// Returns the number of pieces.
    #[must_use]
    pub fn pieces(&self) -> usize {
        self.0.len()
    }

    /// Returns one past the highest byte that was added and is not dropped; `None` without pieces.
    #[must_use]
    pub fn end(&self) -> Option<u64> {
        self.0.last().map(|(_, piece)| piece.end)
    }

    /// Returns the pieces above `byte`, cut there, as pairs of start and end.
    pub(crate) fn above(&self, byte: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let across = self.0.below(byte).filter(|(_, piece)| piece.end > byte);
        let pieces = across.into_iter().chain(self.0.range(byte, u64::MAX));
        pieces.map(move |(start, piece)| (start.max(byte), piece.end))
    }

    /// `true` if any byte of `[start, end)` was added and is not dropped.
    #[must_use]
    pub fn any_in(&self, start: u64, end: u64) -> bool {
        self.0.below(end).is_some_and(|(_, piece)| piece.end > start)
    }

    /// Returns the count of `byte`; 0 if it was never added, or is dropped.
    #[must_use]
    #[inline]
    pub fn of(&self, byte: u64) -> u64 {
        if self.end().is_none_or(|end| end <= byte) {
            return 0;
        }
        let piece = self.0.below(byte + 1).map(|(_, piece)| piece);
        piece.filter(|piece| piece.end > byte).map_or(0, |piece| piece.times)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Checks the pieces against one count per byte.
        #[test]
        fn each_byte_is_counted(
            adds in prop::collection::vec((0u64..40, 1u64..12, 0u64..50), 1..40),
        ) {
            let mut counts = ByteCounts::default();
            let (mut each, mut una) = ([0; 64], 0);
            for (start, len, next) in adds {
                let end = start + len;
                counts.add(start, end, una);
                each[start as usize..end as usize].iter_mut().for_each(|times| *times += 1);
                una = una.max(next.saturating_sub(20));
                for at in una..64 {
                    prop_assert_eq!(counts.of(at), each[at as usize]);
                    let next = &each[at as usize..64.min(at as usize + 5)];
                    let any = next.iter().any(|&times| times > 0);
                    prop_assert_eq!(counts.any_in(at, at + 5), any);
                }
                let above = counts.above(una).flat_map(|(start, end)| start..end);
                let above: Vec<u64> = above.collect();
                let expected: Vec<u64> = (una..64).filter(|&at| each[at as usize] > 0).collect();
                prop_assert_eq!(&above, &expected);
                let end = counts.end().filter(|&end| end > una);
                prop_assert_eq!(end, expected.last().map(|last| last + 1));
            }
        }
    }

    #[test]
    fn what_is_acknowledged_is_forgotten() {
        let mut counts = ByteCounts::default();
        for k in 0..100_000 {
            counts.add(k * 1000, k * 1000 + 1000, k * 1000);
        }
        assert_eq!(counts.pieces(), 1);
        assert_eq!((counts.of(99_999_500), counts.of(99_000)), (1, 0));
    }
}
