//! Loss handling of Linux where the other end has no SACK and `loss_rule` is `rack` (tcp_input.c,
//! `tcp_is_reno`): duplicate ACKs are counted as segments that arrived, and a timeout marks what it
//! takes for lost, in place of going back, so that new data may go before that.

use super::{FastRecovery, Sender, State};
use crate::params::Recovery;
use crate::segment::SackBlocks;
use cwnd_quantity::Time;

impl Sender {
    /// `true` if losses are marked though there is no SACK.
    pub(super) fn marks_without_sack(&self) -> bool {
        self.by_time && self.config.params.recovery == Recovery::NewReno
    }

    /// The same, and a timeout has marked some.
    pub(super) fn has_marked_without_sack(&self) -> bool {
        matches!(self.recovery, State::Loss { .. }) && self.marks_without_sack()
    }

    /// `true` if a reduction is spread though there is no SACK.
    pub(super) fn spreads_without_sack(&self) -> bool {
        self.config.params.prr && self.config.params.recovery == Recovery::NewReno
    }

    /// Then Linux holds a state until so much more is acknowledged than was outstanding, with all
    /// up to `una` acknowledged, also where nothing is (RFC 6582 § 4.1;
    /// `tcp_is_non_sack_preventing_reopen`).
    pub(super) fn held_above(&self, una: u64) -> u64 {
        u64::from(self.spreads_without_sack() && (self.by_time || una < self.seq.high()))
    }

    /// Nothing is outstanding, and probes go before anything could end a state that is held.
    pub(super) fn end_held_state(&mut self) {
        if let State::Recovery(FastRecovery { recover, .. }) | State::Loss { recover, .. } =
            self.recovery
        {
            self.last_recover = Some(recover);
            self.recovery = State::Open;
        }
    }

    /// `true` if the hole that an ACK told of waits to go again.
    pub(super) const fn hole_waits(&self) -> bool {
        matches!(&self.recovery, State::Recovery(r) if r.retransmit_now)
    }

    /// Bytes in flight after a timeout.
    #[cold]
    pub(super) fn marked_in_flight(&self) -> u64 {
        let arrived = u64::from(self.dupacks) * self.config.mss;
        self.sent.pipe(self.seq.una(), self.seq.nxt()).saturating_sub(arrived)
    }

    /// Duplicate ACKs that mean a loss: others, once segments were seen to come late
    /// (`tp->reordering`).
    pub(super) fn duplicates_needed(&self) -> u32 {
        match self.most_late {
            0 => self.config.params.dup_thresh,
            late => u32::from(late),
        }
    }

    /// Bytes that duplicate ACKs told of (`sacked_out`).
    fn told_by_duplicates(&self) -> u64 {
        match &self.recovery {
            State::Recovery(r) => r.inflation.max(0).unsigned_abs(),
            State::Open | State::Loss { .. } => u64::from(self.dupacks) * self.config.mss,
        }
    }

    /// So much of what is outstanding may be told of by duplicates: all but what is lost.
    fn room_for_duplicates(&self, outstanding: u64) -> u64 {
        let mss = self.config.mss;
        let lost = match self.recovery {
            State::Loss { .. } => self.sent.lost_bytes(self.seq.una()),
            State::Open | State::Recovery(_) => mss,
        };
        outstanding.saturating_sub(lost.max(mss))
    }

    /// An ACK acknowledged so many bytes. If more duplicates came than that leaves room for,
    /// segments were late (`tcp_remove_reno_sacks`, `tcp_check_reno_reordering`).
    #[cold]
    pub(super) fn take_ack_without_sack(&mut self, acked: u64) {
        if matches!(self.recovery, State::Loss { .. }) {
            self.sent.on_ack(self.seq.una());
        }
        let (mss, outstanding) = (self.config.mss, self.seq.outstanding());
        // One ACK is for the hole.
        let others = acked.saturating_sub(mss);
        let told = self.told_by_duplicates().saturating_sub(others);
        let room = self.room_for_duplicates(outstanding);
        if told > room {
            self.most_late = segments(outstanding + acked, mss);
            if let State::Recovery(r) = &mut self.recovery {
                r.inflation = r.inflation.min((room + others) as i64);
            }
        }
    }

