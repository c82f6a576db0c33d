//! Log of lost packets, for the timeout oracle and the count of dead packets.
//!
//! Only drops and losses write to it, so packets that arrive have no overhead.

use cwnd_tcp::{Body, ByteCounts, Flags, Segment};

use crate::event::FlowId;
use crate::packet::{Packet, without_note};

/// Log of all packets that queues dropped and links lost.
#[derive(Debug, Default)]
pub struct DropLog {
    /// Lost packets by hop, an index into the network's table of hops.
    by_hop: Vec<PacketCount>,
    /// Losses of flows, by the flows' slots.
    slots: Vec<Slot>,
    /// Flows, and streams of requests, with many logged ranges, of which perhaps few are
    /// outstanding.
    to_prune: Vec<FlowId>,
    messages: u64,
}

/// Number of packets, and their bytes on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketCount {
    /// Number of packets.
    pub packets: u64,
    /// Bytes on the wire, with headers.
    pub bytes: u64,
}

impl PacketCount {
    /// Sum of both.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
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
    /// Losses of the flow's data, SYNs and ACKs; most flows of most runs have none.
    lost: Option<Box<HalfLosses>>,
    /// Losses of the flow's requests, and of their SYNs and ACKs, if its client opens it.
    of_requests: Option<Box<HalfLosses>>,
}

impl Slot {
    /// Losses of the flow in this slot, or of its stream of requests; `None` if `id` is neither.
    fn lost(&mut self, id: FlowId) -> Option<&mut Option<Box<HalfLosses>>> {
        if self.id == id {
            Some(&mut self.lost)
        } else if self.id.requests() == id {
            Some(&mut self.of_requests)
        } else {
            None
        }
    }
}

/// Losses in one half of a connection: its data, SYNs and ACKs.
#[derive(Debug, Default)]
pub struct HalfLosses {
    /// Number of losses of each byte of data.
    pub data: ByteCounts,
    /// Number of lost SYNs.
    pub syns: u64,
    /// `true` if a SYN-ACK was lost.
    pub syn_ack: bool,
    /// Highest acknowledgment number among lost ACKs.
    pub ack: u64,
}

/// Interval, in ranges of a flow, at which its acknowledged ranges are removed.
const RANGES_BEFORE_PRUNING: usize = 64;

impl DropLog {
    /// Assigns a slot to a new flow, without log.
    pub fn begin_flow(&mut self, id: FlowId) {
        let slot = Slot { id, lost: None, of_requests: None };
        match self.slots.get_mut(id.slot()) {
            Some(place) => *place = slot,
            None => {
                cwnd_memory::reserve_one(&mut self.slots);
                self.slots.push(slot);
            }
        }
    }

