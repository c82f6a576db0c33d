//! Reads the headers of an IP packet, and rewrites the fields that a router may change.

use core::net::IpAddr;

use crate::Ecn;
use etherparse::{LaxIpSlice, LaxIpv6Slice};

/// An IP packet as its headers describe it; extension headers are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpPacket<'a> {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// ECN field (RFC 3168 § 5).
    pub ecn: Ecn,
    /// Identification of an IPv4 header; IPv6 has none.
    pub identification: Option<u16>,
    /// Total length in bytes by the header; `None` if the header says zero (Linux, BIG TCP).
    pub length: Option<usize>,
    /// IP protocol number of the content.
    pub protocol: u8,
    /// Position of this packet among the fragments of a datagram.
    pub fragment: Fragment,
    /// Bytes in front of the content.
    pub header_bytes: usize,
    /// Bytes behind the IP headers; fewer than the header says if the capture cut the packet short.
    pub content: &'a [u8],
}

/// Part of a fragmented packet (RFC 791 § 3.2, RFC 8200 § 4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fragment {
    /// Packet that is not fragmented.
    Whole,
    /// First fragment: the transport header is in it.
    First,
    /// Later fragment, without a transport header.
    Later,
}

impl<'a> IpPacket<'a> {
    /// Reads a packet from its IP header on; it may be cut short behind that header.
    ///
    /// Returns `None` without a whole header of IPv4 or IPv6. Checksums are not verified.
    #[must_use]
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let (ip, _) = LaxIpSlice::from_slice(bytes).ok()?;
        let (source, destination) = (ip.source_addr(), ip.destination_addr());
        let (identification, length, offset) = match &ip {
            LaxIpSlice::Ipv4(v4) => {
                let header = v4.header();
                let offset = header.fragments_offset().value();
                (Some(header.identification()), usize::from(header.total_len()), offset)
            }
            LaxIpSlice::Ipv6(v6) => {
                let content = usize::from(v6.header().payload_length());
                let length = if content == 0 { 0 } else { V6_HEADER + content };
                (None, length, fragment_offset(v6))
            }
        };
        let payload = ip.payload();
        let fragment = match (payload.fragmented, offset) {
            (false, _) => Fragment::Whole,
            (true, 0) => Fragment::First,
            (true, _) => Fragment::Later,
        };
        let content_at = payload.payload.as_ptr() as usize;
        Some(Self {
            source,
            destination,
            ecn: ecn_of(bytes),
            identification,
            length: (length > 0).then_some(length),
            protocol: payload.ip_number.0,
            fragment,
            header_bytes: content_at.saturating_sub(bytes.as_ptr() as usize),
            content: payload.payload,
        })
    }

    /// Returns the length of the transport header in bytes: for TCP by its data offset, which is
    /// not checked. `None` unless it is TCP or UDP and present.
    #[must_use]
    pub fn transport_header(&self) -> Option<usize> {
        match self.protocol {
            _ if self.fragment == Fragment::Later => None,
            // RFC 9293 § 3.1: the data offset counts 32-bit words.
            protocol::TCP => self.content.get(12).map(|offset| usize::from(offset >> 4) * 4),
            protocol::UDP => (self.content.len() >= UDP_HEADER).then_some(UDP_HEADER),
            _ => None,
        }
    }
}

/// Returns the offset in the last fragment header of IPv6, in units of eight bytes; 0 without one.
///
/// etherparse's own iterator reads past the end of headers that are cut short.
fn fragment_offset(packet: &LaxIpv6Slice<'_>) -> u16 {
    let mut bytes = packet.extensions().slice();
    let mut next = packet.extensions().first_header().map_or(0, |number| number.0);
    let mut offset = 0;
    while let &[following, length, upper, lower, ..] = bytes {
        let units = usize::from(length);
        let header = match next {
            protocol::IPV6_FRAGMENT => {
                offset = u16::from_be_bytes([upper, lower]) >> 3;
                8
            }
            // RFC 4302 § 2.2: the length counts units of four bytes, less two.
            protocol::AUTHENTICATION => (units + 2) * 4,
            _ => (units + 1) * 8,
        };
        bytes = bytes.get(header..).unwrap_or_default();
        next = following;
    }
    offset
}

/// Returns the ECN field of an IP packet (RFC 3168 § 5); `NotEct` for fewer than two bytes.
#[must_use]
pub fn ecn_of(bytes: &[u8]) -> Ecn {
    let traffic_class = match bytes {
        [first, second, ..] if first >> 4 == 6 => second >> V6_ECN_SHIFT,
        [_, second, ..] => *second,
        _ => 0,
    };
    Ecn::of_traffic_class(traffic_class)
}

/// Sets the ECN field of an IP packet, and updates the checksum of an IPv4 header. Changes nothing
/// without 20 bytes of IPv4 or 40 of IPv6.
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

