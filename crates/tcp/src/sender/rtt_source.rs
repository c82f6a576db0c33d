//! Sources of RTT samples: the estimator of the retransmission timer, the timed segment (RFC 6298 §
//! 3) with Karn's algorithm, and the controller's samples if they differ. Also counts round trips.

use cwnd_cc::{Cause, Controller as _};
use cwnd_packet::{Echo, Range};
use cwnd_quantity::{Duration, Time};

use super::Sender;
use crate::config::Config;
use crate::controller_rtt::{ControllerRtt, Sample};
use crate::counters::Delays;
use crate::delivery_rate::DeliveryRate;
use crate::params::RttArithmetic;
use crate::rtt::{At, ControllerView, RttEstimator};
use crate::segment::{Body, SackBlocks, Segment};
use crate::sent_segments::{Arrivals, Notes};

/// RTT measurement of a connection.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct RttSource {
    /// RTT samples and delivery rates of the controller
    /// ([`crate::config::Plan::controller_rtt`] only).
    controller: Option<Box<ControllerRtt>>,
    estimator: RttEstimator,
    rounds: Rounds,
    /// The timed segment, one per round trip.
    timed: TimedSegment,
}

impl RttSource {
    /// Offset at which a cache line should begin, in bytes: each ACK reads it.
    pub const READ_FROM: usize = core::mem::offset_of!(Self, estimator);

    pub fn new(config: &Config) -> Self {
        let estimator = match config.params.rtt.rtt_arithmetic {
            RttArithmetic::Exact => RttEstimator::default(),
            RttArithmetic::Ticks => RttEstimator::in_ticks(config.params.rtt.clock),
            RttArithmetic::WindowedDeviation => {
                RttEstimator::windowed_deviation(config.params.rto.rto_variation_min)
            }
        };
        Self {
            timed: TimedSegment::new(config.plan.times_one),
            estimator,
            rounds: Rounds::default(),
            controller: ControllerRtt::new(config),
        }
    }

    /// Per-segment notes that the controller's samples need.
    pub fn notes(&self) -> Notes {
        self.controller.as_ref().map_or_else(Notes::default, |controller| controller.notes())
    }

    /// SRTT, RTTVAR, and the RTT that the controller sees.
    #[inline]
    pub const fn estimator(&self) -> &RttEstimator {
        &self.estimator
    }

    #[inline]
    pub const fn estimate(&self) -> Option<(Duration, Duration)> {
        self.estimator.estimate()
    }

    #[inline]
    pub fn srtt(&self) -> Option<Duration> {
        self.estimator.srtt()
    }

    /// Minimum RTT that the controller saw.
    #[inline]
    pub fn min(&self) -> Option<Duration> {
        self.estimator.min()
    }

    /// Latest RTT that the controller saw.
    #[inline]
    pub fn last(&self) -> Option<Duration> {
        self.estimator.last()
    }

    /// Adds a sample for the retransmission timer and the controller.
    #[inline]
    pub fn sample(&mut self, rtt: Duration, at: At) {
        self.estimator.sample(rtt, at);
    }

    pub const fn controller_view(&self) -> ControllerView {
        self.estimator.controller_view()
    }

    /// Restores the controller's RTT after samples that are only for the timer.
    pub const fn restore_controller_view(&mut self, seen: ControllerView) {
        self.estimator.set_controller_view(seen);
    }

    /// Adds a sample for the controller alone.
    pub fn add_controller_sample(&mut self, rtt: Duration) {
        self.estimator.add_controller_sample(rtt);
    }

    /// Times a segment that ends at `end` and is sent for the first time, if none is timed.
    pub const fn on_sent(&mut self, end: u64, now: Time) {
        self.timed.on_sent(end, now);
    }

    /// Stops timing after a retransmission (Karn & Partridge 1987).
    #[inline]
    pub const fn on_retransmission(&mut self) {
        self.timed.forget();
    }

    /// Takes the send time of the timed segment if `ack` acknowledges it.
    pub fn take_timed(&mut self, ack: u64) -> Option<Time> {
        self.timed.take(ack)
    }

