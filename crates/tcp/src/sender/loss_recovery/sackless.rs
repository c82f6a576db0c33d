//! State of loss recovery without SACK, where duplicate ACKs count as segments that arrived (Linux
//! tcp_input.c, `tcp_is_reno`).

use super::{LossRecovery, State};

impl LossRecovery {
    /// Number of duplicate ACKs that indicate a loss: `dup_thresh`, or the reordering degree once
    /// segments were seen to arrive late (`tp->reordering`).
    #[inline]
    pub fn duplicates_needed(&self, dup_thresh: u32) -> u32 {
        match self.reordering {
            0 => dup_thresh,
            late => u32::from(late),
        }
    }

    /// Maximum number of duplicate ACKs that trigger limited transmit.
    pub const fn limited_duplicates(&self) -> u32 {
        match self.reordering {
            0 => 2,
            late => late as u32 - 1,
        }
    }

    /// Bytes that duplicate ACKs reported as arrived (`sacked_out`).
    pub fn reported_by_duplicates(&self, mss: u64) -> u64 {
        match &self.state {
            State::Fast(_) => self.inflated(),
            State::Open | State::Loss { .. } => u64::from(self.dupacks) * mss,
        }
    }

    /// Updates the reordering degree after an ACK of `acked` bytes that leaves `outstanding`, of
    /// which duplicate ACKs may report `room`. If they reported more, segments arrived late
    /// (`tcp_remove_reno_sacks`, `tcp_check_reno_reordering`).
    pub fn on_ack_without_sack(&mut self, acked: u64, outstanding: u64, room: u64, mss: u64) {
        // The hole was not reported by a duplicate ACK.
        let others = acked.saturating_sub(mss);
        let reported = self.reported_by_duplicates(mss).saturating_sub(others);
        if reported > room {
            self.reordering = segments(outstanding + acked, mss);
            if let State::Fast(r) = &mut self.state {
                r.inflation = r.inflation.min((room + others) as i64);
            }
        }
    }

    /// Processes a duplicate ACK, with SND.UNA at `una` and SND.MAX at `high`. Returns `true` if it
    /// counts. If it exceeds `room` it does not, and segments arrived late. While a timeout is
    /// repaired it reports that data sent by F-RTO has arrived (`tcp_process_loss`).
    pub fn take_duplicate(&mut self, una: u64, high: u64, room: u64, mss: u64) -> bool {
        let in_loss = match &self.state {
            // A held state counts no duplicate ACKs (`tcp_reset_reno_sack`).
            State::Loss { recover, .. } if high <= *recover || una >= *recover => return false,
            State::Fast(r) if una >= r.recover => return false,
            State::Loss { .. } => true,
            State::Open | State::Fast(_) => false,
        };
        let counts = self.reported_by_duplicates(mss) + mss <= room;
        if !counts {
            self.reordering = segments(high - una, mss);
        } else if in_loss {
            self.dupacks += 1;
        }
        counts
    }

    /// Keeps `dupacks` duplicate ACKs in a held loss state. Returns `false` if none is held.
    pub const fn hold(&mut self, dupacks: u32) -> bool {
        let held = self.is_loss();
        if held {
            self.dupacks = dupacks;
        }
        held
    }

    /// Ends fast recovery after a late original in its middle, with `late` bytes acknowledged.
    /// Segments that duplicate ACKs reported stay counted (`tcp_try_undo_partial`).
    pub fn undo_partial(&mut self, late: u64, mss: u64, dup_thresh: u32) {
        self.dupacks = (self.inflated() / mss) as u32;
        // `tcp_check_sack_reordering`: without SACK it is unknown what arrived above the ACK.
        let late = segments(late, mss);
        if u32::from(late) > self.duplicates_needed(dup_thresh) {
            self.reordering = late;
        }
        self.state = State::Open;
    }
}

/// Number of segments of `bytes`, at most 255.
fn segments(bytes: u64, mss: u64) -> u8 {
    u8::try_from(bytes.div_ceil(mss)).unwrap_or(u8::MAX)
}
