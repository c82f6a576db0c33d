//! An IP packet as bytes: what a queue must know of it, and the mark that a queue may put on it.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use cwnd_units::Ecn;

/// What a packet's headers say, as far as a router looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// Length of the packet: what the header says, which may be less than came.
    pub length: usize,
    /// The ECN field.
    pub ecn: Ecn,
    /// Whether something follows the transport header.
    pub has_payload: bool,
    /// Where it comes from and where it goes.
    pub source: Endpoint,
    /// Where it goes.
    pub destination: Endpoint,
    /// IP protocol number of what follows.
    pub protocol: u8,
}

/// An address and a port; port zero where there is none, and where any is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Endpoint {
    /// IPv4 or IPv6 address.
    pub address: IpAddr,
    /// TCP or UDP port.
    pub port: u16,
}

impl Endpoint {
    /// All ports of an address.
    #[must_use]
    pub const fn any_port(address: IpAddr) -> Self {
        Self { address, port: 0 }
    }
}

/// Reads the headers; `None` if the bytes are no packet that may be forwarded (RFC 1812 § 5.2.2, RFC 8200 § 3).
#[must_use]
pub fn parse(bytes: &[u8]) -> Option<Parsed> {
    match bytes.first()? >> 4 {
        4 => parse_v4(bytes),
        6 => parse_v6(bytes),
        _ => None,
    }
}

fn parse_v4(bytes: &[u8]) -> Option<Parsed> {
    let header = bytes.first_chunk::<V4_HEADER>()?;
    let header_length = usize::from(header[0] & 0xf) * 4;
    let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
    if header_length < V4_HEADER || length < header_length || length > bytes.len() {
        return None;
    }
    if ones_complement_sum(&bytes[..header_length]) != 0xffff {
        return None;
    }
    // Only the first fragment has a transport header (RFC 791 § 3.2).
    let fragment = u16::from_be_bytes([header[6], header[7]]) & FRAGMENT_OFFSET != 0;
    let content = &bytes[header_length..length];
    let transport = transport(header[9], content, fragment);
    let address = |at: usize| {
        IpAddr::V4(Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]))
    };
    Some(Parsed {
        length,
        ecn: ecn_of(header[1]),
        has_payload: transport.has_payload,
        source: Endpoint { address: address(12), port: transport.ports[0] },
        destination: Endpoint { address: address(16), port: transport.ports[1] },
        protocol: header[9],
    })
}

fn parse_v6(bytes: &[u8]) -> Option<Parsed> {
    let header = bytes.first_chunk::<V6_HEADER>()?;
    let length = V6_HEADER + usize::from(u16::from_be_bytes([header[4], header[5]]));
    if length > bytes.len() {
        return None;
    }
    // Extension headers are not followed: such packets have addresses, but no ports.
    let transport = transport(header[6], &bytes[V6_HEADER..length], false);
    let address = |at: usize| {
        let mut octets = [0; 16];
        octets.copy_from_slice(&header[at..at + 16]);
        IpAddr::V6(Ipv6Addr::from(octets))
    };
    Some(Parsed {
        length,
        ecn: ecn_of(header[1] >> V6_ECN_SHIFT),
        has_payload: transport.has_payload,
        source: Endpoint { address: address(8), port: transport.ports[0] },
        destination: Endpoint { address: address(24), port: transport.ports[1] },
        protocol: header[6],
    })
}

struct Transport {
    ports: [u16; 2],
    has_payload: bool,
}

fn transport(protocol: u8, content: &[u8], fragment: bool) -> Transport {
    let header = match protocol {
        _ if fragment => None,
        TCP => content.get(12).map(|offset| usize::from(offset >> 4) * 4),
        UDP => (content.len() >= UDP_HEADER).then_some(UDP_HEADER),
        _ => None,
    };
    match (header, content.first_chunk::<4>()) {
        (Some(header), Some(&[a, b, c, d])) => Transport {
            ports: [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])],
            has_payload: content.len() > header,
        },
        _ => Transport { ports: [0; 2], has_payload: !content.is_empty() },
    }
}

const fn ecn_of(traffic_class: u8) -> Ecn {
    match traffic_class & 0b11 {
        0b00 => Ecn::NotEct,
        0b01 => Ecn::Ect1,
        0b10 => Ecn::Ect0,
        _ => Ecn::Ce,
    }
}

/// Sets the ECN field of a packet that was parsed to CE (RFC 3168 § 5), and its IPv4 header checksum right.
pub fn set_ce(bytes: &mut [u8]) {
    match bytes.first().map(|first| first >> 4) {
        Some(4) if bytes.len() >= V4_HEADER => {
            let old = u16::from_be_bytes([bytes[0], bytes[1]]);
            let new = old | Ecn::Ce as u16;
            let checksum = u16::from_be_bytes([bytes[10], bytes[11]]);
            // RFC 1624 § 3, equation 3: HC' = ~(~HC + ~m + m').
            let updated = !fold(u32::from(!checksum) + u32::from(!old) + u32::from(new));
            bytes[1] = new as u8;
            bytes[10..12].copy_from_slice(&updated.to_be_bytes());
        }
        Some(6) if bytes.len() >= V6_HEADER => bytes[1] |= (Ecn::Ce as u8) << V6_ECN_SHIFT,
        _ => {}
    }
}

/// Tells flows apart, for fair queueing (RFC 8290 § 4.1: the 5-tuple).
#[must_use]
pub fn flow_hash(packet: &Parsed) -> u64 {
    let address = |a: IpAddr| match a {
        IpAddr::V4(a) => u64::from(a.to_bits()),
        IpAddr::V6(a) => (a.to_bits() >> 64) as u64 ^ (a.to_bits() as u64).rotate_left(29),
    };
    let Parsed { source, destination, protocol, .. } = packet;
    let ports =
        u64::from(source.port) << 32 | u64::from(destination.port) << 16 | u64::from(*protocol);
    // Fibonacci hashing spreads neighbours; a turn after each step brings the upper bits down to the next.
    [address(source.address), address(destination.address), ports]
        .into_iter()
        .fold(0, |hash: u64, part| {
            (hash ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31)
        })
}

/// The 16-bit ones' complement sum of a header (RFC 1071 § 1); an odd byte at its end counts as if a zero followed.
#[must_use]
pub fn ones_complement_sum(bytes: &[u8]) -> u16 {
    let words =
        bytes.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w.get(1).copied().unwrap_or(0)));
    fold(words.sum())
}

const fn fold(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// IPv4 header without options (RFC 791 § 3.1), IPv6 header (RFC 8200 § 3), UDP header (RFC 768), in bytes.
const V4_HEADER: usize = 20;
const V6_HEADER: usize = 40;
const UDP_HEADER: usize = 8;
/// The traffic class starts in the middle of the first byte (RFC 8200 § 3).
const V6_ECN_SHIFT: u32 = 4;
/// The fragment offset in its 16-bit word (RFC 791 § 3.1).
const FRAGMENT_OFFSET: u16 = 0x1fff;
/// IP protocol numbers (RFC 9293, RFC 768).
const TCP: u8 = 6;
const UDP: u8 = 17;
