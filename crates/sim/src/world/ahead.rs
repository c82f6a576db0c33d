//! Looking ahead: what is needed soon is asked for before it is needed.
//!
//! Where there are thousands of flows, each packet belongs to another one, and neither it nor the packet's segment is in
//! the cache any more; nor is the pipe, where each flow has its own. A pipe that many flows share knows who comes next in
//! it; of pipes that are few flows' own, the queue of events knows which is next. Requests are spread over several packets
//! or events, since a processor has room for a dozen or two of them at a time; for the same reason nothing is asked for
//! that may not be needed.

use cwnd_link::Packet as _;

use super::World;

/// With fewer flows the second-level cache holds them, and looking ahead would only cost its instructions.
const MANY_FLOWS: usize = 4096;

/// How far ahead things are asked for in a pipe that is shared, in packets.
mod of_shared_pipe {
    /// The pipe's own memory: some cache lines of it. A pipe that holds fewer packets is not shared by many.
    pub const RING: usize = 16;
    /// The segment, and one of the two ends of its flow.
    pub const FAR: usize = 5;
    /// The rest of the flow.
    pub const NEAR: usize = 3;
    /// The flow is there, so that what it points to can be asked for.
    pub const NEXT: usize = 1;
}

/// How far ahead things are asked for when many pipes are at work, in events.
mod of_many_pipes {
    /// The pipe.
    pub const PIPE: usize = 13;
    /// The pipe is there: its first packet.
    pub const PACKET: usize = 9;
    /// The packet is there: its segment, and the next hop on its way.
    pub const SEGMENT: usize = 6;
    /// The hop is there; if it is the host, one of the two ends of the flow.
    pub const FLOW: usize = 3;
}

impl World {
    /// Asks for what the next packets of this pipe need, and the next pipes.
    #[inline]
    pub(super) fn look_ahead(&self, pipe: u32) {
        if self.flows.len() >= MANY_FLOWS {
            self.ask_in_pipe(pipe);
        }
        if self.events.is_crowded() {
            self.ask_in_pipes();
        }
    }

    // Out of the way of runs that do not need it, as is the next.
    #[inline(never)]
    fn ask_in_pipe(&self, pipe: u32) {
        use of_shared_pipe::{FAR, NEAR, NEXT, RING};

        let pipe = self.network.pipe(pipe);
        if pipe.held() <= RING as u64 {
            return;
        }
        pipe.soon(RING);
        for distance in [FAR, NEAR, NEXT] {
            let Some(packet) = pipe.ahead(distance) else { continue };
            let Some(flow) = self.flows.get(packet.flow().slot()) else { continue };
            let data = packet.has_payload();
            match distance {
                FAR => {
                    self.network.segment_soon(packet);
                    flow.soon(data);
                }
                NEAR => flow.rest_soon(data),
                _ => flow.targets_soon(data),
            }
        }
    }

    #[inline(never)]
    fn ask_in_pipes(&self) {
        use of_many_pipes::{FLOW, PACKET, PIPE, SEGMENT};

        let pipe_ahead = |events| self.events.pipe_ahead(events).map(|i| self.network.pipe(i));
        let packet_ahead = |events| pipe_ahead(events).and_then(|pipe| pipe.ahead(0));
        if let Some(pipe) = pipe_ahead(PIPE) {
            cwnd_memory::soon(pipe);
        }
        if let Some(pipe) = pipe_ahead(PACKET) {
            pipe.soon(0);
        }
        if let Some(packet) = packet_ahead(SEGMENT) {
            self.network.segment_soon(packet);
            self.network.hop_soon(packet);
        }
        if let Some(packet) = packet_ahead(FLOW)
            && self.network.is_last_hop(packet)
            && let Some(flow) = self.flows.get(packet.flow().slot())
        {
            flow.soon(packet.has_payload());
        }
    }
}
