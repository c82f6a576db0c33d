//! Meters, one file each: what a router writes into packets beside queueing them.

use alloc::boxed::Box;
use core::fmt;

use cwnd_packet::{Contract, Guidance, HasContract};
use cwnd_quantity::{LinkProperties, Rate, Rng, Time};
use cwnd_schema::{Params, registry};

use crate::qdisc::{Backlog, Context, Packet, Qdisc};

registry! {
    /// The meters, each with its parameters.
    #[each(each_meter)]
    pub enum MeterParams {
        None(none),
        Step(step),
        Rcp(rcp),
        Xcp(xcp),
        Vcp(vcp),
        Mlcp(mlcp),
        Adpm(adpm),
    }
}

impl MeterParams {
    /// Builds the meter beside the queue of a link, if there is one; `rng` serves meters that draw.
    #[must_use]
    pub fn build<P: Packet>(&self, link: &LinkProperties, rng: Rng) -> Option<Box<dyn Meter<P>>> {
        each_meter!(self, params => params.build(link, rng))
    }
}

impl HasContract for MeterParams {
    fn contract(&self) -> Contract {
        each_meter!(self, params => params.contract())
    }
}

/// Facts about a kind of meter.
pub trait MeterInfo: Params + HasContract {
    /// Builds the meter beside the queue of a link; `None` for the kind without one.
    fn build<P: Packet>(&self, link: &LinkProperties, rng: Rng) -> Option<Box<dyn Meter<P>>>;
}

/// Measurement of a link, and what a router writes into packets from it: load factors, headers of
/// XCP and RCP, marks. It combines with any queue discipline and neither drops nor delays packets.
///
/// Headers and ECN fields are accessed through the [`Context`], to which each CE mark is reported,
/// as [`crate::mark`] does.
pub trait Meter<P>: fmt::Debug + Send {
    /// Handles a packet that arrives at the queue behind `backlog`. The queue may still drop it.
    fn arrives(
        &mut self,
        now: Time,
        packet: &mut P,
        backlog: Backlog,
        context: &mut dyn Context<P>,
    ) {
        let _ = (now, packet, backlog, context);
    }
    /// Handles a packet that leaves the queue for the line, or for the device below the queue;
    /// `backlog` is what stays. Fields written here are on the wire.
    fn leaves(
        &mut self,
        now: Time,
        packet: &mut P,
        backlog: Backlog,
        context: &mut dyn Context<P>,
    ) {
        let _ = (now, packet, backlog, context);
    }
    /// Called with the link's rate at the start and at each change. A link that replays a trace has
    /// the mean rate of the trace.
    fn on_rate(&mut self, now: Time, rate: Rate) {
        let _ = (now, rate);
    }
    /// Returns the time of the next [`Meter::on_timer`]; `None` without a timer. Only `on_timer`
    /// may move it, into the future: the simulator asks at the start and after that.
    fn next_timer(&self) -> Option<Time> {
        None
    }
    /// Runs periodic work that is due, possibly late.
    fn on_timer(&mut self, now: Time, backlog: Backlog) {
        let _ = (now, backlog);
    }
    /// Returns the value that steers senders, for the time series.
    fn guidance(&self) -> Option<Guidance> {
        None
    }
    /// Reports its counters, each by a unique name that the activity uses unchanged.
    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        let _ = each;
    }
}

/// A queue with a meter beside it, itself a queue, so that lines without a meter have no code for
/// one.
#[derive(Debug)]
pub(crate) struct Metered<P, Q> {
    pub queue: Q,
    pub meter: Box<dyn Meter<P>>,
}

impl<P: Packet, Q: Qdisc<P>> Qdisc<P> for Metered<P, Q> {
    fn enqueue(&mut self, now: Time, mut packet: P, context: &mut impl Context<P>) {
        self.meter.arrives(now, &mut packet, self.queue.backlog(), context.erased());
        self.queue.enqueue(now, packet, context);
    }

    fn dequeue(&mut self, now: Time, context: &mut impl Context<P>) -> Option<(P, Time)> {
        let (mut packet, entered) = self.queue.dequeue(now, context)?;
        self.meter.leaves(now, &mut packet, self.queue.backlog(), context.erased());
        Some((packet, entered))
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn next_timer(&self) -> Option<Time> {
        let both = [self.queue.next_timer(), self.meter.next_timer()];
        both.into_iter().flatten().min()
    }

    fn on_timer(&mut self, now: Time) {
        let due = |timer: Option<Time>| timer.is_some_and(|at| at <= now);
        if due(self.queue.next_timer()) {
            self.queue.on_timer(now);
        }
        if due(self.meter.next_timer()) {
            self.meter.on_timer(now, self.queue.backlog());
            debug_assert!(!due(self.meter.next_timer()), "a meter's clock goes forward");
        }
    }

    fn on_rate(&mut self, now: Time, rate: Rate) {
        self.queue.on_rate(now, rate);
        self.meter.on_rate(now, rate);
    }

    fn probability(&self) -> Option<f64> {
        self.queue.probability()
    }

    fn state(&self) -> Option<f64> {
        self.queue.state()
    }

    fn guidance(&self) -> Option<Guidance> {
        self.meter.guidance()
    }

    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        self.queue.count(each);
        self.meter.count(each);
    }
}
