//! Interface of queue disciplines to packets and drivers, its object-safe form, and the parts that
//! they share: the choice between mark and drop, and the ring of waiting packets.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::fmt;

use cwnd_packet::{CongestionHeader, Ecn, Guidance, HasContract};
use cwnd_quantity::{Duration, LinkProperties, QueueLimit, Rate, Rng, Time};
use cwnd_schema::Params;

/// Fields of a packet that a queue reads while it waits; a [`Context`] gives access to the others.
pub trait Packet {
    /// Size on the wire in bytes.
    fn wire_bytes(&self) -> u32;
    /// Flow identifier for fair queueing: equal for the packets of one flow and direction.
    fn flow_hash(&self) -> u64;
}

/// Facts about a kind of queue discipline: its constructor, and what other code needs without its
/// name.
pub trait QueueInfo: Params + HasContract {
    /// Queue for packets of type `P`.
    type Queue<P>;

    /// Builds an empty queue for a link; `rng` serves disciplines that draw random numbers.
    fn build<P: Packet>(&self, link: &LinkProperties, rng: Rng) -> Self::Queue<P>;

    /// `true` if it reads the flow hash of packets.
    fn reads_flow_hash(&self) -> bool {
        false
    }
}

/// Reason of a drop or a mark, named by the mechanism that made it.
///
/// Columns, counters and captures use the name: `codel` in `drops_codel`. It has lower-case
/// letters, and `_` between words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reason(&'static str);

impl Reason {
    /// The queue was full, in any discipline.
    pub const OVERLIMIT: Self = Self::named("overlimit");

    /// Creates the reason of a mechanism.
    #[must_use]
    pub const fn named(name: &'static str) -> Self {
        Self(name)
    }

    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.0
    }
}

/// Access to packets for queues and meters: reads and writes ECN field and header, and records
/// every drop and every mark, once each.
///
/// A waiting packet may be a few words that refer to the rest. ECN field and header are stored
/// once, in that rest; most packets pass without access to them.
pub trait Context<P> {
    /// Returns the IP ECN field.
    fn ecn(&self, packet: &P) -> Ecn;
    /// Sets the IP ECN field, to any code point.
    fn set_ecn(&mut self, packet: &mut P, ecn: Ecn);
    /// Returns the header that routers write; `None` for a packet without one, such as an ACK.
    fn header<'a>(&'a mut self, _packet: &'a mut P) -> Option<&'a mut CongestionHeader> {
        None
    }
    /// Replaces the IP identification (RFC 791) if the packet has no other use for it; `true` if it
    /// was replaced.
    fn set_identification(&mut self, _packet: &mut P, _identification: u16) -> bool {
        false
    }
    /// Records that `packet` left its queue after this sojourn time; lines call it, queues do not.
    #[inline]
    fn waited(&mut self, _packet: &P, _sojourn: Duration) {}
    /// Records that `packet` was dropped.
    fn dropped(&mut self, now: Time, packet: &P, reason: Reason);
    /// Records that `packet` now carries CE and goes on; `already` if it did so before.
    fn marked(&mut self, now: Time, packet: &P, reason: Reason, already: bool);
    /// Returns the same context as one trait object, never nested.
    fn erased<'a>(&'a mut self) -> &'a mut (dyn Context<P> + 'a)
    where
        Self: Sized,
    {
        self
    }
}

/// A context of any type, for code that is compiled once for all of them.
pub struct Erased<'a, P>(pub &'a mut dyn Context<P>);

impl<P> Context<P> for Erased<'_, P> {
    fn ecn(&self, packet: &P) -> Ecn {
        self.0.ecn(packet)
    }
    fn set_ecn(&mut self, packet: &mut P, ecn: Ecn) {
        self.0.set_ecn(packet, ecn);
    }
    fn header<'a>(&'a mut self, packet: &'a mut P) -> Option<&'a mut CongestionHeader> {
        self.0.header(packet)
    }
    fn set_identification(&mut self, packet: &mut P, identification: u16) -> bool {
        self.0.set_identification(packet, identification)
    }
    fn dropped(&mut self, now: Time, packet: &P, reason: Reason) {
        self.0.dropped(now, packet, reason);
    }
    fn marked(&mut self, now: Time, packet: &P, reason: Reason, already: bool) {
        self.0.marked(now, packet, reason, already);
    }
    fn erased<'a>(&'a mut self) -> &'a mut (dyn Context<P> + 'a) {
        self.0
    }
}

/// Data waiting in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Packets in the queue.
    pub packets: u64,
    /// Bytes of these packets on the wire.
    pub bytes: u64,
}

