//! An IP packet as bytes: what a queue must know of it, and its ECN field, which a router may read and set.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use cwnd_quantity::Ecn;

/// What a packet's headers say, as far as a router looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// Length of the packet: what the header says, which may be less than came.
    pub length: usize,
    /// The ECN field.
    pub ecn: Ecn,
    /// The identification of an IPv4 header; IPv6 has none.
    pub identification: Option<u16>,
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
    let fragment = is_later_fragment(bytes);
    let content = &bytes[header_length..length];
    let transport = transport(header[9], content, fragment);
    let address = |at: usize| {
        IpAddr::V4(Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]))
    };
    Some(Parsed {
        length,
        ecn: ecn(bytes),
        identification: Some(u16::from_be_bytes([header[4], header[5]])),
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
        ecn: ecn(bytes),
        identification: None,
        has_payload: transport.has_payload,
        source: Endpoint { address: address(8), port: transport.ports[0] },
        destination: Endpoint { address: address(24), port: transport.ports[1] },
        protocol: header[6],
    })
}

/// How long the IP and transport headers of a packet that was parsed are; all of it where the latter is not known.
pub fn headers_length(bytes: &[u8]) -> usize {
    let all = bytes.len();
    let (ip, protocol, fragment) = match bytes {
        [first, ..] if first >> 4 == 4 && all >= V4_HEADER => {
            (usize::from(first & 0xf) * 4, bytes[9], is_later_fragment(bytes))
        }
        [first, ..] if first >> 4 == 6 && all >= V6_HEADER => (V6_HEADER, bytes[6], false),
        _ => return all,
    };
    let transport = bytes.get(ip..).and_then(|content| transport_header(protocol, content));
    transport.filter(|_| !fragment).map_or(all, |header| all.min(ip + header))
}

/// Whether an IPv4 packet is a fragment, and not the first.
pub fn is_later_fragment(bytes: &[u8]) -> bool {
    bytes
        .get(6..8)
        .is_some_and(|word| u16::from_be_bytes([word[0], word[1]]) & FRAGMENT_OFFSET != 0)
}

/// Whether the source of a packet that was parsed can slow down what it is of: who only acknowledges, and who sends ICMP, has
/// nothing to slow down, and about an error there is no message (RFC 1122 § 3.2.2).
pub fn may_slow_down(bytes: &[u8], packet: &Parsed) -> bool {
    match packet.protocol {
        ICMP | ICMP_V6 => false,
        TCP => packet.has_payload || opens(bytes),
        _ => packet.has_payload,
    }
}

/// Whether a TCP segment asks for a connection.
fn opens(bytes: &[u8]) -> bool {
    let ip = match bytes {
        [first, ..] if first >> 4 == 4 => usize::from(first & 0xf) * 4,
        _ => V6_HEADER,
    };
    bytes.get(ip + TCP_FLAGS).is_some_and(|flags| flags & (SYN | ACK) == SYN)
}

struct Transport {
    ports: [u16; 2],
    has_payload: bool,
}

fn transport(protocol: u8, content: &[u8], fragment: bool) -> Transport {
    let header = if fragment { None } else { transport_header(protocol, content) };
    match (header, content.first_chunk::<4>()) {
        (Some(header), Some(&[a, b, c, d])) => Transport {
            ports: [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])],
            has_payload: content.len() > header,
        },
        _ => Transport { ports: [0; 2], has_payload: !content.is_empty() },
    }
}

/// The length of a transport header, where it is one of those that are known.
fn transport_header(protocol: u8, content: &[u8]) -> Option<usize> {
    match protocol {
        TCP => content.get(12).map(|offset| usize::from(offset >> 4) * 4),
        UDP => (content.len() >= UDP_HEADER).then_some(UDP_HEADER),
        _ => None,
    }
}

