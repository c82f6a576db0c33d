//! BMCC: the window grows and shrinks by an estimate of the load factor, which routers encode in
//! two bits of many packets.
//!
//! Qazi, Andrew, Znati, *Congestion control using efficient explicit feedback*, IEEE INFOCOM 2009;
//! sections and equations are of this paper.

use alloc::borrow::ToOwned as _;
use alloc::boxed::Box;
use alloc::sync::Arc;

use cwnd_packet::{
    Ability, CongestionHeader, Contract, Echo, Guidance, HasContract,
    adpm::{self, Scale},
};
use cwnd_quantity::{Duration, Rate};
use cwnd_schema::{Choice, Invalid, PresetOf, Presets, RegistryEntry, Schema, key};

use crate::controller::{
    AckSample, Cause, Controller, OutgoingData, Path, Request, Signal, Start, Window,
};
use crate::dynamic::{ControllerInfo, DynController, Mechanism};
use crate::explicit_feedback::{self, DecreaseHold, GrowthRtt, LoadWindow, rtt_in_intervals};

/// Times at which eq. 3 and 4 change the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Apply {
    /// With each ACK, by the part of the window that it acknowledges.
    #[name("ack")]
    Ack,
    /// Once a round trip, at its end.
    #[name("round-trip")]
    RoundTrip,
}

/// Time after a decrease in which no other follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Rests {
    /// The longer of t_p and a round trip, without growth while the estimate is 1 or more.
    #[name("longer")]
    Longer,
    /// t_p without growth while the estimate is 1 or more, and then a round trip of additive
    /// increase (VCP).
    #[name("both")]
    Both,
}

/// Response to a loss. After a timeout the window grows back, as in slow start, to what the
/// response leaves of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum OnLoss {
    /// None: the loss is only repaired.
    #[name("repair")]
    Repair,
    /// A decrease of the window if the estimate is 1 or more and no earlier decrease still rests.
    #[name("if-overload")]
    IfOverload,
    /// Always a decrease, as if the load factor was the estimate, or 1 if that is less.
    #[name("decrease")]
    Decrease,
}

/// Identification field of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Ids {
    /// One more with each packet.
    #[name("counter")]
    Counter,
    /// Constant, as a sender may do whose packets are not to be fragmented (RFC 6864 § 4.1).
    #[name("constant")]
    Constant,
    /// In an order that looks random, so that nobody can count a sender's packets (RFC 7739 § 5).
    #[name("shuffled")]
    Shuffled,
}

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry = RegistryEntry::new(
    "bmcc",
    "BMCC: by an estimate of the load factor, from two bits of many packets (Qazi, Andrew, \
     Znati 2009).",
);

