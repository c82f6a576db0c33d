use crate::Ecn;
use etherparse::{Icmpv4Header, Icmpv4Type, Ipv4Header, ip_number};

use crate::ip::{self, Endpoints, Headers};
use crate::ip_packet::{checksum_holds, ones_complement_sum};

/// A source quench to be written (RFC 792): type 4, code 0, and a quote of the packet that caused
/// it.
///
/// The fifth octet of the ICMP header, the first of the word that RFC 792 leaves unused, is defined
/// by BECN (§ IV-B):
///
/// ```text
///  0 1 2 3 4 5 6 7
/// +-+-+-+-+-+-+-+-+
/// |M|  0    | Lvl |    M: the packet was marked and forwarded; otherwise it was dropped.
/// +-+-+-+-+-+-+-+-+    Lvl: severity, from 0 to 7 (multi-level BECN).
/// ```
///
/// The other three octets are zero. A quench of RFC 792 reads as a dropped packet of level 0.
#[derive(Clone, Copy, Debug)]
pub struct SourceQuench<'a> {
    /// Packet that caused the quench, from its IPv4 header on; its payload may be missing.
    pub quoted: &'a [u8],
    /// `true` if the packet was marked; otherwise it was dropped.
    pub marked: bool,
    /// Severity; values above 7 are written as 7.
    pub level: u8,
}

/// Contents of a source quench that a host has received and validated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedQuench {
    /// IPv4 address of the sender of the quench.
    pub router: [u8; 4],
    /// `true` if the quoted packet was marked; otherwise it was dropped.
    pub marked: bool,
    /// Severity, from 0 to 7.
    pub level: u8,
    /// Addresses and ports of the quoted packet; ports are 0 unless it is TCP or UDP.
    pub quoted: Endpoints,
    /// Protocol number in the quoted IPv4 header.
    pub protocol: u8,
    /// Sequence number of a quoted TCP segment; `None` for other protocols.
    pub sequence: Option<u32>,
}

impl SourceQuench<'_> {
    /// Builds the whole packet, from a router to the source, with a quote of the IPv4 header and 8
    /// bytes behind it; it has no payload beyond these bytes.
    #[must_use]
    pub fn headers(&self, router: [u8; 4], source: [u8; 4]) -> Headers {
        // RFC 791 § 3.1: the lower half of the first byte is the header length in 32-bit words.
        let header = usize::from(self.quoted.first().map_or(0, |first| first & 0xf)) * 4;
        let quoted = &self.quoted[..self.quoted.len().min(header + QUOTED)];
        let fifth_octet = if self.marked { MARKED } else { 0 } | self.level.min(LEVEL);
        let kind = Icmpv4Type::Unknown {
            type_u8: SOURCE_QUENCH,
            code_u8: 0,
            bytes5to8: [fifth_octet, 0, 0, 0],
        };
        let mut message = Icmpv4Header::with_checksum(kind, quoted).to_bytes().to_vec();
        message.extend_from_slice(quoted);
        let to =
            Endpoints { source: router, source_port: 0, destination: source, destination_port: 0 };
        ip::packet(to, (Ecn::NotEct, 0), ip_number::ICMP, &message, 0, 0)
    }
}

impl ReceivedQuench {
    /// Reads a packet from its IPv4 header on.
    ///
    /// Returns `None` unless it is a source quench that a host may believe. It must be whole, no
    /// fragment, with right checksums, from a valid host address. It must quote a packet of this
    /// host with 8 bytes behind its IPv4 header, and no later fragment.
    #[must_use]
    pub fn read(packet: &[u8]) -> Option<Self> {
        let (ip, rest) = Ipv4Header::from_slice(packet).ok()?;
        let length = usize::from(ip.total_len).checked_sub(ip.header_len())?;
        let message = rest.get(..length)?;
        let whole = !ip.more_fragments && ip.fragment_offset.value() == 0;
        // Checked on the received bytes: the parsed header lacks the reserved bit.
        let sound = checksum_holds(packet);
        if ip.protocol != ip_number::ICMP
            || !whole
            || !sound
            || !is_host_address(ip.source, ip.destination)
        {
            return None;
        }
        let &[SOURCE_QUENCH, 0, _, _, fifth_octet, _, _, _, ref quoted @ ..] = message else {
            return None;
        };
        // RFC 1071 § 1: the sum of a message with its checksum is all ones.
        if ones_complement_sum(message) != u16::MAX {
            return None;
        }
        let (quoted_header, behind) = Ipv4Header::from_slice(quoted).ok()?;
        // Later fragments have no ports.
        if quoted_header.source != ip.destination || quoted_header.fragment_offset.value() != 0 {
            return None;
        }
        let &[s0, s1, d0, d1, n0, n1, n2, n3] = behind.first_chunk::<QUOTED>()?;
        let (tcp, udp) =
            (quoted_header.protocol == ip_number::TCP, quoted_header.protocol == ip_number::UDP);
        let port = |bytes| if tcp || udp { u16::from_be_bytes(bytes) } else { 0 };
        Some(Self {
            router: ip.source,
            marked: fifth_octet & MARKED != 0,
            level: fifth_octet & LEVEL,
            quoted: Endpoints {
                source: quoted_header.source,
                source_port: port([s0, s1]),
                destination: quoted_header.destination,
                destination_port: port([d0, d1]),
            },
            protocol: quoted_header.protocol.0,
            sequence: tcp.then(|| u32::from_be_bytes([n0, n1, n2, n3])),
        })
    }
}

/// `true` if a source address can be a host's (RFC 1122 § 3.2.1.3, which requires that datagrams
/// from other addresses are discarded). Excluded are "this network", multicast, reserved addresses,
/// limited broadcast, and loopback unless the destination is loopback, too.
const fn is_host_address(source: [u8; 4], to: [u8; 4]) -> bool {
    match source[0] {
        0 | 224.. => false,
        127 => to[0] == 127,
        _ => true,
    }
}

/// ICMP type of a source quench (RFC 792).
const SOURCE_QUENCH: u8 = 4;
/// Bytes quoted behind the IP header: "the first 64 bits of the original datagram's data" (RFC
/// 792).
const QUOTED: usize = 8;
/// Bit of the fifth octet that says "marked" (BECN § IV-B).
const MARKED: u8 = 0x80;
/// Bits of the fifth octet that hold the level (BECN § IV-B).
const LEVEL: u8 = 0x07;
