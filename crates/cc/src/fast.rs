//! FAST TCP: every other round trip the window moves towards the one that keeps α segments in
//! queues.
//!
//! D. X. Wei, C. Jin, S. H. Low, S. Hegde, *FAST TCP: motivation, architecture, algorithms,
//! performance*, IEEE/ACM Transactions on Networking 14 (6), 2006. Details that its equations leave
//! open follow the authors' program for ns-2 (`tcp-fast.cc`).

use alloc::boxed::Box;
use alloc::sync::Arc;

use cwnd_packet::{Ability, Contract, HasContract};
use cwnd_quantity::Duration;
use cwnd_schema::{PresetOf, Presets, RegistryEntry, Schema};

use crate::controller::{
    AckSample, Cause, Controller, GrowthPermission, Path, Phase, Request, Signal, Start, Window,
    WindowMut, min_ssthresh,
};
use crate::dynamic::{ControllerInfo, DynController};

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry = RegistryEntry::new(
    "fast",
    "FAST TCP: keeps α segments in queues, by one step every other round trip (Wei et al. 2006).",
);

/// FAST TCP.
#[derive(Clone, Debug, PartialEq, Schema)]
#[schema(presets)]
pub struct Params {
    /// α: number of segments that a flow keeps in queues.
    #[default(100.0, "Wei et al. 2006: for each network; ns-2 (tcp-fast.cc): 100")]
    #[bounds(above 0.0; "the queue would tell nothing")]
    pub alpha: f64,
    /// γ: part of the way to its new value that the window goes in one update.
    #[default(0.5, "Wei et al. 2006: in (0, 1]; ns-2 (tcp-fast.cc): 0.5")]
    #[bounds(above 0.0, up_to 1.0; "it is a part")]
    pub gamma: f64,
    /// Round trips from one update of the window to the next.
    #[default(2, "ns-2 (tcp-fast.cc): every other, so that what one changed is seen")]
    #[bounds(from 1, up_to 1000; "it counts round trips")]
    pub update_rounds: u32,
    /// Number of samples that the average RTT is over, or a third of a window, if that is more.
    #[default(4, "Wei et al. 2006: 4; ns-2 (tcp-fast.cc): 256")]
    #[bounds(from 1, up_to 100_000; "it counts samples")]
    pub smooths_over: u32,
    /// Queueing delay below which the window doubles each round trip.
    #[default(Duration::from_micros(750), "ns-2 (tcp-fast.cc): 0.75 ms")]
    pub doubles_below: Duration,
    /// Part of the window that stays after a loss or an ECN-echo.
    #[default(0.5, "Wei et al. 2006; RFC 5681 § 3.1, RFC 3168 § 6.1.2: half")]
    #[bounds(above 0.0, below 1.0; "it is the part of the window that stays")]
    pub loss_beta: f64,
}

impl Presets for Params {
    const PRESETS: &'static [PresetOf<Self>] = &[
        PresetOf::new("paper", "Wei et al. 2006; the default.", Self::default),
        PresetOf::new("ns2", "ns-2's agent: the average RTT is of 256 samples or more.", || Self {
            smooths_over: 256,
            ..Self::default()
        }),
    ];
}

impl ControllerInfo for Params {
    fn build(&self, start: &Start) -> Box<dyn DynController> {
        Box::new(Fast::new(self, start))
    }

    fn lowers_on_acks(&self) -> bool {
        true
    }
}

impl HasContract for Params {
    fn contract(&self) -> Contract {
        Contract::new()
            .wants(Ability::Timestamps, "the delay of one packet in each window is all it hears of")
    }
}

/// FAST's state for one connection. Windows are bytes in floating point, so that fractions of a
/// byte add up.
#[derive(Clone, Debug)]
pub struct Fast {
    cwnd: f64,
    /// Window to grow to, bytes, by no more than what is acknowledged.
    target: f64,
    ssthresh: u64,
    /// `true` in slow start up to the threshold, after a timeout or an idle time.
    in_slow_start: bool,
    /// avgRTT, nanoseconds.
    average: Option<f64>,
    /// baseRTT.
    base: Option<Duration>,
    /// Round trip before which the window is not updated by [`Fast::update_window`].
    next_update: u64,
    constants: Arc<Constants>,
}

/// Constants of a connection.
#[derive(Debug)]
struct Constants {
    params: Params,
    initial_window: f64,
    max_window: f64,
}

impl Fast {
    /// Creates the controller of a new connection.
    #[must_use]
    pub fn new(params: &Params, start: &Start) -> Self {
        let cwnd = start.initial_cwnd() as f64;
        Self {
            cwnd,
            target: cwnd,
            ssthresh: start.initial_ssthresh(),
            in_slow_start: false,
            average: None,
            base: None,
            next_update: 0,
            constants: Arc::new(Constants {
                params: params.clone(),
                initial_window: cwnd,
                max_window: start.max_window() as f64,
            }),
        }
    }

    /// Returns the window in whole bytes.
    fn bytes(&self) -> u64 {
        self.cwnd as u64
    }

