//! Frames of a capture file: pcap in all its forms, and pcapng.

use std::cell::RefCell;
use std::io::{self, Read};
use std::rc::Rc;

use cwnd_quantity::Time;
use pcap_parser::pcapng::{InterfaceDescriptionBlock, OptionCode, PcapNGOption};
use pcap_parser::traits::{PcapNGPacketBlock as _, PcapReaderIterator};
use pcap_parser::{Block, LegacyPcapReader, PcapBlockOwned, PcapError, PcapNGReader};
use thiserror::Error;

/// What is wrong with a file.
#[derive(Debug, Error)]
pub enum CaptureError {
    /// It is no capture.
    #[error("neither pcap nor pcapng, nor one of them packed by gzip or zstd")]
    Unknown,
    /// It is empty.
    #[error("empty: there is not even the header of a capture")]
    Empty,
    /// It ends within its header.
    #[error("cut off within the header of the file")]
    Header,
    /// A block contradicts the format.
    #[error("damaged at byte {at} of the unpacked file: {what}")]
    Damaged {
        /// Where the block begins.
        at: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// The system, gzip or zstd says so.
    #[error(transparent)]
    Read(#[from] io::Error),
}

/// A captured frame.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// When; nanoseconds since 1970.
    pub at: Time,
    /// The link-layer type, as tcpdump.org numbers them.
    pub link: i32,
    /// What was kept of it.
    pub data: &'a [u8],
    /// How long it was.
    pub length: u32,
}

/// What a file still holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum More {
    /// Another frame was given.
    Frame,
    /// A packet was passed that a link of ours lost: captures of links hold those, too.
    Dropped,
    /// A packet without a time was passed: there is nothing to infer from it.
    Untimed,
    /// A block that is no frame was passed.
    Other,
    /// The file is over.
    End,
    /// The file ends within a block, as that of a capture that was killed does.
    CutOff,
}

const NG_MAGIC: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
/// Micro- and nanoseconds, both ways round, and Kuznetzov's form.
const MAGICS: [u32; 6] =
    [0xa1b2_c3d4, 0xd4c3_b2a1, 0xa1b2_3c4d, 0x4d3c_b2a1, 0xa1b2_cd34, 0x34cd_b2a1];
/// The length of the header of a pcap file.
const HEADER: usize = 24;
/// A block's kind and its length, twice.
const LEAST_BLOCK: usize = 12;
/// Wireshark refuses longer packets and blocks, too (`WTAP_MAX_PACKET_SIZE_*`, 128 MiB for the largest kind).
const LONGEST_BLOCK: usize = 16 << 20;
const BUFFER: usize = 1 << 20;
const NANOS: u64 = 1_000_000_000;

/// Keeps the error of a read that pcap-parser drops.
struct Keeping<R> {
    inner: R,
    failed: Rc<RefCell<Option<io::Error>>>,
}

impl<R: Read> Read for Keeping<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.inner.read(to) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let kind = error.kind();
                    *self.failed.borrow_mut() = Some(error);
                    return Err(kind.into());
                }
                read => return read,
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Interface {
    link: i32,
    /// Ticks in a second.
    resolution: u64,
    offset_s: i64,
}

impl Interface {
    fn of(block: &InterfaceDescriptionBlock<'_>) -> Self {
        Self {
            link: block.linktype.0,
            resolution: block.ts_resolution().filter(|&r| r > 0).unwrap_or(1_000_000),
            offset_s: block.ts_offset(),
        }
    }

    fn time(&self, high: u32, low: u32) -> Time {
        let ticks = u128::from(high) << 32 | u128::from(low);
        let nanos = ticks * u128::from(NANOS) / u128::from(self.resolution);
        let offset = i128::from(self.offset_s) * i128::from(NANOS);
        let nanos = i128::try_from(nanos).unwrap_or(i128::MAX).saturating_add(offset);
        Time(u64::try_from(nanos.max(0)).unwrap_or(u64::MAX >> 1).min(u64::MAX >> 1))
    }
}

