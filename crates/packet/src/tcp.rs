//! Reads and writes TCP headers (RFC 9293 § 3.1).

use alloc::vec::Vec;

use etherparse::{TcpOptionElement, TcpOptions, TcpOptionsIterator, ip_number};

use crate::Ecn;
use crate::ip::{self, Endpoints, Headers};

/// A TCP header as read from a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpHeader<'a> {
    /// Port of the sender.
    pub source_port: u16,
    /// Port of the receiver.
    pub destination_port: u16,
    /// Sequence number: of the first byte of payload, or of SYN.
    pub sequence: u32,
    /// Acknowledgment number; valid if ACK is set.
    pub acknowledgment: u32,
    /// Flags CWR to FIN: byte 13 of the header.
    pub flags: u8,
    /// Window field, not scaled up.
    pub window: u16,
    /// Header length in bytes by its data offset, options included.
    pub header_bytes: usize,
    /// Bytes of the options; fewer than the data offset says if the header is cut short.
    options: &'a [u8],
}

/// Reason why a TCP header cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderError {
    /// Fewer than 20 bytes are left.
    Short,
    /// The data offset is below the 20 bytes of the fixed part.
    DataOffset,
}

/// Options of a TCP header that describe the connection or the data received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpHeaderOptions {
    /// TSval and TSecr (RFC 7323 § 3.2).
    pub timestamps: Option<(u32, u32)>,
    /// Maximum segment size in bytes.
    pub mss: Option<u16>,
    /// Shift of the window, at most 14 (RFC 7323 § 2.3).
    pub window_scale: Option<u8>,
    /// SACK blocks: first number and the one past the last (RFC 2018 § 3).
    pub sack: [Option<(u32, u32)>; 4],
}

impl<'a> TcpHeader<'a> {
    /// Reads a header from the content of an IP packet, which may be cut short behind 20 bytes.
    ///
    /// # Errors
    /// Fails if the fixed part is not whole, or the data offset is below it.
    #[inline]
    pub fn read(content: &'a [u8]) -> Result<Self, HeaderError> {
        let fixed: &[u8; FIXED] = content.first_chunk().ok_or(HeaderError::Short)?;
        let word = |at: usize| {
            u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]])
        };
        let half = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
        let header_bytes = usize::from(fixed[12] >> 4) * 4;
        if header_bytes < FIXED {
            return Err(HeaderError::DataOffset);
        }
        Ok(Self {
            source_port: half(0),
            destination_port: half(2),
            sequence: word(4),
            acknowledgment: word(8),
            flags: fixed[13],
            window: half(14),
            header_bytes,
            options: &content[FIXED..header_bytes.min(content.len())],
        })
    }

    /// Reads the options up to the first that is cut short; those of unknown kinds are skipped.
    #[inline]
    #[must_use]
    pub fn options(&self) -> TcpHeaderOptions {
        // Layout of nearly all segments (RFC 7323, appendix A): two bytes of padding and
        // timestamps.
        if let [1, 1, 8, 10, value @ ..] = self.options
            && let [a, b, c, d, e, f, g, h] = *value
        {
            let value = u32::from_be_bytes([a, b, c, d]);
            let timestamps = Some((value, u32::from_be_bytes([e, f, g, h])));
            return TcpHeaderOptions { timestamps, ..TcpHeaderOptions::default() };
        }
        self.each_option()
    }

    fn each_option(&self) -> TcpHeaderOptions {
        let mut options = TcpHeaderOptions::default();
        let mut rest = self.options;
        // RFC 9293 § 3.2: kind 0 ends the list, kind 1 is padding, others have a length, which
        // includes these two bytes.
        while let [kind, after @ ..] = rest {
            let length = match (*kind, after.first()) {
                (0, _) | (2.., None | Some(..2)) => break,
                (1, _) => 1,
                (_, Some(&length)) => usize::from(length),
            };
            let Some((option, others)) = rest.split_at_checked(length) else { break };
            rest = others;
            match TcpOptionsIterator::from_slice(option).next() {
                Some(Ok(TcpOptionElement::Timestamp(value, echo))) => {
                    options.timestamps = Some((value, echo));
                }
                Some(Ok(TcpOptionElement::MaximumSegmentSize(mss))) => options.mss = Some(mss),
                Some(Ok(TcpOptionElement::WindowScale(shift))) => {
                    options.window_scale = Some(shift.min(MAX_WINDOW_SCALE));
                }
                Some(Ok(TcpOptionElement::SelectiveAcknowledgement(first, [b, c, d]))) => {
                    options.sack = [Some(first), b, c, d];
                }
                _ => {}
            }
        }
        options
    }
}

/// Flags of a TCP header (RFC 9293 § 3.1, RFC 3168 § 6.1).
pub mod flag {
    /// The sender has no more data.
    pub const FIN: u8 = 0x01;
    /// The connection begins.
    pub const SYN: u8 = 0x02;
    /// The connection is reset.
    pub const RST: u8 = 0x04;
    /// The receiver should pass the data on at once: the sender's buffer held no more.
    pub const PSH: u8 = 0x08;
    /// The acknowledgment number is valid.
    pub const ACK: u8 = 0x10;
    /// ECN-echo: the receiver saw a mark.
    pub const ECE: u8 = 0x40;
    /// The sender has reduced its window for an ECN-echo.
    pub const CWR: u8 = 0x80;
}

/// Bytes of a TCP header without options (RFC 9293 § 3.1).
const FIXED: usize = 20;
/// Largest shift of a window (RFC 7323 § 2.3).
pub const MAX_WINDOW_SCALE: u8 = 14;

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
        let mut header = etherparse::TcpHeader {
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
            ..etherparse::TcpHeader::new(to.source_port, to.destination_port, 0, 0)
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
