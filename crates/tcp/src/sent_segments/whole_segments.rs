//! SACK blocks of senders that count segments as a whole (Linux, `tcp_match_skb_to_sack`).

use cwnd_packet::Range;
use cwnd_quantity::Divisor;

use super::{FirstTransmissions, SentSegments};
use crate::segment::{SackBlock, SackBlocks};

impl SentSegments {
    /// Returns the blocks that earlier ACKs did not have, from the lowest (tcp_input.c,
    /// `tcp_sacktag_write_queue`). With `whole`, the divisor by a full segment, they begin and end
    /// at segment boundaries. The list, if any, replaces them: it leaves out the segments that
    /// Linux skips.
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

    /// Cuts out of the blocks the segments that earlier blocks covered only in part; returns the
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
