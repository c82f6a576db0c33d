//! IPv4 packets as they are written, and datagrams of UDP.

use alloc::vec::Vec;

use etherparse::{IpEcn, IpNumber, Ipv4Header, Ipv4Options, UdpHeader, ip_number};

/// IPv4 addresses and ports of the two ends of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoints {
    /// IPv4 address of the sender.
    pub source: [u8; 4],
    /// Port of the sender.
    pub source_port: u16,
    /// IPv4 address of the receiver.
    pub destination: [u8; 4],
    /// Port of the receiver.
    pub destination_port: u16,
}

impl Endpoints {
    /// Returns the endpoints of packets in the other direction.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self {
            source: self.destination,
            source_port: self.destination_port,
            destination: self.source,
            destination_port: self.source_port,
        }
    }
}

/// Headers of a packet, without its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Headers {
    /// IPv4 header and transport header; of a whole packet the payload, too.
    pub bytes: Vec<u8>,
    /// Total length of the packet in bytes, payload included, as in the IPv4 header.
    pub total: u16,
}

/// Builds a packet: an IPv4 header in front of a transport header.
///
/// `padding` asks for that many bytes of empty IPv4 options, rounded down to 32-bit words, at most
/// 40.
pub fn packet(
    to: Endpoints,
    (ecn, identification): (Ecn, u16),
    protocol: IpNumber,
    transport: &[u8],
    payload: u16,
    padding: usize,
) -> Headers {
    let content = transport.len() as u16 + payload;
    let mut header = Ipv4Header {
        ecn: match ecn {
            Ecn::NotEct => IpEcn::ZERO,
            Ecn::Ect1 => IpEcn::ONE,
            Ecn::Ect0 => IpEcn::TWO,
            Ecn::Ce => IpEcn::THREE,
        },
        // RFC 6864 § 4.1: a packet that may not be fragmented can carry any identification.
        identification,
        dont_fragment: true,
        time_to_live: TIME_TO_LIVE,
        protocol,
        source: to.source,
        destination: to.destination,
        // RFC 791 § 3.1: zero ends the list of options, and zeros pad the header after it.
        options: Ipv4Options::try_from(&[0; MAX_OPTIONS][..whole_words(padding)])
            .unwrap_or_default(),
        ..Ipv4Header::default()
    };
    header.total_len = header.header_len() as u16 + content;
    header.header_checksum = header.calc_header_checksum();
    let mut bytes = header.to_bytes().to_vec();
    bytes.extend_from_slice(transport);
    Headers { bytes, total: header.total_len }
}

/// Limits a payload so that the packet's total length fits 16 bits with the largest headers.
pub fn fitting_payload(payload: u16) -> u16 {
    payload.min(u16::MAX - MAX_HEADERS)
}

/// Rounds down to whole 32-bit words, the unit of header lengths, and to the 40 bytes of options.
pub fn whole_words(bytes: usize) -> usize {
    bytes.min(MAX_OPTIONS) / 4 * 4
}

/// Rounds up to whole 32-bit words.
pub const fn words_of(bytes: usize) -> usize {
    bytes.div_ceil(4) * 4
}

/// Returns that many zero bytes: the payload of simulated packets.
pub fn zeros(payload: u16) -> &'static [u8] {
    static ZEROS: [u8; u16::MAX as usize] = [0; u16::MAX as usize];
    &ZEROS[..payload as usize]
}

/// Bytes of an IPv4 header without options (RFC 791 § 3.1).
pub const HEADER: usize = 20;
/// Most bytes of options in an IPv4 or TCP header: 15 words less the 5 of the fixed part (RFC 791 §
/// 3.1, RFC 9293 § 3.1).
pub const MAX_OPTIONS: usize = 40;
/// Bytes of an IPv4 and a TCP header, both with all options that fit.
const MAX_HEADERS: u16 = 120;
/// Default time to live (RFC 1122 § 3.2.1.7; assigned value 64, RFC 1700).
const TIME_TO_LIVE: u8 = 64;

/// ECN field of the IP header (RFC 3168 § 5), with its values on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable: only a drop signals congestion.
    #[default]
    NotEct = 0b00,
    /// ECN-capable transport, code point ECT(1).
    Ect1 = 0b01,
    /// ECN-capable transport, code point ECT(0).
    Ect0 = 0b10,
    /// Congestion experienced.
    Ce = 0b11,
}

impl Ecn {
    /// Returns the code point in the lower two bits of a traffic class, or of IPv4's TOS byte.
    #[inline]
    #[must_use]
    pub const fn of_traffic_class(traffic_class: u8) -> Self {
        match traffic_class & 0b11 {
            0b00 => Self::NotEct,
            0b01 => Self::Ect1,
            0b10 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// `true` if a queue may mark this packet instead of dropping it (RFC 3168 § 5).
    #[inline]
    #[must_use]
    pub const fn is_ect(self) -> bool {
        !matches!(self, Self::NotEct)
    }
}

/// Fields of a UDP datagram to be written, with those of its IPv4 header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Udp {
    /// ECN field of the IP header.
    pub ecn: Ecn,
    /// Length of the payload, bytes; written as at most 65,415.
    pub payload: u16,
    /// Wanted total length of the packet, bytes; empty IPv4 options pad the header up to it as far
    /// as they can.
    pub wanted_length: u16,
}

impl Udp {
    /// Builds the IPv4 and the UDP header with their checksums, for a payload of zeros.
    #[must_use]
    pub fn headers(&self, to: Endpoints) -> Headers {
        self.headers_for(to, zeros(fitting_payload(self.payload)))
    }

    /// Builds the whole packet: the headers with their checksums, and the payload.
    #[must_use]
    pub fn packet(&self, to: Endpoints, payload: &[u8]) -> Headers {
        let payload = &payload[..payload.len().min(fitting_payload(u16::MAX).into())];
        let mut packet = self.headers_for(to, payload);
        packet.bytes.extend_from_slice(payload);
        packet
    }

    fn headers_for(&self, to: Endpoints, bytes: &[u8]) -> Headers {
        let payload = bytes.len() as u16;
        let mut header = UdpHeader {
            source_port: to.source_port,
            destination_port: to.destination_port,
            length: UdpHeader::LEN as u16 + payload,
            checksum: 0,
        };
        header.checksum =
            header.calc_checksum_ipv4_raw(to.source, to.destination, bytes).unwrap_or_default();
        let taken = HEADER + UdpHeader::LEN + payload as usize;
        let padding = usize::from(self.wanted_length).saturating_sub(taken);
        packet(to, (self.ecn, 0), ip_number::UDP, &header.to_bytes(), payload, padding)
    }
}
