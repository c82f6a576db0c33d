use core::any::Any;
use core::fmt;

use cwnd_units::{
    Contract, Declares, Duration, Guidance, Header, ParamsChoice as _, Rate, Time, params_choice,
};

use crate::bbr::{self, Bbr};
use crate::bmcc::{self, Bmcc};
use crate::controller::{
    AckSample, Controller, Departing, Path, RateSample, Request, Signal, Start, Window,
};
use crate::copa::{self, Copa};
use crate::cubic::{self, Cubic};
use crate::dctcp::{self, Dctcp};
use crate::decrease::Rule;
use crate::delay_aimd::{self, DelayAimd};
use crate::fast::{self, Fast};
use crate::htcp::{self, HTcp};
use crate::kind::{Kind, Mechanism};
use crate::ledbat::{self, Ledbat};
use crate::min_rtt::Estimating;
use crate::mlcp::{self, Mlcp};
use crate::newreno::{self, NewReno};
use crate::rcp::{self, Rcp};
#[cfg(feature = "record")]
use crate::record::{Entry, Recorded};
use crate::vcp::{self, Vcp};
use crate::vegas::{self, Vegas};
use crate::xcp::{self, Xcp};

params_choice! {
    /// Which controller, with its parameters.
    pub enum ControllerParams {
        /// NewReno: additive increase, multiplicative decrease (RFC 5681).
        NewReno(newreno::Params) = "newreno",
        /// CUBIC: growth by a cubic function of the time since the last reduction (RFC 9438).
        Cubic(cubic::Params) = "cubic",
        /// DCTCP: backs off by how much of its data was marked (RFC 8257).
        Dctcp(dctcp::Params) = "dctcp",
        /// Delay-based AIMD: backs off once packets wait longer than a threshold (McCullagh 2008).
        DelayAimd(delay_aimd::Params) = "delay-aimd",
        /// H-TCP: the longer the last loss is ago, the faster it grows (Leith & Shorten 2004).
        HTcp(htcp::Params) = "htcp",
        /// Vegas: keeps a few segments in queues (Brakmo & Peterson 1995).
        Vegas(vegas::Params) = "vegas",
        /// RCP: sends at the rate of routers (Dukkipati et al. 2005).
        Rcp(rcp::Params) = "rcp",
        /// XCP: its window changes by what routers write (Katabi, Handley, Rohrs 2002).
        Xcp(xcp::Params) = "xcp",
        /// LEDBAT++ (also `ledbat++`): background traffic that keeps the delay it adds near a
        /// target (draft-irtf-iccrg-ledbat-plus-plus).
        Ledbat(ledbat::Params) = "ledbat" | "ledbat++",
        /// Copa: steers towards a rate of 1 / (δ · queueing delay) (Arun & Balakrishnan 2018).
        Copa(copa::Params) = "copa",
        /// BBR, version 1: sends at the bandwidth that it found (draft-cardwell-iccrg-bbr-congestion-control-00).
        Bbr(bbr::Params) = "bbr",
        /// FAST TCP: keeps α segments in queues, by one step every other round trip (Wei et al. 2006).
        Fast(fast::Params) = "fast",
        /// VCP: routers tell of low, high or too much load (Xia et al. 2005).
        Vcp(vcp::Params) = "vcp",
        /// MLCP: by one of sixteen levels of load that routers write (Qazi & Znati 2008).
        Mlcp(mlcp::Params) = "mlcp",
        /// BMCC: by an estimate of the load factor, from two bits of many packets (Qazi, Andrew, Znati 2009).
        Bmcc(bmcc::Params) = "bmcc",
    }
}

/// One of the controllers of this crate; a match and no allocation per ACK.
#[derive(Clone, Debug)]
// A tag of its own, in no niche of NewReno's: to read it takes one instruction in place of four.
#[repr(u8)]
pub enum AnyController {
    /// NewReno.
    NewReno(NewReno),
    /// CUBIC, which has more to remember: the other need not be as large.
    Cubic(Box<Cubic>),
    /// Behind a pointer: one that this crate does not know, a study's own, a test's, or one of its own that few use. Flows of the others
    /// pay nothing for it.
    Own(Box<dyn OwnController>),
    /// One of these, and what it was told.
    #[cfg(feature = "record")]
    Recorded(Box<Recorded<Self>>),
}

