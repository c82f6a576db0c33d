//! RACK at the sender (RFC 8985 § 6): what arrived, and what is lost by now.

use cwnd_cc::Controller as _;
use cwnd_packet::Range;
use cwnd_quantity::{Duration, Time};

use super::Sender;
use super::loss_detector::{Arrival, Dsack, Search, Timer};
use crate::segment::SackBlocks;

impl Sender {
    /// New data of `[seq, end)` goes: it is timed, and when it went is noted.
    #[inline(never)]
    pub(super) fn note_original(&mut self, now: Time, seq: u64, end: u64) {
        self.rtt.on_sent(end, now);
        self.sent.on_sent(Range { start: seq, end }, now, self.config.mss);
        self.wait_for_the_tail(now, false);
    }

    /// Up to where segments are acknowledged as a whole (Linux, `tcp_clean_rtx_queue`).
    #[inline(never)]
    pub(super) fn whole(&self, ack: u64) -> u64 {
        if !self.config.params.detection.whole_segments {
            return ack;
        }
        self.sent.begin_of(ack, self.config.segments).max(self.seq.una())
    }

    /// Takes SACK blocks in, where RACK looks at each arrival; returns how many bytes they newly
    /// report. Up to `top` something had arrived.
    #[cold]
    pub(super) fn take_sacks(&mut self, now: Time, blocks: &SackBlocks, ack: u64, top: u64) -> u64 {
        let (una, high) = (self.seq.una(), self.seq.high());
        if let Some(again) = told_twice(blocks, ack) {
            self.on_told_twice(again);
        }
        let whole = self.config.params.detection.whole_segments.then_some(self.config.segments);
        let (upwards, pieces) = self.sent.new_blocks(blocks, ack, whole);
        let upwards = pieces.as_deref().unwrap_or(&upwards);
        let arrival = self.arrival(now, top, None);
        for block in upwards.iter().filter(|block| block.len > 0) {
            let (start, end) = (block.start(ack).max(ack.max(una)), block.end(ack));
            if end > high {
                continue;
            }
            self.loss.on_arrivals(&self.sent, Range { start, end }, &arrival);
        }
        // An ACK that was overtaken is no sample (`tcp_ack`, `old_ack`).
        let noted = self.config.params.rtt.rtt_from_notes && ack >= una;
        if self.whole(ack) <= una
            && let Some((first, last)) = self.loss.take_sacked()
            && noted
        {
            self.measure_sacked(now, first, last);
        }
        let new = self.sent.on_sack_above(upwards, ack, una.max(ack), high);
        self.sent.look_at_retransmissions(una, None);
        if new > 0 && self.whole(ack) <= una {
            self.loss.on_delivery(now);
        }
        new
    }

    /// All below `ack` has arrived: what of it was not known; up to `top` something had arrived
    /// before this ACK. Returns whether something may be lost by that, and when the first of it
    /// went that went once and was not reported before: the sample of the round trip, unless
    /// anything was acknowledged that went again (Linux, `tcp_clean_rtx_queue`).
    #[inline(never)]
    pub(super) fn take_ack(
        &mut self,
        now: Time,
        ack: u64,
        top: u64,
        echo: Time,
    ) -> (bool, Option<Time>) {
        let noted = self.config.params.rtt.rtt_from_notes;
        if !self.loss.is_probing() && self.sent.is_untouched(self.seq.una()) {
            let (first, last) = self.sent.take_in_order(ack);
            self.loss.on_in_order(now, last, ack);
            return (false, first.filter(|_| noted));
        }
        let went_again = self.sent.any_again(self.seq.una(), ack);
        let sacked = self.loss.take_sacked();
        let arrival = self.arrival(now, top, self.echoes_tell().then_some(echo));
        let range = Range { start: self.seq.una(), end: ack };
        self.loss.on_arrivals(&self.sent, range, &arrival);
        self.loss.on_delivery(now);
        self.sent.forget_times_below(ack);
        let acked = self.loss.take_sacked().filter(|_| !went_again);
        (true, acked.or(sacked).map(|(first, _)| first).filter(|_| noted))
    }

    fn arrival(&self, now: Time, top: u64, echo: Option<Time>) -> Arrival {
        let least = self.rtt.min().unwrap_or(Duration::ZERO);
        Arrival { now, top, least, echo, mss: self.config.mss }
    }

    /// An ACK that acknowledges nothing new reported data by SACK that went once: a sample of the
    /// round trip (Linux, `tcp_ack_update_rtt`). If it went before the first outstanding segment
    /// went again, the timer begins anew (`tcp_clean_rtx_queue`).
    #[cold]
    fn measure_sacked(&mut self, now: Time, first: Time, last: Time) {
        if !self.config.plan.controller_rtt {
            let (path, rtt) = (self.path(now), self.config.measured(last.0, now.0));
            self.cc.on_sack_rtt(&path, rtt);
        }
        let seen = self.rtt.seen();
        self.take_rtt(now, first);
        if self.config.plan.controller_rtt {
            self.rtt.restore_seen(seen);
        } else {
            self.rtt.see(self.config.measured(last.0, now.0));
        }
        if self.rto.backs_off() {
            self.end_of_backoff(self.seq.una());
        }
        if self.sent.resent_at(self.seq.una()).is_some_and(|again| first < again) {
            self.rto.set(now + self.rto());
        }
    }

