//! Undo of reductions after spurious losses: detection (RFC 3522, RFC 3708) and response (RFC 4015
//! § 3.4; Linux `tcp_undo_cwnd_reduction`).

use cwnd_cc::{AnyController, Controller as _};
use cwnd_quantity::Time;

use super::Sender;

impl Sender {
    /// Keeps the state before a reduction, whose first retransmission is sent at `at`.
    pub(super) fn save_undo_state(&mut self, at: Time) {
        let mut cc = self.cc.clone();
        if self.config.plan.undo.raises_ssthresh {
            // Linux `tcp_current_ssthresh` counts in whole segments.
            let segments = cc.window().cwnd / self.config.mss;
            cc.raise_threshold((segments / 2 + segments / 4) * self.config.mss);
        }
        // A tail loss probe in flight may arrive twice, too (Linux `tcp_init_undo`).
        let probe = self.loss.probe_is_retransmission();
        let in_flight = self.sent.retransmissions() + u64::from(probe);
        self.undo.save(at, cc, self.seq.una(), in_flight);
    }

    /// `true` if an ACK of new data may undo the last reduction.
    #[inline]
    pub(super) fn may_undo(&self) -> bool {
        !self.recovery.is_open() || self.undo.all_reported_by_dsack()
    }

    /// `true` if the timestamp echo identifies the transmission that an ACK acknowledges.
    pub(super) fn echo_identifies_transmission(&self) -> bool {
        let params = &self.config.params;
        params.rtt.timestamps && params.signature.timestamp_signature == 0
    }

    /// Undoes a reduction: restores the window, ends the recovery and clears the loss marks.
    pub(super) fn undo_reduction(&mut self, now: Time, before: Option<AnyController>) {
        self.undo_recovery(now, before);
        self.sent.undo(self.seq.una());
    }

    /// Restores the window and ends the recovery. Loss marks stay, as data sent after the recovery
    /// began may be lost (Linux `tcp_try_undo_recovery`, `tcp_try_undo_dsack`).
    pub(super) fn undo_recovery(&mut self, now: Time, before: Option<AnyController>) {
        self.restore_window(now, before);
        self.recovery.undo(0);
        self.seq.end_limited();
        self.loss.request_search();
    }

    /// Restores the window unless it has grown larger (Linux `tcp_reno_undo_cwnd`).
    pub(super) fn restore_window(&mut self, now: Time, before: Option<AnyController>) {
        let Some(cc) = before else { return };
        if cc.window().ssthresh > self.cc.window().ssthresh {
            // Linux `tcp_ecn_withdraw_cwr`.
            self.ecn.set_cwr(false);
        }
        self.cc.undo(cc, now, self.recovery.is_loss());
    }

    /// Undoes a reduction after D-SACK reported every retransmission (RFC 3708 § 3; Linux
    /// `tcp_try_undo_dsack`), whether or not the recovery is over. Returns `true` if that finds
    /// losses.
    #[cold]
    pub(super) fn undo_by_dsack(&mut self, now: Time) -> bool {
        if self.recovery.is_loss() {
            // While a timeout is repaired Linux undoes it with the next ACK of new data
            // (`tcp_process_loss`).
            return false;
        }
        let before = self.undo.take();
        self.undo_recovery(now, before);
        self.counters.undone += 1;
        self.loss.on_recovered(true);
        self.detect_by_time(now)
    }

    /// Keeps the state before the reduction of a fast recovery, if that may be undone.
    /// `is_on_its_way`: the first segment was retransmitted before, or a timeout is being repaired.
    pub(super) fn init_undo(&mut self, now: Time, is_on_its_way: bool) {
        // An earlier retransmission is no evidence for this recovery: at zero no echo is older.
        let tells = self.echo_identifies_transmission() && !is_on_its_way;
        let at = if tells { now } else { Time::ZERO };
        if self.config.plan.undo.recoveries {
            self.save_undo_state(at);
        }
    }

    /// Examines an ACK of new data during a recovery, by the timestamp `echo`. If it is older than
    /// the first retransmission, the original arrived late (RFC 3522 § 3.2, steps 4 to 6; Linux
    /// `tcp_packet_delayed`). Then the window is restored (RFC 4015 § 3.4;
    /// `tcp_undo_cwnd_reduction`), and RACK notes the reordering. All below `prior` was
    /// acknowledged before this ACK.
    #[cold]
    pub(super) fn try_undo(&mut self, now: Time, echo: Time, prior: u64) -> UndoVerdict {
        let needless = self.undo.all_reported_by_dsack();
        if needless && !self.recovery.is_loss() {
            let found = self.undo_by_dsack(now);
            return if found { UndoVerdict::Lost } else { UndoVerdict::Nothing };
        }
        if self.recovery.is_loss() {
            self.try_undo_timeout(now, echo, needless);
        }
        if !self.recovery.is_fast() {
            // After a recovery D-SACKs of all retransmissions undo it until the next reduction.
            return UndoVerdict::Nothing;
        }
        if !self.undo.precedes_retransmission(echo) {
            return UndoVerdict::Nothing;
        }
        // Reordering degree of a partial ACK (`tcp_try_undo_partial`). It is zero if the highest
        // SACKed segment begins below (`tcp_check_sack_reordering`), as after divided ACKs.
        let mss = self.config.mss;
        let partial = self.recovery.is_partial(self.seq.una());
        let degree = if partial {
            self.sent.top(self.seq.una() + mss).saturating_sub(mss + prior).div_ceil(mss)
        } else {
            1
        };
        let probed = self.loss.on_reordering(degree);
        self.sent.review_retransmissions(self.seq.una(), self.config.plan.lost_retransmission_rule);
        if partial && (probed || self.sent.retransmissions() > 0) {
            return UndoVerdict::Open;
        }
        let before = self.undo.take();
        if partial {
            self.undo_reduction(now, before);
        } else {
            self.undo_recovery(now, before);
        }
        self.counters.undone += 1;
        UndoVerdict::Nothing
    }
}

/// Result of [`Sender::try_undo`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UndoVerdict {
    Nothing,
    /// The undo found losses.
    Lost,
    /// The original arrived late, but retransmissions are still in flight: the recovery goes on
    /// until their fate is known, and this ACK finds no loss (Linux `tcp_try_undo_partial`).
    Open,
}