/// A controller of somebody's own, behind a pointer.
pub trait OwnController: Controller + fmt::Debug + Send + Sync + Any {
    /// Another in the same state.
    fn boxed_clone(&self) -> Box<dyn OwnController>;
    /// [`Controller::undo`], to a clone of this controller.
    fn boxed_undo(&mut self, before: Box<dyn Any>, now: Time, after_timeout: bool);
}

impl<T: Controller + Clone + fmt::Debug + Send + Sync + 'static> OwnController for T {
    fn boxed_clone(&self) -> Box<dyn OwnController> {
        Box::new(self.clone())
    }

    fn boxed_undo(&mut self, before: Box<dyn Any>, now: Time, after_timeout: bool) {
        if let Ok(before) = before.downcast::<T>() {
            self.undo(*before, now, after_timeout);
        }
    }
}

impl Clone for Box<dyn OwnController> {
    fn clone(&self) -> Self {
        self.as_ref().boxed_clone()
    }
}

impl ControllerParams {
    /// A controller with these parameters at the start of its connection.
    #[must_use]
    pub fn build(&self, start: &Start) -> AnyController {
        match self {
            Self::NewReno(p) => estimating(&p.rule, NewReno::new(p, start), AnyController::NewReno),
            Self::Cubic(p) => {
                let plain = |c| AnyController::Cubic(Box::new(c));
                estimating(&p.rule, Cubic::new(p, start), plain)
            }
            Self::Dctcp(p) => AnyController::Own(Box::new(Dctcp::new(p, start))),
            Self::DelayAimd(p) => AnyController::Own(Box::new(DelayAimd::new(p, start))),
            Self::HTcp(p) => AnyController::Own(Box::new(HTcp::new(p, start))),
            Self::Vegas(p) => AnyController::Own(Box::new(Vegas::new(p, start))),
            Self::Rcp(p) => AnyController::Own(Box::new(Rcp::new(p, start))),
            Self::Xcp(p) => AnyController::Own(Box::new(Xcp::new(p, start))),
            Self::Ledbat(p) => AnyController::Own(Box::new(Ledbat::new(p, start))),
            Self::Copa(p) => AnyController::Own(Box::new(Copa::new(p, start))),
            Self::Bbr(p) => AnyController::Own(Box::new(Bbr::new(p, start))),
            Self::Fast(p) => AnyController::Own(Box::new(Fast::new(p, start))),
            Self::Vcp(p) => AnyController::Own(Box::new(Vcp::new(p, start))),
            Self::Mlcp(p) => AnyController::Own(Box::new(Mlcp::new(p, start))),
            Self::Bmcc(p) => AnyController::Own(Box::new(Bmcc::new(p, start))),
        }
    }

    /// What the kind states of itself.
    #[must_use]
    pub fn stated(&self) -> &dyn Kind {
        match self {
            Self::NewReno(p) => p,
            Self::Cubic(p) => p,
            Self::Dctcp(p) => p,
            Self::DelayAimd(p) => p,
            Self::HTcp(p) => p,
            Self::Vegas(p) => p,
            Self::Rcp(p) => p,
            Self::Xcp(p) => p,
            Self::Ledbat(p) => p,
            Self::Copa(p) => p,
            Self::Bbr(p) => p,
            Self::Fast(p) => p,
            Self::Vcp(p) => p,
            Self::Mlcp(p) => p,
            Self::Bmcc(p) => p,
        }
    }

    /// The mechanisms that are asked for.
    pub fn asked_for(&self) -> impl Iterator<Item = &'static Mechanism> {
        let all = self.stated().mechanisms().iter();
        all.filter(|mechanism| mechanism.is_asked_for(self.params()))
    }
}

impl Declares for ControllerParams {
    fn contract(&self) -> Contract {
        match self {
            Self::NewReno(p) => p.contract(),
            Self::Cubic(p) => p.contract(),
            Self::Dctcp(p) => p.contract(),
            Self::DelayAimd(p) => p.contract(),
            Self::HTcp(p) => p.contract(),
            Self::Vegas(p) => p.contract(),
            Self::Rcp(p) => p.contract(),
            Self::Xcp(p) => p.contract(),
            Self::Ledbat(p) => p.contract(),
            Self::Copa(p) => p.contract(),
            Self::Bbr(p) => p.contract(),
            Self::Fast(p) => p.contract(),
            Self::Vcp(p) => p.contract(),
            Self::Mlcp(p) => p.contract(),
            Self::Bmcc(p) => p.contract(),
        }
    }
}

