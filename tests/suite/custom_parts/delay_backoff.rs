//! Custom controller that backs off in response to queueing delay.

use cwnd_cc::{
    AckSample, Cause, Controller, GrowthPermission, Path, Request, Signal, Start, Window,
};
use cwnd_packet::{Ability, Contract, HasContract};
use cwnd_quantity::Duration;

/// Controller with additive increase; it asks for a reduction when the queueing delay exceeds
/// `max_delay`, and then keeps minRTT / RTT of the window, at least two segments.
#[derive(Clone, Debug)]
pub struct DelayBackoff {
    cwnd: u64,
    max: u64,
    max_delay: Duration,
    waited_too_long: u64,
}

impl DelayBackoff {
    pub fn new(start: &Start, max_delay: Duration) -> Self {
        Self { cwnd: start.initial_window, max: start.max_window, max_delay, waited_too_long: 0 }
    }
}

impl HasContract for DelayBackoff {
    fn contract(&self) -> Contract {
        Contract::new().needs(Ability::Timestamps, "measures retransmissions, too")
    }
}

impl Controller for DelayBackoff {
    fn on_ack(&mut self, path: &Path, ack: &AckSample) -> Request {
        if ack.grow == GrowthPermission::Yes {
            self.cwnd += (ack.acked_bytes * u64::from(path.mss)).div_ceil(self.cwnd);
            self.cwnd = self.cwnd.min(self.max);
        }
        let waited = ack.rtt.zip(path.min_rtt).map(|(rtt, least)| rtt - least);
        if waited.is_some_and(|waited| waited > self.max_delay) {
            self.waited_too_long += 1;
            return Request::Reduce(Cause::Delay);
        }
        Request::Nothing
    }

    fn on_signal(&mut self, path: &Path, signal: Signal) {
        let least = 2 * u64::from(path.mss);
        match signal {
            Signal::Reduce(Cause::Delay) => {
                let (rtt, min) = (path.rtt.unwrap_or_default(), path.min_rtt.unwrap_or_default());
                let keep = u128::from(self.cwnd) * u128::from(min.0) / u128::from(rtt.0.max(1));
                self.cwnd = (keep as u64).clamp(least, self.cwnd.max(least));
            }
            Signal::Reduce(_) => self.cwnd = (self.cwnd / 2).max(least),
            Signal::Timeout { .. } => self.cwnd = u64::from(path.mss),
            _ => {}
        }
    }

    fn window(&self) -> Window {
        Window { cwnd: self.cwnd, ssthresh: u64::MAX }
    }

    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        each("shy_waited_too_long", self.waited_too_long);
    }
}
