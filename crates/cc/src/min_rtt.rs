//! Least RTT, as a controller's estimate of the RTT without queues.

use alloc::boxed::Box;
use core::fmt;

use cwnd_packet::{CongestionHeader, Guidance};
use cwnd_quantity::{Duration, Rate, Time};

use crate::controller::{AckSample, Controller, OutgoingData, Path, Request, Signal, Window};
use crate::decrease::Rule;
use crate::dynamic::DynController;

/// Estimate of the RTT without queues (McCullagh 2008 § 4.1: minRTT for baseRTT).
///
/// It may be wrong on purpose. Then it takes the wrong value, at most the newest RTT, at the first
/// reduction or timeout, whatever was measured before, and falls with every RTT below it. A wrong
/// value set earlier would be corrected by the first packet, which finds an empty queue. § 4.3
/// studies estimates that were made in a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MinRtt {
    /// Wrong value that it takes at the first reduction; `None` once taken, or if there is none.
    override_value: Option<Duration>,
    /// `true` from the moment at which the wrong value was taken.
    overridden: bool,
    value: Option<Duration>,
}

impl MinRtt {
    /// Creates an estimate that is measured, or that is `override_value` from the first reduction
    /// on.
    pub(crate) const fn new(override_value: Option<Duration>) -> Self {
        Self { override_value, overridden: false, value: None }
    }

    /// Returns the estimate; `None` before the first measurement.
    pub(crate) const fn get(&self) -> Option<Duration> {
        self.value
    }

    /// Returns minRTT / RTT, at most 1 (McCullagh 2008 eq. 2.6, 4.1); `None` before the first
    /// measurement.
    pub(crate) fn ratio_to(&self, rtt: Option<Duration>) -> Option<f64> {
        let (value, rtt) = (self.value?, rtt?);
        Some(value.0 as f64 / rtt.max(value).0.max(1) as f64)
    }

    /// Updates the estimate by an ACK.
    pub(crate) fn on_ack(&mut self, path: &Path, ack: &AckSample) {
        self.value = match (self.overridden, self.value, ack.rtt) {
            (true, Some(value), Some(rtt)) => Some(value.min(rtt)),
            (true, value, None) => value,
            (true, None, rtt) => rtt,
            (false, ..) => path.min_rtt,
        };
    }

    /// Updates the estimate before a reduction; takes the wrong value at the first.
    pub(crate) fn on_signal(&mut self, path: &Path, signal: Signal) {
        if matches!(signal, Signal::Idle { .. } | Signal::Resume { .. }) {
            return;
        }
        if let Some(override_value) = self.override_value.take() {
            self.overridden = true;
            // The RTT without queues cannot exceed the one just measured.
            self.value = Some(path.rtt.map_or(override_value, |newest| override_value.min(newest)));
        } else if !self.overridden {
            self.value = path.min_rtt;
        }
    }
}

/// A controller that sees this estimate in place of the transport's least RTT.
#[derive(Clone, Debug)]
struct WithMinRttEstimate<C> {
    inner: C,
    min_rtt: MinRtt,
}

impl<C: Controller> WithMinRttEstimate<C> {
    const fn new(inner: C, override_value: Option<Duration>) -> Self {
        Self { inner, min_rtt: MinRtt::new(override_value) }
    }

    fn with_estimate(&self, path: &Path) -> Path {
        Path { min_rtt: self.min_rtt.get(), ..*path }
    }
}

impl<C: Controller> Controller for WithMinRttEstimate<C> {
    fn on_ack(&mut self, path: &Path, ack: &AckSample) -> Request {
        self.min_rtt.on_ack(path, ack);
        // The controllers of this crate that it wraps ignore duplicates.
        if ack.acked_bytes == 0 {
            return Request::Nothing;
        }
        self.inner.on_ack(&self.with_estimate(path), ack)
    }
    fn on_signal(&mut self, path: &Path, signal: Signal) {
        self.min_rtt.on_signal(path, signal);
        self.inner.on_signal(&self.with_estimate(path), signal);
    }
    fn stamp(&mut self, data: &OutgoingData) -> CongestionHeader {
        self.inner.stamp(data)
    }
    fn undo(&mut self, before: Self, now: Time, after_timeout: bool) {
        self.inner.undo(before.inner, now, after_timeout);
    }
    fn raise_threshold(&mut self, ssthresh: u64) {
        self.inner.raise_threshold(ssthresh);
    }
    fn on_sack_rtt(&mut self, path: &Path, rtt: Duration) {
        self.inner.on_sack_rtt(&self.with_estimate(path), rtt);
    }
    fn add_in_flight(&mut self, bytes: u64) {
        self.inner.add_in_flight(bytes);
    }
    fn window(&self) -> Window {
        self.inner.window()
    }
    fn pacing(&self) -> Option<Rate> {
        self.inner.pacing()
    }
    fn rate_applies_at_once(&self) -> bool {
        self.inner.rate_applies_at_once()
    }
    fn spacing(&self) -> Option<Duration> {
        self.inner.spacing()
    }
    fn min_rtt(&self) -> Option<Duration> {
        self.min_rtt.get()
    }
    fn guidance(&self) -> Option<Guidance> {
        self.inner.guidance()
    }
    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        self.inner.count(each);
    }
}

/// Boxes a controller; wraps it with its own estimate if its rule uses adaptive backoff.
pub(crate) fn with_min_rtt_estimate<C>(rule: &Rule, controller: C) -> Box<dyn DynController>
where
    C: Controller + Clone + fmt::Debug + Send + Sync + 'static,
{
    if rule.adaptive_delta.is_none() {
        return Box::new(controller);
    }
    Box::new(WithMinRttEstimate::new(controller, rule.initial_min_rtt))
}