/// Sets the identification of an IPv4 packet and updates the checksum of its header.
///
/// Returns `false` and changes nothing unless it is an atomic packet of IPv4: in any other one the
/// identification says which fragments belong together (RFC 6864 § 4).
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

/// Sets the 16 bits at an even offset of an IPv4 header and updates its checksum.
fn set_word(bytes: &mut [u8], at: usize, new: u16) {
    let old = u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    let checksum = u16::from_be_bytes([bytes[10], bytes[11]]);
    // RFC 1624 § 3, equation 3: HC' = ~(~HC + ~m + m').
    let updated = !fold(u32::from(!checksum) + u32::from(!old) + u32::from(new));
    bytes[at..at + 2].copy_from_slice(&new.to_be_bytes());
    bytes[10..12].copy_from_slice(&updated.to_be_bytes());
}

/// `true` if the checksum of an IPv4 header is right, or the bytes are no IPv4 packet.
#[must_use]
pub fn checksum_holds(bytes: &[u8]) -> bool {
    match bytes.first() {
        Some(first) if first >> 4 == 4 => bytes
            .get(..usize::from(first & 0xf) * 4)
            .is_some_and(|header| ones_complement_sum(header) == u16::MAX),
        _ => true,
    }
}

/// Returns the 16-bit ones' complement sum of bytes; an odd one at the end is padded with a zero
/// (RFC 1071 § 1).
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

/// IP protocol numbers.
pub mod protocol {
    /// ICMP (RFC 792).
    pub const ICMP: u8 = 1;
    /// TCP (RFC 9293).
    pub const TCP: u8 = 6;
    /// UDP (RFC 768).
    pub const UDP: u8 = 17;
    /// Fragment header of IPv6 (RFC 8200 § 4.5).
    pub const IPV6_FRAGMENT: u8 = 44;
    /// Authentication header (RFC 4302).
    pub const AUTHENTICATION: u8 = 51;
    /// ICMPv6 (RFC 4443).
    pub const ICMP_V6: u8 = 58;
}

/// Bytes of an IPv4 header without options (RFC 791 § 3.1).
const V4_HEADER: usize = 20;
/// Bytes of an IPv6 header (RFC 8200 § 3).
const V6_HEADER: usize = 40;
/// Bytes of a UDP header (RFC 768).
const UDP_HEADER: usize = 8;
/// Bits of the traffic class that are the ECN field (RFC 3168 § 5).
const ECN_BITS: u8 = 0b11;
/// Shift of the traffic class in the second byte (RFC 8200 § 3).
const V6_ECN_SHIFT: u32 = 4;
/// Flags and fragment offset in their 16-bit word of the IPv4 header (RFC 791 § 3.1).
const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const FRAGMENT_OFFSET: u16 = 0x1fff;

#[cfg(test)]
mod tests {
    use etherparse::{IpEcn, IpNumber, Ipv4Header, Ipv6Header};
    use proptest::prelude::*;

    use super::*;

    /// Builds an IPv6 packet with these extension headers, given by number and bytes, in front of
    /// eight bytes of UDP.
    fn v6(extensions: &[(u8, &[u8])]) -> Vec<u8> {
        let mut content = Vec::new();
        let mut numbers: Vec<u8> = extensions.iter().map(|&(number, _)| number).collect();
        numbers.push(protocol::UDP);
        for ((_, header), following) in extensions.iter().zip(&numbers[1..]) {
            content.push(*following);
            content.extend_from_slice(header);
        }
        content.extend_from_slice(&[0, 53, 0, 80, 0, 8, 0, 0]);
        let header = Ipv6Header {
            payload_length: content.len() as u16,
            next_header: IpNumber(numbers[0]),
            ..Ipv6Header::default()
        };
        [&header.to_bytes()[..], &content].concat()
    }

    /// Extension headers that only pad: of one unit of eight bytes, and of two.
    const HOPS: (u8, &[u8]) = (0, &[0, 1, 4, 0, 0, 0, 0]);
    const DESTINATION: (u8, &[u8]) = (60, &[1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);

    #[test]
    fn extension_headers_of_ipv6_are_followed() {
        let bytes = v6(&[HOPS, DESTINATION]);
        let read = IpPacket::read(&bytes).expect("it is a packet");
        assert_eq!((read.protocol, read.fragment), (protocol::UDP, Fragment::Whole));
        assert_eq!((read.header_bytes, read.content.len()), (40 + 8 + 16, 8));
        assert_eq!(read.transport_header(), Some(8));
        assert_eq!(read.length, Some(bytes.len()));
    }

    #[test]
    fn fragments_of_ipv6_are_told_apart() {
        // Reserved, offset in units of eight bytes with M below, identification.
        for (word, expected) in [
            (0_u16, Fragment::Whole),
            (1, Fragment::First),
            (8 | 1, Fragment::Later),
            (8, Fragment::Later),
        ] {
            let [upper, lower] = word.to_be_bytes();
            let bytes = v6(&[HOPS, DESTINATION, (44, &[0, upper, lower, 0, 0, 0, 7])]);
            let read = IpPacket::read(&bytes).expect("it is a packet");
            assert_eq!((read.protocol, read.fragment), (protocol::UDP, expected), "{word}");
            assert_eq!(read.transport_header().is_some(), expected != Fragment::Later, "{word}");
        }
    }

    #[test]
    fn extension_headers_that_are_cut_short_end_the_search() {
        let whole = v6(&[DESTINATION, (44, &[0, 0, 9, 0, 0, 0, 7])]);
        for length in 40..whole.len() {
            let read = IpPacket::read(&whole[..length]).expect("its IPv6 header is whole");
            assert!(read.header_bytes + read.content.len() <= length, "{length}");
        }
    }

    #[test]
    fn the_sum_is_that_of_the_rfcs_example() {
        // RFC 1071 § 3: 0001 + f203 + f4f5 + f6f7.
        assert_eq!(ones_complement_sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), 0xddf2);
    }

