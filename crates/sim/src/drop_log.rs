//! Log of lost packets, for the timeout oracle and the count of dead packets.
//!
//! Only drops and losses write to it, so packets that arrive have no overhead.

use cwnd_tcp::{Body, ByteCounts, Flags, Segment};

use crate::event::FlowId;
use crate::packet::{Packet, without_note};

/// Log of all packets that queues dropped and links lost.
#[derive(Debug, Default)]
pub struct Losses {
    /// Lost packets by hop, an index into the network's table of hops.
    at: Vec<Load>,
    /// Losses of flows, by their slots.
    slots: Vec<Slot>,
    /// Flows with many logged ranges, of which perhaps few are outstanding.
    crowded: Vec<FlowId>,
    messages: u64,
}

/// Number of packets, and their bytes on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Number of packets.
    pub packets: u64,
    /// Bytes on the wire, with headers.
    pub bytes: u64,
}

impl Load {
    /// Sum of both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }

    /// Difference to an earlier count.
    #[must_use]
    pub const fn since(self, before: Self) -> Self {
        Self { packets: self.packets - before.packets, bytes: self.bytes - before.bytes }
    }
}

#[derive(Debug)]
struct Slot {
    /// Flow that occupies the slot.
    id: FlowId,
    /// Losses of the flow; most flows of most runs have none.
    lost: Option<Box<OfFlow>>,
    /// Losses of the flow's requests, if its client opens it.
    of_requests: Option<Box<OfFlow>>,
}

impl Slot {
    /// Losses of a flow, or of its stream of requests; `None` if `id` is neither.
    fn lost(&mut self, id: FlowId) -> Option<&mut Option<Box<OfFlow>>> {
        if self.id == id {
            Some(&mut self.lost)
        } else if self.id.requests() == id {
            Some(&mut self.of_requests)
        } else {
            None
        }
    }
}

/// Losses of one half of a connection: its data, SYNs and ACKs.
#[derive(Debug, Default)]
pub struct OfFlow {
    /// Number of losses of each byte of data.
    pub data: ByteCounts,
    /// Number of lost SYNs.
    pub syns: u64,
    /// `true` if a SYN-ACK was lost.
    pub syn_ack: bool,
    /// Highest acknowledgment number among lost ACKs.
    pub ack: u64,
}

/// Number of ranges of a flow after which acknowledged ranges are removed.
const CROWD: usize = 64;

impl Losses {
    /// Assigns a slot to a new flow, without losses.
    pub fn begin_flow(&mut self, id: FlowId) {
        let slot = Slot { id, lost: None, of_requests: None };
        match self.slots.get_mut(id.slot()) {
            Some(place) => *place = slot,
            None => {
                cwnd_memory::make_room(&mut self.slots);
                self.slots.push(slot);
            }
        }
    }

    /// Logs the loss of a packet at its hop.
    pub fn add(&mut self, packet: Packet, segment: &Segment) {
        let hop = packet.hop() as usize;
        if hop >= self.at.len() {
            self.at.resize(hop + 1, Load::default());
        }
        self.at[hop] = self.at[hop].and(Load { packets: 1, bytes: u64::from(segment.wire) });
        match segment.body {
            Body::Quench { .. } => {
                self.messages += 1;
                return;
            }
            // The oracle covers TCP only.
            Body::Quic { .. } | Body::QuicAck(_) => return,
            Body::Data { .. } | Body::Ack { .. } => {}
        }
        // Datagrams have no slot here.
        let id = packet.flow();
        let slot = self.slots.get_mut(id.of_requests().slot());
        let Some(lost) = slot.and_then(|slot| slot.lost(id)) else { return };
        let lost = lost.get_or_insert_default();
        let syn = segment.flags.has(Flags::SYN);
        let segment = without_note(segment);
        match segment.body {
            Body::Ack { .. } if syn => lost.syn_ack = true,
            Body::Ack { .. } => lost.ack = lost.ack.max(segment.seq),
            Body::Data { .. } if syn => lost.syns += 1,
            _ => {
                let before = lost.data.pieces() / CROWD;
                lost.data.add(segment.seq, segment.end(), 0);
                if lost.data.pieces() / CROWD > before {
                    self.crowded.push(id);
                }
            }
        }
    }

    /// Losses of a flow; `None` without any.
    pub fn of(&self, id: FlowId) -> Option<&OfFlow> {
        self.slots.get(id.slot()).filter(|slot| slot.id == id)?.lost.as_deref()
    }

