//! RACK-TLP in the sender (RFC 8985): arrivals and the losses that follow from them (§ 6), and the
//! tail loss probe (§ 7).

use cwnd_cc::{Cause, Controller as _, Path, Signal};
use cwnd_packet::Range;
use cwnd_quantity::{Duration, Time};

use super::Sender;
use super::loss_detector::{Arrival, Dsack, Search, Timer};
use super::transmit::Choice;
use crate::segment::{SackBlocks, Segment};

impl Sender {
    /// Times new data of `[seq, end)` if no segment is timed, notes its send time, and sets the
    /// probe timer.
    #[inline(never)]
    pub(super) fn record_first_transmission(&mut self, now: Time, seq: u64, end: u64) {
        self.rtt.on_sent(end, now);
        self.sent.on_sent(Range { start: seq, end }, now, self.config.mss);
        self.schedule_tail_loss_probe(now, false);
    }

    /// End of the segments that `ack` acknowledges in whole, if only such count (`whole_segments`;
    /// Linux `tcp_clean_rtx_queue`); otherwise `ack`.
    #[inline(never)]
    pub(super) fn end_of_whole_segments(&self, ack: u64) -> u64 {
        if !self.config.params.detection.whole_segments {
            return ack;
        }
        self.sent.begin_of(ack, self.config.segments).max(self.seq.una())
    }

    /// Processes SACK blocks with RACK, which examines each arrival. Returns the bytes that they
    /// newly report. `top` is one past the highest byte that had arrived before.
    #[cold]
    pub(super) fn process_sacks_by_rack(
        &mut self,
        now: Time,
        blocks: &SackBlocks,
        ack: u64,
        top: u64,
    ) -> u64 {
        let (una, high) = (self.seq.una(), self.seq.high());
        if let Some(again) = dsack_block(blocks, ack) {
            self.on_dsack_block(again);
        }
        let segments = self.config.params.detection.whole_segments.then_some(self.config.segments);
        let (upwards, pieces) = self.sent.new_blocks(blocks, ack, segments);
        let upwards = pieces.as_deref().unwrap_or(&upwards);
        let arrival = self.arrival(now, top, None);
        for block in upwards.iter().filter(|block| block.len > 0) {
            let (start, end) = (block.start(ack).max(ack.max(una)), block.end(ack));
            if end > high {
                continue;
            }
            self.loss.on_arrivals(&self.sent, Range { start, end }, &arrival);
        }
        // An ACK below SND.UNA gives no sample (`tcp_ack`, `old_ack`).
        let logs_rtt = self.config.params.rtt.rtt_from_notes && ack >= una;
        if self.end_of_whole_segments(ack) <= una
            && let Some((first, last)) = self.loss.take_sacked()
            && logs_rtt
        {
            self.measure_sacked(now, first, last);
        }
        let new = self.sent.on_sack_above(upwards, ack, una.max(ack), high);
        self.sent.review_retransmissions(una, None);
        if new > 0 && self.end_of_whole_segments(ack) <= una {
            self.loss.on_delivery(now);
        }
        new
    }

    /// Notes the arrival of all below `ack`; `top` is one past the highest byte that had arrived
    /// before. Returns `true` if something may be lost by that. The send time, as RTT sample, is
    /// that of the first data that was sent once and not reported before; if retransmitted data was
    /// acknowledged, that of the first newly SACKed (Linux `tcp_clean_rtx_queue`). It is `None`
    /// without `rtt_from_notes`.
    #[inline(never)]
    pub(super) fn process_ack_by_rack(
        &mut self,
        now: Time,
        ack: u64,
        top: u64,
        echo: Time,
    ) -> (bool, Option<Time>) {
        let logs_rtt = self.config.params.rtt.rtt_from_notes;
        if !self.loss.is_probing() && self.sent.is_untouched(self.seq.una()) {
            let (first, last) = self.sent.take_in_order(ack);
            self.loss.on_in_order(now, last, ack);
            return (false, first.filter(|_| logs_rtt));
        }
        let was_retransmitted = self.sent.any_retransmitted(self.seq.una(), ack);
        let sacked = self.loss.take_sacked();
        let arrival = self.arrival(now, top, self.echo_identifies_transmission().then_some(echo));
        let range = Range { start: self.seq.una(), end: ack };
        self.loss.on_arrivals(&self.sent, range, &arrival);
        self.loss.on_delivery(now);
        self.sent.forget_times_below(ack);
        let acked = self.loss.take_sacked().filter(|_| !was_retransmitted);
        (true, acked.or(sacked).map(|(first, _)| first).filter(|_| logs_rtt))
    }