/// Reads a file frame by frame.
pub struct Capture<'a> {
    reader: Box<dyn PcapReaderIterator + 'a>,
    failed: Rc<RefCell<Option<io::Error>>>,
    interfaces: Vec<Interface>,
    /// Of pcap files: type of the link, nanoseconds in a tick.
    legacy: (i32, u64),
    is_legacy: bool,
    capacity: usize,
    read: u64,
}

impl std::fmt::Debug for Capture<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Capture").field("read", &self.read).finish_non_exhaustive()
    }
}

impl<'a> Capture<'a> {
    /// Begins to read.
    ///
    /// # Errors
    /// When the file does not begin as a capture does.
    pub fn new(mut bytes: impl Read + 'a) -> Result<Self, CaptureError> {
        // The header at once: pcap-parser looks at its first read only.
        let mut head = Vec::new();
        bytes.by_ref().take(HEADER as u64).read_to_end(&mut head)?;
        if head.is_empty() {
            return Err(CaptureError::Empty);
        }
        let magic: [u8; 4] = match head.get(..4) {
            Some(magic) => [magic[0], magic[1], magic[2], magic[3]],
            None => return Err(CaptureError::Unknown),
        };
        let legacy = MAGICS.contains(&u32::from_be_bytes(magic));
        if !legacy && magic != NG_MAGIC {
            return Err(CaptureError::Unknown);
        }
        if head.len() < HEADER {
            return Err(CaptureError::Header);
        }
        let failed = Rc::default();
        let keeping = Keeping { inner: bytes, failed: Rc::clone(&failed) };
        let whole = io::Cursor::new(head).chain(keeping);
        let reader: Result<Box<dyn PcapReaderIterator + 'a>, _> = if legacy {
            LegacyPcapReader::new(BUFFER, whole).map(|r| Box::new(r) as _)
        } else {
            // Its first block may be longer than a pcap header.
            PcapNGReader::new(BUFFER, Greedy(whole)).map(|r| Box::new(r) as _)
        };
        match reader {
            Ok(reader) => Ok(Self {
                reader,
                failed,
                interfaces: Vec::new(),
                legacy: (0, 1),
                is_legacy: legacy,
                capacity: BUFFER,
                read: 0,
            }),
            Err(error) => {
                if let Some(error) = failed.borrow_mut().take() {
                    return Err(error.into());
                }
                Err(match error {
                    PcapError::Incomplete(_) | PcapError::Eof | PcapError::UnexpectedEof => {
                        CaptureError::Header
                    }
                    _ => CaptureError::Damaged { at: 0, what: "its header contradicts itself" },
                })
            }
        }
    }

    /// Hands the next frame to `each`, or passes what is none.
    ///
    /// # Errors
    /// When the file is damaged there or cannot be read.
    pub fn next(&mut self, each: impl FnOnce(Frame<'_>)) -> Result<More, CaptureError> {
        loop {
            let at = self.read;
            // Of some kinds of blocks the parser would subtract their head from less.
            if !self.is_legacy && self.reader.data().len() >= 8 && self.announced() < LEAST_BLOCK {
                let what = "a block that is shorter than its own head";
                return Err(CaptureError::Damaged { at, what });
            }
            let missing = match self.reader.next() {
                Ok((length, block)) => {
                    let more = take(block, &mut self.interfaces, &mut self.legacy, each);
                    self.reader.consume(length);
                    self.read += length as u64;
                    return more.map_err(|what| CaptureError::Damaged { at, what });
                }
                Err(PcapError::Eof) => return Ok(More::End),
                Err(PcapError::UnexpectedEof) => return Ok(More::CutOff),
                Err(PcapError::Incomplete(missing)) => missing,
                Err(PcapError::BufferTooSmall) => self.capacity,
                Err(PcapError::ReadError) => 0,
                Err(_) => {
                    let what = "no block of this format begins there";
                    return Err(CaptureError::Damaged { at, what });
                }
            };
            if let Some(error) = self.failed.borrow_mut().take() {
                return Err(error.into());
            }
            let full = missing == self.capacity;
            if full && self.announced() > LONGEST_BLOCK {
                return Err(CaptureError::Damaged {
                    at: self.read,
                    what: "a block of more than 16 MiB",
                });
            }
            let needed = self.reader.data().len().saturating_add(missing);
            if needed >= self.capacity {
                if needed > LONGEST_BLOCK {
                    let what = "a block of more than 16 MiB";
                    return Err(CaptureError::Damaged { at: self.read, what });
                }
                self.capacity = (2 * self.capacity).max(needed + 1).min(2 * LONGEST_BLOCK);
                self.reader.grow(self.capacity);
            }
            let before = self.reader.data().len();
            if self.reader.refill().is_err() {
                let error = self.failed.borrow_mut().take();
                return Err(error.unwrap_or_else(|| io::ErrorKind::Other.into()).into());
            }
            let after = self.reader.data().len();
            if self.reader.reader_exhausted() && after == before {
                return Ok(if after == 0 { More::End } else { More::CutOff });
            }
        }
    }
}

