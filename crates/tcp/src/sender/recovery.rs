//! The beginning and the end of fast recovery (RFC 5681 § 3.2, RFC 6582 § 3.2, RFC 6675 § 5).

use cwnd_cc::{Cause, Controller as _, Path, Signal};
use cwnd_quantity::Time;

use super::{FastRecovery, Sender, State};
use crate::params::{FlightSize, Recovery};
use crate::prr::{Prr, PrrAck, PrrRule};

impl Sender {
    /// RFC 6582 § 3.2 (2): duplicates of what was outstanding at the last recovery say nothing new.
    /// Reno lacks the check.
    pub(super) fn may_enter_recovery(&self) -> bool {
        match self.config.params.recovery {
            Recovery::NewReno | Recovery::Tahoe => {
                self.last_recover.is_none_or(|r| self.seq.una() > r)
            }
            Recovery::Reno | Recovery::Sack => true,
        }
    }

    /// Losses were found: fast recovery begins (RFC 5681 § 3.2 (2) to (4)).
    pub(super) fn enter_recovery(&mut self, now: Time) {
        let params = &self.config.params;
        let sack = params.recovery == Recovery::Sack;
        let first = self.seq.una() + self.config.mss.min(self.seq.outstanding());
        if sack && params.flight_size == FlightSize::Pipe {
            // RFC 6675 § 5 (4.3) takes the first segment for lost: it is in the pipe no more.
            self.sent.mark_lost_below(first);
        }
        let repairs = matches!(self.recovery, State::Loss { .. });
        let path = self.path_of_losses(now, repairs);
        let cwr = self.cwr.take();
        // One reaction a window, whatever made it smaller before (RFC 3168 § 6.1.2).
        let was_reduced = self.seq.una() < self.reduced_until || cwr.is_some();
        let reduces = repairs || !was_reduced || params.loss_reduces_again;
        // What a controller does by itself, at once, is no reduction to Linux, which spreads its
        // own: the recovery ends as others do.
        let known = cwr.is_some() || !params.prr_on_ecn;
        let ends_early = !reduces && known && params.reduced_window_ends_recovery;
        let before = self.cc.window().cwnd;
        // With RACK what is on its way again stays so.
        let is_on_its_way = self.by_time && self.sent.was_retransmitted(self.seq.una());
        self.undo = if reduces { self.remember(now, is_on_its_way || repairs) } else { None };
        if self.config.params.recovery == Recovery::Tahoe {
            self.begin_slow_start(now, &path);
            return;
        }
        self.reduce_for_losses(&path, reduces);
        // A reduction that is under way goes on, unless there is another.
        let spread = cwr.filter(|_| !reduces);
        // Then the fast retransmit has no place of its own, unless nothing went since
        // (`tcp_cwnd_reduction`).
        let waits = sack && self.by_time && spread.as_ref().is_some_and(|prr| prr.has_sent());
        let params = &self.config.params;
        let spreads = params.prr && !self.cc.by_rate();
        let prr = spread.or_else(|| {
            let recover_fs = self.recover_fs_of_losses(before);
            spreads.then(|| Box::new(Prr::new(params.prr_rule, recover_fs, self.config.mss)))
        });
        let recover = if ends_early { self.reduced_until } else { self.seq.high() };
        self.recovery = State::Recovery(FastRecovery {
            recover,
            inflation: self.first_inflation(),
            retransmit_now: !is_on_its_way && !waits,
            partial_seen: false,
            // RFC 6675 § 5 (4.3): no rescue before the fast retransmit has arrived.
            rescue_rxt: first,
            prr,
        });
        self.forget_the_tail();
        self.lose_first(first);
        // Departs from RFC 6298 § 5, as RFC 6675 § 6 allows: what the fast retransmit resends gets
        // a whole timeout.
        self.rto.set(now + self.rto());
    }

    /// The path as a recovery finds it, with FlightSize.
    fn path_of_losses(&self, now: Time, repairs: bool) -> Path {
        let mut path = self.path(now);
        if repairs {
            // What is lost while a timeout is repaired went after that one's reduction; of what is
            // outstanding most is given up for lost.
            path.flight_size = self.in_flight();
        }
        // Departs from RFC 5681 § 2, whose FlightSize also counts what was SACKed: a recovery that
        // begins as the last one ends finds the new data which that one sent, all SACKed, and would
        // leave a threshold above the window. A sender of RFC 6675 waits for the timer then, others
        // would send what is lost again and again.
        if self.config.params.lost_retransmissions {
            let not_sacked = self.seq.outstanding() - self.sent.sacked_bytes();
            path.flight_size = path.flight_size.min(not_sacked.max(self.cc.window().cwnd));
        }
        path
    }

