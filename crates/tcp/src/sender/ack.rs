//! Processing of ACKs: RFC 5681 § 3.2, RFC 6582, RFC 6675 § 5, RFC 3168 § 6.1.2, RFC 6298 § 5.

use cwnd_cc::{AckSample, Controller as _, GrowthPermission, Path, Phase, Request};
use cwnd_packet::Echo;
use cwnd_quantity::{Duration, Time};

use super::undo::UndoVerdict;
use super::{Connection, Sender};
use crate::params::{BackoffUntil, GrowBy, Recovery};
use crate::segment::{Body, Flags, SackBlocks, Segment};

/// An ACK that is being processed, with the results so far.
struct Ack<'a> {
    now: Time,
    segment: &'a Segment,
    blocks: &'a SackBlocks,
    echo: Echo,
    ece: bool,
    /// End of the acknowledged data, in whole segments if only such count.
    end: u64,
    /// One past the highest byte SACKed before, or SND.UNA if none was; with RACK only.
    top: u64,
    window_changed: bool,
    /// Bytes newly acknowledged.
    acked: u64,
    /// Bytes newly reported by SACK.
    newly_sacked: u64,
    /// Bytes that the ACK shows to have arrived (RFC 6937 § 2, DeliveredData).
    delivered: u64,
    /// FlightSize before SND.UNA advances, bytes.
    flight_size: u64,
    /// FlightSize likewise, or while a timeout is repaired the bytes presumed in the network before
    /// the ACK.
    pipe: u64,
    phase: Phase,
    undo_verdict: UndoVerdict,
    /// `true` if losses were found.
    lost: bool,
    exact_rtt: Option<Duration>,
    sacked_rtt: Option<Duration>,
    /// Bytes newly reported by SACK that let the window grow.
    grows_by: u64,
}

impl<'a> Ack<'a> {
    #[inline(always)]
    fn new(now: Time, segment: &'a Segment, echo: Echo, blocks: &'a SackBlocks) -> Self {
        Self {
            now,
            segment,
            blocks,
            echo,
            ece: segment.flags.has(Flags::ECE),
            end: segment.seq,
            top: 0,
            window_changed: false,
            acked: 0,
            newly_sacked: 0,
            delivered: 0,
            flight_size: 0,
            pipe: 0,
            phase: Phase::Open,
            undo_verdict: UndoVerdict::Nothing,
            lost: false,
            exact_rtt: None,
            sacked_rtt: None,
            grows_by: 0,
        }
    }
}

impl Sender {
    /// Processes a segment from the receiver. Returns the exact RTT that it measured, for
    /// statistics; the estimator uses the configured clock's value.
    pub fn on_segment(&mut self, now: Time, segment: &Segment) -> Option<Duration> {
        let Body::Ack { window, echo, sack } = &segment.body else {
            if let Body::Quench { marked, level, .. } = &segment.body {
                self.on_quench(now, segment.seq, *marked, *level);
            }
            return None;
        };
        match self.connection {
            Connection::Established if self.config.plan.plain => {
                self.on_ack::<true>(Ack::new(now, segment, *echo, sack), *window)
            }
            Connection::Established => {
                self.on_ack::<false>(Ack::new(now, segment, *echo, sack), *window)
            }
            Connection::SynSent { tries, .. } if segment.flags.has(Flags::SYN) => {
                self.seq.set_rwnd(u64::from(*window));
                Some(self.on_syn_ack(now, segment, tries, *echo))
            }
            _ => None,
        }
    }