    /// Logs the loss of a packet at its hop; of TCP also in the half of its connection.
    pub fn add(&mut self, packet: Packet, segment: &Segment) {
        let hop = packet.hop() as usize;
        if hop >= self.by_hop.len() {
            self.by_hop.resize(hop + 1, PacketCount::default());
        }
        self.by_hop[hop] =
            self.by_hop[hop].plus(PacketCount { packets: 1, bytes: u64::from(segment.wire) });
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
                let before = lost.data.pieces() / RANGES_BEFORE_PRUNING;
                lost.data.add(segment.seq, segment.end(), 0);
                if lost.data.pieces() / RANGES_BEFORE_PRUNING > before {
                    self.to_prune.push(id);
                }
            }
        }
    }

    /// Losses of a flow; `None` without any.
    pub fn of(&self, id: FlowId) -> Option<&HalfLosses> {
        self.slots.get(id.slot()).filter(|slot| slot.id == id)?.lost.as_deref()
    }

    /// Losses of the stream of requests of flow `id`; `None` without any.
    pub fn of_requests(&self, id: FlowId) -> Option<&HalfLosses> {
        self.slots.get(id.slot()).filter(|slot| slot.id == id)?.of_requests.as_deref()
    }

    /// `true` if [`prune`](Self::prune) has work: some flow has many logged ranges.
    #[inline]
    pub const fn needs_pruning(&self) -> bool {
        !self.to_prune.is_empty()
    }

    /// Removes acknowledged ranges of the flows with many ranges; `una` returns the first
    /// unacknowledged byte of a flow or stream of requests, `None` if it is over.
    #[cold]
    pub fn prune(&mut self, una: impl Fn(FlowId) -> Option<u64>) {
        for id in core::mem::take(&mut self.to_prune) {
            let slot = self.slots.get_mut(id.of_requests().slot());
            let lost = slot.and_then(|slot| slot.lost(id));
            if let (Some(Some(lost)), Some(una)) = (lost, una(id)) {
                lost.data.forget_below(una);
            }
        }
    }

    /// Packets lost at a hop.
    pub fn at(&self, hop: u32) -> PacketCount {
        self.by_hop.get(hop as usize).copied().unwrap_or_default()
    }

    /// Packets lost anywhere.
    pub fn total(&self) -> PacketCount {
        self.by_hop.iter().fold(PacketCount::default(), |sum, &load| sum.plus(load))
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
    use crate::indices::SegmentSlot;
    use crate::packet::data_segment;

    fn lose(log: &mut DropLog, id: FlowId, hop: u32, segment: Segment) {
        let packet = Packet::new(id, hop, SegmentSlot::from_index(0), &segment);
        log.add(packet.next_hop().1, &segment);
    }

    #[test]
    fn what_is_lost_is_found_by_its_place_and_by_its_flow() {
        let mut log = DropLog::default();
        let (id, other) = (FlowId::new(0, 3), FlowId::new(1, 0));
        log.begin_flow(id);
        log.begin_flow(other);
        lose(&mut log, id, 4, data_segment(1000, 500));
        lose(&mut log, id, 4, data_segment(1000, 500));
        lose(&mut log, id, 7, Segment { flags: Flags::SYN, len: 0, ..data_segment(0, 40) });
        lose(&mut log, id, 7, Segment { body: Body::ack(1), len: 0, ..data_segment(900, 40) });
        assert_eq!(log.at(4), PacketCount { packets: 2, bytes: 1000 });
        assert_eq!(
            (log.at(7), log.at(5)),
            (PacketCount { packets: 2, bytes: 80 }, PacketCount::default())
        );
        let lost = log.of(id).expect("it lost some");
        assert_eq!((lost.data.of(1499), lost.data.of(1500)), (2, 0));
        assert_eq!((lost.syns, lost.syn_ack, lost.ack), (1, false, 900));
        assert!(log.of(other).is_none() && log.of_requests(id).is_none());
        lose(&mut log, id.requests(), 7, data_segment(0, 400));
        let asked = log.of_requests(id).expect("a request was lost");
        assert_eq!((asked.data.of(0), log.of(id).map(|lost| lost.data.of(0))), (1, Some(0)));
        // The next flow of the slot starts without losses; later losses of the previous flow do not
        // count for it.
        log.begin_flow(FlowId::new(0, 4));
        lose(&mut log, id, 4, data_segment(1000, 500));
        assert!(log.of(FlowId::new(0, 4)).is_none() && log.of(id).is_none());
        // Datagrams have no slot.
        lose(&mut log, FlowId::datagrams(0), 4, data_segment(0, 500));
        assert_eq!(log.total().packets, 7);
    }

    #[test]
    fn what_is_acknowledged_is_forgotten_once_it_is_much() {
        let mut log = DropLog::default();
        let id = FlowId::new(0, 0);
        log.begin_flow(id);
        for k in 0..10_000 {
            lose(&mut log, id, 0, Segment { ts: Time(k), ..data_segment(k * 1000, 1000) });
            if log.needs_pruning() {
                log.prune(|_| Some(k * 1000));
            }
        }
        let lost = log.of(id).expect("it lost some");
        assert!(lost.data.pieces() <= RANGES_BEFORE_PRUNING, "{}", lost.data.pieces());
        assert_eq!(lost.data.of(9_999_999), 1);
    }
}
