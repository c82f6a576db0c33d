//! Controller that records its calls and its windows, for comparisons with other implementations.

use alloc::vec::Vec;

use cwnd_packet::{CongestionHeader, Guidance};
use cwnd_quantity::{Duration, Rate, Time};

use crate::controller::{
    AckSample, Controller, OutgoingData, Path, RateSample, Request, Signal, Window,
};

/// Input of one call. Only calls of `on_ack` and `on_signal` are recorded.
#[derive(Clone, Copy, Debug)]
pub enum Call {
    /// An ACK.
    Ack(AckSample),
    /// A rare event.
    Signal(Signal),
}

/// One recorded call of a controller.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Facts at that moment.
    pub path: Path,
    /// Input of the call.
    pub call: Call,
    /// Window that the controller allowed after the call.
    pub window: Window,
}

/// A controller with the record of its calls.
#[derive(Clone, Debug)]
pub struct Recorded<C> {
    pub(crate) inner: C,
    entries: Vec<Entry>,
}

impl<C: Controller> Recorded<C> {
    /// Wraps a controller, with an empty record.
    pub(crate) const fn new(inner: C) -> Self {
        Self { inner, entries: Vec::new() }
    }

    /// Returns the recorded calls, oldest first.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    fn write(&mut self, path: &Path, call: Call) {
        self.entries.push(Entry { path: *path, call, window: self.inner.window() });
    }
}

impl<C: Controller> Controller for Recorded<C> {
    fn on_ack(&mut self, path: &Path, ack: &AckSample) -> Request {
        let request = self.inner.on_ack(path, ack);
        self.write(path, Call::Ack(*ack));
        request
    }
    fn on_signal(&mut self, path: &Path, signal: Signal) {
        self.inner.on_signal(path, signal);
        self.write(path, Call::Signal(signal));
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
        self.inner.on_sack_rtt(path, rtt);
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
    fn is_rate_based(&self) -> bool {
        self.inner.is_rate_based()
    }
    fn ignores_delayed_acks(&self) -> bool {
        self.inner.ignores_delayed_acks()
    }
    fn reads_ecn_field(&self) -> bool {
        self.inner.reads_ecn_field()
    }
    fn on_rate(&mut self, sample: &RateSample) {
        self.inner.on_rate(sample);
    }
    fn min_rtt(&self) -> Option<Duration> {
        self.inner.min_rtt()
    }
    fn guidance(&self) -> Option<Guidance> {
        self.inner.guidance()
    }
    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        self.inner.count(each);
    }
}