    /// Losses of a flow's stream of requests; `None` without any.
    pub fn of_requests(&self, id: FlowId) -> Option<&OfFlow> {
        self.slots.get(id.slot()).filter(|slot| slot.id == id)?.of_requests.as_deref()
    }

    /// `true` if some flow has many logged ranges.
    #[inline]
    pub const fn are_crowded(&self) -> bool {
        !self.crowded.is_empty()
    }

    /// Removes acknowledged ranges of the flows with many ranges; `una` returns a flow's first
    /// unacknowledged byte.
    #[cold]
    pub fn thin_out(&mut self, una: impl Fn(FlowId) -> Option<u64>) {
        for id in core::mem::take(&mut self.crowded) {
            let slot = self.slots.get_mut(id.of_requests().slot());
            let lost = slot.and_then(|slot| slot.lost(id));
            if let (Some(Some(lost)), Some(una)) = (lost, una(id)) {
                lost.data.forget_below(una);
            }
        }
    }

    /// Packets lost at a hop.
    pub fn at(&self, hop: u32) -> Load {
        self.at.get(hop as usize).copied().unwrap_or_default()
    }

    /// Packets lost anywhere.
    pub fn total(&self) -> Load {
        self.at.iter().fold(Load::default(), |sum, &load| sum.and(load))
    }

    /// Number of routers' messages lost.
    pub const fn messages(&self) -> u64 {
        self.messages
    }
}

#[cfg(test)]
mod tests {
    use cwnd_quantity::Time;

    use super::*;
    use crate::indices::Place;
    use crate::packet::data_segment;

    fn lose(losses: &mut Losses, id: FlowId, hop: u32, segment: Segment) {
        let packet = Packet::new(id, hop, Place::numbered(0), &segment);
        losses.add(packet.next_hop().1, &segment);
    }

    #[test]
    fn what_is_lost_is_found_by_its_place_and_by_its_flow() {
        let mut losses = Losses::default();
        let (id, other) = (FlowId::new(0, 3), FlowId::new(1, 0));
        losses.begin_flow(id);
        losses.begin_flow(other);
        lose(&mut losses, id, 4, data_segment(1000, 500));
        lose(&mut losses, id, 4, data_segment(1000, 500));
        lose(&mut losses, id, 7, Segment { flags: Flags::SYN, len: 0, ..data_segment(0, 40) });
        lose(&mut losses, id, 7, Segment { body: Body::ack(1), len: 0, ..data_segment(900, 40) });
        assert_eq!(losses.at(4), Load { packets: 2, bytes: 1000 });
        assert_eq!((losses.at(7), losses.at(5)), (Load { packets: 2, bytes: 80 }, Load::default()));
        let lost = losses.of(id).expect("it lost some");
        assert_eq!((lost.data.of(1499), lost.data.of(1500)), (2, 0));
        assert_eq!((lost.syns, lost.syn_ack, lost.ack), (1, false, 900));
        assert!(losses.of(other).is_none() && losses.of_requests(id).is_none());
        lose(&mut losses, id.requests(), 7, data_segment(0, 400));
        let asked = losses.of_requests(id).expect("a request was lost");
        assert_eq!((asked.data.of(0), losses.of(id).map(|lost| lost.data.of(0))), (1, Some(0)));
        // The next flow of the slot starts without losses; later losses of the previous flow do not
        // count for it.
        losses.begin_flow(FlowId::new(0, 4));
        lose(&mut losses, id, 4, data_segment(1000, 500));
        assert!(losses.of(FlowId::new(0, 4)).is_none() && losses.of(id).is_none());
        // Datagrams have no slot.
        lose(&mut losses, FlowId::datagrams(0), 4, data_segment(0, 500));
        assert_eq!(losses.total().packets, 7);
    }

    #[test]
    fn what_is_acknowledged_is_forgotten_once_it_is_much() {
        let mut losses = Losses::default();
        let id = FlowId::new(0, 0);
        losses.begin_flow(id);
        for k in 0..10_000 {
            lose(&mut losses, id, 0, Segment { ts: Time(k), ..data_segment(k * 1000, 1000) });
            if losses.are_crowded() {
                losses.thin_out(|_| Some(k * 1000));
            }
        }
        let lost = losses.of(id).expect("it lost some");
        assert!(lost.data.pieces() <= CROWD, "{}", lost.data.pieces());
        assert_eq!(lost.data.of(9_999_999), 1);
    }
}
