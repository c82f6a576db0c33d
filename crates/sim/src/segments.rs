//! Storage of the segments in flight with the times of their packets, and the log of lost packets,
//! for the timeout oracle and the count of dead packets.
//!
//! Only drops and losses are logged.

use cwnd_aqm::{Context, Reason};
use cwnd_packet::{CongestionHeader, Ecn};
use cwnd_quantity::{Duration, Time};
use cwnd_tcp::{Body, ByteCounts, Flags, Segment};

use crate::event::FlowId;
use crate::journey::Journey;
use crate::packet::{Packet, SegmentSlot, without_note};

/// Segments between hosts, each in its own cache line.
///
/// The sending host writes a segment here and the receiving host reads it here; only its
/// [`SegmentSlot`] moves between queues and pipes. Copying a segment right after its fields were
/// written is slow: a wide load over narrow stores waits until these have left the store buffer.
#[derive(Debug, Default)]
pub struct Segments {
    lines: Vec<CacheLine>,
    /// Times of the packets, by slot.
    journeys: Vec<Journey>,
    /// Free list of slots; the last one freed is used first, while it is in the cache.
    free: Vec<SegmentSlot>,
    drop_log: DropLog,
    /// Payloads of datagrams, by slot. Those of lost ones stay until another has the slot.
    payloads: Vec<Vec<u8>>,
}

#[derive(Debug)]
#[repr(align(64))]
struct CacheLine(Segment);

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<CacheLine>() == 64, "a segment must fit one cache line");

impl Segments {
    /// Stores a segment and returns its slot.
    #[inline(always)]
    pub fn put(&mut self, segment: Segment) -> SegmentSlot {
        match self.free.pop() {
            Some(slot) => {
                self.lines[slot.index() as usize].0 = segment;
                slot
            }
            None => self.put_last(segment),
        }
    }

    #[cold]
    fn put_last(&mut self, segment: Segment) -> SegmentSlot {
        cwnd_memory::reserve_one(&mut self.lines);
        self.lines.push(CacheLine(segment));
        cwnd_memory::reserve_one(&mut self.journeys);
        self.journeys.push(Journey::default());
        SegmentSlot::from_index(self.lines.len() as u32 - 1)
    }

    /// Starts the times of the packet in a slot, when its host sends it.
    #[inline]
    pub fn depart(&mut self, slot: SegmentSlot, now: Time) {
        self.journeys[slot.index() as usize] = Journey { sent: now, queued: Duration::ZERO };
    }

    /// Times of the packet in a slot.
    #[inline]
    pub fn journey(&self, slot: SegmentSlot) -> Journey {
        self.journeys[slot.index() as usize]
    }

    /// Stores the payload of the datagram in a slot.
    #[cold]
    pub fn put_payload(&mut self, slot: SegmentSlot, payload: Vec<u8>) {
        let index = slot.index() as usize;
        if index >= self.payloads.len() {
            self.payloads.resize(self.lines.len(), Vec::new());
        }
        self.payloads[index] = payload;
    }

    /// Payload of the datagram in a slot; empty without one.
    pub fn payload(&self, slot: SegmentSlot) -> &[u8] {
        self.payloads.get(slot.index() as usize).map_or(&[], Vec::as_slice)
    }

    /// Takes the payload of the datagram in a slot; empty without one.
    pub fn take_payload(&mut self, slot: SegmentSlot) -> Vec<u8> {
        self.payloads.get_mut(slot.index() as usize).map(core::mem::take).unwrap_or_default()
    }

    /// Prefetches the segment in a slot.
    #[inline]
    pub fn prefetch(&self, slot: SegmentSlot) {
        self.lines.get(slot.index() as usize).into_iter().for_each(cwnd_memory::prefetch);
    }

    /// The segment in a slot.
    #[inline]
    pub fn get(&self, slot: SegmentSlot) -> &Segment {
        &self.lines[slot.index() as usize].0
    }

    /// The segment in a slot, mutable.
    #[inline]
    pub fn get_mut(&mut self, slot: SegmentSlot) -> &mut Segment {
        &mut self.lines[slot.index() as usize].0
    }

    /// Frees the slot of a segment that has arrived or is lost.
    #[inline]
    pub fn remove(&mut self, slot: SegmentSlot) {
        self.free.push(slot);
    }

    /// Logs the loss of a packet and frees its slot.
    #[cold]
    #[inline(never)]
    pub fn lose(&mut self, packet: Packet) {
        self.drop_log.add(packet, &self.lines[packet.slot().index() as usize].0);
        self.remove(packet.slot());
    }

