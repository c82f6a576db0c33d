//! Packets inside a router: header fields that queues and impairments need, and buffers of their
//! bytes.

use core::net::IpAddr;

use cwnd_aqm::{Context, Reason};
use cwnd_packet::{
    CongestionHeader, Ecn, Fragment, IpPacket, TcpHeader, checksum_holds, flag, protocol,
};
use cwnd_quantity::{Duration, Time};
use cwnd_tables::Buckets;

/// Header fields of a packet that may be forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// Length by the IP header, bytes; the buffer may be longer.
    pub length: usize,
    /// ECN field.
    pub ecn: Ecn,
    /// Identification field of IPv4; IPv6 has none.
    pub identification: Option<u16>,
    /// `true` if there is payload behind the transport header; if that header has no known length,
    /// `true` if the IP packet has any content.
    pub has_payload: bool,
    /// `true` if a router may send a message about the packet, to a source that can slow down.
    pub answerable: bool,
    /// Source address and port.
    pub source: Endpoint,
    /// Destination address and port.
    pub destination: Endpoint,
    /// IP protocol number of the content.
    pub protocol: u8,
}

/// An address and a port; the port is zero if there is none, or for any port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Endpoint {
    /// IPv4 or IPv6 address.
    pub address: IpAddr,
    /// TCP or UDP port.
    pub port: u16,
}

impl Endpoint {
    /// Creates an endpoint that stands for all ports of an address.
    #[must_use]
    pub const fn any_port(address: IpAddr) -> Self {
        Self { address, port: 0 }
    }
}

/// Reads the headers; `None` if a router must discard the packet (RFC 1812 § 5.2.2, RFC 8200 § 3).
#[must_use]
pub fn parse(bytes: &[u8]) -> Option<Parsed> {
    let mut ip = IpPacket::read(bytes)?;
    let length = match (ip.length, ip.source) {
        (Some(length), _) => length,
        (None, IpAddr::V4(_)) => return None,
        // A jumbogram, or a header without content. Of a jumbogram, only the header is forwarded.
        (None, IpAddr::V6(_)) => {
            (ip.content, ip.header_bytes) = (&[], V6_HEADER);
            V6_HEADER
        }
    };
    if length < ip.header_bytes || length > bytes.len() || !checksum_holds(bytes) {
        return None;
    }
    let transport = ip.transport_header();
    let port = |at: usize| match (transport, ip.content.get(at..at + 2)) {
        (Some(_), Some(&[upper, lower])) => u16::from_be_bytes([upper, lower]),
        _ => 0,
    };
    let has_payload = ip.content.len() > transport.unwrap_or(0);
    Some(Parsed {
        length,
        ecn: ip.ecn,
        identification: ip.identification,
        has_payload,
        answerable: ip.fragment != Fragment::Later && may_slow_down(&ip, has_payload),
        source: Endpoint { address: ip.source, port: port(0) },
        destination: Endpoint { address: ip.destination, port: port(2) },
        protocol: ip.protocol,
    })
}

/// Returns the length of the IP and transport headers, bytes; that of all bytes if they are no IP
/// packet or the transport header has no known length.
pub fn headers_length(bytes: &[u8]) -> usize {
    let all = bytes.len();
    let headers =
        IpPacket::read(bytes).and_then(|ip| Some(ip.header_bytes + ip.transport_header()?));
    headers.map_or(all, |headers| headers.min(all))
}

/// `true` if the packet is one that its source can slow down: one with payload, or a SYN without
/// ACK. ICMP is not, and no message is sent about an ICMP error (RFC 1122 § 3.2.2).
fn may_slow_down(ip: &IpPacket<'_>, has_payload: bool) -> bool {
    match ip.protocol {
        protocol::ICMP | protocol::ICMP_V6 => false,
        protocol::TCP => has_payload || opens(ip.content),
        _ => has_payload,
    }
}

/// `true` for a SYN without ACK.
fn opens(content: &[u8]) -> bool {
    TcpHeader::read(content).is_ok_and(|header| header.flags & (flag::SYN | flag::ACK) == flag::SYN)
}

/// Returns a hash of the 5-tuple for fair queueing (RFC 8290 § 4.1).
#[must_use]
pub fn flow_hash(packet: &Parsed) -> u64 {
    let address = |a: IpAddr| match a {
        IpAddr::V4(a) => u64::from(a.to_bits()),
        IpAddr::V6(a) => (a.to_bits() >> 64) as u64 ^ (a.to_bits() as u64).rotate_left(29),
    };
    let Parsed { source, destination, protocol, .. } = packet;
    let ports =
        u64::from(source.port) << 32 | u64::from(destination.port) << 16 | u64::from(*protocol);
    // Fibonacci hashing spreads neighbours; the rotation moves the upper bits down for the next
    // step.
    [address(source.address), address(destination.address), ports]
        .into_iter()
        .fold(0, |hash: u64, part| {
            (hash ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31)
        })
}

/// Length of an IPv6 header, bytes (RFC 8200 § 3).
const V6_HEADER: usize = 40;

/// Pool of buffers that are reused. It allocates only if more packets are inside than ever before,
/// or if a packet is larger than its buffer.
#[derive(Debug, Default)]
pub struct Pool {
    buffers: Vec<Buffer>,
    /// Free buffers; the last one freed is reused first, while it is in the cache.
    free: Vec<u32>,
    /// Queueing delays of watched packets since the end of the warm-up, by number.
    waits: Vec<Buckets>,
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
    /// Number of the distribution of its queueing delay; [`UNWATCHED`] if it has none.
    watched: u32,
}