/// The ECN field of a packet that was parsed (RFC 3168 § 5).
pub fn ecn(bytes: &[u8]) -> Ecn {
    let traffic_class = match bytes {
        [first, second, ..] if first >> 4 == 6 => second >> V6_ECN_SHIFT,
        [_, second, ..] => *second,
        _ => 0,
    };
    Ecn::of_traffic_class(traffic_class)
}

/// Sets the ECN field of a packet that was parsed, and its IPv4 header checksum right.
pub fn set_ecn(bytes: &mut [u8], ecn: Ecn) {
    match bytes.first().map(|first| first >> 4) {
        Some(4) if bytes.len() >= V4_HEADER => {
            let old = u16::from_be_bytes([bytes[0], bytes[1]]);
            set_word(bytes, 0, old & !u16::from(ECN_BITS) | ecn as u16);
        }
        Some(6) if bytes.len() >= V6_HEADER => {
            bytes[1] = bytes[1] & !(ECN_BITS << V6_ECN_SHIFT) | (ecn as u8) << V6_ECN_SHIFT;
        }
        _ => {}
    }
}

/// Sets the identification of an IPv4 packet that was parsed, and its header checksum right, if the packet is whole and stays so:
/// that of any other says which fragments belong together (RFC 6864 § 4). Whether it was set.
pub fn set_identification(bytes: &mut [u8], identification: u16) -> bool {
    let atomic = match bytes {
        [first, ..] if *first >> 4 == 4 && bytes.len() >= V4_HEADER => {
            u16::from_be_bytes([bytes[6], bytes[7]])
                & (DONT_FRAGMENT | MORE_FRAGMENTS | FRAGMENT_OFFSET)
                == DONT_FRAGMENT
        }
        _ => false,
    };
    if atomic {
        set_word(bytes, 4, identification);
    }
    atomic
}

