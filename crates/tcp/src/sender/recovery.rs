//! Start and end of fast recovery (RFC 5681 § 3.2, RFC 6582 § 3.2, RFC 6675 § 5).

use cwnd_cc::{Cause, Controller as _, Path, Signal};
use cwnd_quantity::{Duration, Time};

use super::Sender;
use super::loss_recovery::{NewAck, Progress};
use crate::loss_detection::Detection;
use crate::params::{FlightSize, Recovery};
use crate::prr::{Prr, PrrAck, PrrRule};
use crate::segment::SackBlocks;

impl Sender {
    /// Starts fast recovery after losses were found (RFC 5681 § 3.2 (2) to (4)).
    pub(super) fn enter_recovery(&mut self, now: Time) {
        let params = &self.config.params;
        let sack = params.recovery.recovery == Recovery::Sack;
        let first = self.seq.una() + self.config.mss.min(self.seq.outstanding());
        if sack && params.recovery.flight_size == FlightSize::Pipe {
            // RFC 6675 § 5 (4.3) takes the first segment for lost, so it is no longer in the pipe.
            self.sent.mark_lost_below(first);
        }
        let repairs = self.recovery.is_loss();
        let path = self.path_of_losses(now, repairs);
        let mut entry = self.recovery.enter(self.seq.una(), self.seq.high(), params);
        let before = self.cc.window().cwnd;
        let plan = self.config.plan.recovery;
        // The segment in flight takes the place of a fast retransmit.
        let is_on_its_way =
            plan.keeps_retransmissions && self.sent.was_retransmitted(self.seq.una());
        self.undo.forget();
        if entry.reduces {
            self.init_undo(now, is_on_its_way || repairs);
        }
        if self.config.params.recovery.recovery == Recovery::Tahoe {
            self.begin_slow_start(now, &path);
            return;
        }
        self.reduce_for_losses(&path, entry.reduces);
        let waits =
            plan.fast_retransmit_waits && entry.prr.as_ref().is_some_and(|prr| prr.has_sent());
        let params = &self.config.params;
        if entry.prr.is_none() && params.prr.prr && !self.cc.is_rate_based() {
            let recover_fs = self.recover_fs_of_losses(before);
            entry.prr = Some(Box::new(Prr::new(params.prr.prr_rule, recover_fs, self.config.mss)));
        }
        let retransmits = !is_on_its_way && !waits;
        self.recovery.begin(entry, self.initial_inflation(), retransmits, first);
        self.loss.cancel_probe();
        self.mark_first_lost(first);
        // Departs from RFC 6298 § 5, as RFC 6675 § 6 allows: the fast retransmit gets a whole
        // timeout.
        self.rto.set(now + self.rto());
    }

    /// Path as the controller sees it at the start of a recovery, with FlightSize.
    fn path_of_losses(&self, now: Time, repairs: bool) -> Path {
        let mut path = self.path(now);
        if repairs {
            // Losses found while a timeout is repaired were sent after that timeout's reduction.
            // Most of what is outstanding is marked lost.
            path.flight_size = self.in_flight();
        }
        // Departs from RFC 5681 § 2, whose FlightSize also counts what was SACKed: a recovery that
        // begins as the last one ends finds the new data which that one sent, all SACKed, and would
        // leave a threshold above the window. A sender that finds no lost retransmissions waits for
        // the timer then; one that finds them would send the same data again and again.
        if self.config.params.detection.lost_retransmissions {
            let not_sacked = self.seq.outstanding() - self.sent.sacked_bytes();
            path.flight_size = path.flight_size.min(not_sacked.max(self.cc.window().cwnd));
        }
        path
    }

    /// Starts slow start after a fast retransmit (Tahoe), as after a timeout.
    fn begin_slow_start(&mut self, now: Time, path: &Path) {
        self.cc.on_signal(path, Signal::Timeout { nth: 1, reduces: true });
        self.count_loss_reduction();
        self.begin_loss_state(now);
        self.rto.set(now + self.rto());
    }

    fn reduce_for_losses(&mut self, path: &Path, reduces: bool) {
        if reduces {
            self.cc.on_signal(path, Signal::Reduce(Cause::Loss));
            self.count_loss_reduction();
        } else {
            self.counters.losses_in_cwr += 1;
        }
        self.ecn.set_next_ece_counts(false);
    }