    /// `true` if `ack` acknowledges the timed segment.
    pub const fn is_timed_over(&self, ack: u64) -> bool {
        self.timed.is_over(ack)
    }

    /// Number of round trips completed.
    #[inline]
    pub const fn round(&self) -> u64 {
        self.rounds.count()
    }

    /// Processes a cumulative ACK of all below `ack`, with SND.MAX at `high`: a round trip may end.
    #[inline]
    pub const fn end_round(&mut self, ack: u64, high: u64) {
        self.rounds.on_ack(ack, high);
    }

    /// Timestamp of a segment sent at `now`.
    pub fn stamp(&self, now: Time) -> Time {
        self.controller.as_ref().map_or(now, |controller| controller.stamp(now))
    }

    /// Send time of the segment that `echo` belongs to; `None` if no such timestamp was sent.
    pub fn verify(&mut self, echo: Time) -> Option<Time> {
        self.controller.as_mut().map_or(Some(echo), |controller| controller.verify(echo))
    }

    /// `true` if an echo of a timestamp that was never sent reduces the window.
    pub fn punishes(&self) -> bool {
        self.controller.as_ref().is_some_and(|controller| controller.punishes())
    }

    /// Delivery rate samples, for a controller that uses them.
    pub fn rates_mut(&mut self) -> Option<&mut DeliveryRate> {
        self.controller.as_mut()?.rates_mut()
    }

    /// Adds a sample for the controller by an ACK of these segments ([`ControllerRtt::on_ack`]).
    pub fn on_ack_apart(
        &mut self,
        now: Time,
        numbers: (u64, u64),
        arrivals: Arrivals,
        (timer, echo): (Option<Sample>, Echo),
    ) -> Option<Sample> {
        let sample = self.controller.as_mut()?.on_ack(now, numbers, arrivals, timer, echo)?;
        self.add_controller_sample(sample.1);
        Some(sample)
    }

    /// Adds a sample for the controller by a duplicate ACK, if it gives one
    /// ([`ControllerRtt::on_duplicate`]).
    pub fn on_duplicate(
        &mut self,
        now: Time,
        numbers: (u64, u64),
        sacked: Option<Time>,
    ) -> Option<Sample> {
        let sample = self.controller.as_mut()?.on_duplicate(now, numbers, sacked)?;
        self.add_controller_sample(sample.1);
        Some(sample)
    }

    /// Adds the handshake's round trip for the controller. Its SYN or SYN-ACK was sent at `sent`,
    /// `once` if never retransmitted. `measured` is the timer's sample, and `seen` the controller's
    /// RTT before it.
    pub fn on_handshake(
        &mut self,
        now: Time,
        (sent, once): (Time, bool),
        seen: ControllerView,
        measured: Option<Duration>,
    ) {
        let Some(controller) = &mut self.controller else { return };
        self.estimator.set_controller_view(seen);
        if let Some(measured) = controller.on_handshake(now, sent, measured, once) {
            self.estimator.add_controller_sample(measured);
        }
    }

    /// Number of echoes of timestamps that were never sent.
    pub fn forged(&self) -> u64 {
        self.controller.as_ref().map_or(0, |controller| controller.forged())
    }

    /// Count, sum and minimum of the RTTs that the controller saw.
    pub fn delays(&self) -> Option<&Delays> {
        self.controller.as_ref().map(|controller| controller.delays())
    }

    /// Starts the counting period.
    pub fn begin_counting(&mut self) {
        if let Some(controller) = &mut self.controller {
            controller.begin_counting();
        }
    }
}

/// Round trips counted in data: one ends once all data outstanding at its start is acknowledged.
#[derive(Clone, Copy, Debug, Default)]
struct Rounds {
    count: u64,
    /// The current round trip ends once all bytes below this are acknowledged.
    end: u64,
}

impl Rounds {
    /// Number of round trips completed.
    #[inline]
    const fn count(&self) -> u64 {
        self.count
    }

    /// Processes a cumulative ACK of all below `ack`, with SND.MAX at `high`.
    #[inline]
    const fn on_ack(&mut self, ack: u64, high: u64) {
        if ack >= self.end {
            self.count += 1;
            self.end = high;
        }
    }
}