    fn arrival(&self, now: Time, top: u64, echo: Option<Time>) -> Arrival {
        let min_rtt = self.rtt.min().unwrap_or(Duration::ZERO);
        Arrival { now, top, min_rtt, echo, mss: self.config.mss }
    }

    /// Adds an RTT sample for SACKed data that was sent once, by an ACK of nothing new (Linux
    /// `tcp_ack_update_rtt`). If it was sent before the first outstanding segment was
    /// retransmitted, the retransmission timer restarts (`tcp_clean_rtx_queue`).
    #[cold]
    fn measure_sacked(&mut self, now: Time, first: Time, last: Time) {
        if !self.config.plan.controller_rtt {
            let (path, rtt) = (self.path(now), self.config.measured(last.0, now.0));
            self.cc.on_sack_rtt(&path, rtt);
        }
        let seen = self.rtt.controller_view();
        self.add_rtt_sample(now, first);
        if self.config.plan.controller_rtt {
            self.rtt.restore_controller_view(seen);
        } else {
            self.rtt.add_controller_sample(self.config.measured(last.0, now.0));
        }
        if self.rto.backs_off() {
            self.end_of_backoff(self.seq.una());
        }
        if self.sent.retransmitted_at(self.seq.una()).is_some_and(|again| first < again) {
            self.rto.set(now + self.rto());
        }
    }

    /// Marks segments lost by RACK at `now`, and sets the reordering timer for the rest. Returns
    /// `true` if there are any.
    #[cold]
    pub(super) fn detect_by_time(&mut self, now: Time) -> bool {
        let (params, mss) = (&self.config.params, self.config.mss);
        let enough = self.sent.sacked_bytes() > u64::from(params.detection.dup_thresh - 1) * mss;
        let search = Search {
            now,
            una: self.seq.una(),
            zero_window: !self.recovery.is_open() || enough,
            min_rtt: self.rtt.min(),
            srtt: self.rtt.srtt(),
        };
        let Some((found, waits)) = self.loss.detect(&mut self.sent, &search) else { return false };
        if waits > now {
            let more = Duration(MORE_TICKS * self.config.params.rto.rto_granularity.0);
            self.loss.set_reordering_timer((waits + more).min(now + self.rto()));
        } else {
            self.loss.stop_reordering_timer();
        }
        found
    }

    /// Searches for losses without new deliveries. The window stays, and in fast recovery PRR may
    /// send as many bytes as that removes from the pipe (Linux `tcp_cwnd_reduction`). Returns
    /// `true` if losses are found.
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

    /// Processes an expiry of the reordering or probe timer.
    #[cold]
    pub(super) fn on_loss_timer(&mut self, now: Time) {
        match self.loss.expire() {
            Timer::Off => {}
            Timer::Probe => self.on_tail_loss_timer(now),
            Timer::Reordering => {
                self.loss.request_search();
                let found = self.detect_undelivered(now);
                // While a timeout is repaired, any loss starts a recovery (`tcp_rack_reo_timeout`).
                let repairs = self.recovery.is_loss();
                let recovers = repairs && self.config.plan.recovery.recovers_in_loss;
                if found && (recovers || self.has_unrepaired_losses()) {
                    self.enter_recovery(now);
                    // Linux counts it as the delivery of one segment (`tcp_rack_reo_timeout`).
                    self.update_prr(self.config.mss, false);
                }
            }
        }
    }