    /// Counts a reduction for a loss, which CWR announces if it is in use.
    pub(super) fn count_loss_reduction(&mut self) {
        self.ecn.set_cwr(self.config.params.says_cwr());
        self.counters.reductions[Cause::Loss.index()] += 1;
    }

    /// Initial inflation of the window by duplicate ACKs, bytes; with `pipe_rule = "sack1"` the
    /// initial pipe.
    fn initial_inflation(&self) -> i64 {
        let (params, mss) = (&self.config.params, self.config.mss as i64);
        let duplicates = match self.marks_without_sack() {
            true => self.recovery.dupacks(),
            false => params.detection.dup_thresh,
        };
        let reported = i64::from(duplicates) * mss;
        // The fast retransmit replaces the lost segment in the pipe.
        if params.counts_pipe() { self.seq.outstanding() as i64 - reported - mss } else { reported }
    }

    /// Marks the first outstanding segment lost, which ends at `first`.
    fn mark_first_lost(&mut self, first: u64) {
        if self.config.params.recovery.recovery != Recovery::Sack {
            self.sent.note_lost(self.config.mss);
            return;
        }
        // RFC 6675 § 5 (4.3): it is retransmitted whatever SACK reports.
        self.sent.mark_lost_below(first);
        if !self.config.plan.recovery.keeps_retransmissions {
            self.sent.restart_retransmissions(self.seq.una());
        }
    }

    /// `true` if a retransmission was lost while a timeout is repaired, which starts a recovery
    /// ([`crate::config::RecoveryPlan::recovers_in_loss`]).
    pub(super) fn lost_retransmission_in_loss(&self) -> bool {
        self.config.plan.recovery.recovers_in_loss
            && self.recovery.is_loss()
            && self.sent.has_lost_retransmission()
    }

    /// Ends a recovery at the end of the reduction under way when it began, if
    /// `reduced_window_ends_recovery` is set. Further losses then start another recovery, which
    /// reduces (Linux `tcp_fastretrans_alert`, D).
    pub(super) fn end_at_reduced_window(&mut self) {
        let is_over = self.recovery.is_fast() && !self.recovery.is_partial(self.seq.una());
        if is_over && self.config.params.recovery.reduced_window_ends_recovery {
            self.recovery.end_fast();
            self.seq.end_limited();
            self.loss.on_recovered(false);
        }
    }

    /// RecoverFS of a reduction for losses, bytes; the window was `before`. It is all that is
    /// outstanding, limited transmit included (RFC 6937 § 3). By RFC 9937 (§ 6) it lacks what is
    /// SACKed; by Linux's rule it is that of [`Sender::recover_fs`].
    fn recover_fs_of_losses(&self, before: u64) -> u64 {
        match self.config.params.prr.prr_rule {
            PrrRule::Rfc6937 | PrrRule::RateHalving | PrrRule::RoundedUp => self.seq.outstanding(),
            PrrRule::Rfc9937 => self.seq.high() - self.seq.una() - self.sent.sacked_bytes(),
            PrrRule::WholeSegments => self.recover_fs(before),
        }
    }

    /// Reduces the window again after retransmissions were lost, a second indication of congestion
    /// (RFC 5681 § 4.3). It does so at most once per round trip, when data above the last recovery
    /// point is SACKed (FreeBSD `tcp_sack_lost_retransmission`). Linux leaves it to proportional
    /// rate reduction. So does `lost_retransmissions_reduce = false` if that, or a rate, clocks
    /// what is sent.
    #[cold]
    pub(super) fn reduce_for_lost_retransmission(&mut self, now: Time) {
        let params = &self.config.params;
        // Arrivals clock proportional rate reduction. Without it all lost retransmissions are sent
        // at once, and would be lost again for as long as the recovery takes.
        let is_clocked = params.prr.prr && params.prr.prr_rule != PrrRule::RateHalving
            || self.cc.is_rate_based();
        if !params.recovery.lost_retransmissions_reduce && is_clocked {
            return;
        }
        let top = self.sent.top(self.seq.una());
        let first =
            self.sent.next_lost(self.seq.una()).is_some_and(|hole| hole.start == self.seq.una());
        if !self.recovery.on_lost_retransmission(top, self.seq.high(), first) {
            return;
        }
        self.count_loss_reduction();
        let before = self.cc.window().cwnd;
        let path = Path { flight_size: self.in_flight(), ..self.path(now) };
        self.cc.on_signal(&path, Signal::Reduce(Cause::Loss));
        let recover_fs = self.recover_fs_of_losses(before);
        if let Some(prr) = self.recovery.prr_mut() {
            *prr = Prr::new(self.config.params.prr.prr_rule, recover_fs, self.config.mss);
        }
    }

