use crate::Ecn;
use etherparse::{TcpHeader, TcpOptionElement, TcpOptions, ip_number};

use crate::ip::{self, Endpoints, Headers};
use crate::tcp_header::{MAX_WINDOW_SCALE, flag};

/// Fields of a TCP segment to be written, with those of its IPv4 header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tcp {
    /// Sequence number: of the first byte of payload, or of SYN.
    pub sequence: u32,
    /// Acknowledgment number: the next byte expected from the other end; valid with the flag ACK.
    pub acknowledgment: u32,
    /// Flag byte of the header (RFC 9293 § 3.1, RFC 3168 § 6.1).
    pub flags: u8,
    /// Window field, already scaled down.
    pub window: u16,
    /// TCP options.
    pub options: Options,
    /// ECN field of the IP header.
    pub ecn: Ecn,
    /// Identification of the IP header, if a mechanism uses it; otherwise 0.
    pub identification: u16,
    /// Length of the payload, bytes; written as at most 65,415.
    pub payload: u16,
    /// Wanted total length of the packet, bytes; empty options pad the headers up to it as far as
    /// they can.
    pub wanted_length: u16,
}

/// TCP options of a segment to be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Maximum segment size, bytes; on SYN only.
    pub mss: Option<u16>,
    /// `true` if SACK is permitted; on SYN only.
    pub sack_permitted: bool,
    /// Window scale shift; on SYN only.
    pub window_scale: Option<u8>,
    /// TSval and TSecr.
    pub timestamps: Option<(u32, u32)>,
    /// SACK blocks, the newest first: first number and the one past the last. An empty range is no
    /// block.
    pub sack: [(u32, u32); MAX_SACK_BLOCKS],
    /// Experimental option.
    pub experiment: Option<Experiment>,
}

/// An experimental TCP option (RFC 4727, RFC 6994): its kind and its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Experiment {
    /// Option kind: 253 or 254.
    pub kind: u8,
    data: [u8; Self::MAX_LEN],
    len: u8,
}

impl Experiment {
    /// Most bytes of data: beside timestamps it leaves room for one SACK block.
    pub const MAX_LEN: usize = 14;

    /// Creates an option; data beyond [`Self::MAX_LEN`] bytes is cut off.
    #[must_use]
    pub fn new(kind: u8, behind: &[u8]) -> Self {
        let len = behind.len().min(Self::MAX_LEN);
        let mut data = [0; Self::MAX_LEN];
        data[..len].copy_from_slice(&behind[..len]);
        Self { kind, data, len: len as u8 }
    }

    /// Writes kind, length and data; returns the number of bytes written.
    fn write(&self, to: &mut [u8]) -> usize {
        let len = usize::from(self.len);
        to[0] = self.kind;
        to[1] = self.len + 2;
        to[2..2 + len].copy_from_slice(&self.data[..len]);
        2 + len
    }
}

/// Most SACK blocks that fit beside timestamps (RFC 2018 § 3).
pub const MAX_SACK_BLOCKS: usize = 3;

impl Tcp {
    /// Builds the IPv4 and the TCP header with their checksums.
    #[must_use]
    pub fn headers(&self, to: Endpoints) -> Headers {
        let payload = ip::fitting_payload(self.payload);
        let mut options = [0; ip::MAX_OPTIONS];
        let used = self.options.write(&mut options);
        let spare = usize::from(self.wanted_length)
            .saturating_sub(ip::HEADER + HEADER + used + payload as usize);
        // RFC 9293 § 3.1: zero ends the list of options, and zeros pad the header after it.
        let len = used + ip::whole_words(spare).min(ip::MAX_OPTIONS - used);
        let mut header = TcpHeader {
            sequence_number: self.sequence,
            acknowledgment_number: self.acknowledgment,
            fin: self.has(flag::FIN),
            syn: self.has(flag::SYN),
            rst: self.has(flag::RST),
            psh: self.has(flag::PSH),
            ack: self.has(flag::ACK),
            urg: self.has(0x20),
            ece: self.has(flag::ECE),
            cwr: self.has(flag::CWR),
            window_size: self.window,
            options: TcpOptions::try_from_slice(&options[..len]).unwrap_or_default(),
            ..TcpHeader::new(to.source_port, to.destination_port, 0, 0)
        };
        header.checksum = header
            .calc_checksum_ipv4_raw(to.source, to.destination, ip::zeros(payload))
            .unwrap_or_default();
        let padding = spare - (len - used);
        ip::packet(
            to,
            (self.ecn, self.identification),
            ip_number::TCP,
            &header.to_bytes(),
            payload,
            padding,
        )
    }

    const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

impl Options {
    /// Writes the options in the order of Linux, padded to 32-bit words; returns the bytes they
    /// take.
    fn write(&self, to: &mut [u8; ip::MAX_OPTIONS]) -> usize {
        use TcpOptionElement::{
            MaximumSegmentSize, Noop, SelectiveAcknowledgement, SelectiveAcknowledgementPermitted,
            Timestamp, WindowScale,
        };
        let mut list = Vec::with_capacity(8);
        list.extend(self.mss.map(MaximumSegmentSize));
        if self.sack_permitted {
            // Beside timestamps the option takes the place of their two bytes of padding.
            if self.timestamps.is_none() {
                list.extend([Noop, Noop]);
            }
            list.push(SelectiveAcknowledgementPermitted);
        }
        if let Some((value, echo)) = self.timestamps {
            if !self.sack_permitted {
                list.extend([Noop, Noop]);
            }
            list.push(Timestamp(value, echo));
        }
        if let Some(shift) = self.window_scale {
            list.extend([Noop, WindowScale(shift)]);
        }
        let mut own = [0; 2 + Experiment::MAX_LEN + 2];
        let own_len = ip::words_of(self.experiment.map_or(0, |own_one| own_one.write(&mut own)));
        // The experimental option has priority over the oldest SACK blocks, which are left out if
        // not all fit.
        let before = TcpOptions::try_from_elements(&list).map_or(0, |before| before.len());
        let room = (ip::MAX_OPTIONS - before - own_len).saturating_sub(SACK_HEAD) / SACK_BLOCK;
        let mut blocks = self.sack.into_iter().filter(|(start, end)| start != end).take(room);
        if let Some(first) = blocks.next() {
            list.extend([Noop, Noop]);
            list.push(SelectiveAcknowledgement(first, [blocks.next(), blocks.next(), None]));
        }
        let written = TcpOptions::try_from_elements(&list).unwrap_or_default();
        let len = written.len();
        to[..len].copy_from_slice(written.as_slice());
        // Zeros behind the option end the list.
        to[len..len + own_len].copy_from_slice(&own[..own_len]);
        len + own_len
    }
}

/// Returns the smallest shift with which a window fits its 16-bit field; at most 14 (RFC 7323 §
/// 2.3).
#[must_use]
pub fn window_scale(window: u32) -> u8 {
    (0..MAX_WINDOW_SCALE)
        .find(|&shift| window >> shift <= u32::from(u16::MAX))
        .unwrap_or(MAX_WINDOW_SCALE)
}

/// Bytes of a TCP header without options (RFC 9293 § 3.1).
const HEADER: usize = 20;
/// Bytes of a SACK option before its blocks (two of padding, kind, length), and of a block (RFC
/// 2018 § 3).
const SACK_HEAD: usize = 4;
const SACK_BLOCK: usize = 8;
