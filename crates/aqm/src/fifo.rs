//! First in, first out, with a hard limit: drop-tail.

use cwnd_packet::{Contract, HasContract};
use cwnd_quantity::{LinkProperties, QueueSize, Rng, Time};
use cwnd_schema::{RegistryEntry, Schema};

use crate::qdisc::{Backlog, Context, Packet, Qdisc, QueueInfo, Store};

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry =
    RegistryEntry::new("fifo", "First in, first out; drops when full.");

/// First in, first out; a packet that would exceed the limit is dropped.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Params {
    /// Maximum backlog. A limit in bytes, time or BDP counts bytes on the wire; one in packets
    /// counts packets.
    #[default(
        QueueSize::MilliBdp(1000),
        "rule of thumb: one bandwidth-delay product (Villamizar & Song 1994)"
    )]
    pub limit: QueueSize,
}

impl QueueInfo for Params {
    type Queue<P> = Fifo<P>;

    fn build<P: Packet>(&self, link: &LinkProperties, _: Rng) -> Fifo<P> {
        Fifo::new(self, link)
    }
}

impl HasContract for Params {
    fn contract(&self) -> Contract {
        Contract::new()
    }
}

/// A first-in, first-out queue.
#[derive(Debug)]
pub struct Fifo<P> {
    store: Store<P>,
}

impl<P: Packet> Fifo<P> {
    /// Creates an empty queue for a link.
    #[must_use]
    pub fn new(params: &Params, link: &LinkProperties) -> Self {
        Self { store: Store::new(params.limit.resolve(link)) }
    }
}

impl<P: Packet> Qdisc<P> for Fifo<P> {
    #[inline]
    fn enqueue(&mut self, now: Time, packet: P, context: &mut impl Context<P>) {
        self.store.offer(now, packet, context);
    }

    #[inline]
    fn dequeue(&mut self, _now: Time, _context: &mut impl Context<P>) -> Option<(P, Time)> {
        self.store.pop()
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.store.backlog()
    }
}
