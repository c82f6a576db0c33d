//! Timeouts that need not have been: F-RTO (RFC 5682 § 2 and § 3) and Eifel (RFC 3522), and taking
//! them back.

use cwnd_packet::Range;
use cwnd_quantity::Time;

use super::Sender;
use crate::frto::{Frto, Told, Verdict};
use crate::params::Recovery;
use crate::segment::SackBlocks;

impl Sender {
    /// The timer has expired, and the controller has not heard of it: what to come back to if it
    /// was early. `was_reduced`: the window was made smaller already for what is outstanding.
    pub(super) fn remember_timeout(&mut self, now: Time, was_reduced: bool) {
        let params = &self.config.params;
        let looks = params.spurious.timeout_frto
            || params.spurious.timeout_eifel
            || self.config.plan.undo.timeouts_by_dsack;
        let marks = params.recovery.recovery == Recovery::Sack || self.marks_without_sack();
        if !looks || !marks {
            self.undo.forget();
            return;
        }
        if self.recovery.is_open() {
            self.undo.forget();
            if !was_reduced {
                self.remember_state(now);
            }
        } else if self.recovery.is_loss() && self.rto.expired() <= 1 {
            // After some progress the echo tells nothing of this timeout: the first retransmission
            // of all is older.
            self.remember_state(Time::ZERO);
        }
        // What is lost in a recovery, or once more, may be taken back to what was before all that
        // (Linux: `retrans_stamp` and `prior_cwnd` stay).
    }

    /// `true` if this timeout is looked at: it does not follow another recovery, or nothing came
    /// since the last (RFC 5682 § 3.1, step 1; Linux `tcp_enter_loss`).
    pub(super) fn begins_frto(&self) -> bool {
        let params = &self.config.params;
        params.spurious.timeout_frto
            && (params.recovery.recovery == Recovery::Sack || self.marks_without_sack())
            && (self.recovery.is_open() || self.rto.expired() > 1)
    }

    /// The first segment goes again, and the next two ACKs decide.
    pub(super) fn begin_frto(&mut self) {
        let first = (self.seq.una(), (self.seq.una() + self.config.mss).min(self.seq.high()));
        let again = self.sent.went_again(self.seq.una()).chain([first]);
        let new = Frto::new(again, self.seq.una(), self.seq.high(), self.sent.sacked());
        self.recovery.begin_frto(new);
    }

    /// Nothing new goes now; if nothing did before, F-RTO is over (Linux `tcp_xmit_recovery`).
    /// Returns whether it is.
    pub(super) fn leaves_frto(&mut self) -> bool {
        let leaves =
            self.recovery.frto_mut().is_some_and(|(_, recover)| self.seq.high() <= recover);
        if leaves {
            self.recovery.end_frto();
        }
        leaves
    }

    /// An ACK came that acknowledges so much, or reports something new (`sacks`), in blocks of an
    /// ACK of all below `ack`.
    #[cold]
    pub(super) fn on_ack_in_frto(
        &mut self,
        now: Time,
        acked: u64,
        sacks: bool,
        (blocks, ack): (&SackBlocks, u64),
    ) {
        let new_waits = self.unsent().is_some();
        let sack = self.config.params.recovery.recovery == Recovery::Sack;
        let again = !sack && self.sent.any_again(self.seq.una() - acked, self.seq.una());
        let Some((frto, recover)) = self.recovery.frto_mut() else { return };
        let told = Told {
            advances: acked > 0,
            sacks,
            again,
            recovers: self.seq.una() >= recover,
            new_went: self.seq.high() > recover,
            new_waits,
        };
        let blocks = blocks.iter().filter(|block| block.len > 0);
        let blocks = blocks.map(|block| Range { start: block.start(ack), end: block.end(ack) });
        match frto.on_ack(told, self.seq.una(), blocks, self.sent.sacked()) {
            Verdict::Open | Verdict::SendNew => {}
            Verdict::Spurious => self.take_timeout_back(now),
            Verdict::Lost => self.recovery.end_frto(),
        }
    }

    /// A new ACK after a timeout, with the timestamp that it echoes; `needless` if duplicates tell
    /// that all arrived that went again. By RFC 3522 § 3.2 the first echo tells; Linux looks at
    /// each (`tcp_process_loss`), though by RFC 7323 § 4.3 echoes don't go back.
    pub(super) fn judge_timeout(&mut self, now: Time, echo: Time, needless: bool) {
        let looks = self.config.params.spurious.timeout_eifel && self.echoes_tell();
        if needless || looks && self.undo.is_younger_than(echo) {
            self.take_timeout_back(now);
        } else if !self.config.plan.undo.examines_each_echo {
            self.undo.end_of_echoes();
        }
    }

    /// RFC 4015 § 3.4; Linux `tcp_try_undo_loss`.
    pub(super) fn take_timeout_back(&mut self, now: Time) {
        // Without SACK its echo may have told so before, and nothing is lost since.
        let first = self.sent.lost_bytes(self.seq.una()) > 0 || !self.undo.is_none();
        self.counters.timeouts_undone += u64::from(first);
        let before = self.undo.take();
        let held = self.recovery.is_loss() && self.recovery.recover() == Some(self.seq.una());
        if held && self.marks_without_sack() {
            // The state is held ([`Sender::held_above`]).
            self.take_back_window(now, before);
            self.sent.undo(self.seq.una());
        } else {
            self.take_back(now, before);
        }
        self.rto.end_expiries();
    }
}
