use crate::Ecn;
use etherparse::{Icmpv4Header, Icmpv4Type, Ipv4Header, ip_number};

use crate::ip::{self, Endpoints, Headers};
use crate::ip_packet::{checksum_holds, ones_complement_sum};

/// A router's source quench about a packet (RFC 792): type 4, code 0, and the packet's IP header with what follows it.
///
/// The first octet of the word that RFC 792 leaves unused, the fifth of the ICMP header, is BECN's (§ IV-B):
///
/// ```text
///  0 1 2 3 4 5 6 7
/// +-+-+-+-+-+-+-+-+
/// |M|  0    | Lvl |    M: the packet was marked and went on; else it was dropped.
/// +-+-+-+-+-+-+-+-+    Lvl: how bad it is, from 0 to 7 (multi-level BECN).
/// ```
///
/// The other three are zero. A quench of RFC 792 is about a packet that was dropped, of level 0.
#[derive(Clone, Copy, Debug)]
pub struct SourceQuench<'a> {
    /// The packet, from its IPv4 header on; what is behind its headers may be missing.
    pub about: &'a [u8],
    /// Whether it was marked; else it was dropped.
    pub marked: bool,
    /// How bad it is; the highest is 7.
    pub level: u8,
}

/// What a host reads in a source quench.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeardQuench {
    /// IPv4 address of who sent it.
    pub router: [u8; 4],
    /// Whether the packet that it quotes was marked; else it was dropped.
    pub marked: bool,
    /// How bad it is, from 0 to 7.
    pub level: u8,
    /// Where that packet came from and where it went; of another protocol than TCP and UDP without ports.
    pub about: Endpoints,
    /// Its protocol, as the IPv4 header has it.
    pub protocol: u8,
    /// Of a TCP segment its sequence number.
    pub sequence: Option<u32>,
}

impl SourceQuench<'_> {
    /// The whole packet, from a router to the source.
    #[must_use]
    pub fn headers(&self, router: [u8; 4], source: [u8; 4]) -> Headers {
        // RFC 791 § 3.1: the lower half of the first byte is the header's length in words.
        let header = usize::from(self.about.first().map_or(0, |first| first & 0xf)) * 4;
        let quoted = &self.about[..self.about.len().min(header + QUOTED)];
        let said = if self.marked { MARKED } else { 0 } | self.level.min(LEVEL);
        let kind =
            Icmpv4Type::Unknown { type_u8: SOURCE_QUENCH, code_u8: 0, bytes5to8: [said, 0, 0, 0] };
        let mut message = Icmpv4Header::with_checksum(kind, quoted).to_bytes().to_vec();
        message.extend_from_slice(quoted);
        let to =
            Endpoints { source: router, source_port: 0, destination: source, destination_port: 0 };
        ip::packet(to, (Ecn::NotEct, 0), ip_number::ICMP, &message, 0, 0)
    }
}

impl HeardQuench {
    /// Reads a packet, from its IPv4 header on; `None` if it is no source quench, or one that a host must not believe: cut short,
    /// a fragment, with a wrong checksum, from an address that is no host's, about a packet that another host sent, or about a later fragment.
    #[must_use]
    pub fn read(packet: &[u8]) -> Option<Self> {
        let (ip, rest) = Ipv4Header::from_slice(packet).ok()?;
        let length = usize::from(ip.total_len).checked_sub(ip.header_len())?;
        let message = rest.get(..length)?;
        let whole = !ip.more_fragments && ip.fragment_offset.value() == 0;
        // Of the bytes as they came: what was parsed lacks the reserved bit.
        let sound = checksum_holds(packet);
        if ip.protocol != ip_number::ICMP
            || !whole
            || !sound
            || !of_a_host(ip.source, ip.destination)
        {
            return None;
        }
        let &[SOURCE_QUENCH, 0, _, _, said, _, _, _, ref quoted @ ..] = message else {
            return None;
        };
        // RFC 1071 § 1: the sum of bytes with their checksum is all ones.
        if ones_complement_sum(message) != u16::MAX {
            return None;
        }
        let (about, behind) = Ipv4Header::from_slice(quoted).ok()?;
        // Later fragments have no ports.
        if about.source != ip.destination || about.fragment_offset.value() != 0 {
            return None;
        }
        let &[s0, s1, d0, d1, n0, n1, n2, n3] = behind.first_chunk::<QUOTED>()?;
        let (tcp, udp) = (about.protocol == ip_number::TCP, about.protocol == ip_number::UDP);
        let port = |bytes| if tcp || udp { u16::from_be_bytes(bytes) } else { 0 };
        Some(Self {
            router: ip.source,
            marked: said & MARKED != 0,
            level: said & LEVEL,
            about: Endpoints {
                source: about.source,
                source_port: port([s0, s1]),
                destination: about.destination,
                destination_port: port([d0, d1]),
            },
            protocol: about.protocol.0,
            sequence: tcp.then(|| u32::from_be_bytes([n0, n1, n2, n3])),
        })
    }
}

/// Whether a host can have that address (RFC 1122 § 3.2.1.3; § 3.2.2 has errors of others discarded): not "this network", nor a
/// group, nor all; nor a loopback's, from another host.
const fn of_a_host(source: [u8; 4], to: [u8; 4]) -> bool {
    match source[0] {
        0 | 224.. => false,
        127 => to[0] == 127,
        _ => true,
    }
}

/// RFC 792, source quench message.
const SOURCE_QUENCH: u8 = 4;
/// "The first 64 bits of the original datagram's data" (RFC 792).
const QUOTED: usize = 8;
/// The bit of the fifth octet that says so (BECN § IV-B).
const MARKED: u8 = 0x80;
/// The bits of the fifth octet for the level.
const LEVEL: u8 = 0x07;