    /// Tahoe: fast retransmit, then slow start as after a timeout.
    fn begin_slow_start(&mut self, now: Time, path: &Path) {
        self.cc.on_signal(path, Signal::Timeout { nth: 1, reduces: true });
        self.ecn.set_cwr(self.config.params.says_cwr());
        self.counters.reductions[Cause::Loss.index()] += 1;
        self.begin_loss_state(now);
        self.rto.set(now + self.rto());
    }

    fn reduce_for_losses(&mut self, path: &Path, reduces: bool) {
        if reduces {
            self.cc.on_signal(path, Signal::Reduce(Cause::Loss));
            self.ecn.set_cwr(self.config.params.says_cwr());
            self.counters.reductions[Cause::Loss.index()] += 1;
        } else {
            self.counters.losses_in_cwr += 1;
        }
        self.ecn.set_first_counts(false);
    }

    /// The inflation of the window by duplicates, or with `pipe_rule = "sack1"` the pipe.
    fn first_inflation(&self) -> i64 {
        let (params, mss) = (&self.config.params, self.config.mss as i64);
        let duplicates = if self.marks_without_sack() { self.dupacks } else { params.dup_thresh };
        let told = i64::from(duplicates) * mss;
        // The fast retransmit takes the place of what was lost.
        if params.counts_pipe() { self.seq.outstanding() as i64 - told - mss } else { told }
    }

    /// The first segment is lost, which ends at `first`.
    fn lose_first(&mut self, first: u64) {
        if self.config.params.recovery != Recovery::Sack {
            self.sent.note_lost(self.config.mss);
            return;
        }
        // RFC 6675 § 5 (4.3): it is retransmitted whatever SACK says of it.
        self.sent.mark_lost_below(first);
        if !self.by_time {
            self.sent.restart_retransmissions(self.seq.una());
        }
    }

    /// `true` if a retransmission was lost while a timeout is repaired, and that begins a recovery
    /// (Linux, `tcp_fastretrans_alert`).
    pub(super) fn loses_in_loss(&self) -> bool {
        self.config.params.recovers_in_loss
            && self.by_time
            && matches!(self.recovery, State::Loss { .. })
            && self.sent.has_lost_again()
    }

    /// A recovery of a window that something else had reduced may begin where that window ends: the
    /// next ACK ends it, and if more is lost another begins, which reduces (Linux,
    /// `tcp_fastretrans_alert`, D).
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

    /// RFC 6298 § 5.2–5.3, and what each state makes of new data acknowledged; `late` if the ACK
    /// shows that a timeout was needless.
    #[inline(always)]
    pub(super) fn on_new_ack<const PLAIN: bool>(&mut self, now: Time, acked: u64, late: bool) {
        let mut restart_timer = true;
        let above = if PLAIN { 0 } else { self.held_above(self.seq.una()) };
        let spread = !PLAIN && self.spreads_without_sack();
        match &mut self.recovery {
            State::Open => {
                self.dupacks = 0;
                self.seq.end_limited();
            }
            State::Loss { recover, .. } => {
                let told = if self.seq.una() >= *recover { self.dupacks } else { 0 };
                self.dupacks = 0;
                if self.seq.una() >= *recover + above {
                    self.last_recover = Some(*recover);
                    self.recovery = State::Open;
                }
                // Linux takes a timeout back first, and looks no further (`tcp_process_loss`).
                if told > 0 && !late {
                    self.on_end_of_loss(now, acked, told);
                }
            }
            State::Recovery(r) => {
                let reno = self.config.params.recovery == Recovery::Reno;
                if self.seq.una() >= r.recover + above || reno {
                    self.last_recover = Some(r.recover);
                    self.recovery = State::Open;
                    self.dupacks = 0;
                    self.seq.end_limited();
                    self.after_recovery();
                } else if self.seq.una() == r.recover {
                    r.inflation = 0;
                    r.retransmit_now = false;
                } else {
                    // RFC 6582 § 3.2 (3), the impatient variant; Linux restarts it each time
                    // (`tcp_clean_rtx_queue`). With SACK every advance shows that retransmissions
                    // arrive (RFC 6675 § 5.1).
                    let newreno = self.config.params.recovery == Recovery::NewReno;
                    restart_timer = !newreno || !r.partial_seen || self.by_time;
                    r.partial_seen = true;
                    if newreno {
                        self.sent.note_lost(self.config.mss);
                        r.deflate(acked, self.config.mss, spread);
                    }
                }
            }
        }
        if self.seq.una() == self.seq.high() {
            self.rto.stop();
        } else if restart_timer {
            self.rto.set(now + self.rto());
        }
    }