// What the transport asks once, so that a controller costs nothing for what it does not use.
impl AnyController {
    /// [`Controller::on_ack`].
    // What NewReno makes of the facts is less than it takes to write them into memory. So it is inlined where they are known, and only
    // others get a copy there.
    #[inline(always)]
    pub fn hear(&mut self, path: Path, ack: AckSample) -> Request {
        match self {
            Self::NewReno(c) => c.on_ack(&path, &ack),
            Self::Cubic(c) => hear(c.as_mut(), path, ack),
            Self::Own(c) => hear(c.as_mut(), path, ack),
            #[cfg(feature = "record")]
            Self::Recorded(c) => hear(c.as_mut(), path, ack),
        }
    }

    /// The controller, if it may use more than this crate's do: those make nothing of ACKs that acknowledge nothing new, write
    /// no headers, and don't pace.
    #[inline]
    #[must_use]
    pub fn beyond_window(&mut self) -> Option<&mut dyn Controller> {
        match self {
            Self::NewReno(_) | Self::Cubic(_) => None,
            Self::Own(c) => Some(c.as_mut()),
            #[cfg(feature = "record")]
            Self::Recorded(c) => Some(c.as_mut()),
        }
    }
}

#[inline(never)]
fn hear(controller: &mut (impl Controller + ?Sized), path: Path, ack: AckSample) -> Request {
    controller.on_ack(&path, &ack)
}

#[cfg(feature = "record")]
impl AnyController {
    /// The same controller, which writes down what it is told from now on.
    #[must_use]
    pub fn recorded(self) -> Self {
        Self::Recorded(Box::new(Recorded::new(self)))
    }

    /// What it wrote down; empty if it was not asked to.
    #[must_use]
    pub fn record(&self) -> &[Entry] {
        match self {
            Self::Recorded(recorded) => recorded.entries(),
            Self::NewReno(_) | Self::Cubic(_) | Self::Own(_) => &[],
        }
    }
}

impl Controller for AnyController {
    #[inline]
    fn on_ack(&mut self, path: &Path, ack: &AckSample) -> Request {
        match self {
            Self::NewReno(c) => c.on_ack(path, ack),
            Self::Cubic(c) => c.on_ack(path, ack),
            Self::Own(c) => c.on_ack(path, ack),
            #[cfg(feature = "record")]
            Self::Recorded(c) => c.on_ack(path, ack),
        }
    }
    #[inline]
    fn on_signal(&mut self, path: &Path, signal: Signal) {
        match self {
            Self::NewReno(c) => c.on_signal(path, signal),
            Self::Cubic(c) => c.on_signal(path, signal),
            Self::Own(c) => c.on_signal(path, signal),
            #[cfg(feature = "record")]
            Self::Recorded(c) => c.on_signal(path, signal),
        }
    }
    #[inline]
    fn window(&self) -> Window {
        match self {
            Self::NewReno(c) => c.window(),
            Self::Cubic(c) => c.window(),
            Self::Own(c) => own_window(c.as_ref()),
            #[cfg(feature = "record")]
            Self::Recorded(c) => c.window(),
        }
    }
    #[inline]
    fn pacing(&self) -> Option<Rate> {
        match self {
            Self::NewReno(c) => c.pacing(),
            Self::Cubic(c) => c.pacing(),
            Self::Own(c) => c.pacing(),
            #[cfg(feature = "record")]
            Self::Recorded(c) => c.pacing(),
        }
    }
    fn paces_anew(&self) -> bool {
        match self {
            Self::NewReno(c) => c.paces_anew(),
            Self::Cubic(c) => c.paces_anew(),
            Self::Own(c) => c.paces_anew(),
            #[cfg(feature = "record")]
            Self::Recorded(c) => c.paces_anew(),
        }
    }

