//! VCP: routers report low load, high load or overload, and the window is multiplied, grows by
//! addition, or shrinks.
//!
//! Xia, Subramanian, Stoica, Kalyanaraman, *One more bit is enough*, SIGCOMM 2005. Details that it
//! leaves open follow its authors' program for ns-2 (`vcp-src.cc`).

use alloc::boxed::Box;
use alloc::sync::Arc;

use cwnd_packet::{Ability, Contract, Echo, HasContract};
use cwnd_quantity::Duration;
use cwnd_schema::{Choice, PresetOf, Presets, RegistryEntry, Schema};

use crate::controller::{
    AckSample, Cause, Controller, GrowthPermission, Path, Request, Signal, Start, Window,
};
use crate::dynamic::{ControllerInfo, DynController, Mechanism};
use crate::explicit_feedback::{
    self, Counters, DecreaseHold, GrowthRtt, LoadWindow, rtt_in_intervals,
};

/// Scaling of additive increase with the round-trip time T.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Scaling {
    /// (T / t)², so that rates grow alike.
    #[name("square")]
    Square,
    /// The same from 20 to 500 ms, and straight lines beyond (VCP's program).
    #[name("bounded")]
    Bounded,
}

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry =
    RegistryEntry::new("vcp", "VCP: routers tell of low, high or too much load (Xia et al. 2005).");

/// VCP.
#[derive(Clone, Debug, PartialEq, Schema)]
#[schema(presets)]
pub struct Params {
    /// ξ: part by which the window grows in t_ρ at low load.
    #[default(0.0625, "Xia et al. 2005 § 3.3: 0.0625")]
    #[bounds(above 0.0; "the window would never grow")]
    pub xi: f64,
    /// α: segments by which the window grows in a round trip at high load if T is `ai_rtt`.
    #[default(1.0, "Xia et al. 2005 § 3.3: 1")]
    #[bounds(above 0.0; "the window would never grow")]
    pub alpha: f64,
    /// β: part of the window that stays at overload.
    #[default(0.875, "Xia et al. 2005 § 3.3: 0.875")]
    #[bounds(above 0.0, below 1.0; "it is the part of the window that stays")]
    pub beta: f64,
    /// t_ρ: interval in which routers measure.
    #[default(Duration::from_millis(200), "Xia et al. 2005 § 3.2: 200 ms")]
    #[bounds(above Duration::ZERO; "it is a time in which packets arrive")]
    pub interval: Duration,
    /// Round-trip time at which additive increase is α.
    #[default(
        Duration::from_millis(200),
        "Qazi et al. 2009 § II-C.2, of VCP: t_ρ, 200 ms; VCP's program: 100 ms"
    )]
    #[bounds(above Duration::ZERO; "no round trip takes no time")]
    pub ai_rtt: Duration,
    /// Scaling of additive increase with the round-trip time.
    #[default(Scaling::Square, "Xia et al. 2005 § 3.4: so that rates grow alike")]
    pub ai_scaling: Scaling,
    /// Upper bound of the round-trip time in multiplicative increase; none is no bound.
    #[default(Some(Duration::from_millis(500)), "none in the paper; VCP's program: 500 ms")]
    #[bounds(above Duration::ZERO; "no round trip takes no time")]
    pub mi_rtt_most: Option<Duration>,
    /// Round-trip time by which the window grows: T of multiplicative and additive increase.
    #[default(GrowthRtt::Smoothed, "none in the paper; RFC 6298: the smoothed one")]
    #[later]
    pub growth_rtt: GrowthRtt,
    /// Part of the window that stays after a loss that is repaired without a timeout.
    #[default(0.5, "VCP's program: as Reno")]
    #[bounds(above 0.0, up_to 1.0; "it is the part of the window that stays")]
    pub loss_beta: f64,
}

impl Presets for Params {
    const PRESETS: &'static [PresetOf<Self>] = &[
        PresetOf::new("paper", "Xia et al. 2005; the default.", Self::default),
        PresetOf::new("ns2", "Their program for ns-2.", || Self {
            ai_rtt: Duration::from_millis(100),
            ai_scaling: Scaling::Bounded,
            ..Self::default()
        }),
    ];
}

const MECHANISM: Mechanism =
    explicit_feedback::load_factor_mechanism(&["load_acks_added", "load_decreases"]);

impl ControllerInfo for Params {
    fn build(&self, start: &Start) -> Box<dyn DynController> {
        Box::new(Vcp::new(self, start))
    }

    fn lowers_on_acks(&self) -> bool {
        true
    }