    #[cold]
    fn on_syn_ack(&mut self, now: Time, segment: &Segment, tries: u32, echo: Echo) -> Duration {
        self.connection = Connection::Established;
        self.rto.stop();
        let exact = now.since(segment.ts);
        let seen = self.rtt.controller_view();
        // Departs from RFC 6298 § 5.7, which wants 3 s after a lost SYN: with timestamps the echo
        // shows which SYN was answered, so the sample is valid and sets the timeout (as in Linux).
        let sent = self.syn_sent(now, segment.ts, tries == 1);
        let measured = sent.map(|sent| self.add_rtt_sample(now, sent));
        self.rtt.on_handshake(now, (self.pacer.last_sent(), tries == 1), seen, measured);
        if tries > 1 {
            // RFC 6298 § 5.7: the timeout is initialized again, not backed off further. Karn &
            // Partridge 1987 make no difference between a SYN and other segments.
            if self.config.params.rto.rto_backoff_until != BackoffUntil::SentOnce {
                self.rto.end_backoff();
            }
            self.cc = self.config.controller_after_syn_loss();
        }
        if echo != Echo::None {
            let path = self.path(now);
            self.report_to_controller(
                &path,
                AckSample { rtt: measured, echo, ..AckSample::default() },
            );
        }
        exact
    }

    /// Processes an ACK, in the order of RFC 5681, 6675 and 8985. `PLAIN` leaves out what a plain
    /// sender never does ([`crate::config::Plan::plain`]).
    #[inline(always)]
    fn on_ack<const PLAIN: bool>(&mut self, mut ack: Ack<'_>, window: u32) -> Option<Duration> {
        debug_assert!(
            !PLAIN || self.undo.is_none() && self.recovery.cwr().is_none() && !self.loss.has_rack()
        );
        if !self.process_ack_number::<PLAIN>(&mut ack, u64::from(window)) {
            return None;
        }
        self.process_sack_blocks::<PLAIN>(&mut ack);
        if ack.ece {
            self.on_ece(ack.now, ack.end);
        }
        if ack.acked > 0 {
            self.on_progress::<PLAIN>(&mut ack);
        } else {
            self.on_no_progress::<PLAIN>(&mut ack);
        }
        if ack.newly_sacked > 0 {
            self.on_new_sack::<PLAIN>(&mut ack);
        }
        if !PLAIN {
            self.update_recovery(&mut ack);
        }
        if ack.acked == 0 && (ack.grows_by > 0 || self.cc.uses_duplicate_acks()) {
            self.report_no_progress(&ack);
        }
        ack.exact_rtt
    }

    /// Processes the number and the window of an ACK (RFC 9293 § 3.10.7.4). Returns `false` if the
    /// ACK needs no further processing.
    #[inline(always)]
    fn process_ack_number<const PLAIN: bool>(
        &mut self,
        ack: &mut Ack<'_>,
        mut window: u64,
    ) -> bool {
        let number = ack.end;
        if number < self.seq.una() || number > self.seq.high() || ack.segment.flags.has(Flags::SYN)
        {
            if number < self.seq.una() && has_any(ack.blocks) {
                self.on_old_ack(ack.now, number, ack.blocks);
            }
            return false;
        }
        if !PLAIN && self.loss.has_rack() {
            ack.top = self.sent.top(self.seq.una());
            ack.end = self.end_of_whole_segments(number);
            window += number - ack.end;
        }
        // RFC 5681 § 2 (e): an ACK that changes the window is no duplicate.
        ack.window_changed = self.seq.rwnd() != window;
        self.seq.set_rwnd(window);
        self.persist.is_off() || !self.on_ack_of_probe(ack.now, ack.end)
    }

