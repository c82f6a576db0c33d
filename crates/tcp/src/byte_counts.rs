//! Counts for ranges of bytes: how often each byte was retransmitted, or lost.

use std::collections::BTreeMap;

/// How often each byte of a connection was added, as disjoint pieces with one count each.
///
/// Cost: each method takes O(log n) in the number of pieces, and [`ByteCounts::add`] and
/// [`ByteCounts::forget_below`] one step more for each piece that they count up or drop. An added range makes
/// three pieces at most, so both are amortised O(log n) for ranges of bounded length.
#[derive(Clone, Debug, Default)]
pub struct ByteCounts(BTreeMap<u64, Piece>);

/// The end of a piece that begins at its key, and its count.
#[derive(Clone, Copy, Debug)]
struct Piece {
    end: u64,
    times: u64,
}

impl ByteCounts {
    /// Counts `[start, end)` once more, and forgets all below `una`.
    #[cold]
    pub fn add(&mut self, start: u64, end: u64, una: u64) {
        self.forget_below(una);
        self.split_at(start);
        self.split_at(end);
        let mut at = start;
        while at < end {
            match self.0.range_mut(at..end).next() {
                Some((&next, piece)) if next == at => {
                    piece.times += 1;
                    at = piece.end;
                }
                next => {
                    let gap_end = next.map_or(end, |(&next, _)| next);
                    self.0.insert(at, Piece { end: gap_end, times: 1 });
                    at = gap_end;
                }
            }
        }
    }

    /// Makes two pieces of one that has `byte` inside.
    fn split_at(&mut self, byte: u64) {
        let before = self.0.range_mut(..byte).next_back();
        if let Some((_, piece)) = before.filter(|(_, piece)| piece.end > byte) {
            let behind = *piece;
            piece.end = byte;
            self.0.insert(byte, behind);
        }
    }

    /// Drops pieces that end at or below `una`.
    pub fn forget_below(&mut self, una: u64) {
        while let Some(first) = self.0.first_entry().filter(|first| first.get().end <= una) {
            first.remove();
        }
    }

    /// The number of pieces that it holds.
    #[must_use]
    pub fn pieces(&self) -> usize {
        self.0.len()
    }

    /// One past the highest byte that was added and is not forgotten.
    #[must_use]
    pub fn end(&self) -> Option<u64> {
        self.0.last_key_value().map(|(_, piece)| piece.end)
    }

    /// The pieces that end above `byte`, cut there, as pairs of start and end.
    pub(crate) fn above(&self, byte: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let across = self.0.range(..byte).next_back().filter(|(_, piece)| piece.end > byte);
        let pieces = across.into_iter().chain(self.0.range(byte..));
        pieces.map(move |(&start, piece)| (start.max(byte), piece.end))
    }

    /// `true` if any byte of `[start, end)` was added.
    #[must_use]
    pub fn any_in(&self, start: u64, end: u64) -> bool {
        self.0.range(..end).next_back().is_some_and(|(_, piece)| piece.end > start)
    }

    /// How often `byte` was added.
    #[must_use]
    pub fn of(&self, byte: u64) -> u64 {
        let piece = self.0.range(..=byte).next_back().map(|(_, piece)| piece);
        piece.filter(|piece| piece.end > byte).map_or(0, |piece| piece.times)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a count for each byte.
        #[test]
        fn each_byte_is_counted(adds in prop::collection::vec((0u64..40, 1u64..12, 0u64..50), 1..40)) {
            let mut counts = ByteCounts::default();
            let (mut each, mut una) = ([0; 64], 0);
            for (start, len, next) in adds {
                let end = start + len;
                counts.add(start, end, una);
                each[start as usize..end as usize].iter_mut().for_each(|times| *times += 1);
                una = una.max(next.saturating_sub(20));
                for at in una..64 {
                    prop_assert_eq!(counts.of(at), each[at as usize]);
                    let any = each[at as usize..64.min(at as usize + 5)].iter().any(|&times| times > 0);
                    prop_assert_eq!(counts.any_in(at, at + 5), any);
                }
                let above: Vec<u64> = counts.above(una).flat_map(|(start, end)| start..end).collect();
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
