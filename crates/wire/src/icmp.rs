use cwnd_units::Ecn;
use etherparse::{Icmpv4Header, Icmpv4Type, ip_number};

use crate::ip::{self, Endpoints, Headers};

/// A router's source quench about a packet (RFC 792): type 4, code 0, and the packet's IP header with what follows it.
#[derive(Clone, Copy, Debug)]
pub struct SourceQuench<'a> {
    /// The packet's headers.
    pub about: &'a Headers,
}

impl SourceQuench<'_> {
    /// The whole packet, from a router to the source.
    #[must_use]
    pub fn headers(&self, router: [u8; 4], source: [u8; 4]) -> Headers {
        let bytes = &self.about.bytes;
        // RFC 791 § 3.1: the lower half of the first byte is the header's length in words.
        let header = usize::from(bytes.first().map_or(0, |first| first & 0xf)) * 4;
        let quoted = &bytes[..bytes.len().min(header + QUOTED)];
        let kind = Icmpv4Type::Unknown { type_u8: SOURCE_QUENCH, code_u8: 0, bytes5to8: [0; 4] };
        let mut message = Icmpv4Header::with_checksum(kind, quoted).to_bytes().to_vec();
        message.extend_from_slice(quoted);
        let to =
            Endpoints { source: router, source_port: 0, destination: source, destination_port: 0 };
        ip::packet(to, Ecn::NotEct, ip_number::ICMP, &message, 0, 0)
    }
}

/// RFC 792, source quench message.
const SOURCE_QUENCH: u8 = 4;
/// "The first 64 bits of the original datagram's data" (RFC 792).
const QUOTED: usize = 8;