    /// Finishes an ACK with RACK-TLP: judges the probe, undoes by D-SACK, starts recoveries and
    /// sets the probe timer. `flight` is FlightSize before the ACK; `reports` if it reported
    /// anything beside `advanced`. Returns `true` if losses were found.
    #[inline(never)]
    pub(super) fn after_ack(
        &mut self,
        now: Time,
        flight: u64,
        advanced: bool,
        reports: bool,
    ) -> bool {
        if self.loss.on_ack() {
            self.end_probe(now, flight, !advanced && !reports);
        }
        let needless = self.undo.all_reported_by_dsack();
        let mut found = needless && self.undo_by_dsack(now);
        if !advanced && !reports && self.recovery.is_fast() {
            // An earlier ACK may have deferred its search (`UndoVerdict::Open`).
            found |= self.detect_undelivered(now);
        }
        if (advanced || needless) && self.has_unrepaired_losses()
            || self.lost_retransmission_in_loss()
        {
            self.enter_recovery(now);
        }
        if advanced {
            self.schedule_tail_loss_probe(now, true);
        }
        found
    }

    /// Processes a D-SACK of `[again.start, again.end)` (RFC 2883; Linux `tcp_check_dsack`).
    #[cold]
    fn on_dsack_block(&mut self, again: Range) {
        let (mss, una) = (self.config.mss, self.seq.una());
        let segments = (again.end - again.start).div_ceil(mss);
        let (end, bytes) = (again.end, segments * mss);
        let retransmissions = self.counters.retransmissions;
        if !self.loss.on_dsack(&Dsack { end, segments, bytes, retransmissions }) {
            return;
        }
        let was_retransmitted =
            again.end <= una || self.sent.retransmit_count(again.start.max(una)) > 0;
        if was_retransmitted {
            self.undo.on_dsack_segments(again.end, segments);
        }
    }

    /// Bytes of the `bytes` that SACK newly reports which count for growth. Outside recovery and
    /// CWR, after reordering by more than `dup_thresh` segments, all count (Linux
    /// `tcp_may_raise_cwnd`), otherwise none. They do not count again when they are acknowledged.
    #[cold]
    pub(super) fn grow_by_sacked(&self, bytes: u64) -> u64 {
        let open = self.recovery.is_open() && self.recovery.cwr().is_none();
        let open = open && !self.has_unrepaired_losses();
        if !open || self.loss.reordering() <= u64::from(self.config.params.detection.dup_thresh) {
            return 0;
        }
        bytes
    }
}

/// The tail loss probe (RFC 8985 § 7): after two round trips without an ACK one segment is sent
/// whose ACK shows losses at the tail.
impl Sender {
    /// Sets the probe timer after data was sent, or with `acknowledged` after an ACK (RFC 8985
    /// § 7.2; Linux `tcp_schedule_loss_probe`).
    #[inline(always)]
    pub(super) fn schedule_tail_loss_probe(&mut self, now: Time, acknowledged: bool) {
        if !self.config.params.detection.tail_loss_probe {
            return;
        }
        let tail_set = (!acknowledged && self.seq.outstanding() > self.config.mss).then_some(now);
        if self.loss.sets_probe(tail_set) {
            self.set_probe_timer(now, acknowledged);
        }
    }

    // Not inlined: for most segments of an instant there is nothing to do.
    #[inline(never)]
    fn set_probe_timer(&mut self, now: Time, acknowledged: bool) {
        let (params, outstanding) = (&self.config.params, self.seq.outstanding());
        let open = self.recovery.is_open() && self.sent.is_empty();
        if !open || outstanding == 0 || !self.persist.is_off() {
            self.loss.stop_probe();
            return;
        }
        let wait = self.rtt.srtt().map_or(params.rto.rto_initial, |srtt| {
            // The ACK of a single segment may be delayed.
            let ticks = Duration(MORE_TICKS * params.rto.rto_granularity.0);
            let more = if outstanding <= self.config.mss { params.rto.rto_min } else { ticks };
            srtt + srtt + more
        });
        let mut probe = now + wait;
        // The RTO runs from the last transmission of the first outstanding segment
        // (`tcp_rto_delta_us`).
        let last_sent = || {
            self.sent.retransmitted_at(self.seq.una()).or_else(|| self.sent.sent_at(self.seq.una()))
        };
        let first = if acknowledged { None } else { last_sent() }.unwrap_or(now);
        if first + self.config.rto.lower_bound(self.rtt.estimate()) < probe {
            let expires = first + self.rto();
            if expires > now {
                probe = probe.min(expires);
            } else {
                // An RTO that is over is no bound. Its timer then waits for the probe, as Linux has
                // one timer for both.
                let tick = self.config.params.rto.rto_granularity.max(Duration(1));
                self.rto.set(self.rto.deadline().max(probe + tick));
            }
        }
        self.loss.set_probe(probe);
    }

