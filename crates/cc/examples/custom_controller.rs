//! A controller of one's own: Scalable TCP (Kelly, CCR 33(2), 2003), over a path that holds 100 segments.
//!
//! Run it: `cargo run -p cwnd-cc --example custom_controller`

use cwnd_cc::{AckSample, Controller, Path, Phase, Signal, Window};
use cwnd_units::{Duration, Time};

/// Grows by a hundredth of what is acknowledged and gives up an eighth of the window at a congestion signal.
struct Scalable {
    cwnd: f64,
    ssthresh: f64,
}

impl Controller for Scalable {
    fn on_ack(&mut self, path: &Path, ack: &AckSample) {
        // Only a window that is in use may grow, and never in fast recovery.
        if path.cwnd_limited && path.phase != Phase::Recovery {
            let share = if self.cwnd < self.ssthresh { 1.0 } else { 0.01 };
            self.cwnd += share * ack.acked_bytes as f64;
        }
    }

    fn on_signal(&mut self, path: &Path, signal: Signal) {
        match signal {
            Signal::Loss | Signal::EcnEcho => self.cwnd *= 0.875,
            Signal::Timeout { .. } => self.cwnd = f64::from(path.mss),
            _ => return,
        }
        self.ssthresh = self.cwnd.max(2.0 * f64::from(path.mss));
    }

    fn window(&self) -> Window {
        Window { cwnd: self.cwnd as u64, ssthresh: self.ssthresh as u64 }
    }
}

fn main() {
    let (mss, rtt) = (1000, Duration::from_millis(100));
    let mut path = Path {
        now: Time::ZERO,
        mss,
        srtt: Some(rtt),
        min_rtt: Some(rtt),
        flight_size: 0,
        delivered: 0,
        phase: Phase::Open,
        cwnd_limited: true,
        round: 0,
    };
    let mut c = Scalable { cwnd: 10_000.0, ssthresh: f64::INFINITY };
    for round in 0..40 {
        path.flight_size = c.window().cwnd;
        println!("{round:2} {:5.1} segments", c.cwnd / f64::from(mss));
        if path.flight_size > 100_000 {
            c.on_signal(&path, Signal::EcnEcho);
        }
        c.on_ack(&path, &AckSample { acked_bytes: path.flight_size, ..AckSample::default() });
    }
}
