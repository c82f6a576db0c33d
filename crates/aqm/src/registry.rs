use core::fmt;

use cwnd_units::{Contract, Declares, Guidance, LinkFacts, Rate, Rng, Time, params_choice};

use crate::codel::{self, CoDelQueue};
use crate::fifo::{self, Fifo};
use crate::fq_codel::{self, FqCoDel};
use crate::meter::{Meter, Metered};
use crate::own::OwnQdisc;
use crate::pie::{self, Pie};
use crate::qdisc::{Backlog, Context, Packet, Qdisc};
use crate::red::{self, Red};

params_choice! {
    /// Which queue discipline, with its parameters.
    pub enum QueueParams {
        /// First in, first out; drops when full.
        Fifo(fifo::Params) = "fifo",
        /// Random early detection: marks or drops on arrival by an average of the queue length (Floyd & Jacobson 1993).
        Red(red::Params) = "red",
        /// Controlled delay: marks or drops at the head when the delay stays above a target (RFC 8289).
        CoDel(codel::Params) = "codel",
        /// Proportional integral controller: marks or drops on arrival to hold a delay (RFC 8033).
        Pie(pie::Params) = "pie",
        /// Fair queueing with CoDel in each queue (RFC 8290).
        FqCoDel(fq_codel::Params) = "fq-codel",
    }
}

/// Any of the queue disciplines, told apart by a branch instead of a pointer.
#[derive(Debug)]
pub enum AnyQdisc<P> {
    /// First in, first out.
    Fifo(Fifo<P>),
    /// RED.
    Red(Red<P>),
    /// CoDel.
    CoDel(CoDelQueue<P>),
    /// PIE.
    Pie(Pie<P>),
    /// FQ-CoDel.
    FqCoDel(FqCoDel<P>),
    /// One that is not among the kinds, or one of them with a meter.
    Own(Box<dyn OwnQdisc<P>>),
}

impl<P: Packet + 'static> AnyQdisc<P> {
    /// A discipline that is not among the kinds.
    pub fn own(queue: impl OwnQdisc<P> + 'static) -> Self {
        Self::Own(Box::new(queue))
    }

    /// The same discipline with a meter beside it; the meter has been told the rate.
    #[must_use]
    pub fn with_meter(self, meter: Box<dyn Meter<P>>) -> Self
    where
        P: fmt::Debug + Send,
    {
        match self {
            // What most of them stand beside is asked without looking up what it is.
            Self::Fifo(queue) => Self::own(Metered { queue, meter }),
            queue => Self::own(Metered { queue, meter }),
        }
    }
}

impl Declares for QueueParams {
    fn contract(&self) -> Contract {
        match self {
            Self::Fifo(p) => p.contract(),
            Self::Red(p) => p.contract(),
            Self::CoDel(p) => p.contract(),
            Self::Pie(p) => p.contract(),
            Self::FqCoDel(p) => p.contract(),
        }
    }
}

impl QueueParams {
    /// An empty queue with these parameters before this link; `rng` serves the disciplines that draw lots.
    #[must_use]
    pub fn build<P: Packet>(&self, link: &LinkFacts, rng: Rng) -> AnyQdisc<P> {
        match self {
            Self::Fifo(p) => AnyQdisc::Fifo(Fifo::new(p, link)),
            Self::Red(p) => AnyQdisc::Red(Red::new(p, link, rng)),
            Self::CoDel(p) => AnyQdisc::CoDel(CoDelQueue::new(p, link)),
            Self::Pie(p) => AnyQdisc::Pie(Pie::new(p, link, rng)),
            Self::FqCoDel(p) => AnyQdisc::FqCoDel(FqCoDel::new(p, link, rng)),
        }
    }
}

/// Calls a method of whichever discipline it is.
macro_rules! each {
    ($self:expr, $q:ident => $call:expr) => {
        match $self {
            AnyQdisc::Fifo($q) => $call,
            AnyQdisc::Red($q) => $call,
            AnyQdisc::CoDel($q) => $call,
            AnyQdisc::Pie($q) => $call,
            AnyQdisc::FqCoDel($q) => $call,
            AnyQdisc::Own($q) => $call,
        }
    };
}

impl<P: Packet> Qdisc<P> for AnyQdisc<P> {
    #[inline]
    fn enqueue(&mut self, now: Time, packet: P, context: &mut impl Context<P>) {
        each!(self, q => q.enqueue(now, packet, context));
    }

    #[inline]
    fn dequeue(&mut self, now: Time, context: &mut impl Context<P>) -> Option<(P, Time)> {
        each!(self, q => q.dequeue(now, context))
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        each!(self, q => q.backlog())
    }

    #[inline]
    fn next_timer(&self) -> Option<Time> {
        each!(self, q => q.next_timer())
    }

    #[inline]
    fn on_timer(&mut self, now: Time) {
        each!(self, q => q.on_timer(now));
    }

    fn on_rate(&mut self, now: Time, rate: Rate) {
        each!(self, q => q.on_rate(now, rate));
    }

    #[inline]
    fn probability(&self) -> Option<f64> {
        each!(self, q => q.probability())
    }

    fn guidance(&self) -> Option<Guidance> {
        each!(self, q => q.guidance())
    }

    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        each!(self, q => q.count(each));
    }
}