impl Capture<'_> {
    /// How long the packet or block that begins here says that it is, whichever order its bytes have.
    fn announced(&self) -> usize {
        let place = if self.is_legacy { 8..12 } else { 4..8 };
        let word = self.reader.data().get(place).and_then(|word| word.try_into().ok());
        let length = word.map_or(0, |word| u32::from_le_bytes(word).min(u32::from_be_bytes(word)));
        length as usize
    }
}

/// Fills what it is asked to fill as far as there is anything.
struct Greedy<R>(R);

impl<R: Read> Read for Greedy<R> {
    fn read(&mut self, mut to: &mut [u8]) -> io::Result<usize> {
        let mut read = 0;
        while !to.is_empty() {
            match self.0.read(to)? {
                0 => break,
                n => {
                    read += n;
                    to = &mut to[n..];
                }
            }
        }
        Ok(read)
    }
}

fn take(
    block: PcapBlockOwned<'_>,
    interfaces: &mut Vec<Interface>,
    legacy: &mut (i32, u64),
    each: impl FnOnce(Frame<'_>),
) -> Result<More, &'static str> {
    match block {
        PcapBlockOwned::LegacyHeader(header) => {
            // The upper bits say how long frame check sequences are.
            let link = header.network.0 & 0x03ff_ffff;
            *legacy = (link, if header.is_nanosecond_precision() { 1 } else { 1000 });
            Ok(More::Other)
        }
        PcapBlockOwned::Legacy(packet) => {
            let fraction = u64::from(packet.ts_usec) * legacy.1;
            let at = Time(u64::from(packet.ts_sec) * NANOS + fraction);
            let data = &packet.data[..packet.data.len().min(packet.caplen as usize)];
            each(Frame { at, link: legacy.0, data, length: packet.origlen });
            Ok(More::Frame)
        }
        PcapBlockOwned::NG(Block::SectionHeader(_)) => {
            interfaces.clear();
            Ok(More::Other)
        }
        PcapBlockOwned::NG(Block::InterfaceDescription(block)) => {
            interfaces.push(Interface::of(&block));
            Ok(More::Other)
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
            let Some(interface) = interfaces.get(packet.if_id as usize) else {
                return Err("a packet of an interface that was not described");
            };
            let lost = |option: &PcapNGOption<'_>| {
                option.code == OptionCode::Comment && is_loss(option.value())
            };
            if packet.options.iter().any(lost) {
                return Ok(More::Dropped);
            }
            let at = interface.time(packet.ts_high, packet.ts_low);
            let (data, length) = (packet.packet_data(), packet.origlen);
            each(Frame { at, link: interface.link, data, length });
            Ok(More::Frame)
        }
        PcapBlockOwned::NG(Block::SimplePacket(_)) => Ok(More::Untimed),
        PcapBlockOwned::NG(_) => Ok(More::Other),
    }
}

/// Whether a comment says that the packet was dropped there, maybe after what else befell it, as `crates/sim` and
/// `crates/linux/router` write it.
fn is_loss(comment: &[u8]) -> bool {
    let mut parts = comment.split(|&byte| byte == b',');
    parts.any(|part| part.trim_ascii().starts_with(b"dropped: "))
}
