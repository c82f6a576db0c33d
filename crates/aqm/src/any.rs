//! Queue disciplines of any kind: the enum of all, and the boxed ones, which alone are called
//! through a vtable.

use core::fmt;

use cwnd_packet::Guidance;
use cwnd_quantity::{Rate, Time};

use crate::AnyQdisc;
use crate::meters::{Meter, Metered};
use crate::qdisc::{Backlog, Context, Erased, Packet, Qdisc};

impl<P: Packet + 'static> AnyQdisc<P> {
    /// Boxes a discipline that is not in the registry.
    pub fn boxed(queue: impl DynQdisc<P> + 'static) -> Self {
        Self::Boxed(Box::new(queue))
    }

    /// Adds a meter to the discipline; the meter already knows the link's rate.
    #[must_use]
    pub fn with_meter(self, meter: Box<dyn Meter<P>>) -> Self
    where
        P: fmt::Debug + Send,
    {
        match self {
            // Most meters stand beside a FIFO, which is then called directly.
            Self::Fifo(queue) => Self::boxed(Metered { queue, meter }),
            queue => Self::boxed(Metered { queue, meter }),
        }
    }
}

impl<P: Packet> Qdisc<P> for AnyQdisc<P> {
    #[inline]
    fn enqueue(&mut self, now: Time, packet: P, context: &mut impl Context<P>) {
        each_queue!(self, q => q.enqueue(now, packet, context));
    }

    #[inline]
    fn dequeue(&mut self, now: Time, context: &mut impl Context<P>) -> Option<(P, Time)> {
        each_queue!(self, q => q.dequeue(now, context))
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        each_queue!(self, q => q.backlog())
    }

    #[inline]
    fn next_timer(&self) -> Option<Time> {
        each_queue!(self, q => q.next_timer())
    }

    #[inline]
    fn on_timer(&mut self, now: Time) {
        each_queue!(self, q => q.on_timer(now));
    }

    fn on_rate(&mut self, now: Time, rate: Rate) {
        each_queue!(self, q => q.on_rate(now, rate));
    }

    #[inline]
    fn probability(&self) -> Option<f64> {
        each_queue!(self, q => q.probability())
    }

    fn state(&self) -> Option<f64> {
        each_queue!(self, q => q.state())
    }

    fn guidance(&self) -> Option<Guidance> {
        each_queue!(self, q => q.guidance())
    }

    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        each_queue!(self, q => q.count(each));
    }
}

/// Object-safe form of [`Qdisc`], implemented by every discipline.
pub trait DynQdisc<P>: fmt::Debug + Send {
    /// As [`Qdisc::enqueue`].
    fn enqueue_dyn(&mut self, now: Time, packet: P, context: &mut dyn Context<P>);
    /// As [`Qdisc::dequeue`].
    fn dequeue_dyn(&mut self, now: Time, context: &mut dyn Context<P>) -> Option<(P, Time)>;
    /// As [`Qdisc::backlog`].
    fn backlog_dyn(&self) -> Backlog;
    /// As [`Qdisc::next_timer`].
    fn next_timer_dyn(&self) -> Option<Time>;
    /// As [`Qdisc::on_timer`].
    fn on_timer_dyn(&mut self, now: Time);
    /// As [`Qdisc::on_rate`].
    fn on_rate_dyn(&mut self, now: Time, rate: Rate);
    /// As [`Qdisc::probability`].
    fn probability_dyn(&self) -> Option<f64>;
    /// As [`Qdisc::state`].
    fn state_dyn(&self) -> Option<f64>;
    /// As [`Qdisc::guidance`].
    fn guidance_dyn(&self) -> Option<Guidance>;
    /// As [`Qdisc::count`].
    fn count_dyn(&self, each: &mut dyn FnMut(&'static str, u64));
}

impl<P: Packet, Q: Qdisc<P> + fmt::Debug + Send> DynQdisc<P> for Q {
    fn enqueue_dyn(&mut self, now: Time, packet: P, context: &mut dyn Context<P>) {
        self.enqueue(now, packet, &mut Erased(context));
    }
    fn dequeue_dyn(&mut self, now: Time, context: &mut dyn Context<P>) -> Option<(P, Time)> {
        self.dequeue(now, &mut Erased(context))
    }
    fn backlog_dyn(&self) -> Backlog {
        self.backlog()
    }
    fn next_timer_dyn(&self) -> Option<Time> {
        self.next_timer()
    }
    fn on_timer_dyn(&mut self, now: Time) {
        self.on_timer(now);
    }
    fn on_rate_dyn(&mut self, now: Time, rate: Rate) {
        self.on_rate(now, rate);
    }
    fn probability_dyn(&self) -> Option<f64> {
        self.probability()
    }
    fn state_dyn(&self) -> Option<f64> {
        self.state()
    }
    fn guidance_dyn(&self) -> Option<Guidance> {
        self.guidance()
    }
    fn count_dyn(&self, each: &mut dyn FnMut(&'static str, u64)) {
        self.count(each);
    }
}

// Marked cold, to keep the code of the registered kinds close together.
impl<P: Packet> Qdisc<P> for Box<dyn DynQdisc<P>> {
    #[cold]
    #[inline(never)]
    fn enqueue(&mut self, now: Time, packet: P, context: &mut impl Context<P>) {
        (**self).enqueue_dyn(now, packet, context);
    }
    #[cold]
    #[inline(never)]
    fn dequeue(&mut self, now: Time, context: &mut impl Context<P>) -> Option<(P, Time)> {
        (**self).dequeue_dyn(now, context)
    }
    #[cold]
    #[inline(never)]
    fn backlog(&self) -> Backlog {
        (**self).backlog_dyn()
    }
    #[cold]
    #[inline(never)]
    fn next_timer(&self) -> Option<Time> {
        (**self).next_timer_dyn()
    }
    #[cold]
    #[inline(never)]
    fn on_timer(&mut self, now: Time) {
        (**self).on_timer_dyn(now);
    }
    #[cold]
    #[inline(never)]
    fn on_rate(&mut self, now: Time, rate: Rate) {
        (**self).on_rate_dyn(now, rate);
    }
    #[cold]
    #[inline(never)]
    fn probability(&self) -> Option<f64> {
        (**self).probability_dyn()
    }
    fn state(&self) -> Option<f64> {
        (**self).state_dyn()
    }
    fn guidance(&self) -> Option<Guidance> {
        (**self).guidance_dyn()
    }
    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        (**self).count_dyn(each);
    }
}