    /// Updates baseRTT and avgRTT ← (1 − η) avgRTT + η RTT, with η = min(3 / w, 1 /
    /// `smooths_over`).
    fn take_rtt(&mut self, path: &Path, rtt: Duration) {
        self.base = self.base.into_iter().chain([rtt]).min();
        let segments = self.cwnd / f64::from(path.mss);
        let weight = 1.0 / (segments / 3.0).max(f64::from(self.constants.params.smooths_over));
        let rtt = rtt.0 as f64;
        self.average = Some(self.average.map_or(rtt, |mean| (1.0 - weight) * mean + weight * rtt));
    }

    /// Sets window and target, to at least two segments unless the window is already smaller.
    fn set_window(&mut self, path: &Path, window: f64) {
        let min_cwnd = (min_ssthresh(path.mss) as f64).min(self.cwnd);
        self.cwnd = window.max(min_cwnd).min(self.constants.max_window);
        self.target = self.cwnd;
    }

    /// Updates the window: w ← min(2w, (1 − γ) w + γ (baseRTT / RTT · w + α)). An increase follows
    /// ACK by ACK, by no more than each acknowledges.
    fn update_window(&mut self, path: &Path, base: f64, average: f64) {
        let params = &self.constants.params;
        let alpha = params.alpha * f64::from(path.mss);
        let wanted =
            (1.0 - params.gamma) * self.cwnd + params.gamma * (base / average * self.cwnd + alpha);
        let wanted = wanted.min(2.0 * self.cwnd);
        self.next_update = path.round + u64::from(params.update_rounds);
        if wanted < self.cwnd {
            self.set_window(path, wanted);
        } else {
            self.target = wanted.min(self.constants.max_window);
        }
    }

    /// Reduces the window for a loss or a mark.
    fn reduce(&mut self, path: &Path) {
        self.ssthresh =
            ((self.constants.params.loss_beta * self.cwnd) as u64).max(min_ssthresh(path.mss));
        self.set_window(path, self.cwnd.min(self.ssthresh as f64));
        self.in_slow_start = false;
        self.next_update = path.round + u64::from(self.constants.params.update_rounds);
    }
}

impl Controller for Fast {
    fn on_ack(&mut self, path: &Path, ack: &AckSample) -> Request {
        if let Some(rtt) = ack.rtt {
            self.take_rtt(path, rtt);
        }
        let (Some(base), Some(average)) = (self.base, self.average) else {
            return Request::Nothing;
        };
        if ack.acked_bytes == 0 || path.phase == Phase::Recovery {
            return Request::Nothing;
        }
        let acked = ack.acked_bytes as f64;
        let may_grow = ack.grow == GrowthPermission::Yes;
        let base = base.0 as f64;
        let doubles = average - base < self.constants.params.doubles_below.0 as f64;
        if self.in_slow_start && self.bytes() >= self.ssthresh {
            self.in_slow_start = false;
        }
        if doubles || self.in_slow_start {
            if may_grow {
                let max_cwnd =
                    if self.in_slow_start { self.ssthresh as f64 } else { f64::INFINITY };
                self.set_window(path, (self.cwnd + acked).min(max_cwnd.max(self.cwnd)));
            }
            return Request::Nothing;
        }
        if path.round >= self.next_update && path.phase == Phase::Open {
            self.update_window(path, base, average);
        }
        if may_grow && self.target > self.cwnd {
            self.cwnd = (self.cwnd + acked).min(self.target);
        }
        Request::Nothing
    }

    fn on_signal(&mut self, path: &Path, signal: Signal) {
        match signal {
            Signal::Reduce(Cause::Delay | Cause::Load) => {}
            Signal::Reduce(_) => self.reduce(path),
            Signal::Timeout { reduces, .. } => {
                if reduces {
                    self.ssthresh = ((self.constants.params.loss_beta * self.cwnd) as u64)
                        .max(min_ssthresh(path.mss));
                }
                // RFC 5681 § 3.1: one segment, and slow start up to the threshold.
                self.cwnd = f64::from(path.mss).min(self.constants.max_window);
                self.target = self.cwnd;
                self.in_slow_start = true;
            }
            // RFC 5681 § 4.1: the restart window is min(IW, cwnd).
            Signal::Idle { .. } => {
                self.ssthresh = self.ssthresh.min(self.bytes().max(min_ssthresh(path.mss)));
                self.cwnd = self.cwnd.min(self.constants.initial_window);
                self.target = self.cwnd;
                self.in_slow_start = true;
            }
            Signal::Resume { .. } => {}
        }
    }

    fn window_mut(&mut self) -> Option<WindowMut<'_>> {
        let (cwnd, ssthresh) = (&mut self.cwnd, &mut self.ssthresh);
        Some(WindowMut { cwnd, ssthresh, max_window: self.constants.max_window })
    }

    fn window(&self) -> Window {
        Window { cwnd: self.bytes(), ssthresh: self.ssthresh }
    }

    fn min_rtt(&self) -> Option<Duration> {
        self.base
    }
}
