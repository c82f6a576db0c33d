use crate::Ecn;
use etherparse::{IpEcn, IpNumber, Ipv4Header, Ipv4Options};

/// Where a packet comes from and where it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoints {
    /// IPv4 address of the sender.
    pub source: [u8; 4],
    /// Its port.
    pub source_port: u16,
    /// IPv4 address of the receiver.
    pub destination: [u8; 4],
    /// Its port.
    pub destination_port: u16,
}

impl Endpoints {
    /// The same for packets that go the other way.
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

/// The headers of a packet, without its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Headers {
    /// IPv4 and transport header.
    pub bytes: Vec<u8>,
    /// Length of the whole packet, payload included: what the IPv4 header says.
    pub total: u16,
}

/// Puts an IPv4 header in front of a transport header, with options that do nothing if `padding` is asked for.
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
        // RFC 6864 § 4.1: what may not be fragmented needs none, and any will do.
        identification,
        dont_fragment: true,
        time_to_live: TIME_TO_LIVE,
        protocol,
        source: to.source,
        destination: to.destination,
        // RFC 791 § 3.1: zero is the end of the list of options, and what pads the header after it.
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

/// As much payload as still fits a packet beside all the headers that there can be.
pub fn fitting_payload(payload: u16) -> u16 {
    payload.min(u16::MAX - MAX_HEADERS)
}

/// Rounds down to whole 32-bit words, the unit of header lengths, and to what options may take.
pub fn whole_words(bytes: usize) -> usize {
    bytes.min(MAX_OPTIONS) / 4 * 4
}

/// Rounds up to whole 32-bit words.
pub const fn words_of(bytes: usize) -> usize {
    bytes.div_ceil(4) * 4
}

/// Payload: the bytes of which simulated packets consist.
pub fn zeros(payload: u16) -> &'static [u8] {
    static ZEROS: [u8; u16::MAX as usize] = [0; u16::MAX as usize];
    &ZEROS[..payload as usize]
}

/// Bytes of an IPv4 header without options (RFC 791 § 3.1).
pub const HEADER: usize = 20;
/// Most bytes of options in an IPv4 or TCP header: 15 words less the 5 of the fixed part (RFC 791 § 3.1, RFC 9293 § 3.1).
pub const MAX_OPTIONS: usize = 40;
/// An IPv4 and a TCP header, both with all the options that fit.
const MAX_HEADERS: u16 = 120;
/// The default of RFC 1122 § 3.2.1.7 as assigned since (RFC 1700: 64).
const TIME_TO_LIVE: u8 = 64;
