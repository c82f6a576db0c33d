//! Doubles: retransmissions in flight beside their originals, after an undo.

use cwnd_packet::SortedMap;

/// Retransmissions in flight whose originals are presumed in flight, too: neither is marked lost.
#[derive(Clone, Debug, Default)]
pub(super) struct DuplicatedInFlight {
    /// End and start of each, in the order of the ends.
    by_end: SortedMap<(u64, u64), ()>,
    /// Lost edge: `bytes` is the sum of the doubles that end at or below it.
    counted_to: u64,
    bytes: u64,
}

impl DuplicatedInFlight {
    /// Creates an empty set, with nothing above `una` lost.
    pub fn new(una: u64) -> Self {
        Self { by_end: SortedMap::new(), counted_to: una, bytes: 0 }
    }

    pub fn insert(&mut self, start: u64, end: u64) {
        self.by_end.insert((end, start), ());
    }

    pub fn remove(&mut self, start: u64, end: u64) {
        if self.by_end.remove((end, start)).is_some() && end <= self.counted_to {
            self.bytes -= end - start;
        }
    }

    pub fn count_to(&mut self, edge: u64) {
        if edge > self.counted_to {
            let more = self.by_end.range((self.counted_to + 1, 0), (edge + 1, 0));
            self.bytes += more.map(|((end, start), ())| end - start).sum::<u64>();
            self.counted_to = edge;
        }
    }

    pub fn forget_below(&mut self, una: u64) {
        while let Some(((end, start), ())) =
            self.by_end.first().filter(|((end, _), ())| *end <= una)
        {
            self.remove(start, end);
        }
    }

    /// Returns the counted bytes from `una` on; a double that begins below counts in part.
    /// `longest` bounds their length.
    pub fn bytes_from(&self, una: u64, longest: u64) -> u64 {
        let mut bytes = self.bytes;
        let mut next = self.by_end.first();
        let last = self.counted_to.min(una.saturating_add(longest));
        while let Some(((end, start), ())) = next.filter(|((end, _), ())| *end <= last) {
            bytes -= una.min(end).saturating_sub(start);
            next = self.by_end.from((end, start + 1));
        }
        bytes
    }
}