    /// Processes SACK blocks, and notes the state before the ACK takes effect.
    #[inline(always)]
    fn process_sack_blocks<const PLAIN: bool>(&mut self, ack: &mut Ack<'_>) {
        let (now, number) = (ack.now, ack.segment.seq);
        let rack = !PLAIN && self.loss.has_rack();
        let has_blocks =
            has_any(ack.blocks) && self.config.params.recovery.recovery == Recovery::Sack;
        // Departs from RFC 5681 § 2 as [`Sender::on_timeout`] does: data that a timeout marked lost
        // is not in flight.
        let pipe_in_loss = self.recovery.is_loss().then(|| self.in_flight());
        ack.newly_sacked = match has_blocks {
            true if rack => self.process_sacks_by_rack(now, ack.blocks, number, ack.top),
            true => self.sent.on_sack(ack.blocks, ack.end, self.seq.high()),
            false => 0,
        };
        if !PLAIN && ack.newly_sacked > 0 {
            self.log_sacked(ack.blocks, number, ack.newly_sacked);
        }
        (ack.flight_size, ack.phase) = (self.flight_size(), self.phase());
        ack.pipe = pipe_in_loss.unwrap_or(ack.flight_size);
        ack.acked = ack.end - self.seq.una();
        if self.recovery.is_fast() && self.config.params.counts_pipe() {
            // A partial ACK reports a retransmission and the segment that it replaced (Fall & Floyd
            // 1996; tcp-sack1.cc, recv).
            let left = if ack.acked > 0 { 2 } else { 1 };
            self.recovery.leave_pipe(left * self.config.mss);
        }
        ack.delivered = ack.acked + ack.newly_sacked;
        if rack && has_blocks {
            ack.delivered += self.loss.take_duplicate_bytes();
        }
    }

    /// Processes an ACK of new data: SND.UNA advances, the RTT is measured, recovery goes on or
    /// ends, and the controller sees the ACK.
    #[inline(always)]
    fn on_progress<const PLAIN: bool>(&mut self, ack: &mut Ack<'_>) {
        let (counts, mut searches, first_sent) = self.advance::<PLAIN>(ack);
        let late = !PLAIN && self.check_undo(ack);
        let measured = self.measure_progress::<PLAIN>(ack, first_sent);
        let frozen = ack.ece && (self.ecn.waits_at_one() || self.obeys_ece_in_loss());
        self.on_new_ack::<PLAIN>(ack.now, ack.acked, late);
        if late {
            self.undo_by_late_original(ack.now, ack.end - ack.acked);
        }
        let params = &self.config.params;
        if !PLAIN && params.recovery.reneging_shortens_rto && self.sent.reneged(ack.end) {
            self.shorten_rto_for_reneging(ack.now);
            searches = false;
        }
        if !PLAIN && self.config.params.validation.grow_on_exit {
            ack.phase = self.phase();
        }
        let delivered_counts = !PLAIN && self.config.params.validation.grow_by == GrowBy::Delivered;
        if (delivered_counts && ack.newly_sacked > 0 || searches)
            && ack.undo_verdict != UndoVerdict::Open
        {
            ack.lost |= self.detect_losses(ack.now);
        }
        if delivered_counts && (self.has_unrepaired_losses() || self.lost_retransmission_in_loss())
        {
            ack.phase = Phase::Recovery;
        }
        if frozen && self.ecn.waits_at_one() && self.in_flight() == 0 {
            self.wait_at_one(ack.now);
        }
        self.report_progress(ack, counts, measured, frozen);
    }

    /// Advances SND.UNA. Returns the bytes that count for growth, `true` if something may be lost
    /// by what arrived, and the first acknowledged data's send time if that is logged.
    #[inline(always)]
    fn advance<const PLAIN: bool>(&mut self, ack: &mut Ack<'_>) -> (u64, bool, Option<Time>) {
        let (mut searches, mut first_sent) = (false, None);
        if !PLAIN && self.loss.has_rack() {
            (searches, first_sent) =
                self.process_ack_by_rack(ack.now, ack.end, ack.top, ack.segment.ts);
        } else if !PLAIN && self.config.plan.times_each {
            first_sent = self.first_send_time(ack.end);
        }
        self.seq.on_ack(ack.end);
        let params = &self.config.params;
        let sack = params.recovery.recovery == Recovery::Sack;
        let delivered_counts = !PLAIN && params.validation.grow_by == GrowBy::Delivered;
        if sack {
            // RFC 6937 § 2, DeliveredData: data SACKed before does not count again.
            ack.delivered -= self.sent.on_ack(ack.end, self.config.plan.lost_retransmission_rule);
        }
        let counts = if delivered_counts {
            self.newly_delivered(ack.acked, ack.delivered)
        } else {
            ack.acked
        };
        if !PLAIN && !sack {
            ack.delivered = self.advance_without_sack(ack.acked, ack.delivered);
        }
        (counts, searches, first_sent)
    }

