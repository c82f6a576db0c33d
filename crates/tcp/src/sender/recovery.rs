//! How fast recovery begins (RFC 5681 § 3.2, RFC 6582 § 3.2, RFC 6675 § 5).

use cwnd_cc::{Cause, Controller as _, Path, Signal};
use cwnd_quantity::Time;

use super::{FastRecovery, Sender, State};
use crate::params::{FlightSize, Recovery};
use crate::prr::{Prr, PrrRule};

impl Sender {
    /// RFC 6582 § 3.2 (2): duplicates of what was outstanding at the last recovery say nothing new. Reno lacks the check.
    pub(super) fn may_enter_recovery(&self) -> bool {
        match self.config.params.recovery {
            Recovery::NewReno | Recovery::Tahoe => {
                self.last_recover.is_none_or(|r| self.seq.una() > r)
            }
            Recovery::Reno | Recovery::Sack => true,
        }
    }

    pub(super) fn enter_recovery(&mut self, now: Time) {
        let params = &self.config.params;
        if params.recovery == Recovery::Sack && params.flight_size == FlightSize::Pipe {
            // RFC 6675 § 5 (4.3) takes the first segment for lost: it is in the pipe no more.
            let first = self.seq.una() + self.config.mss.min(self.seq.outstanding());
            self.sent.mark_lost_below(first);
        }
        // What is lost while a timeout is repaired went after that one's reduction; of what is outstanding most is given up for lost.
        let repairs = matches!(self.recovery, State::Loss { .. });
        let mut path = self.path(now);
        if repairs {
            path.flight_size = self.in_flight();
        }
        // Departs from RFC 5681 § 2, whose FlightSize also counts what was SACKed: a recovery that
        // begins as the last one ends finds the new data which that one sent, all SACKed, and would
        // leave a threshold above the window. A sender of RFC 6675 waits for the timer then, others
        // would send what is lost again and again.
        if params.lost_retransmissions {
            let not_sacked = self.seq.high() - self.seq.una() - self.sent.sacked_bytes();
            path.flight_size = path.flight_size.min(not_sacked.max(self.cc.window().cwnd));
        }
        let cwr = self.cwr.take();
        // One reaction a window, whatever made it smaller before (RFC 3168 § 6.1.2).
        let was_reduced = self.seq.una() < self.reduced_until || cwr.is_some();
        let reduces = repairs || !was_reduced || params.loss_reduces_again;
        // What a controller does by itself, at once, is no reduction to Linux, which spreads its own: the recovery ends as others do.
        let known = cwr.is_some() || !params.prr_on_ecn;
        let ends_early = !reduces && known && params.reduced_window_ends_recovery;
        let before = self.cc.window().cwnd;
        // With RACK what is on its way again stays so.
        let is_on_its_way = self.by_time && self.sent.was_retransmitted(self.seq.una());
        self.before = if reduces { self.remember(now, is_on_its_way || repairs) } else { None };
        let params = &self.config.params;
        if params.recovery == Recovery::Tahoe {
            // Tahoe: fast retransmit, then slow start as after a timeout.
            self.cc.on_signal(&path, Signal::Timeout { nth: 1, reduces: true });
            self.ecn.set_cwr(params.says_cwr());
            self.counters.reductions[Cause::Loss.index()] += 1;
            self.begin_loss_state(now);
            self.rto.set(now + self.rto());
            return;
        }
        if reduces {
            self.cc.on_signal(&path, Signal::Reduce(Cause::Loss));
            self.ecn.set_cwr(params.says_cwr());
            self.counters.reductions[Cause::Loss.index()] += 1;
        } else {
            self.counters.losses_in_cwr += 1;
        }
        self.ecn.set_first_counts(false);
        let sack = params.recovery == Recovery::Sack;
        let recover_fs = self.recover_fs_of_losses(before);
        // A reduction that is under way goes on, unless there is another.
        let new = || Box::new(Prr::new(params.prr_rule, recover_fs, self.config.mss));
        let spread = cwr.filter(|_| !reduces);
        // Then the fast retransmit has no place of its own, unless nothing went since
        // (`tcp_cwnd_reduction`).
        let waits = sack && self.by_time && spread.as_ref().is_some_and(|prr| prr.has_sent());
        let prr = spread.or_else(|| (params.prr && !self.cc.by_rate()).then(new));
        let first = self.seq.una() + self.config.mss.min(self.seq.outstanding());
        let duplicates = if self.marks_without_sack() { self.dupacks } else { params.dup_thresh };
        let told = i64::from(duplicates) * self.config.mss as i64;
        // The fast retransmit takes the place of what was lost.
        let pipe = self.seq.outstanding() as i64 - told - self.config.mss as i64;
        self.recovery = State::Recovery(FastRecovery {
            recover: if ends_early { self.reduced_until } else { self.seq.high() },
            inflation: if params.counts_pipe() { pipe } else { told },
            retransmit_now: !is_on_its_way && !waits,
            partial_seen: false,
            // RFC 6675 § 5 (4.3): no rescue before the fast retransmit has arrived.
            rescue_rxt: first,
            prr,
        });
        self.forget_the_tail();
        if sack {
            // RFC 6675 § 5 (4.3): the first segment is retransmitted whatever the scoreboard says of it.
            self.sent.mark_lost_below(first);
            if !self.by_time {
                self.sent.restart_retransmissions(self.seq.una());
            }
        } else {
            self.sent.note_lost(self.config.mss);
        }
        // Departs from RFC 6298 § 5, as RFC 6675 § 6 allows: what the fast retransmit resends gets a whole timeout.
        self.rto.set(now + self.rto());
    }

