//! Reductions for losses that were none: how they are seen (RFC 3522, RFC 3708), and taken back
//! (RFC 4015 § 3.4; Linux `tcp_undo_cwnd_reduction`).

use cwnd_cc::{AnyController, Controller as _};
use cwnd_quantity::Time;

use super::Sender;

impl Sender {
    /// Keeps the state before a reduction, where the first retransmission goes at `at`.
    pub(super) fn remember_state(&mut self, at: Time) {
        let mut cc = self.cc.clone();
        if self.config.plan.undo.raises_ssthresh {
            // Linux `tcp_current_ssthresh` counts in whole segments.
            let segments = cc.window().cwnd / self.config.mss;
            cc.raise_threshold((segments / 2 + segments / 4) * self.config.mss);
        }
        // A probe of the tail may arrive twice, too (`tcp_init_undo`).
        let probe = self.loss.probe_repeats();
        let under_way = self.sent.resent() + u64::from(probe);
        self.undo.remember(at, cc, self.seq.una(), under_way);
    }

    /// `true` if an ACK of new data may take the last reduction back.
    #[inline]
    pub(super) fn is_judged(&self) -> bool {
        !self.recovery.is_open() || self.undo.all_arrived()
    }

    /// `true` if echoes tell which transmission an ACK is for.
    pub(super) fn echoes_tell(&self) -> bool {
        let params = &self.config.params;
        params.rtt.timestamps && params.signature.timestamp_signature == 0
    }

    /// Nothing was lost: the window is again as it was, and so is what is outstanding.
    pub(super) fn take_back(&mut self, now: Time, before: Option<AnyController>) {
        self.take_recovery_back(now, before);
        self.sent.undo(self.seq.una());
    }

    /// The window is again as it was, and nothing is repaired any more. What is lost stays so, as
    /// what went after the recovery began may be (Linux `tcp_try_undo_recovery`,
    /// `tcp_try_undo_dsack`).
    pub(super) fn take_recovery_back(&mut self, now: Time, before: Option<AnyController>) {
        self.take_back_window(now, before);
        self.recovery.undo(0);
        self.seq.end_limited();
        self.loss.look();
    }

    /// The window is again as it was, unless it is larger by now (Linux, `tcp_reno_undo_cwnd`).
    pub(super) fn take_back_window(&mut self, now: Time, before: Option<AnyController>) {
        let Some(cc) = before else { return };
        if cc.window().ssthresh > self.cc.window().ssthresh {
            // Linux `tcp_ecn_withdraw_cwr`.
            self.ecn.set_cwr(false);
        }
        self.cc.undo(cc, now, self.recovery.is_loss());
    }

    /// All that went again had arrived: nothing was lost (RFC 3708 § 3; Linux,
    /// `tcp_try_undo_dsack`), whether the recovery is over or not.
    #[cold]
    pub(super) fn take_back_needless(&mut self, now: Time) -> bool {
        if self.recovery.is_loss() {
            // With the next progress (`tcp_process_loss`).
            return false;
        }
        let before = self.undo.take();
        self.take_recovery_back(now, before);
        self.counters.undone += 1;
        self.loss.on_recovered(true);
        self.detect_by_time(now)
    }

    /// A recovery begins, and its first segment goes again, or is on its way again: what to come
    /// back to if that arrives all the same.
    pub(super) fn remember(&mut self, now: Time, is_on_its_way: bool) {
        // What went again before tells nothing of this recovery: at zero no echo is older.
        let tells = self.echoes_tell() && !is_on_its_way;
        let at = if tells { now } else { Time::ZERO };
        if self.config.plan.undo.recoveries {
            self.remember_state(at);
        }
    }

    /// The first ACK of a recovery that acknowledges new data, with the timestamp that it echoes:
    /// if what let it go is older than the retransmission, the original came late (RFC 3522 § 3.2,
    /// steps 4 to 6; Linux `tcp_packet_delayed`). Then the window is again as it was (RFC 4015 §
    /// 3.4; `tcp_undo_cwnd_reduction`), and from now on what is missing has time. Before the ACK
    /// all below `prior` had arrived.
    #[cold]
    pub(super) fn judge(&mut self, now: Time, echo: Time, prior: u64) -> Judged {
        let needless = self.undo.all_arrived();
        if needless && !self.recovery.is_loss() {
            let found = self.take_back_needless(now);
            return if found { Judged::Lost } else { Judged::Nothing };
        }
        if self.recovery.is_loss() {
            self.judge_timeout(now, echo, needless);
        }
        if !self.recovery.is_fast() {
            // Once a recovery is over duplicates of all that went again take it back until the next
            // reduction.
            return Judged::Nothing;
        }
        if !self.undo.is_younger_than(echo) {
            return Judged::Nothing;
        }
        // How late it was, while a part is still missing (`tcp_try_undo_partial`); nothing, if the
        // highest SACKed segment begins below (`tcp_check_sack_reordering`), as after divided ACKs.
        let mss = self.config.mss;
        let partial = self.recovery.is_partial(self.seq.una());
        let degree = if partial {
            self.sent.top(self.seq.una() + mss).saturating_sub(mss + prior).div_ceil(mss)
        } else {
            1
        };
        let probed = self.loss.see_reordering(degree);
        self.sent.look_at_retransmissions(self.seq.una(), self.config.plan.overtaken);
        if partial && (probed || self.sent.resent() > 0) {
            return Judged::Open;
        }
        let before = self.undo.take();
        if partial {
            self.take_back(now, before);
        } else {
            self.take_recovery_back(now, before);
        }
        self.counters.undone += 1;
        Judged::Nothing
    }
}

/// Verdict of the first ACK of new data in a recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judged {
    Nothing,
    /// Losses were found meanwhile.
    Lost,
    /// Something that came late, but other data is on its way again: until it is known what becomes
    /// of that the recovery goes on, and this ACK finds no loss (Linux, `tcp_try_undo_partial`).
    Open,
}