/// The timed segment, one per round trip (RFC 6298 § 3), if there is one.
#[derive(Clone, Copy, Debug)]
struct TimedSegment {
    /// End of the timed segment; zero if none is timed, and [`OFF`] if none ever is.
    end: u64,
    sent: Time,
}

const OFF: u64 = u64::MAX;

impl TimedSegment {
    /// No timed segment yet; with `times` false there never is one.
    const fn new(times: bool) -> Self {
        Self { end: if times { 0 } else { OFF }, sent: Time::ZERO }
    }

    /// Times a segment that ends at `end` and is sent for the first time, if none is timed.
    const fn on_sent(&mut self, end: u64, now: Time) {
        if self.end == 0 {
            *self = Self { end, sent: now };
        }
    }

    /// Stops timing after a retransmission, as an ACK may be for either transmission (Karn &
    /// Partridge 1987).
    const fn forget(&mut self) {
        if self.end != OFF {
            self.end = 0;
        }
    }

    /// Takes the send time of the timed segment if `ack` acknowledges it.
    fn take(&mut self, ack: u64) -> Option<Time> {
        self.is_over(ack).then(|| {
            self.end = 0;
            self.sent
        })
    }

    /// `true` if `ack` acknowledges the timed segment.
    const fn is_over(self, ack: u64) -> bool {
        self.end > 0 && ack >= self.end
    }
}

impl Sender {
    /// Notes the state at a transmission for delivery rates, if the controller uses them. Returns
    /// the segment's timestamp.
    #[inline(never)]
    pub(super) fn stamp_and_log(&mut self, now: Time, range: Range, again: bool) -> Time {
        let delivered = self.delivered();
        if let Some(rates) = self.rtt.rates_mut() {
            let note = rates.on_sent(now, delivered, !again && range.start == self.seq.una());
            self.sent.record_send_state(range, note, again);
        }
        self.rtt.stamp(now)
    }

    /// Send time of the segment that `echo` belongs to. An echo of a timestamp that was never sent
    /// reduces the window if parameters ask for it.
    fn verify(&mut self, now: Time, echo: Time) -> Option<Time> {
        if !self.config.params.rtt.timestamps {
            return Some(echo);
        }
        let sent = self.rtt.verify(echo);
        if sent.is_none() && self.rtt.punishes() {
            self.on_request(&self.path(now), Cause::Loss);
        }
        sent
    }

    /// Number of echoes of timestamps that were never sent.
    #[must_use]
    pub fn forged_echoes(&self) -> u64 {
        self.rtt.forged()
    }

    /// Notes the arrival of `new` bytes that SACK blocks newly report.
    pub(super) fn log_sacked(&mut self, blocks: &SackBlocks, ack: u64, new: u64) {
        if !self.config.plan.controller_rtt {
            return;
        }
        // Blocks below the cumulative ACK are D-SACKs (RFC 2883 § 4).
        let reported = blocks.iter().take_while(|block| block.len > 0);
        let reported = reported.filter(|block| block.offset >= 0);
        let ranges = reported.map(|block| Range { start: block.start(ack), end: block.end(ack) });
        self.sent.note_sacked(ranges, new);
    }

    /// Adds the RTT sample of an ACK of new data to the estimator; it may end a backoff. Returns
    /// the sample: exact, and as the clock measures it; `None` if the ACK gives none. `first_sent`
    /// is the send time of the acknowledged data from the log, if that has one.
    #[inline(always)]
    pub(super) fn measure(
        &mut self,
        now: Time,
        segment: &Segment,
        ack: u64,
        first_sent: Option<Time>,
    ) -> (Option<Duration>, Option<Duration>) {
        let sent = if let Some(first_sent) = first_sent {
            first_sent
        } else if self.config.params.rtt.timestamps {
            segment.ts
        } else {
            let Some(sent) = self.rtt.take_timed(ack) else { return (None, None) };
            sent
        };
        let measured = self.add_rtt_sample(now, sent);
        if self.rto.backs_off() {
            self.end_of_backoff(ack);
        }
        (Some(now.since(sent)), Some(measured))
    }