    fn mechanisms(&self) -> &'static [Mechanism] {
        &[MECHANISM]
    }
}

impl HasContract for Params {
    fn contract(&self) -> Contract {
        Contract::new()
            .needs(Ability::Ect, "multiplies its window without end")
            .needs(Ability::WritesLoad, "multiplies its window without end")
            .needs(Ability::EchoesChanges, "hears of no load")
    }
}

/// VCP's state for one connection.
#[derive(Clone, Debug)]
pub struct Vcp {
    window: LoadWindow,
    mss: u64,
    load: Load,
    hold: DecreaseHold,
    counters: Counters,
    params: Arc<Params>,
}

/// Load that routers report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    Low,
    High,
    Over,
}

impl Load {
    /// Decodes the ECN field of the newest data; `None` if it carries no load.
    const fn of(code: u16) -> Option<Self> {
        match code {
            0b10 => Some(Self::Low),
            0b01 => Some(Self::High),
            0b11 => Some(Self::Over),
            _ => None,
        }
    }
}

impl Vcp {
    /// Creates the controller of a new connection.
    #[must_use]
    pub fn new(params: &Params, start: &Start) -> Self {
        Self {
            window: LoadWindow::new(start),
            mss: u64::from(start.mss),
            load: Load::Low,
            hold: DecreaseHold::default(),
            counters: Counters::default(),
            params: Arc::new(params.clone()),
        }
    }

    /// Returns the segments of additive increase in a round trip (§ 3.4).
    fn additive_increase(&self, path: &Path) -> f64 {
        let p = &self.params;
        let ratio = rtt_in_intervals(path, p.growth_rtt, p.ai_rtt, None);
        let scale = match p.ai_scaling {
            Scaling::Square => ratio * ratio,
            Scaling::Bounded => {
                // As `rtt_update` of the program: beyond the bounds the slope is the ratio at 20
                // ms, and 1.
                let at = |ms: u64| Duration::from_millis(ms).0 as f64 / p.ai_rtt.0 as f64;
                let (lower, upper) = (at(20), at(500));
                match ratio {
                    r if r <= lower => r * lower,
                    r if r <= upper => r * r,
                    r => (r - upper) + upper * upper,
                }
            }
        };
        p.alpha * scale
    }

    fn add(&mut self, path: &Path, acked: u64) {
        let segments = self.additive_increase(path);
        self.window.add(path, acked, segments);
        self.counters.added += 1;
    }
}

impl Controller for Vcp {
    fn reads_ecn_field(&self) -> bool {
        true
    }

    fn on_ack(&mut self, path: &Path, ack: &AckSample) -> Request {
        if let Echo::Load { value, .. } = ack.echo {
            self.load = Load::of(value).unwrap_or(self.load);
        }
        let grows = ack.grow != GrowthPermission::No;
        match self.load {
            // § 3.3: one decrease. The window then rests for the duration of an interval. Additive
            // increase follows for a round trip, in which the new load arrives.
            Load::Over if self.hold.is_frozen(path.now) => self.counters.rested += 1,
            Load::Over if self.hold.is_active(path.now) => {
                if grows {
                    self.add(path, ack.acked_bytes);
                }
            }
            Load::Over => return Request::Reduce(Cause::Load),
            Load::High if grows => self.add(path, ack.acked_bytes),
            Load::Low if grows => {
                let p = &self.params;
                let exponent = rtt_in_intervals(path, p.growth_rtt, p.interval, p.mi_rtt_most);
                self.window.multiply(path, ack.acked_bytes, p.xi, exponent);
                self.counters.multiplied += 1;
            }
            Load::High | Load::Low => {}
        }
        Request::Nothing
    }

    fn on_signal(&mut self, path: &Path, signal: Signal) {
        match signal {
            Signal::Reduce(Cause::Load) => {
                self.window.scale(path, self.params.beta);
                let rtt = path.srtt.unwrap_or_default();
                self.hold = DecreaseHold::begin(path.now, self.params.interval, rtt);
                self.counters.decreased += 1;
            }
            Signal::Reduce(_) => self.window.scale(path, self.params.loss_beta),
            // As the program, which does not grow back by slow start.
            Signal::Timeout { reduces, .. } => {
                self.window.restart_after_timeout(path, 0.0, reduces)
            }
            Signal::Idle { .. } => self.window.after_idle(),
            Signal::Resume { .. } => {}
        }
    }

    fn window(&self) -> Window {
        self.window.window(self.mss)
    }

    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        self.counters.count(each);
    }
}
