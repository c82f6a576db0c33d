//! A user-defined controller: Scalable TCP (Kelly, CCR 33(2), 2003), over a path that holds 100
//! segments.
//!
//! Run it: `cargo run -p cwnd-cc --example custom_controller`

use cwnd_cc::{AckSample, Cause, Controller, GrowthPermission, Path, Request, Signal, Window};

/// Grows in slow start by the bytes acknowledged, then by a hundredth of them. A reduction takes an
/// eighth of the window, a timeout all but one segment.
pub(crate) struct Scalable {
    pub(crate) cwnd: f64,
    pub(crate) ssthresh: f64,
}

impl Controller for Scalable {
    fn on_ack(&mut self, _: &Path, ack: &AckSample) -> Request {
        if ack.grow == GrowthPermission::Yes {
            let share = if self.cwnd < self.ssthresh { 1.0 } else { 0.01 };
            self.cwnd += share * ack.acked_bytes as f64;
        }
        Request::Nothing
    }

    fn on_signal(&mut self, path: &Path, signal: Signal) {
        let mss = f64::from(path.mss);
        match signal {
            Signal::Reduce(_) => {
                self.ssthresh = (self.cwnd * 0.875).max(2.0 * mss);
                self.cwnd = self.cwnd.min(self.ssthresh);
            }
            // RFC 5681 § 3.1, eq. 4; a segment that timed out before keeps the threshold.
            Signal::Timeout { reduces: true, .. } => {
                self.ssthresh = (path.flight_size as f64 / 2.0).max(2.0 * mss);
                self.cwnd = mss;
            }
            Signal::Timeout { .. } => self.cwnd = mss,
            _ => {}
        }
    }

    fn window(&self) -> Window {
        Window { cwnd: self.cwnd as u64, ssthresh: self.ssthresh as u64 }
    }
}

fn main() {
    let mut path = Path { mss: 1000, ..Path::default() };
    let mut c = Scalable { cwnd: 10_000.0, ssthresh: f64::INFINITY };
    for round in 0..100 {
        path.flight_size = c.window().cwnd;
        println!("{round:2} {:5.1} segments", c.cwnd / 1000.0);
        match path.flight_size {
            _ if round == 50 => c.on_signal(&path, Signal::Timeout { nth: 1, reduces: true }),
            100_001.. => c.on_signal(&path, Signal::Reduce(Cause::Ecn)),
            acked_bytes => {
                let ack =
                    AckSample { acked_bytes, grow: GrowthPermission::Yes, ..AckSample::default() };
                let _ = c.on_ack(&path, &ack);
            }
        }
    }
}
