use std::collections::VecDeque;

use cwnd_quantity::{Limit, Time};

use crate::qdisc::{Backlog, Context, Packet, Reason};

/// The ring in which packets wait in order of arrival, its backlog and its hard limit: what every single queue shares.
///
/// The ring grows to the largest backlog seen and stays there, so that a queue at work allocates nothing.
#[derive(Debug)]
pub(crate) struct Store<P> {
    ring: VecDeque<(Time, P)>,
    bytes: u64,
    max_packets: u64,
    max_bytes: u64,
}

impl<P: Packet> Store<P> {
    /// An empty ring that may hold as much as `limit` says.
    pub(crate) fn new(limit: Limit) -> Self {
        // Both bounds are always checked; the one that was not asked for never binds. This saves a branch per packet.
        let (max_packets, max_bytes) = match limit {
            Limit::Packets(n) => (n, u64::MAX),
            Limit::Bytes(n) => (u64::MAX, n),
        };
        Self { ring: VecDeque::new(), bytes: 0, max_packets, max_bytes }
    }

    /// An empty ring without a limit of its own.
    pub(crate) fn unlimited() -> Self {
        Self::new(Limit::Packets(u64::MAX))
    }

    /// Whether a packet of this size would still fit.
    #[inline]
    pub(crate) fn fits(&self, wire_bytes: u32) -> bool {
        (self.ring.len() as u64) < self.max_packets
            && self.bytes.saturating_add(u64::from(wire_bytes)) <= self.max_bytes
    }

    /// Takes the packet, or drops it if it would exceed the limit; says whether it was taken.
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

    /// The oldest packet, with the time at which it was enqueued.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(P, Time)> {
        let (entered, packet) = self.ring.pop_front()?;
        self.bytes -= u64::from(packet.wire_bytes());
        Some((packet, entered))
    }

    /// Whether nothing waits.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Bytes that wait.
    #[inline]
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What waits.
    #[inline]
    pub(crate) fn backlog(&self) -> Backlog {
        Backlog { packets: self.ring.len() as u64, bytes: self.bytes }
    }
}
