//! NewReno (RFC 5681): counts bytes (RFC 3465) or ACKs; may decrease less for ECN (RFC 8511).

mod params;

use alloc::sync::Arc;

use cwnd_quantity::Time;

pub use self::params::{ENTRY, Params};
use crate::controller::{AckSample, Cause, Controller, Path, Request, Signal, Start, Window};
use crate::decrease::GrowthHold;
use crate::slow_start::SlowStartState;

/// NewReno's state, in order of use: in congestion avoidance no ACK reads the last field.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct NewReno {
    window: Window,
    /// Count towards the next step of growth (`Counting::in_avoidance`).
    carry: u64,
    hold: GrowthHold,
    constants: Arc<params::Constants>,
    slow_start: SlowStartState,
}

impl NewReno {
    /// Creates the controller of a new connection.
    #[must_use]
    pub fn new(params: &Params, start: &Start) -> Self {
        Self {
            window: Window::new(start),
            carry: 0,
            slow_start: SlowStartState::new(params.growing.slow_start),
            hold: GrowthHold::new(params.growing.grow_in_cwr),
            constants: Arc::new(params::Constants::new(params, start)),
        }
    }

    /// Slow start (§ 3.1, eq. 2); returns the bytes left for congestion avoidance at its end.
    fn slow_start(&mut self, path: &Path, ack: &AckSample) -> u64 {
        let (window, counting) = (&mut self.window, &self.constants.counting);
        let growth = self.slow_start.on_ack(path, ack, window.cwnd, counting.credit);
        let left = counting.in_slow_start(window, growth);
        if !window.is_below_threshold() {
            self.slow_start.on_exit();
            self.carry = counting.carry_after_slow_start(self.carry, window.cwnd);
        }
        left
    }

    /// Multiplicative decrease (§ 3.1, eq. 4; RFC 8511 for ECN).
    fn reduce(&mut self, path: &Path, cause: Cause) {
        let stage = self.slow_start.stage(self.window.is_below_threshold());
        let left = self.constants.decrease.reduced(path, self.window.cwnd, stage, cause);
        self.reduce_to(path, left, cause);
        self.hold.begin(self.constants.decrease.rest(path, cause), self.constants.grow_in_cwr);
    }

    /// Reduces window and threshold to `left` bytes, or to their least values.
    pub(crate) fn reduce_to(&mut self, path: &Path, left: u64, cause: Cause) {
        self.window.reduce(left, self.constants.min_window(cause), path.mss);
        self.carry = 0;
        self.slow_start.on_congestion();
    }
}

impl Controller for NewReno {
    #[inline(always)]
    fn on_ack(&mut self, path: &Path, ack: &AckSample) -> Request {
        if !self.hold.allows(path.now, ack.grow) {
            return Request::Nothing;
        }
        let slow_start = self.window.is_below_threshold();
        let left = if slow_start { self.slow_start(path, ack) } else { ack.acked_bytes };
        // Congestion avoidance (§ 3.1, eq. 3): one segment for each window of data acknowledged.
        if left > 0 || !slow_start {
            self.constants.counting.in_avoidance(&mut self.window, &mut self.carry, path.mss, left);
        }
        Request::Nothing
    }

    fn on_signal(&mut self, path: &Path, signal: Signal) {
        match signal {
            Signal::Reduce(cause) => self.reduce(path, cause),
            Signal::Timeout { reduces, .. } => {
                // A segment that was already retransmitted keeps the threshold (§ 3.1).
                if reduces {
                    self.reduce(path, Cause::Loss);
                }
                self.window.cwnd = u64::from(path.mss).min(self.constants.counting.max_window);
                self.carry = 0;
                self.slow_start.on_timeout(path);
            }
            Signal::Idle { keep, .. } => self.window.restart(keep, self.constants.initial_window),
            Signal::Resume { .. } => {}
        }
    }

    /// Restores `before`, or only its threshold if the window is larger; counting goes on (Linux).
    fn undo(&mut self, before: Self, _: Time, _: bool) {
        if self.window.cwnd > before.window.cwnd {
            return self.raise_threshold(before.window.ssthresh);
        }
        *self = Self { carry: self.carry, ..before };
    }

    fn raise_threshold(&mut self, ssthresh: u64) {
        self.window.ssthresh = self.window.ssthresh.max(ssthresh);
    }

    fn add_in_flight(&mut self, bytes: u64) {
        self.window.grow(bytes, self.constants.counting.max_window);
    }

    #[inline]
    fn window(&self) -> Window {
        self.window
    }
}
