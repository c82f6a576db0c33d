//! MLCP: the window grows and shrinks by one of sixteen load levels that routers write.
//!
//! Qazi, Znati, *On the design of load factor based congestion control protocols for
//! next-generation networks*, INFOCOM 2008. Only its abstract was available. The laws are eq. 2 to
//! 6 of BMCC by the same author (Qazi, Andrew, Znati 2009, here BMCC). That paper names one
//! difference: MLCP adds from η on for new flows, too (§ VII d i). The time after a decrease and
//! the response to losses follow VCP.

use alloc::borrow::ToOwned as _;
use alloc::boxed::Box;
use alloc::sync::Arc;

use cwnd_packet::{
    Ability, CongestionHeader, Contract, Echo, Guidance, HasContract,
    mlcp::{HIGH, MAX_LEVEL, Scale},
};
use cwnd_quantity::{Duration, Rate};
use cwnd_schema::{Invalid, RegistryEntry, Schema, key};

use crate::controller::{
    AckSample, Cause, Controller, OutgoingData, Path, Request, Signal, Start, Window,
};
use crate::dynamic::{ControllerInfo, DynController, Mechanism};
use crate::explicit_feedback::{
    self, Counters, DecreaseHold, GrowthRtt, LoadWindow, rtt_in_intervals,
};

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry = RegistryEntry::new(
    "mlcp",
    "MLCP: by one of sixteen levels of load that routers write (Qazi & Znati 2008).",
);

/// MLCP.
#[derive(Clone, Debug, PartialEq, Schema)]
#[schema(check = Self::consistent)]
pub struct Params {
    /// t_p: interval in which routers measure.
    #[default(Duration::from_millis(200), "BMCC § II-D.1, VCP: 200 ms")]
    #[bounds(above Duration::ZERO; "it is a time in which packets arrive")]
    pub interval: Duration,
    /// κ₂: speed at which multiplicative increase approaches a load of 1 (BMCC eq. 2).
    #[default(0.35, "BMCC § II-C.1: 0.35, stable below 0.5")]
    #[bounds(above 0.0; "the window would never grow")]
    pub mi_step: f64,
    /// α: segments by which the window grows in a round trip of t_p (BMCC eq. 4).
    #[default(1.0, "BMCC § II-C.2, VCP: 1")]
    #[bounds(above 0.0; "the window would never grow")]
    pub alpha: f64,
    /// β_max: part of the window that stays at the least level of overload (BMCC eq. 6).
    #[default(0.875, "BMCC § II-D.3, VCP: 0.875")]
    #[bounds(above 0.0, below 1.0; "it is the part of the window that stays")]
    pub beta_most: f64,
    /// β_min: part of the window that stays at the highest level (BMCC eq. 6).
    #[default(0.65, "BMCC § II-D.3: 0.65")]
    #[bounds(above 0.0, below 1.0; "it is the part of the window that stays")]
    pub beta_least: f64,
    /// η₀ of the routers on the path.
    #[default(0.15, "BMCC § II-D.2: 0.15")]
    #[bounds(above 0.0, below 1.0; "it is a load below `high`")]
    pub least: f64,
    /// η of the routers on the path.
    #[default(0.75, "BMCC § II-D.2: 0.75")]
    #[bounds(above 0.0, below 1.0; "it is between idle and full")]
    pub high: f64,
    /// u of the routers on the path.
    #[default(1.2, "BMCC § II-D.3: 1.2")]
    #[bounds(above 1.0; "it is an overload")]
    pub most: f64,
    /// Upper bound of the round-trip time in multiplicative increase; none is no bound.
    #[default(Some(Duration::from_millis(500)), "none in BMCC's paper; VCP's program: 500 ms")]
    #[bounds(above Duration::ZERO; "no round trip takes no time")]
    pub mi_rtt_most: Option<Duration>,
    /// Round-trip time by which the window grows: T of BMCC eq. 3 and 4.
    #[default(GrowthRtt::Smoothed, "none in BMCC's paper; RFC 6298: the smoothed one")]
    #[later]
    pub growth_rtt: GrowthRtt,
    /// Part of the window that stays after a loss that is repaired without a timeout.
    #[default(0.5, "VCP's program: as Reno")]
    #[bounds(above 0.0, up_to 1.0; "it is the part of the window that stays")]
    pub loss_beta: f64,
    /// `true` if packets are paced at one window per round-trip time.
    #[default(true, "none in either text; BMCC § IV-B computes with pacing")]
    pub paced: bool,
}

impl Params {
    /// Checks values together.
    fn consistent(&self) -> Result<(), Invalid> {
        if self.beta_least > self.beta_most {
            return Err(Invalid {
                key: key!(Self: beta_least),
                message:
                    "`beta_least` is above `beta_most`: more load would leave more of the window"
                        .to_owned(),
            });
        }
        if self.least > self.high {
            return Err(Invalid {
                key: key!(Self: least),
                message: "`least` is above `high`: no level could be between them".to_owned(),
            });
        }
        Ok(())
    }
}

