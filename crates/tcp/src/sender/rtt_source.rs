//! Sources of RTT samples: the estimator of the retransmission timer, the timed segment (RFC 6298 §
//! 3) with Karn's algorithm, and the controller's samples if they differ. Also counts round trips.

use cwnd_packet::Echo;
use cwnd_quantity::{Duration, Time};

use crate::config::Config;
use crate::controller_rtt::{ControllerRtt, Sample};
use crate::counters::Delays;
use crate::delivery_rate::DeliveryRate;
use crate::params::RttArithmetic;
use crate::rtt::{At, ControllerView, RttEstimator};
use crate::sent_segments::{Arrivals, Notes};

/// RTT measurement of a connection.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct RttSource {
    /// RTT samples and delivery rates of the controller, if they differ from the timer's
    /// ([`crate::config::Plan::controller_rtt`]).
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

    /// RTT samples that the controller saw.
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
