//! Prefetches flow state and segments for the next events (feature `prefetch`).
//!
//! With thousands of flows, neither the flow of a packet nor its segment is still in the cache. A
//! pipe that many flows share knows its next packets; the event queue knows the next pipes.
//! Prefetches are spread over several events: a processor keeps 10–20 outstanding cache misses.

use cwnd_link::Packet as _;

use super::World;

/// Number of flows from which prefetches pay. Fewer stay in the second-level cache, and prefetches
/// would only add instructions.
const MANY_FLOWS: usize = 4096;

/// Prefetch distances in a shared pipe, in packets.
mod of_shared_pipe {
    /// Distance for the ring buffer of the pipe. With fewer packets, few flows share the pipe.
    pub const RING: usize = 16;
    /// Distance for the segment, and for the sender or receiver of its flow.
    pub const FAR: usize = 5;
    /// Distance for the rest of the sender, and the histogram, of an ACK's flow.
    pub const NEAR: usize = 3;
    /// Distance for the heap allocations of the flow, which is in the cache by then.
    pub const NEXT: usize = 1;
}

/// Prefetch distances among many busy pipes, in events.
mod of_many_pipes {
    /// Distance for the pipe.
    pub const PIPE: usize = 13;
    /// Distance for the first packet of the pipe.
    pub const PACKET: usize = 9;
    /// Distance for the segment of the packet and its next hop.
    pub const SEGMENT: usize = 6;
    /// Distance for the sender or receiver of the flow, if the next hop is its host.
    pub const FLOW: usize = 3;
}

impl World {
    /// Prefetches the state for the next packets of this pipe if there are many flows, and the next
    /// pipes if many are busy.
    #[inline]
    pub(super) fn prefetch(&self, pipe: u32) {
        if !cfg!(feature = "prefetch") {
            return;
        }
        if self.hosts.flows.len() >= MANY_FLOWS {
            self.prefetch_packets(pipe);
        }
        if self.events.has_calendar() {
            self.prefetch_pipes();
        }
    }

    // Not inlined, like `prefetch_pipes`: runs with few flows need neither.
    #[inline(never)]
    fn prefetch_packets(&self, pipe: u32) {
        use of_shared_pipe::{FAR, NEAR, NEXT, RING};

        let pipe = self.network.pipe(pipe);
        if pipe.held() <= RING as u64 {
            return;
        }
        pipe.prefetch(RING);
        for distance in [FAR, NEAR, NEXT] {
            let Some(packet) = pipe.peek(distance) else { continue };
            let Some(flow) = self.hosts.flows.get(packet.flow().slot()) else { continue };
            let data = packet.has_payload();
            match distance {
                FAR => {
                    self.network.prefetch_segment(packet);
                    flow.prefetch_end(data);
                }
                NEAR => flow.prefetch_rest(data),
                _ => flow.prefetch_heap(data),
            }
        }
    }

    #[inline(never)]
    fn prefetch_pipes(&self) {
        use of_many_pipes::{FLOW, PACKET, PIPE, SEGMENT};

        let peek_pipe = |events| self.events.peek_pipe(events).map(|i| self.network.pipe(i));
        let peek_packet = |events| peek_pipe(events).and_then(|pipe| pipe.peek(0));
        if let Some(pipe) = peek_pipe(PIPE) {
            cwnd_memory::prefetch(pipe);
        }
        if let Some(pipe) = peek_pipe(PACKET) {
            pipe.prefetch(0);
        }
        if let Some(packet) = peek_packet(SEGMENT) {
            self.network.prefetch_segment(packet);
            self.network.prefetch_hop(packet);
        }
        if let Some(packet) = peek_packet(FLOW)
            && self.network.is_last_hop(packet)
            && let Some(flow) = self.hosts.flows.get(packet.flow().slot())
        {
            flow.prefetch_end(packet.has_payload());
        }
    }
}