    /// Updates a sender without SACK as SND.UNA advances. Returns the bytes that arrived.
    #[cold]
    fn advance_without_sack(&mut self, acked: u64, delivered: u64) -> u64 {
        let spreads = self.config.params.prr.prr;
        let delivered = if spreads { self.newly_delivered(acked, delivered) } else { delivered };
        if self.marks_without_sack() {
            self.take_ack_without_sack(acked);
        }
        delivered
    }

    /// Checks by an ACK of new data if a reduction was spurious. Returns `true` if the ACK is for a
    /// late original, at a sender without SACK.
    #[inline(always)]
    fn check_undo(&mut self, ack: &mut Ack<'_>) -> bool {
        let sack = self.config.params.recovery.recovery == Recovery::Sack;
        let mut late = false;
        if !sack {
            late = !self.undo.is_none() && self.is_late_original(ack.segment.ts);
        } else if !self.undo.is_none() && self.may_undo() {
            ack.undo_verdict = self.try_undo(ack.now, ack.segment.ts, ack.end - ack.acked);
            ack.lost = ack.undo_verdict == UndoVerdict::Lost;
        }
        if self.recovery.is_in_frto() && !late {
            let blocks = (ack.blocks, ack.segment.seq);
            self.on_ack_in_frto(ack.now, ack.acked, ack.newly_sacked > 0, blocks);
        }
        late
    }

    /// Measures the RTT, and ends what the ACK ends: consecutive expiries, a round trip, a
    /// reduction without losses. Returns the sample that the controller sees.
    #[inline(always)]
    fn measure_progress<const PLAIN: bool>(
        &mut self,
        ack: &mut Ack<'_>,
        first_sent: Option<Time>,
    ) -> Option<Duration> {
        let (exact, measured) = if PLAIN || !self.config.plan.controller_rtt {
            self.measure(ack.now, ack.segment, ack.end, first_sent)
        } else {
            self.measure_for_controller(ack.now, ack.segment, ack.end)
        };
        ack.exact_rtt = exact;
        if self.rto.expired() > 0 {
            self.end_of_expiries();
        }
        self.rtt.end_round(ack.end, self.seq.high());
        if !PLAIN {
            self.recovery.end_cwr(ack.end);
        }
        measured
    }

    /// Reports an ACK of new data to the controller; with `frozen` its window does not grow.
    #[inline(always)]
    fn report_progress(
        &mut self,
        ack: &Ack<'_>,
        counts: u64,
        measured: Option<Duration>,
        frozen: bool,
    ) {
        let phase = ack.phase;
        let path = self.path_of(ack.now, ack.pipe, phase);
        let obeyed = ack.ece && self.config.params.ecn.obey_ece;
        let sample = AckSample {
            acked_bytes: counts,
            newly_sacked: ack.newly_sacked,
            newly_lost: self.sent.take_newly_lost(),
            rtt: measured,
            ece: ack.ece,
            echo: ack.echo,
            grow: if frozen {
                GrowthPermission::No
            } else {
                GrowthPermission::for_ack(&path, obeyed)
            },
        };
        let request = self.cc.dispatch_ack(path, sample);
        if let Request::Reduce(cause) = request {
            let flight_size = ack.flight_size;
            self.on_request(&Path { flight_size, phase, ..self.path(ack.now) }, cause);
        }
    }

