//! What the unit tests of the controllers share: a path on which nothing happens but what the script says.

use cwnd_units::{Duration, Time};

use crate::controller::{AckSample, Controller, Path, Phase, Signal, Start};

/// Segment size: round numbers read best.
pub(crate) const MSS: u64 = 1000;

/// A start with so many segments and no bounds.
pub(crate) const fn start(segments: u64) -> Start {
    Start {
        mss: MSS as u32,
        initial_window: segments * MSS,
        initial_ssthresh: u64::MAX,
        max_window: u64::MAX,
    }
}

/// A controller and the facts its transport would know.
pub(crate) struct Script<C> {
    pub(crate) controller: C,
    pub(crate) path: Path,
    pub(crate) rtt: Duration,
}

impl<C: Controller> Script<C> {
    pub(crate) fn new(controller: C) -> Self {
        let rtt = Duration::from_millis(100);
        let path = Path {
            now: Time::ZERO,
            mss: MSS as u32,
            srtt: Some(rtt),
            min_rtt: Some(rtt),
            flight_size: 0,
            delivered: 0,
            phase: Phase::Open,
            cwnd_limited: true,
            round: 0,
        };
        Self { controller, path, rtt }
    }

    /// Whole segments in the window.
    pub(crate) fn segments(&self) -> u64 {
        self.controller.window().cwnd / MSS
    }

    /// An ACK of so many bytes, at once.
    pub(crate) fn ack(&mut self, bytes: u64) {
        self.path.flight_size = self.controller.window().cwnd;
        self.path.delivered += bytes;
        let ack = AckSample { acked_bytes: bytes, rtt: Some(self.rtt), ..AckSample::default() };
        self.controller.on_ack(&self.path, &ack);
    }

    /// A round trip: each segment of the window is acknowledged, evenly spread over the RTT.
    pub(crate) fn round(&mut self) {
        let segments = self.segments();
        self.path.round += 1;
        for _ in 0..segments {
            self.path.now += self.rtt / segments;
            self.ack(MSS);
        }
    }

    /// A signal while a full window is in flight.
    pub(crate) fn signal(&mut self, signal: Signal) {
        self.path.flight_size = self.controller.window().cwnd;
        self.controller.on_signal(&self.path, signal);
    }
}