    /// Code points, indexed by their value on the wire (RFC 3168 § 5).
    const CODE_POINTS: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];

    proptest! {
        #[test]
        fn a_mark_leaves_the_checksum_right_whatever_the_header(
            source: [u8; 4], destination: [u8; 4], identification: u16, ttl: u8,
            dscp in 0_u8..64, before in 0_u8..4, after in 0_usize..4,
        ) {
            let after = CODE_POINTS[after];
            let header = Ipv4Header::new(0, ttl, IpNumber::TCP, source, destination);
            let mut header = header.expect("it fits");
            header.identification = identification;
            header.dscp = dscp.try_into().expect("six bits");
            header.ecn = IpEcn::try_new(before).expect("two bits");
            header.header_checksum = header.calc_header_checksum();
            let mut bytes = header.to_bytes().to_vec();
            prop_assert_eq!(ecn_of(&bytes), CODE_POINTS[before as usize]);
            let read = IpPacket::read(&bytes).expect("it is a packet");
            prop_assert_eq!(read.identification, Some(identification));
            prop_assert!(checksum_holds(&bytes));
            set_ecn(&mut bytes, after);
            // Read by another library, whose checksum covers the whole header.
            let (marked, _) = Ipv4Header::from_slice(&bytes).expect("it is a header");
            prop_assert_eq!(marked.ecn, IpEcn::try_new(after as u8).expect("two bits"));
            prop_assert_eq!(marked.header_checksum, marked.calc_header_checksum());
            let header_checksum = marked.header_checksum;
            let expected = Ipv4Header { ecn: marked.ecn, header_checksum, ..header };
            prop_assert_eq!(marked, expected);
        }

        #[test]
        fn an_identification_is_set_where_it_is_of_no_other_use_and_the_checksum_stays_right(
            before: u16, after: u16, ttl: u8, dont_fragment: bool, more_fragments: bool,
            offset in 0_u16..3,
        ) {
            let header = Ipv4Header::new(0, ttl, IpNumber::TCP, [1; 4], [2; 4]);
            let mut header = header.expect("it fits");
            header.identification = before;
            (header.dont_fragment, header.more_fragments) = (dont_fragment, more_fragments);
            header.fragment_offset = offset.try_into().expect("13 bits");
            header.header_checksum = header.calc_header_checksum();
            let mut bytes = header.to_bytes().to_vec();
            let set = set_identification(&mut bytes, after);
            // RFC 6864 § 4: "(DF==1)&&(MF==0)&&(frag_offset==0)".
            prop_assert_eq!(set, dont_fragment && !more_fragments && offset == 0);
            let (marked, _) = Ipv4Header::from_slice(&bytes).expect("it is a header");
            prop_assert_eq!(marked.header_checksum, marked.calc_header_checksum());
            let identification = if set { after } else { before };
            let header_checksum = marked.header_checksum;
            let expected = Ipv4Header { identification, header_checksum, ..header };
            prop_assert_eq!(marked, expected);
            let mut v6 = Ipv6Header::default().to_bytes().to_vec();
            prop_assert!(!set_identification(&mut v6, after));
        }

        #[test]
        fn a_mark_on_ipv6_changes_two_bits(
            traffic_class: u8, label in 0_u32..1 << 20, after in 0_usize..4,
        ) {
            let after = CODE_POINTS[after];
            let mut header = Ipv6Header { traffic_class, ..Ipv6Header::default() };
            header.flow_label = label.try_into().expect("20 bits");
            let mut bytes = header.to_bytes().to_vec();
            prop_assert_eq!(ecn_of(&bytes), CODE_POINTS[usize::from(traffic_class & 0b11)]);
            set_ecn(&mut bytes, after);
            let (marked, _) = Ipv6Header::from_slice(&bytes).expect("it is a header");
            let traffic_class = traffic_class & !0b11 | after as u8;
            prop_assert_eq!(marked, Ipv6Header { traffic_class, ..header });
        }
    }
}