    fn spacing(&self) -> Option<Duration> {
        match self {
            Self::NewReno(c) => c.spacing(),
            Self::Cubic(c) => c.spacing(),
            Self::Own(c) => c.spacing(),
            #[cfg(feature = "record")]
            Self::Recorded(c) => c.spacing(),
        }
    }
    fn by_rate(&self) -> bool {
        match self {
            Self::NewReno(_) | Self::Cubic(_) => false,
            Self::Own(c) => c.by_rate(),
            #[cfg(feature = "record")]
            Self::Recorded(c) => c.by_rate(),
        }
    }
    fn on_rate(&mut self, sample: &RateSample) {
        match self {
            Self::NewReno(_) | Self::Cubic(_) => {}
            Self::Own(c) => c.on_rate(sample),
            #[cfg(feature = "record")]
            Self::Recorded(c) => c.on_rate(sample),
        }
    }
    fn undo(&mut self, before: Self, now: Time, after_timeout: bool) {
        match (self, before) {
            (Self::NewReno(c), Self::NewReno(before)) => c.undo(before, now, after_timeout),
            (Self::Cubic(c), Self::Cubic(before)) => c.undo(*before, now, after_timeout),
            (Self::Own(c), Self::Own(before)) => c.boxed_undo(before, now, after_timeout),
            #[cfg(feature = "record")]
            (Self::Recorded(c), Self::Recorded(before)) => c.undo(*before, now, after_timeout),
            // A connection keeps its controller.
            _ => {}
        }
    }
    fn raise_threshold(&mut self, least: u64) {
        match self {
            Self::NewReno(c) => c.raise_threshold(least),
            Self::Cubic(c) => c.raise_threshold(least),
            Self::Own(c) => c.raise_threshold(least),
            #[cfg(feature = "record")]
            Self::Recorded(c) => c.raise_threshold(least),
        }
    }
    fn on_sack_rtt(&mut self, path: &Path, rtt: Duration) {
        match self {
            Self::NewReno(c) => c.on_sack_rtt(path, rtt),
            Self::Cubic(c) => c.on_sack_rtt(path, rtt),
            Self::Own(c) => c.on_sack_rtt(path, rtt),
            #[cfg(feature = "record")]
            Self::Recorded(c) => c.on_sack_rtt(path, rtt),
        }
    }
    fn add_in_flight(&mut self, bytes: u64) {
        match self {
            Self::NewReno(c) => c.add_in_flight(bytes),
            Self::Cubic(c) => c.add_in_flight(bytes),
            Self::Own(c) => c.add_in_flight(bytes),
            #[cfg(feature = "record")]
            Self::Recorded(c) => c.add_in_flight(bytes),
        }
    }
    #[inline]
    fn stamp(&mut self, data: &Departing) -> Header {
        match self {
            Self::NewReno(c) => c.stamp(data),
            Self::Cubic(c) => c.stamp(data),
            Self::Own(c) => c.stamp(data),
            #[cfg(feature = "record")]
            Self::Recorded(c) => c.stamp(data),
        }
    }
    fn min_rtt(&self) -> Option<Duration> {
        match self {
            Self::NewReno(c) => c.min_rtt(),
            Self::Cubic(c) => c.min_rtt(),
            Self::Own(c) => c.min_rtt(),
            #[cfg(feature = "record")]
            Self::Recorded(c) => c.min_rtt(),
        }
    }
    fn guidance(&self) -> Option<Guidance> {
        match self {
            Self::NewReno(c) => c.guidance(),
            Self::Cubic(c) => c.guidance(),
            Self::Own(c) => c.guidance(),
            #[cfg(feature = "record")]
            Self::Recorded(c) => c.guidance(),
        }
    }
    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        match self {
            Self::NewReno(c) => c.count(each),
            Self::Cubic(c) => c.count(each),
            Self::Own(c) => c.count(each),
            #[cfg(feature = "record")]
            Self::Recorded(c) => c.count(each),
        }
    }
}

/// The controller; with an estimate of the round trip of its own where its rule acts by that.
fn estimating<C: Controller + Clone + fmt::Debug + Send + Sync + 'static>(
    rule: &Rule,
    controller: C,
    plain: impl FnOnce(C) -> AnyController,
) -> AnyController {
    if rule.adaptive_delta.is_none() {
        return plain(controller);
    }
    AnyController::Own(Box::new(Estimating::new(controller, rule.initial_min_rtt)))
}

/// Apart, so that who asks has no copy of this call.
#[cold]
#[inline(never)]
fn own_window(controller: &dyn OwnController) -> Window {
    controller.window()
}
