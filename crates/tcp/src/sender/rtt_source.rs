//! Sources of round-trip times: the estimator of the retransmission timer, the segment that is
//! timed, and what the controller sees apart from both.

use cwnd_packet::Echo;
use cwnd_quantity::{Duration, Time};

use super::rounds::Rounds;
use super::timed_segment::TimedSegment;
use crate::config::Config;
use crate::controller_rtt::{ControllerRtt, Sample};
use crate::delays::Delays;
use crate::delivery_rate::Rates;
use crate::params::RttArithmetic;
use crate::rtt::{At, RttEstimator, Seen};
use crate::sent_segments::{Arrivals, Notes};

/// Round-trip times of a connection.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct RttSource {
    /// Round trips and delivery rates of the controller, where they are not the timer's
    /// ([`crate::plan::Plan::controller_rtt`]).
    controller: Option<Box<ControllerRtt>>,
    estimator: RttEstimator,
    rounds: Rounds,
    /// The segment that is timed, one a round trip.
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

    /// Notes of each segment that it needs.
    pub fn notes(&self) -> Notes {
        self.controller.as_ref().map_or_else(Notes::default, |controller| controller.notes())
    }

    /// SRTT, RTTVAR, and what the controller sees.
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

    /// The least round-trip time that the controller saw.
    #[inline]
    pub fn min(&self) -> Option<Duration> {
        self.estimator.min()
    }

    /// The newest round-trip time that the controller saw.
    #[inline]
    pub fn last(&self) -> Option<Duration> {
        self.estimator.last()
    }

    /// A sample of the retransmission timer, which the controller sees, too.
    #[inline]
    pub fn sample(&mut self, rtt: Duration, at: At) {
        self.estimator.sample(rtt, at);
    }

    pub const fn seen(&self) -> Seen {
        self.estimator.seen()
    }

    /// Takes back what the controller saw of samples that only the timer uses.
    pub const fn restore_seen(&mut self, seen: Seen) {
        self.estimator.set_seen(seen);
    }

    /// A sample that the controller sees, but not the timer.
    pub fn see(&mut self, rtt: Duration) {
        self.estimator.see(rtt);
    }

    /// A segment that ends at `end` goes for the first time.
    pub const fn on_sent(&mut self, end: u64, now: Time) {
        self.timed.on_sent(end, now);
    }

    /// Data goes again (Karn & Partridge 1987).
    #[inline]
    pub const fn on_retransmission(&mut self) {
        self.timed.forget();
    }

    /// Send time of the timed segment, which is timed no more, if an ACK acknowledges it.
    pub fn take_timed(&mut self, ack: u64) -> Option<Time> {
        self.timed.take(ack)
    }

    /// `true` if an ACK acknowledges the timed segment.
    pub const fn is_timed_over(&self, ack: u64) -> bool {
        self.timed.is_over(ack)
    }

    /// The number of round trips that are over.
    #[inline]
    pub const fn round(&self) -> u64 {
        self.rounds.count()
    }

    /// All below `ack` is acknowledged, where all below `high` was sent: a round trip may end.
    #[inline]
    pub const fn end_round(&mut self, ack: u64, high: u64) {
        self.rounds.on_ack(ack, high);
    }

    /// The timestamp of a segment that goes now.
    pub fn stamp(&self, now: Time) -> Time {
        self.controller.as_ref().map_or(now, |controller| controller.stamp(now))
    }

    /// Send time of the segment that an echo is of; `None` if there was none.
    pub fn verify(&mut self, echo: Time) -> Option<Time> {
        self.controller.as_mut().map_or(Some(echo), |controller| controller.verify(echo))
    }

    /// `true` if an echo that was never sent reduces the window.
    pub fn punishes(&self) -> bool {
        self.controller.as_ref().is_some_and(|controller| controller.punishes())
    }

    /// Delivery rates, for a controller that steers by them.
    pub fn rates_mut(&mut self) -> Option<&mut Rates> {
        self.controller.as_mut()?.rates_mut()
    }

    /// An ACK acknowledges these segments ([`ControllerRtt::on_ack`]).
    pub fn on_ack_apart(
        &mut self,
        now: Time,
        numbers: (u64, u64),
        arrivals: Arrivals,
        (timer, echo): (Option<Sample>, Echo),
    ) -> Option<Sample> {
        let sample = self.controller.as_mut()?.on_ack(now, numbers, arrivals, timer, echo)?;
        self.see(sample.1);
        Some(sample)
    }

    /// A duplicate ACK may give a sample, too ([`ControllerRtt::on_duplicate`]).
    pub fn on_duplicate(
        &mut self,
        now: Time,
        numbers: (u64, u64),
        sacked: Option<Time>,
    ) -> Option<Sample> {
        let sample = self.controller.as_mut()?.on_duplicate(now, numbers, sacked)?;
        self.see(sample.1);
        Some(sample)
    }

    /// The handshake took a round trip from `sent`, of which the timer made `measured`; what was
    /// `seen` before.
    pub fn on_handshake(
        &mut self,
        now: Time,
        (sent, once): (Time, bool),
        seen: Seen,
        measured: Option<Duration>,
    ) {
        let Some(controller) = &mut self.controller else { return };
        self.estimator.set_seen(seen);
        if let Some(measured) = controller.on_handshake(now, sent, measured, once) {
            self.estimator.see(measured);
        }
    }

    /// Echoes of timestamps that were never sent.
    pub fn forged(&self) -> u64 {
        self.controller.as_ref().map_or(0, |controller| controller.forged())
    }

    /// The samples that the controller saw.
    pub fn delays(&self) -> Option<&Delays> {
        self.controller.as_ref().map(|controller| controller.delays())
    }

    /// Counting begins.
    pub fn begin_counting(&mut self) {
        if let Some(controller) = &mut self.controller {
            controller.begin_counting();
        }
    }
}