/// BMCC.
#[derive(Clone, Debug, PartialEq, Schema)]
#[schema(presets, check = Self::consistent)]
pub struct Params {
    /// t_p: interval in which routers measure.
    #[default(Duration::from_millis(200), "§ II-D.1: 200 ms")]
    #[bounds(above Duration::ZERO; "it is a time in which packets arrive")]
    pub interval: Duration,
    /// κ₂: speed at which multiplicative increase approaches a load of 1 (eq. 2).
    #[default(0.35, "§ II-C.1: 0.35, stable below 0.5")]
    #[bounds(above 0.0; "the window would never grow")]
    pub mi_step: f64,
    /// α: segments by which the window grows in a round trip of t_p (eq. 4).
    #[default(1.0, "§ II-C.2: 1")]
    #[bounds(above 0.0; "the window would never grow")]
    pub alpha: f64,
    /// β_max: part of the window that stays at a load of 1 (eq. 6).
    #[default(0.875, "§ II-D.3: 0.875")]
    #[bounds(above 0.0, below 1.0; "it is the part of the window that stays")]
    pub beta_most: f64,
    /// β_min: part of the window that stays at a load of u (eq. 6).
    #[default(0.65, "§ II-D.3: 0.65")]
    #[bounds(above 0.0, below 1.0; "it is the part of the window that stays")]
    pub beta_least: f64,
    /// η₀ of the routers on the path.
    #[default(0.15, "§ II-D.2: 0.15")]
    #[bounds(above 0.0, below 1.0; "it is a load below `high`")]
    pub least: f64,
    /// η of the routers on the path: below it the window is multiplied, from it on it grows by
    /// addition.
    #[default(0.75, "§ II-D.2: 0.75")]
    #[bounds(above 0.0, below 1.0; "it is between idle and full")]
    pub high: f64,
    /// u of the routers on the path.
    #[default(1.2, "§ II-D.3: 1.2")]
    #[bounds(above 1.0; "it is an overload")]
    pub most: f64,
    /// `true` if a new flow's window is multiplied until the estimate first reaches 1, whatever η
    /// is.
    #[default(true, "§ II-D.2, § III d")]
    pub multiplies_first: bool,
    /// Times at which eq. 3 and 4 change the window.
    #[default(
        Apply::Ack,
        "none in the paper, whose laws are of a round trip; VCP's program: with each ACK"
    )]
    pub apply: Apply,
    /// Time after a decrease before another may follow.
    #[default(
        Rests::Both,
        "none in the paper; VCP: an interval, then a round trip of additive increase"
    )]
    pub rests: Rests,
    /// Upper bound of the round-trip time in eq. 3; none is no bound.
    #[default(Some(Duration::from_millis(500)), "none in the paper; VCP's program: 500 ms")]
    #[bounds(above Duration::ZERO; "no round trip takes no time")]
    pub mi_rtt_most: Option<Duration>,
    /// Round-trip time by which the window grows: T of eq. 3 and 4.
    #[default(GrowthRtt::Smoothed, "none in the paper; RFC 6298: the smoothed one")]
    #[later]
    pub growth_rtt: GrowthRtt,
    /// Response to a loss. After a timeout the window grows back, as in slow start, to what the
    /// response leaves of it.
    #[default(OnLoss::IfOverload, "§ I: loss recovery is decoupled from congestion control")]
    pub on_loss: OnLoss,
    /// `true` if packets are paced at one window per round-trip time.
    #[default(
        true,
        "§ IV-B: its start is computed with pacing; that the protocol has it is not said"
    )]
    pub paced: bool,
    /// Identification field of packets.
    #[default(Ids::Counter, "§ II-B: of the IP header")]
    pub ids: Ids,
}

impl Presets for Params {
    const PRESETS: &'static [PresetOf<Self>] = &[
        PresetOf::new(
            "paper",
            "Qazi, Andrew, Znati 2009; the default where the stack has none.",
            Self::default,
        ),
        PresetOf::new("linux", "The same, which `cwnd-kernel` does on Linux.", Self::default),
    ];
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
                message: "`least` is above `high`: no threshold could be between them".to_owned(),
            });
        }
        Ok(())
    }
}

const MECHANISM: Mechanism = explicit_feedback::load_factor_mechanism(&["load_acks_heard"]);

impl ControllerInfo for Params {
    fn build(&self, start: &Start) -> Box<dyn DynController> {
        Box::new(Bmcc::new(self, start))
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
            .provides(Ability::SendsId)
            .needs(Ability::Ect, "multiplies its window without end")
            .needs(Ability::WritesBounds, "multiplies its window without end")
            .needs(Ability::EchoesEstimate, "hears of no load")
    }
}

/// BMCC's state for one connection.
///
/// The fields read for each packet sent are in the first cache line. Window and pacing rate are
/// computed for each ACK or signal, not for each packet.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Bmcc {
    /// Window after the last ACK or signal.
    cached_window: Window,
    /// Pacing rate; zero if it does not pace, or not now.
    cached_rate: Rate,
    constants: Arc<Constants>,
    /// Identification of the next packet, before [`Ids::Shuffled`] hashes it; `None` before the
    /// first.
    id: Option<u16>,
    /// f̂, as the index of an ADPM threshold.
    threshold_index: u16,
    /// `true` until f̂ first reaches 1.
    is_new: bool,
    /// ξ(f̂) of eq. 2.
    xi: f64,
    /// Smoothed RTT; `Duration::MAX` before the first.
    srtt: Duration,
    /// Bytes acknowledged in the current round trip, if growth is applied per round trip.
    acked: u64,
    /// Number of the current round trip, if growth is applied per round trip.
    round: u64,
    window: LoadWindow,
    hold: DecreaseHold,
    counters: Counters,
}

