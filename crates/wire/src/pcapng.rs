//! The pcapng file format (draft-ietf-opsawg-pcapng): section header, interfaces, packets.

use std::io::{self, Write};

use cwnd_units::Time;

use crate::ip::Headers;

/// Writes a capture file of one section, little endian on every machine.
///
/// Three kinds of blocks are all it takes: written here, and read in the tests by a library that others wrote.
#[derive(Debug)]
pub struct Writer<W> {
    to: W,
    block: Vec<u8>,
    interfaces: u32,
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
        let mut writer = Self { to, block: Vec::new(), interfaces: 0 };
        // § 4.1: byte-order magic, version 1.0, a section of unknown length.
        writer.begin(SECTION_HEADER);
        writer.u32(0x1A2B_3C4D);
        writer.u16(1);
        writer.u16(0);
        writer.u64(u64::MAX);
        writer.option(OPT_COMMENT, comment.as_bytes());
        writer.option(SHB_USERAPPL, application.as_bytes());
        writer.end_options();
        writer.end()?;
        Ok(writer)
    }

    /// Adds an interface, before its first packet; returns its number.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn interface(&mut self, interface: &Interface<'_>) -> io::Result<u32> {
        // § 4.2: link type, reserved, no limit to the captured length.
        self.begin(INTERFACE_DESCRIPTION);
        self.u16(LINKTYPE_RAW);
        self.u16(0);
        self.u32(0);
        self.option(IF_NAME, interface.name.as_bytes());
        self.option(IF_DESCRIPTION, interface.description.as_bytes());
        if let Some(speed) = interface.bit_s {
            self.option(IF_SPEED, &speed.to_le_bytes());
        }
        self.option(IF_TSRESOL, &[NANOSECONDS]);
        self.end_options();
        self.end()?;
        self.interfaces += 1;
        Ok(self.interfaces - 1)
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
        // § 4.3: interface, upper and lower half of the time, captured and original length.
        self.begin(ENHANCED_PACKET);
        self.u32(interface);
        self.u32((at.0 >> 32) as u32);
        self.u32(at.0 as u32);
        self.u32(packet.bytes.len() as u32);
        self.u32(u32::from(packet.total));
        self.block.extend_from_slice(&packet.bytes);
        self.pad();
        if !comment.is_empty() {
            self.option(OPT_COMMENT, comment.as_bytes());
            self.end_options();
        }
        self.end()
    }

    /// Hands on what the writer below still holds.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }

    fn begin(&mut self, kind: u32) {
        self.block.clear();
        self.u32(kind);
        // Its length, known at the end.
        self.u32(0);
    }

    fn end(&mut self) -> io::Result<()> {
        let length = (self.block.len() as u32 + 4).to_le_bytes();
        self.block[4..8].copy_from_slice(&length);
        self.block.extend_from_slice(&length);
        self.to.write_all(&self.block)
    }

    /// § 3.5: code, length, value, padding. A text that is too long for its length field is cut.
    fn option(&mut self, code: u16, value: &[u8]) {
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        self.u16(code);
        self.u16(value.len() as u16);
        self.block.extend_from_slice(value);
        self.pad();
    }

    fn end_options(&mut self) {
        self.option(OPT_ENDOFOPT, &[]);
    }

    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    fn u16(&mut self, value: u16) {
        self.block.extend_from_slice(&value.to_le_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.block.extend_from_slice(&value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.block.extend_from_slice(&value.to_le_bytes());
    }
}

// Block types.
const SECTION_HEADER: u32 = 0x0A0D_0D0A;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;

// Option codes (§ 3.5.1, 4.1, 4.2).
const OPT_ENDOFOPT: u16 = 0;
const OPT_COMMENT: u16 = 1;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_DESCRIPTION: u16 = 3;
const IF_SPEED: u16 = 8;
const IF_TSRESOL: u16 = 9;

/// Timestamps count 10⁻⁹ s (§ 4.2, if_tsresol).
const NANOSECONDS: u8 = 9;
/// A packet begins with its IPv4 or IPv6 header (the registry of link types, LINKTYPE_RAW).
const LINKTYPE_RAW: u16 = 101;
