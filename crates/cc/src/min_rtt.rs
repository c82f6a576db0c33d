//! The least round-trip time: what a controller takes for the round trip without queues.

use core::fmt;

use cwnd_packet::{Guidance, Header};
use cwnd_quantity::{Duration, Rate, Time};

use crate::controller::{AckSample, Controller, Departing, Path, Request, Signal, Window};
use crate::decrease::Rule;
use crate::dynamic::DynController;

/// An estimate of the round trip without queues (McCullagh 2008 § 4.1: minRTT for baseRTT).
///
/// It may be wrong on purpose: then it holds the wrong value from the first reduction on, whatever was measured before, and falls
/// with every RTT that is less. A wrong value that came before would go with the first packet, which finds an empty queue; § 4.3
/// studies estimates that were made in a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MinRtt {
    /// What it will be at the first reduction.
    wrong: Option<Duration>,
    /// Whether that was.
    since: bool,
    least: Option<Duration>,
}

impl MinRtt {
    /// One that is measured, or wrong from the first reduction on.
    pub(crate) const fn new(wrong: Option<Duration>) -> Self {
        Self { wrong, since: false, least: None }
    }

    /// The estimate; `None` before the first measurement.
    pub(crate) const fn get(&self) -> Option<Duration> {
        self.least
    }

    /// Its part of a round-trip time, 1 at the most (minRTT / RTT of McCullagh 2008 eq. 2.6, 4.1); `None` before the first measurement.
    pub(crate) fn part_of(&self, rtt: Option<Duration>) -> Option<f64> {
        let (least, rtt) = (self.least?, rtt?);
        Some(least.0 as f64 / rtt.max(least).0.max(1) as f64)
    }

    /// An ACK came.
    pub(crate) fn hear(&mut self, path: &Path, ack: &AckSample) {
        self.least = match (self.since, self.least, ack.rtt) {
            (true, Some(least), Some(rtt)) => Some(least.min(rtt)),
            (true, least, None) => least,
            (true, None, rtt) => rtt,
            (false, ..) => path.min_rtt,
        };
    }

    /// The window is about to become smaller.
    pub(crate) fn on_signal(&mut self, path: &Path, signal: Signal) {
        if matches!(signal, Signal::Idle { .. } | Signal::Resume { .. }) {
            return;
        }
        if let Some(wrong) = self.wrong.take() {
            self.since = true;
            // No round trip without queues is longer than the one that was just measured.
            self.least = Some(path.rtt.map_or(wrong, |newest| wrong.min(newest)));
        } else if !self.since {
            self.least = path.min_rtt;
        }
    }
}

/// A controller that is told of this estimate in place of what the transport measured.
#[derive(Clone, Debug)]
struct Estimating<C> {
    inner: C,
    min_rtt: MinRtt,
}

impl<C: Controller> Estimating<C> {
    const fn new(inner: C, wrong: Option<Duration>) -> Self {
        Self { inner, min_rtt: MinRtt::new(wrong) }
    }

    fn told(&self, path: &Path) -> Path {
        Path { min_rtt: self.min_rtt.get(), ..*path }
    }
}

impl<C: Controller> Controller for Estimating<C> {
    fn on_ack(&mut self, path: &Path, ack: &AckSample) -> Request {
        self.min_rtt.hear(path, ack);
        // Of a duplicate the crate's own controllers make nothing.
        if ack.acked_bytes == 0 {
            return Request::Nothing;
        }
        self.inner.on_ack(&self.told(path), ack)
    }
    fn on_signal(&mut self, path: &Path, signal: Signal) {
        self.min_rtt.on_signal(path, signal);
        self.inner.on_signal(&self.told(path), signal);
    }
    fn stamp(&mut self, data: &Departing) -> Header {
        self.inner.stamp(data)
    }
    fn undo(&mut self, before: Self, now: Time, after_timeout: bool) {
        self.inner.undo(before.inner, now, after_timeout);
    }
    fn raise_threshold(&mut self, least: u64) {
        self.inner.raise_threshold(least);
    }
    fn on_sack_rtt(&mut self, path: &Path, rtt: Duration) {
        self.inner.on_sack_rtt(&self.told(path), rtt);
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
    fn paces_anew(&self) -> bool {
        self.inner.paces_anew()
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

/// The controller behind a pointer; with an estimate of its own if its rule goes by that.
pub(crate) fn estimating<C>(rule: &Rule, controller: C) -> Box<dyn DynController>
where
    C: Controller + Clone + fmt::Debug + Send + Sync + 'static,
{
    if rule.adaptive_delta.is_none() {
        return Box::new(controller);
    }
    Box::new(Estimating::new(controller, rule.initial_min_rtt))
}
