//! Loss handling without SACK beyond RFC 6582 (`SacklessPlan`; Linux tcp_input.c, `tcp_is_reno`).
//! Duplicate ACKs count as segments that arrived. A timeout marks segments lost in place of going
//! back, so that new data may be sent before their retransmissions.

use super::Sender;
use crate::params::Recovery;
use crate::segment::SackBlocks;
use cwnd_quantity::Time;

impl Sender {
    /// `true` if segments are marked lost although there is no SACK
    /// ([`crate::config::SacklessPlan::marks_losses`]).
    pub(super) fn marks_without_sack(&self) -> bool {
        self.config.plan.sackless.marks_losses
    }

    /// `true` while a timeout's marks without SACK are repaired.
    pub(super) fn has_marked_without_sack(&self) -> bool {
        self.recovery.is_loss() && self.marks_without_sack()
    }

    /// `true` if proportional rate reduction is used without SACK.
    pub(super) fn spreads_without_sack(&self) -> bool {
        self.config.params.prr.prr && self.config.params.recovery.recovery == Recovery::NewReno
    }

    /// Bytes that must be acknowledged above the recovery point before a recovery ends, 0 or 1,
    /// with all below `una` acknowledged (RFC 6582 § 3.2 (2); Linux
    /// `tcp_is_non_sack_preventing_reopen`).
    pub(super) fn held_above(&self, una: u64) -> u64 {
        let holds_when_idle = self.config.plan.sackless.holds_when_idle;
        u64::from(self.spreads_without_sack() && (holds_when_idle || una < self.seq.high()))
    }

    /// Bytes in flight while the marks of a timeout are repaired: the pipe less the segments that
    /// duplicate ACKs report.
    #[cold]
    pub(super) fn marked_in_flight(&self) -> u64 {
        let arrived = u64::from(self.recovery.dupacks()) * self.config.mss;
        self.sent.pipe(self.seq.una(), self.seq.nxt()).saturating_sub(arrived)
    }

    /// Number of duplicate ACKs that indicate a loss.
    pub(super) fn duplicates_needed(&self) -> u32 {
        self.recovery.duplicates_needed(self.config.params.detection.dup_thresh)
    }

    /// Bytes that duplicate ACKs may report as arrived: `outstanding` less what is lost, which is
    /// at least one segment.
    fn room_for_duplicates(&self, outstanding: u64) -> u64 {
        let mss = self.config.mss;
        let is_loss = self.recovery.is_loss();
        let lost = if is_loss { self.sent.lost_bytes(self.seq.una()) } else { mss };
        outstanding.saturating_sub(lost.max(mss))
    }

    /// Updates the marks and the duplicate ACKs counted as arrivals, after an ACK of `acked` bytes.
    #[cold]
    pub(super) fn take_ack_without_sack(&mut self, acked: u64) {
        if self.recovery.is_loss() {
            self.sent.on_ack(self.seq.una(), None);
        }
        let outstanding = self.seq.outstanding();
        let room = self.room_for_duplicates(outstanding);
        self.recovery.on_ack_without_sack(acked, outstanding, room, self.config.mss);
    }

    /// Ends the repair of a timeout, by an ACK of `acked` bytes, after which `duplicates` duplicate
    /// ACKs had reported segments above. They stay counted if the state is held. Otherwise they
    /// begin a fast recovery if there are enough (Linux `tcp_process_loss`,
    /// `tcp_newreno_mark_lost`).
    #[cold]
    pub(super) fn on_end_of_loss(&mut self, now: Time, acked: u64, duplicates: u32) {
        // One of the acknowledged segments was the hole, which no duplicate ACK reported.
        let others = (acked / self.config.mss).saturating_sub(1);
        let left = duplicates.saturating_sub(u32::try_from(others).unwrap_or(u32::MAX));
        if !self.recovery.hold(left)
            && left >= self.duplicates_needed()
            && self.seq.una() < self.seq.high()
        {
            self.enter_recovery(now);
        }
    }

    /// Processes a duplicate ACK. Returns `true` if it counts.
    #[cold]
    pub(super) fn take_duplicate_without_sack(&mut self, now: Time) -> bool {
        if self.recovery.is_in_frto() {
            self.on_ack_in_frto(now, 0, true, (&SackBlocks::default(), self.seq.una()));
        }
        let room = self.room_for_duplicates(self.seq.outstanding());
        self.recovery.take_duplicate(self.seq.una(), self.seq.high(), room, self.config.mss)
    }

    /// `true` if an ACK of new data echoes a timestamp older than the first retransmission: the
    /// original arrived late (RFC 3522; Linux `tcp_packet_delayed`).
    #[cold]
    pub(super) fn is_late_original(&mut self, echo: Time) -> bool {
        let (una, tells) = (self.seq.una(), self.echo_identifies_transmission());
        let Some(recover) = self.recovery.recover() else {
            // Without SACK only echoes give evidence, and that ends with the recovery.
            self.undo.forget();
            return false;
        };
        if self.recovery.is_loss() && !self.config.params.spurious.timeout_eifel {
            return false;
        }
        let late = tells && self.undo.precedes_retransmission(echo);
        if una == recover {
            // Linux clears `retrans_stamp` while the state is held, so later echoes give no
            // evidence.
            self.undo.ignore_echoes();
        }
        late
    }

    /// Undoes the reduction after a late original (RFC 4015 § 3.4). In fast recovery a partial ACK
    /// ends the recovery and keeps the duplicate ACKs, which begin the next at once if there are
    /// enough (`tcp_try_undo_partial`). After a timeout the state goes on with nothing to repair
    /// (`tcp_try_undo_loss`). All below `prior` was acknowledged before this ACK.
    #[cold]
    pub(super) fn undo_by_late_original(&mut self, now: Time, prior: u64) {
        let before = self.undo.take();
        self.restore_window(now, before);
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