    /// Whether a retransmission was lost while a timeout is repaired, and that begins a recovery (Linux, `tcp_fastretrans_alert`).
    pub(super) fn loses_in_loss(&self) -> bool {
        self.config.params.recovers_in_loss
            && self.by_time
            && matches!(self.recovery, State::Loss { .. })
            && self.sent.has_lost_again()
    }

    /// A recovery of a window that something else had reduced may begin where that window ends: the next ACK ends it, and if more is lost
    /// another begins, which reduces (Linux, `tcp_fastretrans_alert`, D).
    pub(super) fn end_with_the_reduction(&mut self) {
        let State::Recovery(FastRecovery { recover, .. }) = self.recovery else { return };
        if self.seq.una() >= recover && self.config.params.reduced_window_ends_recovery {
            self.last_recover = Some(recover);
            self.recovery = State::Open;
            self.dupacks = 0;
            self.seq.end_limited();
            self.after_recovery();
        }
    }

    /// RecoverFS of a reduction by losses, bytes; the window was `before` it. It counts what
    /// limited transmit sent, too (RFC 6937 § 3), and nothing that was SACKed before (RFC 9937
    /// § 6).
    fn recover_fs_of_losses(&self, before: u64) -> u64 {
        match self.config.params.prr_rule {
            PrrRule::Rfc6937 | PrrRule::Halving | PrrRule::FreeBsd => self.seq.outstanding(),
            PrrRule::Rfc9937 => self.seq.high() - self.seq.una() - self.sent.sacked_bytes(),
            PrrRule::Linux => self.recover_fs(before),
        }
    }

    /// Retransmissions are lost in turn: a second indication of congestion (RFC 5681 § 4.3), once
    /// a round trip: for what was SACKed above the last recovery point (FreeBSD,
    /// `tcp_sack_lost_retransmission`). Linux leaves it to proportional rate reduction; so does
    /// `lost_retransmissions_reduce = false` where that, or a rate, spaces what goes out.
    #[cold]
    pub(super) fn lose_again(&mut self, now: Time) {
        let params = &self.config.params;
        // Proportional rate reduction sends no more than arrives. Elsewhere all that is lost again
        // goes at once, and would be lost once more for as long as the recovery takes.
        let is_clocked = params.prr && params.prr_rule != PrrRule::Halving || self.cc.by_rate();
        if !params.lost_retransmissions_reduce && is_clocked {
            return;
        }
        let top = self.sent.top(self.seq.una());
        let first =
            self.sent.next_lost(self.seq.una()).is_some_and(|hole| hole.start == self.seq.una());
        match &mut self.recovery {
            State::Recovery(r) if top > r.recover => {
                r.recover = self.seq.high();
                // RFC 6675 § 5 (4.3): the first goes whatever the smaller window.
                r.retransmit_now |= first && r.prr.is_none();
            }
            _ => return,
        }
        self.ecn.set_cwr(params.says_cwr());
        self.counters.reductions[Cause::Loss.index()] += 1;
        let before = self.cc.window().cwnd;
        let path = Path { flight_size: self.in_flight(), ..self.path(now) };
        self.cc.on_signal(&path, Signal::Reduce(Cause::Loss));
        let recover_fs = self.recover_fs_of_losses(before);
        if let State::Recovery(FastRecovery { prr: Some(prr), .. }) = &mut self.recovery {
            **prr = Prr::new(self.config.params.prr_rule, recover_fs, self.config.mss);
        }
    }
}
