use cwnd_packet::{Declares, Ecn, Guidance, Header};
use cwnd_quantity::{LinkFacts, Rate, Rng, Time};
use cwnd_schema::Params;

/// What a queue must know of a packet as long as it only waits; the rest is asked of a [`Context`].
pub trait Packet {
    /// Size on the wire in bytes.
    fn wire_bytes(&self) -> u32;
    /// Identifies the flow, for fair queueing: equal for the packets of one flow and direction.
    fn flow_hash(&self) -> u64;
}

/// A kind of queue discipline: how it is built, and what others must know of it without its name.
pub trait QueueInfo: Params + Declares {
    /// The queue of packets of any type.
    type Queue<P>;

    /// Builds an empty queue before a link; `rng` serves those that draw.
    fn build<P: Packet>(&self, link: &LinkFacts, rng: Rng) -> Self::Queue<P>;

    /// `true` if it asks packets for their flow.
    fn tells_flows_apart(&self) -> bool {
        false
    }
}

/// Why a packet was dropped or marked: a name that the mechanism which did it has for it.
///
/// Columns, counters and captures call it so: `codel` in `drops_codel`. It has small letters, and `_` between words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reason(&'static str);

impl Reason {
    /// The queue was full, of whatever discipline.
    pub const OVERLIMIT: Self = Self::named("overlimit");

    /// A reason of a mechanism.
    #[must_use]
    pub const fn named(name: &'static str) -> Self {
        Self(name)
    }

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.0
    }
}

/// Whoever has the packets: gives and takes what routers read and write in them, and is told of every drop and every mark,
/// once each.
///
/// What waits in a queue may be a few words that name the rest. The ECN field and the header are in the rest, so that each
/// is in one place only; most packets pass without anybody asking for them.
pub trait Context<P> {
    /// The IP ECN field.
    fn ecn(&self, packet: &P) -> Ecn;
    /// Sets the IP ECN field, to any code point.
    fn set_ecn(&mut self, packet: &mut P, ecn: Ecn);
    /// What routers write in it; `None` of a packet that has no place for that, such as an ACK.
    fn header<'a>(&'a mut self, _packet: &'a mut P) -> Option<&'a mut Header> {
        None
    }
    /// Gives it another identification (RFC 791), where that is of no other use: whether it has this one now.
    fn set_identification(&mut self, _packet: &mut P, _identification: u16) -> bool {
        false
    }
    /// `packet` was discarded.
    fn dropped(&mut self, now: Time, packet: &P, reason: Reason);
    /// `packet` now carries CE and goes on; `already` if it did so when it came.
    fn marked(&mut self, now: Time, packet: &P, reason: Reason, already: bool);
    /// The same behind a pointer, and behind one only, whoever asks.
    fn erased<'a>(&'a mut self) -> &'a mut (dyn Context<P> + 'a)
    where
        Self: Sized,
    {
        self
    }
}

/// A context of any type, for code that is there once for all of them.
pub struct Erased<'a, P>(pub &'a mut dyn Context<P>);

impl<P> Context<P> for Erased<'_, P> {
    fn ecn(&self, packet: &P) -> Ecn {
        self.0.ecn(packet)
    }
    fn set_ecn(&mut self, packet: &mut P, ecn: Ecn) {
        self.0.set_ecn(packet, ecn);
    }
    fn header<'a>(&'a mut self, packet: &'a mut P) -> Option<&'a mut Header> {
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

/// What is waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Packets in the queue.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
}

/// A queue discipline.
///
/// The driver (simulated link or router) calls `enqueue` when a packet arrives, `dequeue` when the line is free, and
/// `on_timer` at `next_timer`, or later: a late call must be handled. Sojourn time is measured by the queue: `dequeue`
/// returns the packet with the instant it entered.
pub trait Qdisc<P: Packet> {
    /// Takes a packet, or drops it (and says so to `context`).
    fn enqueue(&mut self, now: Time, packet: P, context: &mut impl Context<P>);
    /// The next packet to send, with the time at which it was enqueued; `None` when nothing is left to send.
    fn dequeue(&mut self, now: Time, context: &mut impl Context<P>) -> Option<(P, Time)>;
    /// What is waiting now.
    fn backlog(&self) -> Backlog;
    /// When [`Qdisc::on_timer`] wants to be called; `None` if this discipline keeps no clock.
    fn next_timer(&self) -> Option<Time> {
        None
    }
    /// Periodic work that is due.
    fn on_timer(&mut self, _now: Time) {}
    /// The link's rate is another from now on. What was sized by the first rate when the queue was made stays as it was.
    fn on_rate(&mut self, _now: Time, _rate: Rate) {}
    /// Current drop or mark probability, for the time series; `None` where the discipline has none.
    fn probability(&self) -> Option<f64> {
        None
    }
    /// What the meter beside it steers senders by, for the time series; `None` where there is none.
    fn guidance(&self) -> Option<Guidance> {
        None
    }
    /// Tells what it counted besides drops and marks, each by a name that is its own; the activity has them as they are.
    fn count(&self, _each: &mut dyn FnMut(&'static str, u64)) {}
}