const MECHANISM: Mechanism =
    explicit_feedback::load_factor_mechanism(&["load_acks_added", "load_decreases"]);

impl ControllerInfo for Params {
    fn build(&self, start: &Start) -> Box<dyn DynController> {
        Box::new(Mlcp::new(self, start))
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
            .provides(Ability::SendsLevel)
            .needs(Ability::WritesLevel, "multiplies its window without end")
            .needs(Ability::EchoesLevel, "hears of no load")
    }
}

/// MLCP's state for one connection.
#[derive(Clone, Debug)]
pub struct Mlcp {
    window: LoadWindow,
    mss: u64,
    /// Newest load level that an ACK reported. New flows start at the lowest, as BMCC's do (BMCC
    /// § III a).
    level: u8,
    hold: DecreaseHold,
    srtt: Option<Duration>,
    counters: Counters,
    constants: Arc<Constants>,
}

/// Constants of a connection: parameters, and ξ or β of each level.
#[derive(Debug)]
struct Constants {
    params: Params,
    scale: Scale,
    factors: [f64; MAX_LEVEL as usize + 1],
}

impl Mlcp {
    /// Creates the controller of a new connection.
    #[must_use]
    pub fn new(params: &Params, start: &Start) -> Self {
        let p = params;
        let scale = Scale { min: p.least, high: p.high, max: p.most };
        let factors = core::array::from_fn(|level| {
            let load = scale.load(level as u8);
            if level <= usize::from(HIGH) {
                // BMCC eq. 2.
                p.mi_step * (1.0 - load) / load
            } else {
                // BMCC eq. 6.
                p.beta_most - (p.beta_most - p.beta_least) * (load - 1.0) / (p.most - 1.0)
            }
        });
        Self {
            window: LoadWindow::new(start),
            mss: u64::from(start.mss),
            level: 0,
            hold: DecreaseHold::default(),
            srtt: None,
            counters: Counters::default(),
            constants: Arc::new(Constants { params: p.clone(), scale, factors }),
        }
    }

    fn grow(&mut self, path: &Path, acked: u64) {
        let p = &self.constants.params;
        if self.level < HIGH {
            // BMCC eq. 3.
            let exponent = rtt_in_intervals(path, p.growth_rtt, p.interval, p.mi_rtt_most);
            let xi = self.constants.factors[usize::from(self.level)];
            self.window.multiply(path, acked, xi, exponent);
            self.counters.multiplied += 1;
        } else {
            // BMCC eq. 4.
            let ratio = rtt_in_intervals(path, p.growth_rtt, p.interval, None);
            let segments = p.alpha * ratio * ratio;
            self.window.add(path, acked, segments);
            self.counters.added += 1;
        }
    }
}

impl Controller for Mlcp {
    fn on_ack(&mut self, path: &Path, ack: &AckSample) -> Request {
        if let Echo::Load { value, .. } = ack.echo {
            self.level = value.min(u16::from(MAX_LEVEL)) as u8;
        }
        // The first window is not paced, as in BMCC.
        if ack.acked_bytes > 0 {
            self.srtt = path.srtt;
        }
        let over = self.level > HIGH;
        if over && self.hold.is_frozen(path.now) {
            self.counters.rested += 1;
        } else if over && !self.hold.is_active(path.now) {
            return Request::Reduce(Cause::Load);
        } else if self.window.may_grow(path, ack, self.constants.params.paced) {
            self.grow(path, ack.acked_bytes);
        }
        Request::Nothing
    }

    fn on_signal(&mut self, path: &Path, signal: Signal) {
        match signal {
            // BMCC eq. 5.
            Signal::Reduce(Cause::Load) => {
                let beta = self.constants.factors[usize::from(self.level.max(HIGH + 1))];
                self.window.scale(path, beta);
                let rtt = path.srtt.unwrap_or_default();
                self.hold = DecreaseHold::begin(path.now, self.constants.params.interval, rtt);
                self.counters.decreased += 1;
            }
            Signal::Reduce(_) => self.window.scale(path, self.constants.params.loss_beta),
            Signal::Timeout { reduces, .. } => {
                self.window.restart_after_timeout(path, 0.0, reduces)
            }
            Signal::Idle { .. } => self.window.after_idle(),
            Signal::Resume { .. } => {}
        }
    }

    fn stamp(&mut self, _: &OutgoingData) -> CongestionHeader {
        CongestionHeader::Level(0)
    }

    fn window(&self) -> Window {
        self.window.window(self.mss)
    }

    fn pacing(&self) -> Option<Rate> {
        self.srtt
            .filter(|_| self.constants.params.paced)
            .and_then(|rtt| self.window.pacing_rate(self.mss, rtt))
    }

    fn guidance(&self) -> Option<Guidance> {
        Some(Guidance::Load(self.constants.scale.load(self.level)))
    }

    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        self.counters.count(each);
    }
}
