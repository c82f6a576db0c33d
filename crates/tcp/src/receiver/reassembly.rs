//! Reassembly of data that arrives out of order, and the SACK blocks that report it (RFC 2018).

use cwnd_packet::{Range, Ranges};

use crate::segment::{MAX_SACK_BLOCKS, SackBlock, SackBlocks, Segment};

/// Data that arrived.
// What each segment reads comes first: `READ_BYTES`.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct Reassembly {
    /// Next byte expected.
    rcv_nxt: u64,
    out_of_order: Ranges,
    /// The most recently changed blocks, newest first (RFC 2018 § 4). Once two have become one it
    /// stands here twice.
    recent: [Range; MAX_SACK_BLOCKS],
}

/// Place of a segment. RFC 5681 § 4.2 wants an ACK at once for all but the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// As it should.
    InOrder,
    /// Behind a hole, or it filled one and another is left.
    BehindHole,
    /// It filled the last hole, or brought nothing.
    Else,
}

impl Default for Reassembly {
    fn default() -> Self {
        let recent = [Range { start: 0, end: 0 }; MAX_SACK_BLOCKS];
        Self { rcv_nxt: 0, out_of_order: Ranges::default(), recent }
    }
}

impl Reassembly {
    /// Bytes that each segment reads.
    pub const READ_BYTES: usize = core::mem::offset_of!(Self, recent);

    /// Prefetches what it points to.
    #[inline]
    pub fn soon(&self) {
        self.out_of_order.soon();
    }

    /// Next byte expected.
    #[inline]
    pub const fn rcv_nxt(&self) -> u64 {
        self.rcv_nxt
    }

    /// `true` if a segment that begins there is the next one, and none is missing.
    #[inline]
    pub fn is_next(&self, seq: u64) -> bool {
        seq == self.rcv_nxt && self.out_of_order.is_empty()
    }

    /// `true` if something is missing.
    #[inline]
    pub fn has_holes(&self) -> bool {
        !self.out_of_order.is_empty()
    }

    /// Data behind holes.
    pub const fn out_of_order(&self) -> &Ranges {
        &self.out_of_order
    }

    /// One past the highest byte that arrived.
    pub fn highest(&self) -> u64 {
        self.out_of_order.highest().map_or(self.rcv_nxt, |range| range.end)
    }

    /// Takes what is missing below `seq` for arrived.
    pub fn pass_over(&mut self, seq: u64) {
        self.rcv_nxt = self.rcv_nxt.max(seq);
    }

    /// The next segment came in order, which ends at `end`.
    #[inline]
    pub const fn deliver(&mut self, end: u64) {
        self.rcv_nxt = end;
    }

    /// Takes the payload of a segment in, within a receive window of so many bytes unless it is the
    /// next one. Returns `true` with its place if all of its data had arrived before.
    pub fn accept(&mut self, segment: &Segment, window: u64) -> (Arrival, bool) {
        if self.is_next(segment.seq) {
            self.deliver(segment.end());
            return (Arrival::InOrder, false);
        }
        // Departs from RFC 9293 § 3.10.7.4, which trims what reaches beyond the window: a sender
        // that keeps to the window never sends it, and it is refused whole.
        let beyond = segment.end() > self.rcv_nxt + window;
        let old = segment.end() <= self.rcv_nxt;
        if beyond || segment.len == 0 || old {
            return (Arrival::Else, old && segment.len > 0);
        }
        let mut duplicate = false;
        if segment.seq > self.rcv_nxt {
            let (block, new) = self.out_of_order.insert(segment.seq, segment.end());
            duplicate = new == 0;
            self.remember(block);
        } else {
            let filled_to =
                self.out_of_order.containing(segment.end()).map_or(segment.end(), |r| r.end);
            self.rcv_nxt = filled_to;
            self.out_of_order.remove_below(filled_to);
        }
        let arrival = if self.has_holes() { Arrival::BehindHole } else { Arrival::Else };
        (arrival, duplicate)
    }

    /// `block` becomes the most recent one.
    fn remember(&mut self, block: Range) {
        for slot in &mut self.recent {
            if block.start <= slot.start && slot.end <= block.end {
                *slot = block;
            }
        }
        // What was first moves down; an older entry of the same block falls out.
        let mut carried = block;
        for slot in &mut self.recent {
            core::mem::swap(slot, &mut carried);
            if carried == block {
                break;
            }
        }
    }

    /// `true` if a segment lies behind a hole and the first `count` blocks are there and do not
    /// reach it.
    pub fn is_apart(&self, segment: &Segment, count: usize) -> bool {
        if segment.seq <= self.rcv_nxt {
            return false;
        }
        self.sack_blocks()[..count].iter().all(|block| {
            let (start, end) = (block.start(self.rcv_nxt), block.end(self.rcv_nxt));
            block.len > 0 && (segment.end() < start || end < segment.seq)
        })
    }

    /// The most recently changed blocks, each once, the newest first (RFC 2018 § 4).
    pub fn sack_blocks(&self) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        let mut n = 0;
        for (i, range) in self.recent.iter().enumerate() {
            // Most of it was delivered since, or it is there.
            if range.start < self.rcv_nxt || range.end == 0 || self.recent[..i].contains(range) {
                continue;
            }
            blocks[n] = SackBlock::of(self.rcv_nxt, range.start, range.end);
            n += 1;
        }
        blocks
    }
}