/// Constants of a connection.
#[derive(Debug)]
struct Constants {
    params: Params,
    scale: Scale,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    load_acks: u64,
    load: explicit_feedback::Counters,
    repaired: u64,
}

impl Bmcc {
    /// Creates the controller of a new connection: "new flows initially estimate f̂ = η₀" (§ III
    /// a).
    #[must_use]
    pub fn new(params: &Params, start: &Start) -> Self {
        let scale = Scale { min: params.least, high: params.high, max: params.most };
        let window = LoadWindow::new(start);
        let mut new = Self {
            cached_window: window.window(u64::from(start.mss)),
            cached_rate: Rate(0),
            window,
            threshold_index: 0,
            xi: 0.0,
            is_new: true,
            hold: DecreaseHold::default(),
            round: 0,
            acked: 0,
            srtt: Duration::MAX,
            id: None,
            counters: Counters::default(),
            constants: Arc::new(Constants { params: params.clone(), scale }),
        };
        new.set_threshold_index(0);
        new
    }

    fn set_threshold_index(&mut self, threshold_index: u16) {
        self.threshold_index = threshold_index;
        let load = self.constants.scale.load(threshold_index);
        self.xi = self.constants.params.mi_step * (1.0 - load).max(0.0) / load;
        self.is_new &= !adpm::is_over(threshold_index);
    }

    /// Returns β of eq. 6; a load below 1 counts as 1.
    fn beta(&self) -> f64 {
        let p = &self.constants.params;
        let over =
            (self.constants.scale.load(self.threshold_index) - 1.0).max(0.0) / (p.most - 1.0);
        p.beta_most - (p.beta_most - p.beta_least) * over
    }

    fn grow(&mut self, path: &Path, acked: u64) {
        let p = &self.constants.params;
        let multiplies = self.threshold_index < self.constants.high_threshold()
            || self.is_new && p.multiplies_first;
        if self.window.is_repairing() {
            self.window.grow_in_repair(acked);
        } else if multiplies {
            // Eq. 3.
            let exponent = rtt_in_intervals(path, p.growth_rtt, p.interval, p.mi_rtt_most);
            self.window.multiply(path, acked, self.xi, exponent);
            self.counters.load.multiplied += 1;
        } else {
            // Eq. 4.
            let ratio = rtt_in_intervals(path, p.growth_rtt, p.interval, None);
            let segments = p.alpha * ratio * ratio;
            self.window.add(path, acked, segments);
            self.counters.load.added += 1;
        }
    }

    fn decrease(&mut self, path: &Path) {
        let p = &self.constants.params;
        let rtt = path.srtt.unwrap_or_default();
        let (rests, adds) = match p.rests {
            Rests::Longer => (p.interval.max(rtt), Duration::ZERO),
            Rests::Both => (p.interval, rtt),
        };
        self.hold = DecreaseHold::begin(path.now, rests, adds);
        let beta = self.beta();
        self.window.scale(path, beta);
        self.counters.load.decreased += 1;
    }

    /// Grows the window for the bytes acknowledged, at once or at the end of a round trip.
    fn advance(&mut self, path: &Path, acked: u64) {
        if self.constants.params.apply == Apply::Ack {
            return self.grow(path, acked);
        }
        self.acked += acked;
        if path.round != self.round {
            self.round = path.round;
            let acked = core::mem::take(&mut self.acked);
            // A round trip acknowledges at most the window that it began with.
            self.grow(path, acked.min(self.window.bytes() as u64));
        }
    }
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Bmcc>() == 192, "three cache lines");

