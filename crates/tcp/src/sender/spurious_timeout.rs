//! Spurious timeouts: detection by F-RTO (RFC 5682 § 2 and § 3) and Eifel (RFC 3522), and their
//! undo.

use cwnd_packet::Range;
use cwnd_quantity::Time;

use super::Sender;
use crate::frto::{AckFacts, Frto, Verdict};
use crate::params::Recovery;
use crate::segment::SackBlocks;

impl Sender {
    /// Keeps the state before a timeout that may prove spurious, ahead of the controller's
    /// reduction. `was_reduced`: the window was already reduced for what is outstanding.
    pub(super) fn save_timeout_undo_state(&mut self, now: Time, was_reduced: bool) {
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
                self.save_undo_state(now);
            }
        } else if self.recovery.is_loss() && self.rto.expired() <= 1 {
            // After progress an echo is no evidence for this timeout: the first retransmission of
            // all is older.
            self.save_undo_state(Time::ZERO);
        }
        // A timeout during a recovery, or after another, may be undone to the state before all of
        // them (Linux keeps `retrans_stamp` and `prior_cwnd`).
    }

    /// `true` if F-RTO starts with this timeout: it does not follow another recovery, or it repeats
    /// without progress (RFC 5682 § 3.1, step 1; Linux `tcp_enter_loss`).
    pub(super) fn begins_frto(&self) -> bool {
        let params = &self.config.params;
        params.spurious.timeout_frto
            && (params.recovery.recovery == Recovery::Sack || self.marks_without_sack())
            && (self.recovery.is_open() || self.rto.expired() > 1)
    }

    /// Starts F-RTO with the retransmission of the first segment; the next two ACKs decide.
    pub(super) fn begin_frto(&mut self) {
        let first = (self.seq.una(), (self.seq.una() + self.config.mss).min(self.seq.high()));
        let retransmitted = self.sent.retransmitted_ranges(self.seq.una()).chain([first]);
        let new = Frto::new(retransmitted, self.seq.una(), self.seq.high(), self.sent.sacked());
        self.recovery.begin_frto(new);
    }

    /// Ends F-RTO if no new data was sent, as none can be sent now (Linux `tcp_xmit_recovery`).
    /// Returns `true` if it ended.
    pub(super) fn ends_frto(&mut self) -> bool {
        let ends = self.recovery.frto_mut().is_some_and(|(_, recover)| self.seq.high() <= recover);
        if ends {
            self.recovery.end_frto();
        }
        ends
    }

    /// Processes an ACK during F-RTO. It acknowledges `acked` bytes or reports something new
    /// (`sacks`), in SACK blocks relative to `ack`.
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
        let acks_retransmission =
            !sack && self.sent.any_retransmitted(self.seq.una() - acked, self.seq.una());
        let Some((frto, recover)) = self.recovery.frto_mut() else { return };
        let facts = AckFacts {
            advances: acked > 0,
            sacks,
            acks_retransmission,
            recovers: self.seq.una() >= recover,
            new_sent: self.seq.high() > recover,
            new_waits,
        };
        let blocks = blocks.iter().filter(|block| block.len > 0);
        let blocks = blocks.map(|block| Range { start: block.start(ack), end: block.end(ack) });
        match frto.on_ack(facts, self.seq.una(), blocks, self.sent.sacked()) {
            Verdict::Open | Verdict::SendNew => {}
            Verdict::Spurious => self.undo_timeout(now),
            Verdict::Lost => self.recovery.end_frto(),
        }
    }

    /// Examines an ACK of new data after a timeout, by its timestamp `echo`; `needless` if D-SACK
    /// has reported every retransmission. By RFC 3522 § 3.2 only the first echo counts
    /// ([`crate::plan::UndoPlan::examines_each_echo`]). By RFC 7323 § 4.3 echoes do not go back.
    pub(super) fn try_undo_timeout(&mut self, now: Time, echo: Time, needless: bool) {
        let looks =
            self.config.params.spurious.timeout_eifel && self.echo_identifies_transmission();
        if needless || looks && self.undo.precedes_retransmission(echo) {
            self.undo_timeout(now);
        } else if !self.config.plan.undo.examines_each_echo {
            self.undo.ignore_echoes();
        }
    }

    /// Undoes a spurious timeout (RFC 4015 § 3.4; Linux `tcp_try_undo_loss`).
    pub(super) fn undo_timeout(&mut self, now: Time) {
        // Without SACK an echo may have undone it before, and nothing was lost since.
        let first = self.sent.lost_bytes(self.seq.una()) > 0 || !self.undo.is_none();
        self.counters.timeouts_undone += u64::from(first);
        let before = self.undo.take();
        let held = self.recovery.is_loss() && self.recovery.recover() == Some(self.seq.una());
        if held && self.marks_without_sack() {
            // The state is held ([`Sender::held_above`]).
            self.restore_window(now, before);
            self.sent.undo(self.seq.una());
        } else {
            self.undo_reduction(now, before);
        }
        self.rto.end_expiries();
    }
}