    /// Restarts or stops the retransmission timer after an ACK of new data (RFC 6298 § 5.2–5.3),
    /// and updates the recovery state; `late` if the ACK is for a late original, without SACK.
    #[inline(always)]
    pub(super) fn on_new_ack<const PLAIN: bool>(&mut self, now: Time, acked: u64, late: bool) {
        let restart_timer = if self.recovery.is_open() {
            self.recovery.forget_duplicates();
            self.seq.end_limited();
            true
        } else {
            self.on_repair::<PLAIN>(now, acked, late)
        };
        if self.seq.una() == self.seq.high() {
            self.rto.stop();
        } else if restart_timer {
            self.rto.set(now + self.rto());
        }
    }

    /// Updates a recovery after an ACK of new data. Returns `true` if the retransmission timer
    /// restarts.
    fn on_repair<const PLAIN: bool>(&mut self, now: Time, acked: u64, late: bool) -> bool {
        let una = self.seq.una();
        let rule = self.config.params.recovery.recovery;
        let above = if PLAIN { 0 } else { self.held_above(una) };
        let spread = !PLAIN && self.spreads_without_sack();
        let ack = NewAck { una, acked, mss: self.config.mss, above, spread };
        match self.recovery.on_new_ack(ack, rule) {
            // Linux undoes a timeout first, and examines nothing else then (`tcp_process_loss`).
            Progress::Loss(duplicates) if duplicates > 0 && !late => {
                self.on_end_of_loss(now, acked, duplicates)
            }
            Progress::Loss(_) | Progress::Held => {}
            Progress::Over => {
                self.seq.end_limited();
                self.loss.on_recovered(false);
            }
            Progress::Partial(first) => {
                let newreno = rule == Recovery::NewReno;
                if newreno {
                    self.sent.note_lost(self.config.mss);
                }
                // RFC 6582 § 3.2 (3), the impatient variant. With SACK every advance restarts the
                // timer (RFC 6675 § 6).
                return first || self.config.plan.rto_restart.at_each_partial_ack;
            }
        }
        true
    }

    pub(super) fn on_duplicate(&mut self, now: Time) {
        let rule = self.config.params.recovery.recovery;
        let inflates = if rule == Recovery::Sack { 0 } else { self.config.mss };
        let Some(dupacks) = self.recovery.on_duplicate(inflates) else { return };
        let enough = dupacks >= self.duplicates_needed() && !self.loss.has_rack();
        if enough && self.recovery.may_enter(self.seq.una(), rule) {
            self.enter_recovery(now);
        }
    }

    /// Marks the segments lost that the detection rule finds at `now`. Returns `true` if there are
    /// any.
    pub(super) fn detect_losses(&mut self, now: Time) -> bool {
        let edge = match self.config.plan.detection {
            Detection::DupAck => return false,
            Detection::Rfc6675(rule) => rule.edge(self.sent.sacked()),
            Detection::Fack(rule) => rule.edge(self.sent.sacked()),
            Detection::Rack => return self.detect_by_time(now),
        };
        self.sent.detect_losses_below(
            edge,
            self.seq.una(),
            self.config.plan.lost_retransmission_rule,
        )
    }

    /// Bytes newly reported by an ACK of `acked` bytes that delivered `delivered`. Without SACK
    /// each duplicate ACK has reported one segment (Linux `tcp_add_reno_sack`).
    pub(super) fn newly_delivered(&self, acked: u64, delivered: u64) -> u64 {
        if self.config.params.recovery.recovery == Recovery::Sack {
            // An ACK that advances is no duplicate, even if the receiver reneged on what it
            // reported.
            return delivered.max(1);
        }
        let mss = self.config.mss;
        let reported = self.recovery.reported_by_duplicates(mss);
        acked.saturating_sub(reported).max(mss.min(acked))
    }