    /// Processes an ACK of nothing new: without SACK it is a duplicate if data is outstanding and
    /// the receive window is unchanged.
    #[inline(always)]
    fn on_no_progress<const PLAIN: bool>(&mut self, ack: &mut Ack<'_>) {
        if self.config.params.recovery.recovery == Recovery::Sack
            || self.seq.outstanding() == 0
            || ack.window_changed
        {
            return;
        }
        if PLAIN || !self.marks_without_sack() || self.take_duplicate_without_sack(ack.now) {
            self.on_duplicate(ack.now);
            if !PLAIN && self.config.params.prr.prr {
                // Each duplicate ACK reports a segment (Linux `tcp_add_reno_sack`).
                ack.delivered = self.config.mss;
            }
        }
    }

    /// Processes news by SACK: searches for losses, and may start a recovery.
    #[inline(always)]
    fn on_new_sack<const PLAIN: bool>(&mut self, ack: &mut Ack<'_>) {
        let now = ack.now;
        if !PLAIN && ack.acked == 0 {
            if self.recovery.is_in_frto() {
                self.on_ack_in_frto(now, 0, true, (ack.blocks, ack.segment.seq));
            }
            self.end_at_reduced_window();
        }
        // New SACK information makes a duplicate ACK, whether or not the ACK also advances (RFC
        // 6675 § 2).
        self.on_duplicate(now);
        if ack.undo_verdict != UndoVerdict::Open {
            ack.lost |= self.detect_losses(now);
        }
        if !PLAIN && ack.acked == 0 {
            (ack.exact_rtt, ack.sacked_rtt) = self.sacked_rtt_sample(now).unzip();
            if self.config.params.validation.grow_by == GrowBy::Delivered {
                ack.grows_by = self.grow_by_sacked(ack.newly_sacked);
            }
        }
        // RFC 6675 § 5 (2), also for data that the last recovery retransmitted: it was sent after
        // that recovery's reduction.
        if self.recovery.is_open() && self.sent.has_losses(self.seq.una()) {
            self.enter_recovery(now);
        }
    }

    /// Updates RACK-TLP, handles lost retransmissions, and updates proportional rate reduction.
    #[inline(always)]
    fn update_recovery(&mut self, ack: &mut Ack<'_>) {
        if self.loss.has_rack() {
            let reports = ack.newly_sacked > 0 || ack.window_changed || ack.segment.seq > ack.end;
            ack.lost |= self.after_ack(ack.now, ack.flight_size, ack.acked > 0, reports);
        }
        if ack.delivered > 0 {
            if self.sent.take_lost_retransmission() {
                ack.lost = true;
                self.reduce_for_lost_retransmission(ack.now);
            }
            self.update_prr(ack.delivered, ack.acked > 0 && !ack.lost);
        }
    }

    /// Reports an ACK of nothing new to the controller.
    #[inline(always)]
    fn report_no_progress(&mut self, ack: &Ack<'_>) {
        let path = Path { flight_size: ack.flight_size, ..self.path(ack.now) };
        let grow = if ack.grows_by > 0 {
            GrowthPermission::for_ack(&path, ack.ece && self.config.params.ecn.obey_ece)
        } else {
            GrowthPermission::No
        };
        let sample = AckSample {
            acked_bytes: ack.grows_by,
            newly_sacked: ack.newly_sacked,
            rtt: ack.sacked_rtt,
            ece: ack.ece,
            echo: ack.echo,
            grow,
            ..AckSample::default()
        };
        self.report_to_controller(&path, sample);
    }

    /// Reports an ACK of nothing new, or the answer to a SYN, to the controller.
    #[inline(never)]
    fn report_to_controller(&mut self, path: &Path, mut sample: AckSample) {
        sample.newly_lost = self.sent.take_newly_lost();
        self.report_delivery_rate(path.now);
        if let Request::Reduce(cause) = self.cc.on_ack(path, &sample) {
            self.on_request(path, cause);
        }
    }
}

const fn has_any(blocks: &SackBlocks) -> bool {
    blocks[0].len > 0
}
