//! Loss handling of Linux where the other end has no SACK and `loss_rule` is `rack` (tcp_input.c,
//! `tcp_is_reno`): duplicate ACKs are counted as segments that arrived, and a timeout marks what it
//! takes for lost, in place of going back, so that new data may go before that.

use super::Sender;
use crate::params::Recovery;
use crate::segment::SackBlocks;
use cwnd_quantity::Time;

impl Sender {
    /// `true` if losses are marked though there is no SACK.
    pub(super) fn marks_without_sack(&self) -> bool {
        self.config.plan.sackless.marks_losses
    }

    /// The same, and a timeout has marked some.
    pub(super) fn has_marked_without_sack(&self) -> bool {
        self.recovery.is_loss() && self.marks_without_sack()
    }

    /// `true` if a reduction is spread though there is no SACK.
    pub(super) fn spreads_without_sack(&self) -> bool {
        self.config.params.prr.prr && self.config.params.recovery.recovery == Recovery::NewReno
    }

    /// Then Linux holds a state until so much more is acknowledged than was outstanding, with all
    /// up to `una` acknowledged, also where nothing is (RFC 6582 § 3.2 (2);
    /// `tcp_is_non_sack_preventing_reopen`).
    pub(super) fn held_above(&self, una: u64) -> u64 {
        let holds_when_idle = self.config.plan.sackless.holds_when_idle;
        u64::from(self.spreads_without_sack() && (holds_when_idle || una < self.seq.high()))
    }

    /// Bytes in flight after a timeout.
    #[cold]
    pub(super) fn marked_in_flight(&self) -> u64 {
        let arrived = u64::from(self.recovery.dupacks()) * self.config.mss;
        self.sent.pipe(self.seq.una(), self.seq.nxt()).saturating_sub(arrived)
    }

    /// Duplicate ACKs that mean a loss.
    pub(super) fn duplicates_needed(&self) -> u32 {
        self.recovery.duplicates_needed(self.config.params.detection.dup_thresh)
    }

    /// So much of what is outstanding may be told of by duplicates: all but what is lost.
    fn room_for_duplicates(&self, outstanding: u64) -> u64 {
        let mss = self.config.mss;
        let is_loss = self.recovery.is_loss();
        let lost = if is_loss { self.sent.lost_bytes(self.seq.una()) } else { mss };
        outstanding.saturating_sub(lost.max(mss))
    }

    /// An ACK acknowledged so many bytes.
    #[cold]
    pub(super) fn take_ack_without_sack(&mut self, acked: u64) {
        if self.recovery.is_loss() {
            self.sent.on_ack(self.seq.una(), None);
        }
        let outstanding = self.seq.outstanding();
        let room = self.room_for_duplicates(outstanding);
        self.recovery.on_ack_without_sack(acked, outstanding, room, self.config.mss);
    }

    /// An ACK of so many bytes ended what a timeout began, and by duplicates so many segments had
    /// arrived above. Where the state is held they stay told; else they are a loss, if they are
    /// enough (Linux, `tcp_process_loss`, `tcp_newreno_mark_lost`).
    #[cold]
    pub(super) fn on_end_of_loss(&mut self, now: Time, acked: u64, told: u32) {
        // One of those acknowledged was the hole.
        let others = (acked / self.config.mss).saturating_sub(1);
        let left = told.saturating_sub(u32::try_from(others).unwrap_or(u32::MAX));
        if !self.recovery.hold(left)
            && left >= self.duplicates_needed()
            && self.seq.una() < self.seq.high()
        {
            self.enter_recovery(now);
        }
    }

    /// A duplicate ACK came. Returns `true` if it counts.
    #[cold]
    pub(super) fn take_duplicate_without_sack(&mut self, now: Time) -> bool {
        if self.recovery.is_in_frto() {
            self.on_ack_in_frto(now, 0, true, (&SackBlocks::default(), self.seq.una()));
        }
        let room = self.room_for_duplicates(self.seq.outstanding());
        self.recovery.take_duplicate(self.seq.una(), self.seq.high(), room, self.config.mss)
    }

    /// An ACK of new data came whose echo is older than the first retransmission (RFC 3522;
    /// `tcp_packet_delayed`).
    #[cold]
    pub(super) fn is_late_original(&mut self, echo: Time) -> bool {
        let (una, tells) = (self.seq.una(), self.echoes_tell());
        let Some(recover) = self.recovery.recover() else {
            // Echoes alone tell without SACK, and they are over with the recovery.
            self.undo.forget();
            return false;
        };
        if self.recovery.is_loss() && !self.config.params.spurious.timeout_eifel {
            return false;
        }
        let late = tells && self.undo.is_younger_than(echo);
        if una == recover {
            // The state is held, and `retrans_stamp` is not.
            self.undo.end_of_echoes();
        }
        late
    }

    /// Nothing was lost: the window is again as it was (RFC 4015 § 3.4). Where a part is still
    /// missing the recovery is over, and what duplicates told of stays told: if that is enough, the
    /// next recovery begins at once (`tcp_try_undo_partial`). After a timeout the state goes on
    /// with nothing to repair (`tcp_try_undo_loss`). Before the ACK all below `prior` had
    /// arrived.
    #[cold]
    pub(super) fn take_back_late(&mut self, now: Time, prior: u64) {
        let before = self.undo.take();
        self.take_back_window(now, before);
        let (una, params) = (self.seq.una(), &self.config.params);
        if self.recovery.is_loss() {
            self.sent.undo(una);
            self.rto.end_expiries();
            self.counters.timeouts_undone += 1;
            return;
        }
        self.counters.undone += 1;
        if self.recovery.is_partial(una) {
            self.recovery.undo_partial(una - prior, self.config.mss, params.detection.dup_thresh);
            self.seq.end_limited();
            if self.recovery.dupacks() >= self.duplicates_needed() {
                self.enter_recovery(now);
            }
        }
    }
}