    /// Send time of the first segment below `ack`, from the log of send times; `None` if any of the
    /// acknowledged data was retransmitted (Linux `tcp_clean_rtx_queue`).
    pub(super) fn first_send_time(&mut self, ack: u64) -> Option<Time> {
        let (first, _) = self.sent.take_in_order(ack);
        first.filter(|_| !self.sent.any_retransmitted(self.seq.una(), ack))
    }

    pub(super) fn add_rtt_sample(&mut self, now: Time, sent: Time) -> Duration {
        let r = self.config.measured(sent.0, now.0);
        self.rtt.sample(r, At { una: self.seq.una(), sent: self.seq.high() });
        r
    }

    /// Measures the RTT by an ACK of new data, like [`Sender::measure`]. Returns the controller's
    /// sample.
    #[inline(never)]
    pub(super) fn measure_for_controller(
        &mut self,
        now: Time,
        segment: &Segment,
        ack: u64,
    ) -> (Option<Duration>, Option<Duration>) {
        let seen = self.rtt.controller_view();
        let (exact, measured) = match self.verify(now, segment.ts) {
            Some(ts) => self.measure(now, &Segment { ts, ..*segment }, ack, None),
            None => (None, None),
        };
        self.rtt.restore_controller_view(seen);
        self.sent.forget_times_below(ack);
        let arrivals = self.sent.take_arrivals();
        let echo = match segment.body {
            Body::Ack { echo, .. } => echo,
            _ => Echo::None,
        };
        let timer = exact.zip(measured);
        let numbers = (ack, self.seq.high());
        let sample = self.rtt.on_ack_apart(now, numbers, arrivals, (timer, echo));
        self.report_delivery_rate(now);
        sample.unzip()
    }

    /// Payload bytes that the receiver has reported (draft-cheng-iccrg-delivery-rate-estimation-00:
    /// C.delivered).
    fn delivered(&self) -> u64 {
        self.seq.una() + self.sent.sacked_bytes()
    }

    /// Reports a delivery rate sample to a controller that uses them, before it sees the ACK.
    pub(super) fn report_delivery_rate(&mut self, now: Time) {
        let (delivered, in_flight) = (self.delivered(), self.in_flight());
        // § 3.4: application-limited, as nothing waits and the window has room.
        let idle = self.seq.nxt() >= self.seq.app_end() && in_flight < self.cc.window().cwnd;
        let Some(rates) = self.rtt.rates_mut() else { return };
        let sample = rates.on_ack(now, self.sent.take_newest(), delivered, in_flight, idle);
        self.cc.on_rate(&sample);
    }

    /// RTT sample of the controller by a duplicate ACK, if it gives one.
    pub(super) fn sacked_rtt_sample(&mut self, now: Time) -> Option<Sample> {
        if !self.config.plan.controller_rtt {
            return None;
        }
        let numbers = (self.seq.una(), self.seq.high());
        self.rtt.on_duplicate(now, numbers, self.sent.take_sacked())
    }

    /// Send time of the SYN that a SYN-ACK answers; `None` if that is ambiguous.
    pub(super) fn syn_sent(&mut self, now: Time, echo: Time, once: bool) -> Option<Time> {
        if !self.config.plan.controller_rtt {
            return (once || self.config.params.rtt.timestamps).then_some(echo);
        }
        let known = self.verify(now, echo);
        if self.config.params.rtt.timestamps && known.is_some() {
            return known;
        }
        once.then_some(self.pacer.last_sent())
    }

    /// Count, sum and minimum of the RTTs that the controller saw; `None` without `record_delays`.
    #[must_use]
    pub fn delays(&self) -> Option<&Delays> {
        let noted = self.config.params.timing.record_delays;
        self.rtt.delays().filter(|_| noted)
    }

    /// Latest RTT that the controller saw.
    #[must_use]
    pub fn rtt_seen(&self) -> Option<Duration> {
        self.rtt.last()
    }

    /// Minimum RTT that the controller saw.
    #[must_use]
    pub fn min_rtt_seen(&self) -> Option<Duration> {
        self.rtt.min()
    }

    /// Starts the counting period: of earlier samples only the minimum RTT counts.
    pub fn begin_counting(&mut self) {
        self.rtt.begin_counting();
    }
}
