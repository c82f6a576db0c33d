//! Buffers of the bytes of packets inside a router.

use cwnd_aqm::{Context, Reason};
use cwnd_packet::{CongestionHeader, Ecn};
use cwnd_quantity::{Duration, Time};

use crate::packet::Parsed;

/// Pool of buffers that are reused. It allocates only if more packets are inside than ever before,
/// or if a packet is larger than its buffer.
#[derive(Debug, Default)]
pub struct Pool {
    buffers: Vec<Buffer>,
    /// Free buffers; the last one freed is reused first, while it is in the cache.
    free: Vec<u32>,
}

#[derive(Debug)]
struct Buffer {
    bytes: Vec<u8>,
    marked: Option<Reason>,
    header: CongestionHeader,
}

/// Handle of a packet that queues hold; its bytes stay in the pool.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// Index of its buffer in the pool.
    pub buffer: u32,
    wire_bytes: u32,
    has_payload: bool,
    flow_hash: u64,
    /// Additional delay of its receiver beyond the link.
    pub receiver_delay: Duration,
}

impl Pool {
    /// Stores a packet, with its parsed headers and the additional delay of its receiver.
    #[inline]
    pub fn put(
        &mut self,
        bytes: &[u8],
        parsed: &Parsed,
        flow_hash: u64,
        beyond: Duration,
    ) -> Packet {
        let header = parsed.identification.map_or(CongestionHeader::None, CongestionHeader::Id);
        let buffer = match self.free.pop() {
            Some(buffer) => {
                let place = &mut self.buffers[buffer as usize];
                place.marked = None;
                place.header = header;
                place.bytes.clear();
                place.bytes.extend_from_slice(bytes);
                buffer
            }
            None => self.put_behind(bytes, header),
        };
        let has_payload = parsed.has_payload;
        let wire_bytes = bytes.len() as u32;
        Packet { buffer, wire_bytes, has_payload, flow_hash, receiver_delay: beyond }
    }

    #[cold]
    fn put_behind(&mut self, bytes: &[u8], header: CongestionHeader) -> u32 {
        let mut copy = Vec::with_capacity(bytes.len().max(ROOM));
        copy.extend_from_slice(bytes);
        self.buffers.push(Buffer { bytes: copy, marked: None, header });
        self.buffers.len() as u32 - 1
    }

    /// Returns the bytes in a buffer.
    #[inline]
    pub fn bytes(&self, buffer: u32) -> &[u8] {
        &self.buffers[buffer as usize].bytes
    }

    /// Returns the reason for which the packet in this buffer was marked, if it was.
    #[inline]
    pub fn marked(&self, buffer: u32) -> Option<Reason> {
        self.buffers[buffer as usize].marked
    }

    /// Frees the buffer of a packet that has left or is lost; its bytes stay until the buffer is
    /// reused.
    #[inline]
    pub fn remove(&mut self, buffer: u32) {
        self.free.push(buffer);
    }

    /// Returns the number of packets stored.
    #[must_use]
    pub const fn held(&self) -> u64 {
        (self.buffers.len() - self.free.len()) as u64
    }
}

/// Access of queues and meters to the bytes of packets.
impl Context<Packet> for Pool {
    #[inline]
    fn ecn(&self, packet: &Packet) -> Ecn {
        cwnd_packet::ecn_of(self.bytes(packet.buffer))
    }

    #[inline]
    fn set_ecn(&mut self, packet: &mut Packet, ecn: Ecn) {
        cwnd_packet::set_ecn(&mut self.buffers[packet.buffer as usize].bytes, ecn);
    }

    /// Returns the identification, the only field of real headers known here, if the packet has
    /// one. What is written to it stays in this router.
    #[inline]
    fn header<'a>(&'a mut self, packet: &'a mut Packet) -> Option<&'a mut CongestionHeader> {
        let header = &mut self.buffers[packet.buffer as usize].header;
        (*header != CongestionHeader::None).then_some(header)
    }

    fn set_identification(&mut self, packet: &mut Packet, identification: u16) -> bool {
        let Buffer { bytes, header, .. } = &mut self.buffers[packet.buffer as usize];
        let written = cwnd_packet::set_identification(bytes, identification);
        if written {
            *header = CongestionHeader::Id(identification);
        }
        written
    }

    #[inline]
    fn dropped(&mut self, _now: Time, packet: &Packet, _reason: Reason) {
        self.remove(packet.buffer);
    }

    #[inline]
    fn marked(&mut self, _now: Time, packet: &Packet, reason: Reason, _already: bool) {
        // The first reason stays if a meter marks a packet that the queue has marked.
        self.buffers[packet.buffer as usize].marked.get_or_insert(reason);
    }
}

impl cwnd_link::Packet for Packet {
    #[inline]
    fn has_payload(&self) -> bool {
        self.has_payload
    }
}

impl cwnd_aqm::Packet for Packet {
    #[inline]
    fn wire_bytes(&self) -> u32 {
        self.wire_bytes
    }

    #[inline]
    fn flow_hash(&self) -> u64 {
        self.flow_hash
    }
}

/// Initial capacity of a buffer, bytes: a packet of Ethernet's MTU fits.
const ROOM: usize = 1536;