/// Sets the 16 bits at an even place of an IPv4 header, and its checksum right.
fn set_word(bytes: &mut [u8], at: usize, new: u16) {
    let old = u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    let checksum = u16::from_be_bytes([bytes[10], bytes[11]]);
    // RFC 1624 § 3, equation 3: HC' = ~(~HC + ~m + m').
    let updated = !fold(u32::from(!checksum) + u32::from(!old) + u32::from(new));
    bytes[at..at + 2].copy_from_slice(&new.to_be_bytes());
    bytes[10..12].copy_from_slice(&updated.to_be_bytes());
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
/// Of the traffic class, the lower two (RFC 3168 § 5).
const ECN_BITS: u8 = 0b11;
/// The traffic class starts in the middle of the first byte (RFC 8200 § 3).
const V6_ECN_SHIFT: u32 = 4;
/// The fragment offset in its 16-bit word (RFC 791 § 3.1).
const FRAGMENT_OFFSET: u16 = 0x1fff;
/// Two flags in front of it.
const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
/// IP protocol numbers (RFC 9293, RFC 768).
const TCP: u8 = 6;
const UDP: u8 = 17;
/// The same of ICMP (RFC 792, RFC 4443).
const ICMP: u8 = 1;
const ICMP_V6: u8 = 58;
/// Where the flags are in a TCP header, and two of them (RFC 9293 § 3.1).
const TCP_FLAGS: usize = 13;
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;

#[cfg(test)]
mod tests {
    use etherparse::{IpEcn, IpNumber, Ipv4Header, Ipv6Header, PacketBuilder, TcpOptionElement};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_sum_is_that_of_the_rfcs_example() {
        // RFC 1071 § 3: 0001 + f203 + f4f5 + f6f7.
        assert_eq!(ones_complement_sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), 0xddf2);
    }

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
        // A fragment that is not the first has no transport header.
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
            source: Endpoint { address: from.into(), port },
            destination: Endpoint { address: [10, 0, 0, 99].into(), port: 80 },
            protocol: TCP,
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
        // 2000 flows over 64 places: chi-square with 63 degrees of freedom stays below 103.4 in 99.9 % of cases.
        let mean = 2000.0 / 64.0;
        let chi: f64 = buckets.iter().map(|&n| (f64::from(n) - mean).powi(2) / mean).sum();
        assert!(chi < 103.4, "{chi}");
    }

    /// By their value on the wire (RFC 3168 § 5).
    const CODE_POINTS: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];

    proptest! {
        #[test]
        fn a_mark_leaves_the_checksum_right_whatever_the_header(
            source: [u8; 4], destination: [u8; 4], identification: u16, ttl: u8, dscp in 0_u8..64, before in 0_u8..4,
            after in 0_usize..4,
        ) {
            let after = CODE_POINTS[after];
            let mut header = Ipv4Header::new(0, ttl, IpNumber::TCP, source, destination).expect("it fits");
            header.identification = identification;
            header.dscp = dscp.try_into().expect("six bits");
            header.ecn = IpEcn::try_new(before).expect("two bits");
            header.header_checksum = header.calc_header_checksum();
            let mut bytes = header.to_bytes().to_vec();
            prop_assert_eq!(ecn(&bytes), CODE_POINTS[before as usize]);
            prop_assert_eq!(parse(&bytes).and_then(|p| p.identification), Some(identification));
            set_ecn(&mut bytes, after);
            // Another library's reading, and its sum over the whole header.
            let (marked, _) = Ipv4Header::from_slice(&bytes).expect("it is a header");
            prop_assert_eq!(marked.ecn, IpEcn::try_new(after as u8).expect("two bits"));
            prop_assert_eq!(marked.header_checksum, marked.calc_header_checksum());
            let expected = Ipv4Header { ecn: marked.ecn, header_checksum: marked.header_checksum, ..header };
            prop_assert_eq!(marked, expected);
        }

        #[test]
        fn an_identification_is_set_where_it_is_of_no_other_use_and_the_checksum_stays_right(
            before: u16, after: u16, ttl: u8, dont_fragment: bool, more_fragments: bool, offset in 0_u16..3,
        ) {
            let mut header = Ipv4Header::new(0, ttl, IpNumber::TCP, [1; 4], [2; 4]).expect("it fits");
            (header.identification, header.dont_fragment, header.more_fragments) = (before, dont_fragment, more_fragments);
            header.fragment_offset = offset.try_into().expect("13 bits");
            header.header_checksum = header.calc_header_checksum();
            let mut bytes = header.to_bytes().to_vec();
            let set = set_identification(&mut bytes, after);
            // RFC 6864 § 4: "(DF==1)&&(MF==0)&&(frag_offset==0)".
            prop_assert_eq!(set, dont_fragment && !more_fragments && offset == 0);
            let (marked, _) = Ipv4Header::from_slice(&bytes).expect("it is a header");
            prop_assert_eq!(marked.header_checksum, marked.calc_header_checksum());
            let identification = if set { after } else { before };
            let expected = Ipv4Header { identification, header_checksum: marked.header_checksum, ..header };
            prop_assert_eq!(marked, expected);
            let mut v6 = Ipv6Header::default().to_bytes().to_vec();
            prop_assert!(!set_identification(&mut v6, after));
        }

        #[test]
        fn a_mark_on_ipv6_changes_two_bits(traffic_class: u8, label in 0_u32..1 << 20, after in 0_usize..4) {
            let after = CODE_POINTS[after];
            let mut header = Ipv6Header { traffic_class, ..Ipv6Header::default() };
            header.flow_label = label.try_into().expect("20 bits");
            let mut bytes = header.to_bytes().to_vec();
            prop_assert_eq!(ecn(&bytes), CODE_POINTS[usize::from(traffic_class & 0b11)]);
            set_ecn(&mut bytes, after);
            let (marked, _) = Ipv6Header::from_slice(&bytes).expect("it is a header");
            prop_assert_eq!(marked, Ipv6Header { traffic_class: traffic_class & !0b11 | after as u8, ..header });
        }
    }
}
