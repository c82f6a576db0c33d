//! Updates of the scoreboard by SACK blocks (RFC 2018, RFC 6675 § 4, Update).

use cwnd_packet::{Range, Ranges};
use cwnd_quantity::Divisor;

use super::{FirstTransmissions, LAST_BLOCKS, SentSegments};
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

/// SACK blocks of senders that count segments as a whole (Linux, `tcp_match_skb_to_sack`).
impl SentSegments {
    /// Returns the blocks that may report new data, from the lowest (tcp_input.c,
    /// `tcp_sacktag_write_queue`). With `whole`, the divisor by a full segment, those above `ack`
    /// begin and end at segment boundaries. The list, if any, replaces them: it leaves out the
    /// segments that Linux skips.
    pub fn new_blocks(
        &mut self,
        blocks: &SackBlocks,
        ack: u64,
        whole: Option<Divisor>,
    ) -> (SackBlocks, Option<Vec<SackBlock>>) {
        let blocks = &self.without_known(blocks, ack);
        let (Some(segments), Some(first)) = (whole, &self.first) else {
            return (upwards(*blocks), None);
        };
        let (whole, leaves_out) = first.whole_blocks(blocks, ack, segments);
        let whole = upwards(whole);
        let passes = leaves_out || !first.left_out.is_empty();
        (whole, passes.then(|| self.pass_over(blocks, &whole, ack, segments)))
    }

    /// Returns the blocks without the remembered ones; all blocks while `left_out` holds segments.
    fn without_known(&self, blocks: &SackBlocks, ack: u64) -> SackBlocks {
        let mut unknown = *blocks;
        if self.first.as_ref().is_some_and(|first| first.left_out.is_empty()) {
            for block in unknown.iter_mut().filter(|block| block.len > 0) {
                let range = Range { start: block.start(ack), end: block.end(ack) };
                if self.has_block(range) {
                    *block = SackBlock::default();
                }
            }
        }
        unknown
    }

    /// Cuts out of the blocks the segments whose beginning earlier blocks left out; returns the
    /// pieces from the lowest. Linux skips such a segment as long as its blocks stay
    /// (`tcp_sacktag_write_queue` visits only ranges that are not in `recv_sack_cache`).
    ///
    /// Cost: linear in the segments that blocks cover in part; a receiver that accepts whole
    /// segments reports none.
    #[cold]
    fn pass_over(
        &mut self,
        told: &SackBlocks,
        upwards: &SackBlocks,
        ack: u64,
        segments: Divisor,
    ) -> Vec<SackBlock> {
        let is_first = self.is_empty();
        let Some(first) = &mut self.first else { return Vec::new() };
        let before = core::mem::take(&mut first.left_out);
        let mut pieces = Vec::new();
        for block in upwards.iter().filter(|block| block.len > 0) {
            let (mut from, end) = (block.start(ack), block.end(ack));
            for &segment in before.iter().filter(|_| !is_first) {
                if from <= segment.start && segment.end <= end {
                    pieces.push(SackBlock::of(ack, from, segment.start));
                    from = segment.end;
                    first.left_out.push(segment);
                }
            }
            pieces.push(SackBlock::of(ack, from, end));
        }
        for block in told.iter().filter(|block| block.len > 0 && block.offset >= 0) {
            let (start, end) = (block.start(ack), block.end(ack));
            let begin = first.begin_of(start, segments);
            if begin < start {
                let end = first.whole(Range { start, end }, segments).start;
                first.left_out.push(Range { start: begin, end });
            }
        }
        first.left_out.sort_unstable_by_key(|segment| segment.start);
        pieces.retain(|piece| piece.len > 0);
        pieces
    }
}

impl FirstTransmissions {
    /// Shrinks each block to the whole segments in it; returns `true` if a block left out the
    /// beginning of a segment.
    fn whole_blocks(&self, blocks: &SackBlocks, ack: u64, segments: Divisor) -> (SackBlocks, bool) {
        let (mut whole, mut leaves_out) = (SackBlocks::default(), false);
        let told = blocks.iter().filter(|block| block.len > 0).map(|block| {
            let range = Range { start: block.start(ack), end: block.end(ack) };
            // A block below the ACK is a D-SACK, and stays.
            let of = if block.offset < 0 { range } else { self.whole(range, segments) };
            leaves_out |= of.start > range.start;
            of
        });
        for (slot, of) in whole.iter_mut().zip(told.filter(|of| of.start < of.end)) {
            *slot = SackBlock::of(ack, of.start, of.end);
        }
        (whole, leaves_out)
    }
}

fn upwards(mut blocks: SackBlocks) -> SackBlocks {
    blocks.sort_unstable_by_key(|block| block.offset);
    blocks
}
