//! Looking ahead: what comes out of a pipe soon is asked for before it is needed.
//!
//! Where thousands of flows share a pipe, each packet belongs to another flow, and neither it nor the packet's segment is
//! in the cache any more. The pipe knows who comes next. Requests are spread over several packets, since a processor has
//! room for a dozen or two of them at a time.

use super::World;

/// With fewer flows the second-level cache holds them, and looking ahead would only cost its instructions.
const MANY_FLOWS: usize = 4096;

/// How many packets ahead the pipe's own memory is asked for: some cache lines of it.
const RING: usize = 16;
/// How many packets ahead the segment, and one of the two ends of its flow, are asked for.
const FAR: usize = 5;
/// How many packets ahead the rest of the flow is asked for.
const NEAR: usize = 3;
/// How many packets ahead the flow is there, so that what it points to can be asked for.
const NEXT: usize = 1;

impl World {
    /// Asks for what the next packets of this pipe need.
    #[inline]
    pub(super) fn look_ahead(&self, pipe: u32) {
        if self.flows.len() >= MANY_FLOWS {
            self.ask_ahead(pipe);
        }
    }

    // Out of the way of runs that do not need it.
    #[inline(never)]
    fn ask_ahead(&self, pipe: u32) {
        let pipe = self.network.pipe(pipe);
        pipe.soon(RING);
        for distance in [FAR, NEAR, NEXT] {
            let Some(packet) = pipe.ahead(distance) else { continue };
            let Some(flow) = self.flows.get(packet.flow().slot()) else { continue };
            let data = packet.has_payload();
            match distance {
                FAR => {
                    self.network.soon(packet);
                    flow.soon(data);
                }
                NEAR => flow.rest_soon(data),
                _ => flow.targets_soon(data),
            }
        }
    }
}
