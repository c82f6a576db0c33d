//! Loss recovery of Linux without SACK (tcp_input.c, `tcp_is_reno`): duplicate ACKs count as
//! segments that arrived.

use super::{LossRecovery, State};

impl LossRecovery {
    /// Duplicate ACKs that mean a loss: others than `dup_thresh`, once segments were seen to come
    /// late (`tp->reordering`).
    #[inline]
    pub fn duplicates_needed(&self, dup_thresh: u32) -> u32 {
        match self.most_late {
            0 => dup_thresh,
            late => u32::from(late),
        }
    }

    /// Duplicate ACKs for which limited transmit sends at most.
    pub const fn limited_duplicates(&self) -> u32 {
        match self.most_late {
            0 => 2,
            late => late as u32 - 1,
        }
    }

    /// Bytes that duplicate ACKs reported (`sacked_out`).
    pub fn reported_by_duplicates(&self, mss: u64) -> u64 {
        match &self.state {
            State::Fast(_) => self.inflated(),
            State::Open | State::Loss { .. } => u64::from(self.dupacks) * mss,
        }
    }

    /// An ACK acknowledged so many bytes, and leaves `outstanding`, of which duplicates may report
    /// `room`. If they reported more, segments were late (`tcp_remove_reno_sacks`,
    /// `tcp_check_reno_reordering`).
    pub fn on_ack_without_sack(&mut self, acked: u64, outstanding: u64, room: u64, mss: u64) {
        // One ACK is for the hole.
        let others = acked.saturating_sub(mss);
        let reported = self.reported_by_duplicates(mss).saturating_sub(others);
        if reported > room {
            self.most_late = segments(outstanding + acked, mss);
            if let State::Fast(r) = &mut self.state {
                r.inflation = r.inflation.min((room + others) as i64);
            }
        }
    }

    /// A duplicate ACK came, with SND.UNA at `una` and all up to `high` sent. Returns `true` if it
    /// counts: of more than there is `room` for the last does not, and segments were late. While a
    /// timeout is repaired it reports that what F-RTO sent has arrived (`tcp_process_loss`).
    pub fn take_duplicate(&mut self, una: u64, high: u64, room: u64, mss: u64) -> bool {
        let in_loss = match &self.state {
            // A state that is held counts none (`tcp_reset_reno_sack`).
            State::Loss { recover, .. } if high <= *recover || una >= *recover => return false,
            State::Fast(r) if una >= r.recover => return false,
            State::Loss { .. } => true,
            State::Open | State::Fast(_) => false,
        };
        let counts = self.reported_by_duplicates(mss) + mss <= room;
        if !counts {
            self.most_late = segments(high - una, mss);
        } else if in_loss {
            self.dupacks += 1;
        }
        counts
    }

    /// A state that is held keeps so many duplicate ACKs. Returns `false` if none is held.
    pub const fn hold(&mut self, dupacks: u32) -> bool {
        let held = self.is_loss();
        if held {
            self.dupacks = dupacks;
        }
        held
    }

    /// The original came late of a segment whose recovery is not over, with so many `late` bytes
    /// acknowledged: what duplicates reported stays reported (`tcp_try_undo_partial`).
    pub fn undo_partial(&mut self, late: u64, mss: u64, dup_thresh: u32) {
        self.dupacks = (self.inflated() / mss) as u32;
        // `tcp_check_sack_reordering`: what arrived above the ACK is not known.
        let late = segments(late, mss);
        if u32::from(late) > self.duplicates_needed(dup_thresh) {
            self.most_late = late;
        }
        self.state = State::Open;
    }
}

/// So many bytes as segments, as far as they are counted.
fn segments(bytes: u64, mss: u64) -> u8 {
    u8::try_from(bytes.div_ceil(mss)).unwrap_or(u8::MAX)
}