impl Bmcc {
    /// Updates the cached window and pacing rate after a change of the window or the RTT.
    fn update_cache(&mut self, path: &Path) {
        self.cached_window = self.window.window(u64::from(path.mss));
        let rtt = (self.constants.params.paced && self.srtt != Duration::MAX).then_some(self.srtt);
        let pace = rtt.and_then(|rtt| self.window.pacing_rate(u64::from(path.mss), rtt));
        self.cached_rate = pace.unwrap_or(Rate(0));
    }
}

impl Constants {
    /// Returns the index of the threshold η.
    const fn high_threshold(&self) -> u16 {
        (adpm::THRESHOLDS / 4) as u16
    }
}

impl Controller for Bmcc {
    fn reads_ecn_field(&self) -> bool {
        true
    }

    fn on_ack(&mut self, path: &Path, ack: &AckSample) -> Request {
        if let Echo::Load { value, .. } = ack.echo {
            self.counters.load_acks += 1;
            if value != self.threshold_index {
                self.set_threshold_index(value);
            }
        }
        // The first window is not paced, as in TCP.
        if ack.acked_bytes > 0 {
            self.srtt = path.srtt.unwrap_or(Duration::MAX);
        }
        let mut request = Request::Nothing;
        let grows = self.window.may_grow(path, ack, self.constants.params.paced);
        if !adpm::is_over(self.threshold_index) {
            if grows {
                self.advance(path, ack.acked_bytes);
            }
        } else if self.hold.is_frozen(path.now) {
            self.counters.load.rested += 1;
        } else if self.hold.is_active(path.now) {
            if grows {
                self.advance(path, ack.acked_bytes);
            }
        } else {
            request = Request::Reduce(Cause::Load);
        }
        self.update_cache(path);
        request
    }

    fn on_signal(&mut self, path: &Path, signal: Signal) {
        let over = adpm::is_over(self.threshold_index) && !self.hold.is_frozen(path.now);
        let decreases = match self.constants.params.on_loss {
            OnLoss::Repair => false,
            OnLoss::IfOverload => over,
            OnLoss::Decrease => true,
        };
        match signal {
            Signal::Reduce(Cause::Loss) if !decreases => self.counters.repaired += 1,
            Signal::Reduce(_) => self.decrease(path),
            Signal::Timeout { reduces, .. } => {
                let part = if decreases { self.beta() } else { 1.0 };
                self.window.restart_after_timeout(path, part, reduces);
            }
            Signal::Idle { .. } => self.window.after_idle(),
            Signal::Resume { .. } => {}
        }
        self.update_cache(path);
    }

    fn stamp(&mut self, data: &OutgoingData) -> CongestionHeader {
        // Seeded from the start time, so that flows which start at different times use different
        // parts of the same sequence.
        let id = self.id.unwrap_or_else(|| adpm::hash((data.now.0 / 1000) as u16));
        self.id = Some(match self.constants.params.ids {
            Ids::Counter | Ids::Shuffled => id.wrapping_add(1),
            Ids::Constant => id,
        });
        CongestionHeader::Id(if self.constants.params.ids == Ids::Shuffled {
            adpm::hash(id)
        } else {
            id
        })
    }

    fn window(&self) -> Window {
        self.cached_window
    }

    fn pacing(&self) -> Option<Rate> {
        (self.cached_rate > Rate(0)).then_some(self.cached_rate)
    }

    /// Returns f̂. Loads below η₀, which the marks cannot distinguish, count as η₀, as does the
    /// time before the first estimate.
    fn guidance(&self) -> Option<Guidance> {
        Some(Guidance::Load(self.constants.scale.load(self.threshold_index)))
    }

    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        let Counters { load_acks, load, repaired } = self.counters;
        each("load_acks_heard", load_acks);
        load.count(each);
        each("losses_only_repaired", repaired);
    }
}