    /// Log of lost packets.
    #[inline]
    pub const fn drop_log(&self) -> &DropLog {
        &self.drop_log
    }

    /// Log of lost packets, mutable.
    #[inline]
    pub const fn drop_log_mut(&mut self) -> &mut DropLog {
        &mut self.drop_log
    }

    /// Segments in flight, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &Segment> {
        let mut free = vec![false; self.lines.len()];
        self.free.iter().for_each(|slot| free[slot.index() as usize] = true);
        self.lines.iter().zip(free).filter(|(_, free)| !free).map(|(line, _)| &line.0)
    }

    /// Number of segments in flight.
    pub const fn held(&self) -> u64 {
        (self.lines.len() - self.free.len()) as u64
    }
}

/// Access of queues and meters to the ECN fields and headers of packets, and the drop of a packet
/// by a queue.
impl Context<Packet> for Segments {
    #[inline]
    fn ecn(&self, packet: &Packet) -> Ecn {
        self.get(packet.slot()).ecn
    }

    #[inline]
    fn set_ecn(&mut self, packet: &mut Packet, ecn: Ecn) {
        self.get_mut(packet.slot()).ecn = ecn;
    }

    #[inline]
    fn header<'a>(&'a mut self, packet: &'a mut Packet) -> Option<&'a mut CongestionHeader> {
        match &mut self.get_mut(packet.slot()).body {
            Body::Data { header, .. } => Some(header),
            Body::Ack { .. } | Body::Quench { .. } | Body::Quic { .. } | Body::QuicAck(_) => None,
        }
    }

    fn set_identification(&mut self, packet: &mut Packet, identification: u16) -> bool {
        match self.header(packet) {
            Some(header @ (CongestionHeader::None | CongestionHeader::Id(_))) => {
                *header = CongestionHeader::Id(identification)
            }
            _ => return false,
        }
        true
    }

    #[inline]
    fn waited(&mut self, packet: &Packet, sojourn: Duration) {
        self.journeys[packet.slot().index() as usize].queued += sojourn;
    }

    #[inline]
    fn dropped(&mut self, _now: Time, packet: &Packet, _reason: Reason) {
        self.lose(*packet);
    }

    #[inline]
    fn marked(&mut self, _: Time, _: &Packet, _: Reason, _: bool) {}
}

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
    /// Starts an empty log for a new flow in its slot.
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
    use super::*;
    use crate::packet::data_segment;

    #[test]
    fn a_segment_stays_in_its_slot_until_it_is_removed() {
        let mut segments = Segments::default();
        let slots: Vec<SegmentSlot> = (0..5).map(|n| segments.put(data_segment(n, 100))).collect();
        segments.remove(slots[3]);
        segments.remove(slots[1]);
        assert_eq!(segments.held(), 3);
        assert_eq!(segments.put(data_segment(7, 100)), slots[1]);
        assert_eq!(segments.put(data_segment(8, 100)), slots[3]);
        let found: Vec<u64> = slots.iter().map(|&p| segments.get(p).seq).collect();
        assert_eq!(found, [0, 7, 2, 8, 4]);
        assert_eq!(segments.held(), 5);
    }

    #[test]
    fn routers_set_any_code_point_and_write_headers_of_data_alone() {
        let mut segments = Segments::default();
        let ack = Segment { body: Body::ack(1), ..data_segment(1, 40) };
        let [mut data, mut ack] = [data_segment(0, 100), ack]
            .map(|segment| Packet::new(FlowId::new(0, 0), 0, segments.put(segment), &segment));
        for ecn in [Ecn::Ce, Ecn::Ect1, Ecn::Ect0, Ecn::NotEct] {
            segments.set_ecn(&mut data, ecn);
            assert_eq!((segments.ecn(&data), segments.get(data.slot()).ecn), (ecn, ecn));
        }
        *segments.header(&mut data).expect("data has one") = CongestionHeader::Id(7);
        let Body::Data { header, .. } = segments.get(data.slot()).body else { panic!("data") };
        assert_eq!(header, CongestionHeader::Id(7));
        assert_eq!(segments.header(&mut ack), None);
        assert!(segments.set_identification(&mut data, 9));
        assert_eq!(segments.header(&mut data), Some(&mut CongestionHeader::Id(9)));
        assert!(!segments.set_identification(&mut ack, 9));
        *segments.header(&mut data).expect("data has one") = CongestionHeader::Level(3);
        assert!(!segments.set_identification(&mut data, 9), "the field is in use");
    }

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
