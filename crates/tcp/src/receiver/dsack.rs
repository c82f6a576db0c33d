//! D-SACK: duplicate data and the SACK block that reports it (RFC 2883).

use cwnd_packet::{Range, Ranges};

use crate::segment::{SackBlock, SackBlocks, Segment};

/// Duplicate data that the next ACK reports.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Dsack {
    /// The last duplicate range received since the last ACK.
    duplicate: Option<Range>,
}

impl Dsack {
    /// Finds the first part of a segment that was received before; called before the segment is
    /// accepted.
    pub fn on_segment(&mut self, segment: &Segment, rcv_nxt: u64, out_of_order: &Ranges) {
        let (start, end) = (segment.seq, segment.end());
        let duplicate = if start < rcv_nxt {
            // All below the next byte expected was received (RFC 2883 § 4.1).
            start..end.min(rcv_nxt)
        } else {
            match out_of_order.hole_from(start, end) {
                None => start..end,
                Some(hole) if hole.start > start => start..hole.start,
                // The segment begins with new data: the duplicate part behind it is reported (RFC
                // 2883 § 4.2).
                Some(hole) => {
                    let next = out_of_order.hole_from(hole.end, end);
                    hole.end..next.map_or(end, |next| next.start)
                }
            }
        };
        if duplicate.start < duplicate.end {
            self.duplicate = Some(Range { start: duplicate.start, end: duplicate.end });
        }
    }

    /// Inserts the duplicate range as the first SACK block of an ACK of all below `ack`, once (RFC
    /// 2883 § 4).
    pub fn report(&mut self, ack: u64, blocks: &mut SackBlocks) {
        if let Some(Range { start, end }) = self.duplicate.take() {
            blocks.rotate_right(1);
            blocks[0] = SackBlock::of(ack, start, end);
        }
    }
}
