use crate::Ecn;
use etherparse::{UdpHeader, ip_number};

use crate::ip::{self, Endpoints, Headers};

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
    /// Builds the IPv4 and the UDP header with their checksums.
    #[must_use]
    pub fn headers(&self, to: Endpoints) -> Headers {
        let payload = ip::fitting_payload(self.payload);
        let mut header = UdpHeader {
            source_port: to.source_port,
            destination_port: to.destination_port,
            length: UdpHeader::LEN as u16 + payload,
            checksum: 0,
        };
        header.checksum = header
            .calc_checksum_ipv4_raw(to.source, to.destination, ip::zeros(payload))
            .unwrap_or_default();
        let taken = ip::HEADER + UdpHeader::LEN + payload as usize;
        let padding = usize::from(self.wanted_length).saturating_sub(taken);
        ip::packet(to, (self.ecn, 0), ip_number::UDP, &header.to_bytes(), payload, padding)
    }
}
