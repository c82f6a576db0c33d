use core::fmt;

use cwnd_packet::{Declares, Guidance};
use cwnd_quantity::{LinkFacts, Rate, Rng, Time};
use cwnd_schema::Params;

use crate::qdisc::{Backlog, Context, Packet, Qdisc};

/// A kind of meter.
pub trait MeterInfo: Params + Declares {
    /// Builds the meter beside the queue of a link; `None` of the kind that stands for none.
    fn build<P: Packet>(&self, link: &LinkFacts, rng: Rng) -> Option<Box<dyn Meter<P>>>;
}

/// What a router measures and writes into packets beside queueing them: load factors, headers of XCP and RCP, marks of its
/// own. It goes with any queue discipline and neither drops nor holds packets.
///
/// Headers and ECN fields are the [`Context`]'s; marks are set by [`crate::mark`].
pub trait Meter<P>: fmt::Debug + Send {
    /// A packet comes to the queue, behind `backlog`. The queue may still drop it.
    fn arrives(
        &mut self,
        now: Time,
        packet: &mut P,
        backlog: Backlog,
        context: &mut dyn Context<P>,
    ) {
        let _ = (now, packet, backlog, context);
    }
    /// A packet leaves the queue for the line, or for the device below the queue; `backlog` stays. What is written now is on
    /// the wire.
    fn leaves(
        &mut self,
        now: Time,
        packet: &mut P,
        backlog: Backlog,
        context: &mut dyn Context<P>,
    ) {
        let _ = (now, packet, backlog, context);
    }
    /// The link has this rate from now on: said once at the beginning, and whenever it changes. That of a trace is its mean.
    fn on_rate(&mut self, now: Time, rate: Rate) {
        let _ = (now, rate);
    }
    /// When [`Meter::on_timer`] wants to be called; `None` if it keeps no clock. Asked at the beginning and after each call
    /// of that, when it must be in the future.
    fn next_timer(&self) -> Option<Time> {
        None
    }
    /// Periodic work that is due, maybe late.
    fn on_timer(&mut self, now: Time, backlog: Backlog) {
        let _ = (now, backlog);
    }
    /// What it steers senders by, for the time series.
    fn guidance(&self) -> Option<Guidance> {
        None
    }
    /// Tells what it counted, each by a name that is its own; the activity has them as they are.
    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        let _ = each;
    }
}

/// A queue with a meter beside it. To its line it is a queue, so that lines without a meter know nothing of them.
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

    fn guidance(&self) -> Option<Guidance> {
        self.meter.guidance()
    }

    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        self.queue.count(each);
        self.meter.count(each);
    }
}
