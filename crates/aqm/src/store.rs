use std::collections::VecDeque;

use cwnd_quantity::{QueueLimit, Time};

use crate::qdisc::{Backlog, Context, Packet, Reason};

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
        // Both bounds are always checked; the one that is not set never binds. This saves a branch
        // per packet.
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