    /// `true` if no recovery is under way but lost segments are known: the same ACK starts the next
    /// recovery (Linux `tcp_time_to_recover`).
    pub(super) fn has_unrepaired_losses(&self) -> bool {
        self.recovery.is_open()
            && self.seq.una() < self.seq.high()
            && self.sent.has_losses(self.seq.una())
    }

    /// Updates the quota of proportional rate reduction after `delivered` bytes arrived.
    #[inline(always)]
    pub(super) fn update_prr(&mut self, delivered: u64, safe: bool) {
        if self.recovery.prr().is_some() {
            self.update_quota(delivered, safe);
        }
    }

    fn update_quota(&mut self, delivered: u64, mut safe: bool) {
        let pipe = if self.config.params.recovery.recovery == Recovery::Sack {
            self.sent.pipe(self.seq.una(), self.seq.nxt())
        } else {
            // The hole is lost until it is retransmitted, as the ACK shows
            // (`tcp_newreno_mark_lost`).
            let waits = self.recovery.hole_waits();
            safe &= !waits;
            self.in_flight().saturating_sub(if waits { self.config.mss } else { 0 })
        };
        if let Some(prr) = self.recovery.prr_mut() {
            let ssthresh = self.cc.window().ssthresh;
            prr.on_ack(PrrAck { delivered, pipe, safe }, ssthresh, self.config.mss);
        }
    }
}

/// Minimum time that a receiver that seems to renege has before the timeout (Linux
/// `tcp_check_sack_reneging`).
const MIN_RENEGING_TIMEOUT: Duration = Duration::from_millis(10);

impl Sender {
    /// Processes the SACK blocks of an ACK below SND.UNA, with `sack_in_old_acks`. Proportional
    /// rate reduction may send as many bytes as the blocks remove from the pipe, and its window
    /// stays (Linux `tcp_ack`, `old_ack`).
    #[cold]
    pub(super) fn on_old_ack(&mut self, now: Time, ack: u64, blocks: &SackBlocks) {
        let params = &self.config.params;
        if !params.recovery.sack_in_old_acks
            || params.recovery.recovery != Recovery::Sack
            || self.seq.high() == self.seq.una()
        {
            return;
        }
        let before = self.sent.pipe(self.seq.una(), self.seq.nxt());
        let window = self.cc.window().cwnd;
        let new = if self.loss.has_rack() {
            self.process_sacks_by_rack(now, blocks, ack, self.sent.top(self.seq.una()))
        } else {
            self.sent.on_sack_above(blocks, ack, self.seq.una(), self.seq.high())
        };
        self.loss.on_ack();
        if new == 0 {
            return;
        }
        self.log_sacked(blocks, ack, new);
        if self.recovery.is_in_frto() {
            self.on_ack_in_frto(now, 0, true, (blocks, ack));
        }
        self.detect_losses(now);
        self.sent.take_lost_retransmission();
        if self.recovery.is_open() && self.sent.is_lost(self.seq.una()) {
            // Proportional rate reduction begins with the next ACK; the fast retransmit is allowed
            // already.
            self.enter_recovery(now);
            let pipe = self.sent.pipe(self.seq.una(), self.seq.nxt());
            let more = window.saturating_sub(pipe + self.config.mss);
            self.allow_in_recovery(more);
            return;
        }
        let left = before.saturating_sub(self.sent.pipe(self.seq.una(), self.seq.nxt()));
        self.allow_in_recovery(left);
    }

    /// Raises the quota of proportional rate reduction by `left` bytes, for an ACK that it does not
    /// count.
    fn allow_in_recovery(&mut self, left: u64) {
        if let Some(prr) = self.recovery.prr_mut() {
            prr.allow_more(left);
        }
    }

    /// Shortens the retransmission timer after an ACK up to data that was SACKed before: the
    /// receiver seems to renege (RFC 2018 § 8). Half a round trip is left for an ACK that shows
    /// otherwise.
    #[cold]
    pub(super) fn shorten_rto_for_reneging(&mut self, now: Time) {
        let half = self.rtt.srtt().map_or(Duration::ZERO, |srtt| Duration(srtt.0 / 2));
        self.rto.set(now + half.max(MIN_RENEGING_TIMEOUT));
    }
}
