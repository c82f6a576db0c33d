use cwnd_units::{Contract, Declares, Rate, params_choice};

use crate::controller::{AckSample, Controller, Path, Signal, Start, Window};
use crate::cubic::{self, Cubic};
use crate::newreno::{self, NewReno};

params_choice! {
    /// Which controller, with its parameters.
    pub enum ControllerParams {
        /// NewReno: additive increase, multiplicative decrease (RFC 5681).
        NewReno(newreno::Params) = "newreno",
        /// CUBIC: growth by a cubic function of the time since the last reduction (RFC 9438).
        Cubic(cubic::Params) = "cubic",
    }
}

/// One of the controllers of this crate; a match and no allocation per ACK.
#[derive(Clone, Debug)]
pub enum AnyController {
    /// NewReno.
    NewReno(NewReno),
    /// CUBIC, which has more to remember: the other need not be as large.
    Cubic(Box<Cubic>),
    /// One of these, and what it was told.
    #[cfg(feature = "record")]
    Recorded(Box<crate::record::Recorded>),
}

impl ControllerParams {
    /// A controller with these parameters at the start of its connection.
    #[must_use]
    pub fn build(&self, start: &Start) -> AnyController {
        match self {
            Self::NewReno(p) => AnyController::NewReno(NewReno::new(p, start)),
            Self::Cubic(p) => AnyController::Cubic(Box::new(Cubic::new(p, start))),
        }
    }
}

impl Declares for ControllerParams {
    fn contract(&self) -> Contract {
        match self {
            Self::NewReno(p) => p.contract(),
            Self::Cubic(p) => p.contract(),
        }
    }
}

impl Controller for AnyController {
    #[inline]
    fn on_ack(&mut self, path: &Path, ack: &AckSample) {
        match self {
            Self::NewReno(c) => c.on_ack(path, ack),
            Self::Cubic(c) => c.on_ack(path, ack),
            #[cfg(feature = "record")]
            Self::Recorded(c) => c.on_ack(path, ack),
        }
    }
    #[inline]
    fn on_signal(&mut self, path: &Path, signal: Signal) {
        match self {
            Self::NewReno(c) => c.on_signal(path, signal),
            Self::Cubic(c) => c.on_signal(path, signal),
            #[cfg(feature = "record")]
            Self::Recorded(c) => c.on_signal(path, signal),
        }
    }
    #[inline]
    fn window(&self) -> Window {
        match self {
            Self::NewReno(c) => c.window(),
            Self::Cubic(c) => c.window(),
            #[cfg(feature = "record")]
            Self::Recorded(c) => c.window(),
        }
    }
    #[inline]
    fn pacing(&self) -> Option<Rate> {
        match self {
            Self::NewReno(c) => c.pacing(),
            Self::Cubic(c) => c.pacing(),
            #[cfg(feature = "record")]
            Self::Recorded(c) => c.inner.pacing(),
        }
    }
}
