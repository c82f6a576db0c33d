//! Storage of the segments in flight.

use cwnd_aqm::{Context, Reason};
use cwnd_packet::{CongestionHeader, Ecn};
use cwnd_quantity::Time;
use cwnd_tcp::{Body, Segment};

use crate::drop_log::DropLog;
use crate::indices::SegmentSlot;
use crate::packet::Packet;

/// Segments between hosts, each in its own cache line.
///
/// The sending host writes a segment here and the receiving host reads it here; only its
/// [`SegmentSlot`] moves between queues and pipes. Copying a segment right after its fields were
/// written is slow: a wide load over narrow stores waits until these have left the store buffer.
#[derive(Debug, Default)]
pub struct Segments {
    lines: Vec<CacheLine>,
    /// Free list of slots; the last one freed is used first, while it is in the cache.
    free: Vec<SegmentSlot>,
    drop_log: DropLog,
}

#[derive(Debug)]
#[repr(align(64))]
struct CacheLine(Segment);

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
        SegmentSlot::from_index(self.lines.len() as u32 - 1)
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
    fn dropped(&mut self, _now: Time, packet: &Packet, _reason: Reason) {
        self.lose(*packet);
    }

    #[inline]
    fn marked(&mut self, _: Time, _: &Packet, _: Reason, _: bool) {}
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
        let [mut data, mut ack] = [data_segment(0, 100), ack].map(|segment| {
            Packet::new(crate::event::FlowId::new(0, 0), 0, segments.put(segment), &segment)
        });
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
}
