//! Updates of the scoreboard by SACK blocks (RFC 2018, RFC 6675 § 4, Update).

use cwnd_packet::{Range, Ranges};

use super::{LAST_BLOCKS, SentSegments};
use crate::segment::{SackBlock, SackBlocks};

impl SentSegments {
    /// Adds the SACK blocks of an ACK with the number `ack`; returns how many bytes they newly
    /// report.
    pub fn on_sack(&mut self, blocks: &SackBlocks, ack: u64, high: u64) -> u64 {
        self.on_sack_above(blocks, ack, ack, high)
    }

    /// Adds the SACK blocks of an ACK that may have been overtaken: its number `ack` may be below
    /// `una`. Returns how many bytes above `una` they newly report.
    pub fn on_sack_above(&mut self, blocks: &[SackBlock], ack: u64, una: u64, high: u64) -> u64 {
        let mut new = 0;
        for block in blocks.iter().filter(|block| block.len > 0) {
            let (start, end) = (block.start(ack), block.end(ack));
            // Blocks below the cumulative ACK report duplicates (RFC 2883 § 4); blocks beyond the
            // data sent are invalid.
            if start < ack || end > high || end <= una {
                continue;
            }
            if !self.has_block(Range { start, end }) {
                self.remember_block(Range { start, end });
                new += self.add(start.max(una), end);
            }
        }
        self.sacked_bytes += new;
        new
    }

    /// `true` if this block is one of the remembered ones, so that all of it is SACKed already.
    #[inline]
    pub fn has_block(&self, block: Range) -> bool {
        self.last_blocks.contains(&block)
    }

    /// Remembers a block as the newest, in place of one within it, else of the oldest.
    fn remember_block(&mut self, block: Range) {
        let within = |last: &Range| block.start <= last.start && last.end <= block.end;
        let place = self.last_blocks.iter().position(within).unwrap_or(LAST_BLOCKS - 1);
        self.last_blocks[..=place].rotate_right(1);
        self.last_blocks[0] = block;
    }

    fn add(&mut self, start: u64, end: u64) -> u64 {
        let Some(gap) = self.sacked.hole_from(start, end) else { return 0 };
        // Bytes before the first gap are SACKed already.
        let start = gap.start;
        let fresh_below = |edge: u64, sacked: &Ranges| {
            let end = end.min(edge);
            if start < end { (end - start) - sacked.covered(start, end) } else { 0 }
        };
        if self.arrived.is_some() {
            self.note_arrived(start, end.min(self.high_rxt));
        }
        self.sacked_below_lost += fresh_below(self.lost_edge, &self.sacked);
        self.sacked_below_rxt += fresh_below(self.high_rxt, &self.sacked);
        if let Some(retransmissions) = &mut self.retransmissions {
            retransmissions.sacked(start, end);
        }
        self.sacked.insert(start, end).1
    }

    /// Counts the bytes of a retransmitted range that are SACKed for the first time.
    #[cold]
    fn note_arrived(&mut self, start: u64, end: u64) {
        let Some(arrived) = &mut self.arrived else { return };
        let mut from = start;
        while let Some(hole) = self.sacked.hole_from(from, end) {
            arrived.bytes += arrived.ranges.insert(hole.start, hole.end).1;
            from = hole.end;
        }
    }

    /// The first run of bytes of `[from, to)` that did not arrive yet.
    pub fn gap(&self, from: u64, to: u64) -> Option<Range> {
        self.sacked.hole_from(from, to)
    }

    /// One past the highest SACKed byte; `una` if nothing is SACKed.
    #[inline]
    pub fn top(&self, una: u64) -> u64 {
        if self.is_empty() { una } else { self.top_of_sacked(una) }
    }

    // Apart, as most ACKs find nothing SACKed.
    #[inline(never)]
    fn top_of_sacked(&self, una: u64) -> u64 {
        self.sacked.highest().map_or(una, |range| range.end)
    }

    /// The ranges that SACK reported above the cumulative ACK.
    pub const fn sacked(&self) -> &Ranges {
        &self.sacked
    }

    /// `true` if the first unacknowledged byte is SACKed: the receiver discarded data that it had
    /// reported (RFC 2018 § 8).
    #[inline]
    pub fn reneged(&self, una: u64) -> bool {
        !self.is_empty() && self.sacked.containing(una).is_some()
    }

    /// Bytes above the cumulative ACK that SACK reported.
    pub const fn sacked_bytes(&self) -> u64 {
        self.sacked_bytes
    }

    /// `true` if nothing is SACKed.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.sacked_bytes == 0
    }
}
