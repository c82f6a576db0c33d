//! Reads TCP headers (RFC 9293 § 3.1).

use etherparse::{TcpOptionElement, TcpOptionsIterator};

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

    /// Reads the options up to the first that is malformed, cut short or of an unknown kind.
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
        for option in TcpOptionsIterator::from_slice(self.options) {
            match option {
                Ok(TcpOptionElement::Timestamp(value, echo)) => {
                    options.timestamps = Some((value, echo));
                }
                Ok(TcpOptionElement::MaximumSegmentSize(mss)) => options.mss = Some(mss),
                Ok(TcpOptionElement::WindowScale(shift)) => {
                    options.window_scale = Some(shift.min(MAX_WINDOW_SCALE));
                }
                Ok(TcpOptionElement::SelectiveAcknowledgement(first, [second, third, fourth])) => {
                    options.sack = [Some(first), second, third, fourth];
                }
                Ok(_) => {}
                Err(_) => break,
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
