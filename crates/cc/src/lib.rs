//! Congestion controllers, each in a file or folder of its own, slow starts and
//! retransmission-timeout policies.
//!
//! **The transport owns facts, the controller owns policy.** The outputs of a controller are cwnd,
//! ssthresh, a pacing rate or a gap between segments, headers for routers, and requests for a
//! reduction. A transport calls [`Controller::on_ack`] for every ACK that is not old, duplicates
//! only with [`AnyController::uses_duplicate_acks`] or if they count for growth, and
//! [`Controller::on_signal`] for rare events. The transport also decides if an ACK lets the window
//! grow, and reduces the window at most once per window of data, whatever the cause. The exceptions
//! are timeouts, lost retransmissions, losses that a tail loss probe repairs, and options of the
//! endpoint such as `loss_reduces_again`. No controller has to repeat this.
//!
//! [`AckSample::grow`] permits growth; [`Request::Reduce`] asks for a reduction. A controller sees
//! [`Path`], [`AckSample`], [`RateSample`], [`Signal`] and [`OutgoingData`], and describes itself
//! to generic code by its [`ControllerInfo`]. [`AnyController`] calls the two frequent kinds,
//! NewReno and CUBIC without adaptive backoff, directly, and all others through a
//! [`DynController`], so that a kind is one line of the registry.
//!
//! The crate is `no_std` with `alloc`. A controller has no clock and no I/O:
//! ```
//! use cwnd_cc::{
//!     AckSample, Cause, Controller as _, ControllerParams, GrowthPermission, Path, Signal, Start,
//!     cubic,
//! };
//!
//! // CUBIC with ABE (RFC 8511): 0.7 of the data in flight stays after a loss, 0.85 after a mark.
//! let mut params = cubic::Params::default();
//! params.rule.beta_ecn = Some(0.85);
//! let mut controller = ControllerParams::Cubic(params).build(&Start {
//!     mss: 1000,
//!     initial_window: 10_000,
//!     initial_ssthresh: 12_000,
//!     max_window: u64::MAX,
//!     delayed_acks: true,
//! });
//!
//! // An ACK of two segments in slow start.
//! let mut path = Path { mss: 1000, flight_size: 10_000, ..Path::default() };
//! let grow = GrowthPermission::Yes;
//! let ack = AckSample { acked_bytes: 2000, grow, ..AckSample::default() };
//! let _ = controller.on_ack(&path, &ack);
//! assert_eq!(controller.window().cwnd, 12_000);
//!
//! path.flight_size = 12_000;
//! controller.on_signal(&path, Signal::Reduce(Cause::Ecn));
//! assert_eq!(controller.window().cwnd, 10_200);
//! path.flight_size = 10_200;
//! controller.on_signal(&path, Signal::Reduce(Cause::Loss));
//! assert_eq!(controller.window().cwnd, 7140);
//! ```
//! `examples/quinn.rs` puts such a controller behind quinn's trait.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

#[macro_use]
extern crate alloc;

use alloc::boxed::Box;

use cwnd_packet::{Contract, HasContract};
use cwnd_schema::{ParamsChoice as _, registry};

registry! {
    /// The controllers, each with its parameters.
    #[each(each_kind)]
    pub enum ControllerParams {
        NewReno(newreno),
        Cubic(cubic),
        Dctcp(dctcp),
        DelayAimd(delay_aimd),
        HTcp(htcp),
        Vegas(vegas),
        Rcp(rcp),
        Xcp(xcp),
        Ledbat(ledbat),
        Copa(copa),
        Bbr(bbr),
        Fast(fast),
        Vcp(vcp),
        Mlcp(mlcp),
        Bmcc(bmcc),
        ; loaded Python(python), C(c),
        ; installed Installed(installed),
    }
}

mod any;
mod controller;
mod decrease;
mod dynamic;
mod explicit_feedback;
mod hystart;
mod increase;
mod loaded;
mod min_rtt;
#[cfg(feature = "record")]
pub mod record;
mod rto;
mod slow_start;

pub use any::AnyController;
pub use controller::{
    AckSample, Cause, Controller, DepartureTiming, GrowthPermission, OutgoingData, Path, Phase,
    RateSample, Request, RoundTrips, Signal, Start, Window, WindowMut,
};
pub use decrease::{
    Base, Decrease, DelayDecrease, EcnInSlowStart, QuenchRest, Rest, RestAfterQuench, Rounding,
    Rule, Stage,
};
pub use dynamic::{ActionCount, ControllerInfo, DynController, Mechanism};
pub use explicit_feedback::GrowthRtt;
pub use increase::{HTcpIncrease, SubMssGrowth, SubMssWindow};
pub use rto::{Backoff, RtoPolicy};
pub use slow_start::{GrowthRules, SlowStart};

impl ControllerParams {
    /// Builds a controller with these parameters at the start of its connection.
    #[must_use]
    pub fn build(&self, start: &Start) -> AnyController {
        match self {
            Self::NewReno(p) if p.rule.adaptive_delta.is_none() => {
                AnyController::NewReno(newreno::NewReno::new(p, start))
            }
            Self::Cubic(p) if p.rule.adaptive_delta.is_none() => {
                AnyController::Cubic(Box::new(cubic::Cubic::new(p, start)))
            }
            other => AnyController::Boxed(other.info().build(start)),
        }
    }

    /// Returns the facts about the kind of controller.
    #[must_use]
    pub fn info(&self) -> &dyn ControllerInfo {
        each_kind!(self, params => params)
    }

    /// Returns the mechanisms that these parameters ask for.
    pub fn asked_for(&self) -> impl Iterator<Item = &'static Mechanism> {
        let all = self.info().mechanisms().iter();
        all.filter(|mechanism| mechanism.is_asked_for(self.params()))
    }
}

impl HasContract for ControllerParams {
    fn contract(&self) -> Contract {
        self.info().contract()
    }
}
