//! Dispatch of [`AnyQdisc`], the enum of all disciplines; boxed ones alone are called through a
//! vtable.

use alloc::boxed::Box;
use core::fmt;

use cwnd_packet::Guidance;
use cwnd_quantity::{Rate, Time};

use crate::AnyQdisc;
use crate::meters::{Meter, Metered};
use crate::qdisc::{Backlog, Context, DynQdisc, Packet, Qdisc};

impl<P: Packet + 'static> AnyQdisc<P> {
    /// Boxes a discipline of any type.
    pub fn boxed(queue: impl DynQdisc<P> + 'static) -> Self {
        Self::Boxed(Box::new(queue))
    }

    /// Adds a meter to the discipline; the meter must already know the link's rate.
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
