//! Controllers driven by hand: scripts take the place of the transport. Here is a controller with a
//! simulated path: only what the script calls happens.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[cfg(test)]
mod cubic;
#[cfg(test)]
mod decrease;
#[cfg(test)]
mod example_controller;
#[cfg(test)]
mod explicit_feedback;
#[cfg(test)]
mod invariants;
#[cfg(test)]
mod newreno;
#[cfg(test)]
mod vectors;

use cwnd_cc::{
    AckSample, AnyController, Cause, Controller, ControllerParams, GrowthPermission, Path, Request,
    Signal, Start, Window,
};
use cwnd_quantity::Duration;
use cwnd_schema::{ParamsChoice, Value};

/// Segment size; round numbers read best.
const MSS: u64 = 1000;

/// Returns a start with `segments` as initial window and no bounds.
fn start(segments: u64) -> Start {
    Start {
        mss: MSS as u32,
        initial_window: segments * MSS,
        initial_ssthresh: u64::MAX,
        max_window: u64::MAX,
        delayed_acks: false,
    }
}

/// Returns a start in congestion avoidance.
fn avoiding(segments: u64) -> Start {
    Start { initial_ssthresh: 0, ..start(segments) }
}

/// Returns a controller's parameters as a scenario would set them: `preset` by its name, other keys
/// by value.
fn params(kind: &str, settings: &[(&str, Value)]) -> ControllerParams {
    let mut params = ControllerParams::of_kind(kind).expect("a kind");
    for (name, value) in settings {
        match (*name, value) {
            ("preset", Value::Text(preset)) => assert!(params.params_mut().apply_preset(preset)),
            _ => params.params_mut().set(name, value).unwrap(),
        }
    }
    params.params().check().unwrap();
    params
}

fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

/// A controller and the facts that its transport would know.
#[derive(Clone)]
struct Script {
    controller: AnyController,
    path: Path,
    /// Segments that one ACK acknowledges.
    ack_every: u64,
}

impl Script {
    fn new(params: &ControllerParams, start: &Start) -> Self {
        Self::with_rtt(params, start, Duration::from_millis(100))
    }

    fn with_rtt(params: &ControllerParams, start: &Start, rtt: Duration) -> Self {
        let rtt = Some(rtt);
        let mss = MSS as u32;
        let path = Path { mss, srtt: rtt, min_rtt: rtt, cwnd_limited: true, ..Path::default() };
        Self { controller: params.build(start), path, ack_every: 1 }
    }

    fn window(&self) -> Window {
        self.controller.window()
    }

    /// Returns the window in segments.
    fn cwnd(&self) -> f64 {
        self.window().cwnd as f64 / MSS as f64
    }

    /// Returns the slow-start threshold in segments.
    fn ssthresh(&self) -> f64 {
        self.window().ssthresh as f64 / MSS as f64
    }

    /// Sends an ACK of `bytes`, without ECE.
    fn ack(&mut self, bytes: u64) {
        self.ack_with(bytes, false);
    }

    fn ack_with(&mut self, bytes: u64, ece: bool) {
        self.path.flight_size = self.window().cwnd;
        self.path.delivered += bytes;
        let grow = GrowthPermission::for_ack(&self.path, ece);
        let rtt = self.path.srtt;
        let ack = AckSample { acked_bytes: bytes, rtt, ece, grow, ..AckSample::default() };
        assert_eq!(self.controller.on_ack(&self.path, &ack), Request::Nothing);
    }

    /// Runs a round trip: the window's whole segments are acknowledged, evenly spread over the RTT.
    /// Returns their number.
    fn round(&mut self) -> u64 {
        let segments = self.window().cwnd / MSS;
        let (end, rtt) = (self.path.now, self.path.srtt.unwrap());
        self.path.round += 1;
        let mut acked = 0;
        while acked < segments {
            let step = self.ack_every.min(segments - acked);
            acked += step;
            self.path.now = end + Duration(rtt.0 * acked / segments);
            self.ack(step * MSS);
        }
        segments
    }

    /// Sends a signal while a full window is in flight.
    fn signal(&mut self, signal: Signal) {
        let flight = self.window().cwnd;
        self.signal_in_flight(signal, flight);
    }

    /// Sends a signal while `flight` bytes are in flight.
    fn signal_in_flight(&mut self, signal: Signal, flight: u64) {
        self.path.flight_size = flight;
        self.controller.on_signal(&self.path, signal);
    }

    /// Returns the mean window, in segments and over time, of the last half of `cycles`. Each ends
    /// with a loss after exactly `spacing` segments: the deterministic loss model (RFC 9438 § 5).
    fn mean_window_at_loss_spacing(&mut self, spacing: u64, cycles: u64) -> f64 {
        let (mut sent, mut area, mut time) = (0, 0.0, 0.0);
        for cycle in 0..cycles {
            while sent < spacing {
                sent += 1;
                let wait = Duration((self.path.srtt.unwrap().0 as f64 / self.cwnd()) as u64);
                self.path.now += wait;
                if cycle >= cycles / 2 {
                    area += self.cwnd() * wait.as_secs_f64();
                    time += wait.as_secs_f64();
                }
                self.ack(MSS);
            }
            sent = 0;
            self.signal(Signal::Reduce(Cause::Loss));
        }
        area / time
    }
}
