//! Undo of reductions after spurious losses, and of spurious timeouts: detection by Eifel (RFC
//! 3522), D-SACK (RFC 3708) and F-RTO (RFC 5682 § 2 and § 3), and the response (RFC 4015 § 3.4;
//! Linux `tcp_undo_cwnd_reduction`).

use cwnd_cc::{AnyController, Controller as _};
use cwnd_packet::Range;
use cwnd_quantity::Time;

use super::Sender;
use crate::params::Recovery;
use crate::segment::SackBlocks;
use crate::spurious_timeout::{AckFacts, Frto, Verdict};

/// State before the last reduction for a loss or a timeout, if an undo is possible.
///
/// Cost: O(1) per ACK, as retransmissions are counted, not listed. An undo costs O(n) in the
/// retransmissions in flight, and lets SACKed ranges be counted once more
/// ([`crate::sent_segments::SentSegments::undo`]). It happens at most once per recovery.
#[derive(Clone, Debug, Default)]
pub(super) struct Undo(Option<Box<UndoState>>);

#[derive(Clone, Debug)]
struct UndoState {
    /// Time of the first retransmission (RFC 3522 § 3.2, RetransmitTS); at zero no echo is older.
    retransmit_ts: Time,
    /// Controller before the reduction; `None` if the reduction stays.
    cc: Option<AnyController>,
    /// SND.UNA at the reduction (Linux `undo_marker`).
    undo_marker: u64,
    /// Retransmissions in flight at the reduction and sent since, less those that D-SACK reports;
    /// `None` before the first (Linux `undo_retrans`).
    undo_retrans: Option<u64>,
}

impl Undo {
    /// Keeps the controller before a reduction, with SND.UNA at `undo_marker`. The first
    /// retransmission is sent at `retransmit_ts`, and `in_flight` others are in flight.
    pub fn save(
        &mut self,
        retransmit_ts: Time,
        cc: AnyController,
        undo_marker: u64,
        in_flight: u64,
    ) {
        let undo_retrans = (in_flight > 0).then_some(in_flight);
        self.0 =
            Some(Box::new(UndoState { retransmit_ts, cc: Some(cc), undo_marker, undo_retrans }));
    }

    /// Rules out an undo of the last reduction.
    pub fn forget(&mut self) {
        self.0 = None;
    }

    /// `true` if no state for an undo is kept.
    #[inline]
    pub const fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Takes the state for an undo. Returns the controller before the reduction, or `None` if the
    /// reduction stays.
    pub fn take(&mut self) -> Option<AnyController> {
        self.0.take()?.cc
    }

    /// Eifel: `true` if `echo` is older than the first retransmission (RFC 3522 § 3.2, step 4;
    /// Linux `tcp_packet_delayed`).
    pub fn precedes_retransmission(&self, echo: Time) -> bool {
        self.0.as_ref().is_some_and(|before| echo < before.retransmit_ts)
    }

    /// Ignores echoes from now on.
    pub fn ignore_echoes(&mut self) {
        if let Some(before) = &mut self.0 {
            before.retransmit_ts = Time::ZERO;
        }
    }

    /// Counts a retransmission.
    #[inline]
    pub fn on_retransmission(&mut self) {
        if let Some(before) = &mut self.0 {
            *before.undo_retrans.get_or_insert(0) += 1;
        }
    }

    /// Counts `segments` up to `end` that D-SACK reports to have arrived twice.
    pub fn on_dsack_segments(&mut self, end: u64, segments: u64) {
        let Some(before) = self.0.as_mut().filter(|before| end > before.undo_marker) else {
            return;
        };
        if let Some(undo_retrans) = &mut before.undo_retrans {
            *undo_retrans = undo_retrans.saturating_sub(segments);
        }
    }

    /// `true` if D-SACK has reported every retransmission.
    pub fn all_reported_by_dsack(&self) -> bool {
        self.0.as_ref().is_some_and(|before| before.undo_retrans == Some(0))
    }

    /// Keeps the reduction even if the losses prove spurious, as an ECN-echo shows congestion.
    pub fn keep_reduction(&mut self) {
        if let Some(before) = &mut self.0 {
            before.cc = None;
        }
    }
}

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

/// Spurious timeouts: evidence by F-RTO and Eifel, and their undo.
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

    /// Starts F-RTO with the retransmission of the first segment.
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
    /// ([`crate::config::UndoPlan::examines_each_echo`]). By RFC 7323 § 4.3 echoes do not go back.
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