    pub(super) fn on_duplicate(&mut self, now: Time) {
        let mss = self.config.mss as i64;
        match &mut self.recovery {
            State::Open => {
                self.dupacks += 1;
                let enough = self.dupacks >= self.duplicates_needed() && self.rack_tlp.is_none();
                if enough && self.may_enter_recovery() {
                    self.enter_recovery(now);
                }
            }
            State::Recovery(r) if self.config.params.recovery != Recovery::Sack => {
                r.inflation += mss;
            }
            State::Recovery(_) | State::Loss { .. } => {}
        }
    }

    pub(super) fn detect_losses(&mut self, now: Time) -> bool {
        if self.rack_tlp.is_some() {
            return self.detect_by_time(now);
        }
        let (params, mss) = (&self.config.params, self.config.mss);
        self.sent.detect_losses(params, self.seq.una(), mss)
    }

    /// Bytes of which an ACK of so many tells for the first time. Without SACK each duplicate told
    /// of a segment (Linux, `tcp_add_reno_sack`).
    pub(super) fn new_of(&self, acked: u64, delivered: u64) -> u64 {
        if self.config.params.recovery == Recovery::Sack {
            // An ACK that advances is no duplicate, even if the receiver had thrown away what it
            // reported.
            return delivered.max(1);
        }
        let mss = self.config.mss;
        let told = match &self.recovery {
            State::Recovery(r) => r.inflation.max(0).unsigned_abs(),
            _ => u64::from(self.dupacks) * mss,
        };
        acked.saturating_sub(told).max(mss.min(acked))
    }

    /// `true` if a recovery has ended and more is known to be lost: Linux begins the next one with
    /// the same ACK (`tcp_time_to_recover`).
    pub(super) fn is_still_short(&self) -> bool {
        matches!(self.recovery, State::Open)
            && self.seq.una() < self.seq.high()
            && self.sent.is_short(self.seq.una())
    }

    /// So much arrived: what a reduction that is spread may send by that.
    #[inline(always)]
    pub(super) fn update_prr(&mut self, delivered: u64, safe: bool) {
        let spreads = match &self.recovery {
            State::Recovery(r) => r.prr.is_some(),
            State::Open => self.cwr.is_some(),
            State::Loss { .. } => false,
        };
        if spreads {
            self.spread(delivered, safe);
        }
    }

    fn spread(&mut self, delivered: u64, mut safe: bool) {
        let pipe = if self.config.params.recovery == Recovery::Sack {
            self.sent.pipe(self.seq.una(), self.seq.nxt())
        } else {
            // The hole is lost until it goes again, as the ACK tells (`tcp_newreno_mark_lost`).
            let waits = self.hole_waits();
            safe &= !waits;
            self.in_flight().saturating_sub(if waits { self.config.mss } else { 0 })
        };
        let prr = match &mut self.recovery {
            State::Recovery(r) => r.prr.as_mut(),
            _ => self.cwr.as_mut(),
        };
        if let Some(prr) = prr {
            let ssthresh = self.cc.window().ssthresh;
            prr.on_ack(PrrAck { delivered, pipe, safe }, ssthresh, self.config.mss);
        }
    }
}

impl FastRecovery {
    /// RFC 6582 § 3.2 (3): retransmit the next hole, deflate by what was acknowledged, add back
    /// one.
    const fn deflate(&mut self, acked: u64, mss: u64, spread: bool) {
        self.retransmit_now = true;
        self.inflation -= acked as i64;
        if acked >= mss {
            self.inflation += mss as i64;
        }
        if spread && self.inflation < 0 {
            // `tcp_remove_reno_sacks`
            self.inflation = 0;
        }
    }
}