    /// An ACK of so many bytes ended what a timeout began, and by duplicates so many segments had
    /// arrived above. Where the state is held they stay told; else they are a loss, if they are
    /// enough (Linux, `tcp_process_loss`, `tcp_newreno_mark_lost`).
    #[cold]
    pub(super) fn on_end_of_loss(&mut self, now: Time, acked: u64, told: u32) {
        // One of those acknowledged was the hole.
        let others = (acked / self.config.mss).saturating_sub(1);
        let left = told.saturating_sub(u32::try_from(others).unwrap_or(u32::MAX));
        if matches!(self.recovery, State::Loss { .. }) {
            self.dupacks = left;
        } else if left >= self.duplicates_needed() && self.seq.una() < self.seq.high() {
            self.enter_recovery(now);
        }
    }

    /// A duplicate ACK came: whether it counts. Of more than there is room for the last does not,
    /// and segments were late. While a timeout is repaired it tells that what F-RTO sent has
    /// arrived (`tcp_process_loss`).
    #[cold]
    pub(super) fn take_duplicate_without_sack(&mut self, now: Time) -> bool {
        let (mss, outstanding) = (self.config.mss, self.seq.outstanding());
        if self.is_in_frto() {
            self.on_ack_in_frto(now, 0, true, (&SackBlocks::default(), self.seq.una()));
        }
        let in_loss = match self.recovery {
            // A state that is held counts none (`tcp_reset_reno_sack`).
            State::Loss { recover, .. }
                if self.seq.high() <= recover || self.seq.una() >= recover =>
            {
                return false;
            }
            State::Recovery(FastRecovery { recover, .. }) if self.seq.una() >= recover => {
                return false;
            }
            State::Loss { .. } => true,
            State::Open | State::Recovery(_) => false,
        };
        let counts = self.told_by_duplicates() + mss <= self.room_for_duplicates(outstanding);
        if !counts {
            self.most_late = segments(outstanding, mss);
        } else if in_loss {
            self.dupacks += 1;
        }
        counts
    }

    /// An ACK of new data came whose echo is older than the first retransmission (RFC 3522;
    /// `tcp_packet_delayed`).
    #[cold]
    pub(super) fn is_late_original(&mut self, echo: Time) -> bool {
        let (una, tells) = (self.seq.una(), self.echoes_tell());
        let recover = match &self.recovery {
            State::Open => {
                // Echoes alone tell without SACK, and they are over with the recovery.
                self.undo = None;
                return false;
            }
            State::Recovery(r) => r.recover,
            State::Loss { .. } if !self.config.params.spurious.timeout_eifel => return false,
            State::Loss { recover, .. } => *recover,
        };
        let Some(before) = &mut self.undo else { return false };
        let late = tells && before.is_younger_than(echo);
        if una == recover {
            // The state is held, and `retrans_stamp` is not.
            before.end_of_echoes();
        }
        late
    }

    /// Nothing was lost: the window is again as it was (RFC 4015 § 3.2). Where a part is still
    /// missing the recovery is over, and what duplicates told of stays told: if that is enough, the
    /// next recovery begins at once (`tcp_try_undo_partial`). After a timeout the state goes on
    /// with nothing to repair (`tcp_try_undo_loss`). Before the ACK all below `prior` had
    /// arrived.
    #[cold]
    pub(super) fn take_back_late(&mut self, now: Time, prior: u64) {
        let before = self.undo.take();
        self.take_back_window(now, before);
        let mss = self.config.mss;
        match &self.recovery {
            State::Recovery(r) if self.seq.una() < r.recover => {
                self.dupacks = (r.inflation.max(0).unsigned_abs() / mss) as u32;
                // `tcp_check_sack_reordering`: what arrived above the ACK is not known.
                let late = segments(self.seq.una() - prior, mss);
                if u32::from(late) > self.duplicates_needed() {
                    self.most_late = late;
                }
                self.seq.end_limited();
                self.recovery = State::Open;
                self.counters.undone += 1;
                if self.dupacks >= self.duplicates_needed() {
                    self.enter_recovery(now);
                }
            }
            State::Loss { .. } => {
                self.sent.undo(self.seq.una());
                self.rto.end_expiries();
                self.counters.timeouts_undone += 1;
            }
            State::Open | State::Recovery(_) => self.counters.undone += 1,
        }
    }
}

/// So many bytes as segments, as far as they are counted.
fn segments(bytes: u64, mss: u64) -> u8 {
    u8::try_from(bytes.div_ceil(mss)).unwrap_or(u8::MAX)
}
