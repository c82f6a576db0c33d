//! The pcapng file format (draft-ietf-opsawg-pcapng): section header, interfaces, packets.

use std::borrow::Cow;
use std::io::{self, Write};

use cwnd_quantity::Time;
use pcap_parser::pcapng::{
    EnhancedPacketBlock, IDB_MAGIC, InterfaceDescriptionBlock, OptionCode, PcapNGOption,
    SectionHeaderBlock,
};
use pcap_parser::{Linktype, ToVec};

use crate::ip::Headers;

/// Writer of a capture file of one section, little endian on every machine.
#[derive(Debug)]
pub struct Writer<W> {
    to: W,
    interfaces: u32,
}

/// An interface of the capture: a point at which packets are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface<'a> {
    /// Interface name.
    pub name: &'a str,
    /// Human-readable description.
    pub description: &'a str,
    /// Speed in bit/s; `None` if it varies or has no limit.
    pub bit_s: Option<u64>,
}

impl<W: Write> Writer<W> {
    /// Starts a file: writes the section header with the application's name and a comment.
    ///
    /// # Errors
    /// Returns those of the output.
    pub fn new(to: W, application: &str, comment: &str) -> io::Result<Self> {
        let mut writer = Self { to, interfaces: 0 };
        writer.write(&mut SectionHeaderBlock {
            block_type: 0,
            block_len1: 0,
            bom: 0,
            major_version: 0,
            minor_version: 0,
            section_len: UNKNOWN_LENGTH,
            options: vec![
                option(OptionCode::Comment, fitting(comment).as_bytes()),
                option(OptionCode::ShbUserAppl, fitting(application).as_bytes()),
            ],
            block_len2: 0,
        })?;
        Ok(writer)
    }

    /// Adds an interface, before its first packet; returns its number, counted from 0.
    ///
    /// # Errors
    /// Returns those of the output.
    pub fn interface(&mut self, interface: &Interface<'_>) -> io::Result<u32> {
        let speed = interface.bit_s.map(u64::to_le_bytes);
        let mut options = vec![
            option(OptionCode::IfName, fitting(interface.name).as_bytes()),
            option(OptionCode::IfDescription, fitting(interface.description).as_bytes()),
        ];
        options.extend(speed.iter().map(|speed| option(OptionCode::IfSpeed, speed)));
        options.push(option(OptionCode::IfTsresol, &[NANOSECONDS]));
        options.push(option(OptionCode::EndOfOpt, &[]));
        let in_options = options.iter().map(|option| 4 + option.value.len().next_multiple_of(4));
        let length = 20 + in_options.sum::<usize>() as u32;
        let block = InterfaceDescriptionBlock {
            block_type: IDB_MAGIC,
            block_len1: length,
            linktype: Linktype::RAW,
            reserved: 0,
            snaplen: NO_LIMIT,
            options,
            block_len2: length,
            if_tsresol: NANOSECONDS,
            if_tsoffset: 0,
        };
        // Raw, without the library's `fix`, which adds a superfluous time offset of zero.
        self.to.write_all(&block.to_vec_raw().map_err(io::Error::other)?)?;
        self.interfaces += 1;
        Ok(self.interfaces - 1)
    }

    /// Adds the headers of a packet, captured at `at` on an interface. An empty comment is left
    /// out.
    ///
    /// # Errors
    /// Returns those of the output, and an error if no interface has that number.
    pub fn packet(
        &mut self,
        interface: u32,
        at: Time,
        packet: &Headers,
        comment: &str,
    ) -> io::Result<()> {
        if interface >= self.interfaces {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no interface of this number"));
        }
        let comment = fitting(comment);
        let has_comment = !comment.is_empty();
        self.write(&mut EnhancedPacketBlock {
            block_type: 0,
            block_len1: 0,
            if_id: interface,
            ts_high: (at.0 >> 32) as u32,
            ts_low: at.0 as u32,
            caplen: packet.bytes.len() as u32,
            origlen: packet.total.into(),
            data: &packet.bytes,
            options: has_comment
                .then(|| option(OptionCode::Comment, comment.as_bytes()))
                .into_iter()
                .collect(),
            block_len2: 0,
        })
    }

    /// Flushes the output.
    ///
    /// # Errors
    /// Returns those of the output.
    pub fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }

    /// Writes a block; the library fills in type, version, byte order and lengths.
    fn write(&mut self, block: &mut impl ToVec) -> io::Result<()> {
        self.to.write_all(&block.to_vec().map_err(io::Error::other)?)
    }
}

fn option(code: OptionCode, value: &[u8]) -> PcapNGOption<'_> {
    PcapNGOption { code, len: value.len() as u16, value: Cow::Borrowed(value) }
}

/// Cuts a text to the 16-bit length of an option (§ 3.5), between characters; the library does not
/// check it.
fn fitting(text: &str) -> &str {
    let mut end = text.len().min(usize::from(u16::MAX));
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Section length "not specified" (§ 4.1): it is unknown when the section begins.
const UNKNOWN_LENGTH: i64 = -1;
/// Time resolution of 10⁻⁹ s (§ 4.2, if_tsresol).
const NANOSECONDS: u8 = 9;
/// Captured length without a limit (§ 4.2, SnapLen).
const NO_LIMIT: u32 = 0;