/// A queue discipline.
///
/// The driver (simulated link or router) calls `enqueue` when a packet arrives, `dequeue` when the
/// line is free, and `on_timer` at `next_timer` or later; late calls must be handled. The queue
/// measures sojourn time: `dequeue` returns the packet with the time at which it entered.
pub trait Qdisc<P: Packet> {
    /// Takes a packet, or drops it and reports that to `context`.
    fn enqueue(&mut self, now: Time, packet: P, context: &mut impl Context<P>);
    /// Returns the next packet to send, with the time at which it was enqueued; `None` if nothing
    /// is left to send.
    fn dequeue(&mut self, now: Time, context: &mut impl Context<P>) -> Option<(P, Time)>;
    /// Returns the data waiting now.
    fn backlog(&self) -> Backlog;
    /// Returns the time of the next [`Qdisc::on_timer`]; `None` without a timer.
    fn next_timer(&self) -> Option<Time> {
        None
    }
    /// Runs periodic work that is due.
    fn on_timer(&mut self, _now: Time) {}
    /// Sets the link's rate from now on. Sizes computed from the first rate stay as they were.
    fn on_rate(&mut self, _now: Time, _rate: Rate) {}
    /// Returns the current drop or mark probability, for the time series; `None` if the discipline
    /// has none.
    fn probability(&self) -> Option<f64> {
        None
    }
    /// Returns the number that the queue carries from packet to packet, which vectors compare event
    /// by event: RED's average, by default the probability.
    fn state(&self) -> Option<f64> {
        self.probability()
    }
    /// Returns the value by which the meter beside it steers senders, for the time series; `None`
    /// without one.
    fn guidance(&self) -> Option<Guidance> {
        None
    }
    /// Reports counters other than drops and marks, each by a unique name that the activity uses
    /// unchanged.
    fn count(&self, _each: &mut dyn FnMut(&'static str, u64)) {}
}

/// Marks or drops a packet that meets congestion. All disciplines choose between both here
/// (RFC 3168 § 5: a router that would drop an ECN-capable packet may set CE instead). Returns
/// `true` if the packet survives; otherwise it was reported as dropped.
#[inline]
pub fn congested<P: Packet>(
    now: Time,
    packet: &mut P,
    ecn_enabled: bool,
    reason: Reason,
    context: &mut impl Context<P>,
) -> bool {
    if ecn_enabled && mark(now, packet, reason, context) {
        true
    } else {
        context.dropped(now, packet, reason);
        false
    }
}

/// Sets CE in an ECN-capable packet and reports it; leaves other packets alone. Returns `true` if
/// it was ECN-capable.
#[inline]
pub fn mark<P, C: Context<P> + ?Sized>(
    now: Time,
    packet: &mut P,
    reason: Reason,
    context: &mut C,
) -> bool {
    let before = context.ecn(packet);
    let capable = before.is_ect();
    if capable {
        context.set_ecn(packet, Ecn::Ce);
        context.marked(now, packet, reason, before == Ecn::Ce);
    }
    capable
}

/// Ring buffer of waiting packets in order of arrival, with backlog and hard limit, shared by all
/// disciplines.
///
/// The ring grows to the largest backlog seen and stays there, so that a running queue does not
/// allocate.
#[derive(Debug)]
pub(crate) struct Store<P> {
    ring: VecDeque<(Time, P)>,
    bytes: u64,
    max_packets: u64,
    max_bytes: u64,
}

impl<P: Packet> Store<P> {
    /// Creates an empty ring with a limit.
    pub(crate) fn new(limit: QueueLimit) -> Self {
        // Both bounds are checked; the one that is not set never binds. This saves a branch per
        // packet.
        let (max_packets, max_bytes) = match limit {
            QueueLimit::Packets(n) => (n, u64::MAX),
            QueueLimit::Bytes(n) => (u64::MAX, n),
        };
        Self { ring: VecDeque::new(), bytes: 0, max_packets, max_bytes }
    }

    /// Creates an empty ring without a limit.
    pub(crate) fn unlimited() -> Self {
        Self::new(QueueLimit::Packets(u64::MAX))
    }

    /// `true` if a packet of this size still fits.
    #[inline]
    pub(crate) fn fits(&self, wire_bytes: u32) -> bool {
        (self.ring.len() as u64) < self.max_packets
            && self.bytes.saturating_add(u64::from(wire_bytes)) <= self.max_bytes
    }

    /// Takes the packet, or drops it if it would exceed the limit; `true` if it was taken.
    #[inline]
    pub(crate) fn offer(&mut self, now: Time, packet: P, context: &mut impl Context<P>) -> bool {
        let fits = self.fits(packet.wire_bytes());
        if fits {
            self.push(now, packet);
        } else {
            context.dropped(now, &packet, Reason::OVERLIMIT);
        }
        fits
    }

    /// Takes the packet, whatever the limit.
    #[inline]
    pub(crate) fn push(&mut self, now: Time, packet: P) {
        self.bytes += u64::from(packet.wire_bytes());
        self.ring.push_back((now, packet));
    }

    /// Removes the oldest packet and returns it with the time at which it was enqueued.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(P, Time)> {
        let (entered, packet) = self.ring.pop_front()?;
        self.bytes -= u64::from(packet.wire_bytes());
        Some((packet, entered))
    }

    /// `true` if nothing waits.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Returns the bytes waiting.
    #[inline]
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the data waiting.
    #[inline]
    pub(crate) fn backlog(&self) -> Backlog {
        Backlog { packets: self.ring.len() as u64, bytes: self.bytes }
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