/// Number of no distribution.
pub const UNWATCHED: u32 = u32::MAX;

impl Pool {
    /// Starts this many distributions of the queueing delay anew.
    pub fn watch(&mut self, count: usize) {
        self.waits.clear();
        self.waits.resize(count, Buckets::default());
    }

    /// Distributions of the queueing delay of watched packets, by number.
    pub fn waits(&self) -> &[Buckets] {
        &self.waits
    }

    /// Stores a packet, with its parsed headers, the additional delay of its receiver, and the
    /// number of its distribution.
    #[inline]
    pub fn put(
        &mut self,
        bytes: &[u8],
        parsed: &Parsed,
        flow_hash: u64,
        beyond: Duration,
        watched: u32,
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
        Packet { buffer, wire_bytes, has_payload, flow_hash, receiver_delay: beyond, watched }
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
    fn waited(&mut self, packet: &Packet, sojourn: Duration) {
        if let Some(waits) = self.waits.get_mut(packet.watched as usize) {
            waits.add(sojourn);
        }
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

#[cfg(test)]
mod tests {
    use etherparse::{IpNumber, Ipv4Header, PacketBuilder, TcpOptionElement};

    use super::*;

    #[test]
    fn ports_and_payload_are_read_where_there_are_some() {
        let tcp = |payload: &[u8]| {
            let mut bytes = Vec::new();
            PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
                .tcp(4000, 80, 1, 2)
                .write(&mut bytes, payload)
                .expect("memory takes it");
            parse(&bytes).expect("it is a packet")
        };
        let (empty, full) = (tcp(&[]), tcp(&[1, 2, 3]));
        assert_eq!((empty.length, empty.has_payload), (40, false));
        assert_eq!((full.length, full.has_payload), (43, true));
        assert_eq!((full.source.port, full.destination.port), (4000, 80));
        assert_eq!(full.source.address, IpAddr::from([10, 0, 0, 1]));

        let mut bytes = Vec::new();
        PacketBuilder::ipv6([1; 16], [2; 16], 64)
            .udp(53, 5353)
            .write(&mut bytes, &[9])
            .expect("memory takes it");
        let udp = parse(&bytes).expect("it is a packet");
        assert_eq!((udp.length, udp.has_payload), (49, true));
        assert_eq!((udp.source.port, udp.destination.port), (53, 5353));
        assert_eq!(udp.destination.address, IpAddr::from([2; 16]));
    }

    #[test]
    fn headers_end_where_payload_begins() {
        let options = [TcpOptionElement::Timestamp(7, 8), TcpOptionElement::Noop];
        let mut tcp = Vec::new();
        PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
            .tcp(4000, 80, 1, 2)
            .options(&options)
            .expect("they fit")
            .write(&mut tcp, &[0; 100])
            .expect("memory takes it");
        assert_eq!(headers_length(&tcp), 20 + 32);
        assert_eq!(headers_length(&tcp[..30]), 30, "it is cut");
        let mut udp = Vec::new();
        PacketBuilder::ipv6([1; 16], [2; 16], 64)
            .udp(53, 5353)
            .write(&mut udp, &[9; 30])
            .expect("memory takes it");
        assert_eq!(headers_length(&udp), 40 + 8);
        // A later fragment has no transport header.
        tcp[7] = 1;
        assert_eq!(headers_length(&tcp), tcp.len());
        assert_eq!(headers_length(&[]), 0);
    }

    #[test]
    fn what_a_router_must_discard_is_no_packet() {
        let mut header = Ipv4Header::new(100, 64, IpNumber::UDP, [1; 4], [2; 4]).expect("it fits");
        header.header_checksum = header.calc_header_checksum();
        let mut good = header.to_bytes().to_vec();
        good.resize(120, 0);
        assert!(parse(&good).is_some());
        assert_eq!(parse(&[&good[..], &[0; 30]].concat()).map(|p| p.length), Some(120));
        assert_eq!(parse(&good[..119]), None, "it is cut");
        assert_eq!(parse(&[]), None);
        let with = |at: usize, value: u8| {
            let mut bytes = good.clone();
            bytes[at] = value;
            parse(&bytes)
        };
        assert_eq!(with(0, 0x55), None, "of version 5");
        assert_eq!(with(0, 0x44), None, "with too short a header");
        assert_eq!(with(8, 63), None, "with a wrong checksum (RFC 1812 § 5.2.2)");
    }

    #[test]
    fn directions_of_a_flow_and_its_neighbours_hash_apart() {
        let packet = |from: [u8; 4], port: u16| Parsed {
            length: 40,
            ecn: Ecn::NotEct,
            identification: None,
            has_payload: false,
            answerable: false,
            source: Endpoint { address: from.into(), port },
            destination: Endpoint { address: [10, 0, 0, 99].into(), port: 80 },
            protocol: protocol::TCP,
        };
        let mut buckets = [0_u32; 64];
        for host in 0..=99 {
            for port in 1000..1010 {
                let mut one = packet([10, 0, 1, host], port);
                buckets[(flow_hash(&one) % 64) as usize] += 1;
                core::mem::swap(&mut one.source, &mut one.destination);
                buckets[(flow_hash(&one) % 64) as usize] += 1;
            }
        }
        // 2000 flows in 64 buckets: chi-square with 63 degrees of freedom is below 103.4 in 99.9 %
        // of cases.
        let mean = 2000.0 / 64.0;
        let chi: f64 = buckets.iter().map(|&n| (f64::from(n) - mean).powi(2) / mean).sum();
        assert!(chi < 103.4, "{chi}");
    }
}