    /// Processes an expiry of the probe timer: a probe follows if a segment may be sent, unless the
    /// outcome of an earlier one is awaited (RFC 8985 § 7.3; `tcp_send_loss_probe`).
    pub(super) fn on_tail_loss_timer(&mut self, now: Time) {
        let (rto, tick) = (self.rto(), self.config.params.rto.rto_granularity);
        let fits = self.tail_probe().is_some();
        let sends = self.loss.on_probe_timer(self.seq.high() > self.seq.una() && fits);
        // Losses that a probe finds get a whole timeout. Without a probe the timeout continues
        // (`tcp_rearm_rto`).
        let from = self.sent.sent_at(self.seq.una()).filter(|_| !sends).unwrap_or(now);
        self.rto.set((from + rto).max(now + tick.max(Duration(1))));
    }

    /// Segment of a probe: new data if the receiver has room, whatever the congestion window.
    /// Otherwise the last segment again, if the receive window, which may have shrunk, still
    /// includes it.
    fn tail_probe(&self) -> Option<Choice> {
        let last = self.sent.last_segment()?.max(self.seq.una());
        let again = || self.retransmission(last, self.seq.high());
        self.unsent().or_else(|| again().map(|last| Choice { rescue: true, ..last }))
    }

    /// Sends the probe if it is due and no recovery is under way; nothing else may be sent now.
    #[cold]
    pub(super) fn send_tail_probe(&mut self, now: Time) -> Option<Segment> {
        if !self.loss.take_probe_due() || !self.recovery.is_open() {
            return None;
        }
        let choice = self.tail_probe()?;
        // The probe has its own timer and leaves the RTO as it was set.
        let deadline = self.rto.deadline();
        let segment = self.send(now, choice);
        self.rto.set(deadline);
        self.counters.tail_probes += 1;
        let again = Range { start: choice.seq, end: choice.seq + choice.len };
        self.loss.on_probe_sent(self.seq.high(), choice.rescue.then_some((again, now)));
        Some(segment)
    }

    /// Processes an ACK after a probe (RFC 8985 § 7.4); `duplicate` if it reports nothing new.
    #[cold]
    pub(super) fn end_probe(&mut self, now: Time, flight_size: u64, duplicate: bool) {
        let una = self.seq.una();
        let repaired = self.loss.probe_outcome(una, duplicate);
        if repaired == Some(true) && !self.cc.is_rate_based() {
            // The probe repaired a loss that nothing else detected (RFC 8985 § 7.4.2): one
            // reduction, and nothing to retransmit.
            let path = Path { flight_size, ..self.path(now) };
            self.cc.on_signal(&path, Signal::Reduce(Cause::Loss));
            self.count_loss_reduction();
        }
    }
}

/// D-SACK of an ACK, if its first block is one (RFC 2883 § 4): that lies below the ACK, or within
/// the second block.
fn dsack_block(blocks: &SackBlocks, ack: u64) -> Option<Range> {
    let [first, second, ..] = blocks.map(|b| Range { start: b.start(ack), end: b.end(ack) });
    let within = second.start <= first.start && first.end <= second.end;
    let again = first.start < ack || blocks[1].len > 0 && within;
    (again && first.start < first.end).then_some(first)
}

/// Clock ticks added to the reordering and the probe timer (Linux `TCP_TIMEOUT_MIN_US`).
const MORE_TICKS: u64 = 2;
