//! Reassembly of data that arrives out of order, and the SACK blocks that report it (RFC 2018).

use cwnd_packet::{Range, Ranges};

use crate::segment::{MAX_SACK_BLOCKS, SackBlock, SackBlocks, Segment};

/// Received data: the next byte expected and the ranges above it.
// Fields that each segment reads come first: `READ_BYTES`.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct Reassembly {
    /// Next byte expected (RCV.NXT).
    rcv_nxt: u64,
    out_of_order: Ranges,
    /// The most recently changed blocks, newest first (RFC 2018 § 4). A block that absorbed another
    /// may be listed twice.
    recent: [Range; MAX_SACK_BLOCKS],
}

/// Position of a segment relative to holes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// The next byte expected, with no hole.
    InOrder,
    /// A hole is left: the segment lies behind one, new or not, or filled another.
    BehindHole,
    /// The segment filled the last hole, lay below the next byte expected, had no payload, or ended
    /// beyond the window.
    Immediate,
}

impl Default for Reassembly {
    fn default() -> Self {
        let recent = [Range { start: 0, end: 0 }; MAX_SACK_BLOCKS];
        Self { rcv_nxt: 0, out_of_order: Ranges::default(), recent }
    }
}

impl Reassembly {
    /// Size in bytes of the fields that each segment reads.
    pub const READ_BYTES: usize = core::mem::offset_of!(Self, recent);

    /// Prefetches the out-of-order ranges, which lie behind a pointer.
    #[inline]
    pub fn prefetch(&self) {
        self.out_of_order.prefetch();
    }

    /// Next byte expected (RCV.NXT).
    #[inline]
    pub const fn rcv_nxt(&self) -> u64 {
        self.rcv_nxt
    }

    /// `true` if a segment that begins at `seq` is the next one and there are no holes.
    #[inline]
    pub fn is_next(&self, seq: u64) -> bool {
        seq == self.rcv_nxt && self.out_of_order.is_empty()
    }

    /// `true` if data waits behind a hole.
    #[inline]
    pub fn has_holes(&self) -> bool {
        !self.out_of_order.is_empty()
    }

    /// Ranges received behind holes.
    pub const fn out_of_order(&self) -> &Ranges {
        &self.out_of_order
    }

    /// One past the highest byte received.
    pub fn highest(&self) -> u64 {
        self.out_of_order.highest().map_or(self.rcv_nxt, |range| range.end)
    }

    /// Counts missing data below `seq` as received (a receiver that conceals losses).
    pub fn skip_to(&mut self, seq: u64) {
        self.rcv_nxt = self.rcv_nxt.max(seq);
    }

    /// Delivers the next segment in order, which ends at `end`.
    #[inline]
    pub const fn deliver(&mut self, end: u64) {
        self.rcv_nxt = end;
    }

    /// Accepts the payload of a segment, if it ends within a receive window of `window` bytes, or
    /// is the next one and there are no holes. Returns its position, and `true` if all of its data
    /// had arrived before.
    pub fn accept(&mut self, segment: &Segment, window: u64) -> (Arrival, bool) {
        if self.is_next(segment.seq) {
            self.deliver(segment.end());
            return (Arrival::InOrder, false);
        }
        // Departs from RFC 9293 § 3.10.7.4, which trims data beyond the window. Here such a segment
        // is refused whole; senders that respect the window never send one.
        let beyond = segment.end() > self.rcv_nxt + window;
        let old = segment.end() <= self.rcv_nxt;
        if beyond || segment.len == 0 || old {
            return (Arrival::Immediate, old && segment.len > 0);
        }
        let mut duplicate = false;
        if segment.seq > self.rcv_nxt {
            let (block, new) = self.out_of_order.insert(segment.seq, segment.end());
            duplicate = new == 0;
            self.move_to_front(block);
        } else {
            let filled_to =
                self.out_of_order.containing(segment.end()).map_or(segment.end(), |r| r.end);
            self.rcv_nxt = filled_to;
            self.out_of_order.remove_below(filled_to);
        }
        let arrival = if self.has_holes() { Arrival::BehindHole } else { Arrival::Immediate };
        (arrival, duplicate)
    }

    /// Moves `block` to the front of the recent blocks, in place of those within it.
    fn move_to_front(&mut self, block: Range) {
        for slot in &mut self.recent {
            if block.start <= slot.start && slot.end <= block.end {
                *slot = block;
            }
        }
        // Earlier entries move down by one; an older entry of the same block is overwritten.
        let mut displaced = block;
        for slot in &mut self.recent {
            core::mem::swap(slot, &mut displaced);
            if displaced == block {
                break;
            }
        }
    }

    /// `true` if a segment lies behind a hole, there are `count` SACK blocks, and the first `count`
    /// of them do not touch it.
    pub fn touches_no_block(&self, segment: &Segment, count: usize) -> bool {
        if segment.seq <= self.rcv_nxt {
            return false;
        }
        self.sack_blocks()[..count].iter().all(|block| {
            let (start, end) = (block.start(self.rcv_nxt), block.end(self.rcv_nxt));
            block.len > 0 && (segment.end() < start || end < segment.seq)
        })
    }

    /// Returns the most recently changed blocks as SACK blocks, each once, the newest first (RFC
    /// 2018 § 4).
    pub fn sack_blocks(&self) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        let mut n = 0;
        for (i, range) in self.recent.iter().enumerate() {
            // Skips blocks that were delivered since, empty slots, and repeated blocks.
            if range.start < self.rcv_nxt || range.end == 0 || self.recent[..i].contains(range) {
                continue;
            }
            blocks[n] = SackBlock::of(self.rcv_nxt, range.start, range.end);
            n += 1;
        }
        blocks
    }
}