    /// Finds what is lost by now, and sets the timer for what is not yet.
    #[cold]
    pub(super) fn detect_by_time(&mut self, now: Time) -> bool {
        let (params, mss) = (&self.config.params, self.config.mss);
        let enough = self.sent.sacked_bytes() > u64::from(params.detection.dup_thresh - 1) * mss;
        let search = Search {
            now,
            una: self.seq.una(),
            hurries: !self.recovery.is_open() || enough,
            least: self.rtt.min(),
            srtt: self.rtt.srtt(),
        };
        let Some((found, waits)) = self.loss.detect(&mut self.sent, &search) else { return false };
        if waits > now {
            let more = Duration(MORE_TICKS * self.config.params.rto.rto_granularity.0);
            self.loss.wait_for_order((waits + more).min(now + self.rto()));
        } else {
            self.loss.end_wait_for_order();
        }
        found
    }

    /// Nothing was delivered, and something may be lost all the same: the window stays, and if less
    /// is in flight so much more may go (Linux,
    /// `tcp_cwnd_reduction`).
    fn detect_undelivered(&mut self, now: Time) -> bool {
        let before = self.sent.pipe(self.seq.una(), self.seq.nxt());
        let found = self.detect_by_time(now);
        let left = before.saturating_sub(self.sent.pipe(self.seq.una(), self.seq.nxt()));
        if self.recovery.is_fast()
            && let Some(prr) = self.recovery.prr_mut()
        {
            prr.allow_more(left);
        }
        found
    }

    /// The timer of what is missing, or of the tail, expires.
    #[cold]
    pub(super) fn on_loss_timer(&mut self, now: Time) {
        match self.loss.expire() {
            Timer::Off => {}
            Timer::Probe => self.probe_the_tail(now),
            Timer::Reordering => {
                self.loss.look();
                let found = self.detect_undelivered(now);
                // While a timeout is repaired any loss does (`tcp_rack_reo_timeout`).
                let repairs = self.recovery.is_loss();
                let recovers = repairs && self.config.plan.recovery.recovers_in_loss;
                if found && (recovers || self.is_still_short()) {
                    self.enter_recovery(now);
                    // Linux lets it count as if a segment had arrived (`tcp_rack_reo_timeout`).
                    self.update_prr(self.config.mss, false);
                }
            }
        }
    }

    /// An ACK was taken in, before which `flight` was in flight; `told` if it told anything else
    /// than `advanced`. Returns whether losses were found meanwhile.
    #[inline(never)]
    pub(super) fn after_ack(&mut self, now: Time, flight: u64, advanced: bool, told: bool) -> bool {
        if self.loss.on_ack() {
            self.judge_probe(now, flight, !advanced && !told);
        }
        let needless = self.undo.all_arrived();
        let mut found = needless && self.take_back_needless(now);
        if !advanced && !told && self.recovery.is_fast() {
            // What an ACK before left open (`Judged::Open`).
            found |= self.detect_undelivered(now);
        }
        if (advanced || needless) && self.is_still_short() || self.loses_in_loss() {
            self.enter_recovery(now);
        }
        if advanced {
            self.wait_for_the_tail(now, true);
        }
        found
    }

    /// The other end tells that `[again.start, again.end)` arrived twice (RFC 2883; Linux,
    /// `tcp_check_dsack`).
    #[cold]
    fn on_told_twice(&mut self, again: Range) {
        let (mss, una) = (self.config.mss, self.seq.una());
        let segments = (again.end - again.start).div_ceil(mss);
        let (end, bytes) = (again.end, segments * mss);
        let retransmissions = self.counters.retransmissions;
        if !self.loss.on_dsack(&Dsack { end, segments, bytes, retransmissions }) {
            return;
        }
        let went_again = again.end <= una || self.sent.times_again(again.start.max(una)) > 0;
        if went_again {
            self.undo.arrived_twice(again.end, segments);
        }
    }

    /// SACK alone reported so many new bytes: where segments come later than `dup_thresh` the
    /// window grows by them all the same (Linux, `tcp_may_raise_cwnd`); they count no more when
    /// they are acknowledged.
    ///
    /// Returns the bytes that count.
    #[cold]
    pub(super) fn grow_by_sacked(&self, bytes: u64) -> u64 {
        let open = self.recovery.is_open() && self.recovery.cwr().is_none();
        let open = open && !self.is_still_short();
        if !open || self.loss.most_late() <= u64::from(self.config.params.detection.dup_thresh) {
            return 0;
        }
        bytes
    }
}

/// Data that arrived twice, as the first block of an ACK may tell (RFC 2883 § 4): it lies below the
/// ACK, or within the second block.
fn told_twice(blocks: &SackBlocks, ack: u64) -> Option<Range> {
    let [first, second, ..] = blocks.map(|b| Range { start: b.start(ack), end: b.end(ack) });
    let within = second.start <= first.start && first.end <= second.end;
    let again = first.start < ack || blocks[1].len > 0 && within;
    (again && first.start < first.end).then_some(first)
}

/// The timer waits so many ticks longer than what is missing needs, or the tail (Linux,
/// `TCP_TIMEOUT_MIN_US`).
pub(super) const MORE_TICKS: u64 = 2;
