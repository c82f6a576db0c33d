//! The pcapng file format (draft-ietf-opsawg-pcapng): section header, interfaces, packets.

// A length of time: `core` has no clock to read.
use core::time::Duration;
use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};

use cwnd_quantity::Time;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::pcapng::{PcapNgBlock, PcapNgWriter};
use pcap_file::{DataLink, Endianness, PcapError};

use crate::ip::Headers;

/// Writes a capture file of one section, little endian on every machine.
pub struct Writer<W> {
    to: W,
    /// A block on its way: its many small fields reach `to` at once.
    blocks: PcapNgWriter<Vec<u8>>,
}

impl<W: fmt::Debug> fmt::Debug for Writer<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("to", &self.to).finish_non_exhaustive()
    }
}

/// A place at which packets are captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it is, for people.
    pub description: &'a str,
    /// Its speed, if it has one that stays.
    pub bit_s: Option<u64>,
}

impl<W: Write> Writer<W> {
    /// Begins a file: which program wrote it, and what about.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn new(to: W, application: &str, comment: &str) -> io::Result<Self> {
        let section = SectionHeaderBlock {
            endianness: Endianness::Little,
            options: vec![
                SectionHeaderOption::Comment(fitting(comment).to_owned().into()),
                SectionHeaderOption::UserApplication(fitting(application).to_owned().into()),
            ],
            ..SectionHeaderBlock::default()
        };
        let blocks = PcapNgWriter::with_section_header(Vec::new(), section).map_err(reason)?;
        let mut writer = Self { to, blocks };
        writer.hand_on()?;
        Ok(writer)
    }

    /// Adds an interface, before its first packet; returns its number.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn interface(&mut self, interface: &Interface<'_>) -> io::Result<u32> {
        let number = self.blocks.interfaces().len() as u32;
        let mut options = vec![
            InterfaceDescriptionOption::IfName(fitting(interface.name).into()),
            InterfaceDescriptionOption::IfDescription(fitting(interface.description).into()),
        ];
        options.extend(interface.bit_s.map(InterfaceDescriptionOption::IfSpeed));
        options.push(InterfaceDescriptionOption::IfTsResol(NANOSECONDS));
        self.write(InterfaceDescriptionBlock {
            linktype: DataLink::RAW,
            snaplen: NO_LIMIT,
            options,
        })?;
        Ok(number)
    }

    /// Adds a packet: its headers, captured at `at` on that interface. An empty comment is none.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn packet(
        &mut self,
        interface: u32,
        at: Time,
        packet: &Headers,
        comment: &str,
    ) -> io::Result<()> {
        let mut options = Vec::new();
        if !comment.is_empty() {
            options.push(EnhancedPacketOption::Comment(fitting(comment).into()));
        }
        self.write(EnhancedPacketBlock {
            interface_id: interface,
            // The library counts nanoseconds whatever if_tsresol says.
            timestamp: Duration::from_nanos(at.0),
            original_len: packet.total.into(),
            data: Cow::Borrowed(&packet.bytes),
            options,
        })
    }

    /// Hands on what the writer below still holds.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }

    fn write<'a>(&mut self, block: impl PcapNgBlock<'a>) -> io::Result<()> {
        self.blocks.write_pcapng_block(block).map_err(reason)?;
        self.hand_on()
    }

    fn hand_on(&mut self) -> io::Result<()> {
        let block = self.blocks.get_mut();
        let written = self.to.write_all(block);
        block.clear();
        written
    }
}

/// As much of a text as the 16-bit length of an option counts (§ 3.5): the library does not look.
fn fitting(text: &str) -> &str {
    let mut end = text.len().min(usize::from(u16::MAX));
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn reason(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::new(io::ErrorKind::InvalidInput, other),
    }
}

/// Timestamps count 10⁻⁹ s (§ 4.2, if_tsresol).
const NANOSECONDS: u8 = 9;
/// Of the captured length (§ 4.2, SnapLen).
const NO_LIMIT: u32 = 0;
