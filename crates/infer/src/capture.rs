//! Reader of capture files: pcap and pcapng, perhaps compressed. The first bytes decide the format,
//! not the file name.

use std::cell::RefCell;
use std::io::{self, BufRead, BufReader, Read};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cwnd_quantity::Time;
use flate2::bufread::MultiGzDecoder;
use pcap_parser::pcapng::{InterfaceDescriptionBlock, OptionCode, PcapNGOption};
use pcap_parser::traits::{PcapNGPacketBlock as _, PcapReaderIterator};
use pcap_parser::{Block, LegacyPcapReader, PcapBlockOwned, PcapError, PcapNGReader};
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use thiserror::Error;

/// Error of a capture file.
#[derive(Debug, Error)]
pub enum CaptureError {
    /// The file is no capture.
    #[error("neither pcap nor pcapng, nor one of them packed by gzip or zstd")]
    Unknown,
    /// The file is empty.
    #[error("empty: there is not even the header of a capture")]
    Empty,
    /// The file ends within its header.
    #[error("cut off within the header of the file")]
    Header,
    /// A block violates the format.
    #[error("damaged at byte {at} of the unpacked file: {what}")]
    Damaged {
        /// Offset of the block in the unpacked file, bytes.
        at: u64,
        /// Violation found there.
        what: &'static str,
    },
    /// Error of the operating system, gzip or zstd.
    #[error(transparent)]
    Read(#[from] io::Error),
}

/// A captured frame.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Capture time, nanoseconds since 1970, or since the start of a simulation.
    pub at: Time,
    /// Link-layer type, as numbered by tcpdump.org.
    pub link: i32,
    /// Captured bytes, from the first.
    pub data: &'a [u8],
    /// Length on the wire, bytes.
    pub length: u32,
}

/// Kind of the block that was just read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum More {
    /// A frame, which was passed to the caller.
    Frame,
    /// A packet that a simulated or emulated link dropped; captures of such links contain them.
    Dropped,
    /// A packet without a time, which cannot be used.
    Untimed,
    /// A block that holds no packet.
    Other,
    /// The end of the file.
    End,
    /// The end of the file within a block, as left by a capture process that was killed.
    CutOff,
}

const NG_MAGIC: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
/// Magic numbers of pcap with micro- and nanoseconds and of Kuznetzov's variant, in both byte
/// orders.
const MAGICS: [u32; 6] =
    [0xa1b2_c3d4, 0xd4c3_b2a1, 0xa1b2_3c4d, 0x4d3c_b2a1, 0xa1b2_cd34, 0x34cd_b2a1];
/// Length of the header of a pcap file, bytes.
const HEADER: usize = 24;
/// Length of the shortest pcapng block, bytes: its type, and its length twice.
const LEAST_BLOCK: usize = 12;
/// Longest packet or block accepted, bytes. Wireshark has such a limit, too
/// (`WTAP_MAX_PACKET_SIZE_*`, 128 MiB for the largest kind).
const LONGEST_BLOCK: usize = 16 << 20;
const BUFFER: usize = 1 << 20;
const NANOS: u64 = 1_000_000_000;

/// Reader that keeps the I/O error which pcap-parser drops.
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
    /// Ticks per second.
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

/// Reader that returns a capture file frame by frame.
pub struct Capture<'a> {
    reader: Box<dyn PcapReaderIterator + 'a>,
    failed: Rc<RefCell<Option<io::Error>>>,
    interfaces: Vec<Interface>,
    /// Link-layer type and nanoseconds per tick of a pcap file.
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
    /// Reads the header of a file.
    ///
    /// # Errors
    /// If the file cannot be read, or does not begin like a capture.
    pub fn new(mut bytes: impl Read + 'a) -> Result<Self, CaptureError> {
        // The whole header is read here, because pcap-parser looks at its first read only.
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
            // The first pcapng block may be longer than a pcap header.
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

    /// Reads the next block, and passes it to `each` if it is a frame.
    ///
    /// # Errors
    /// If the file is damaged there or cannot be read.
    pub fn next(&mut self, each: impl FnOnce(Frame<'_>)) -> Result<More, CaptureError> {
        loop {
            let at = self.read;
            // pcap-parser would underflow on a block that claims to be shorter than its own header.
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
    /// Length claimed by the packet or block that begins here: the smaller of both byte orders.
    fn announced(&self) -> usize {
        let place = if self.is_legacy { 8..12 } else { 4..8 };
        let word = self.reader.data().get(place).and_then(|word| word.try_into().ok());
        let length = word.map_or(0, |word| u32::from_le_bytes(word).min(u32::from_be_bytes(word)));
        length as usize
    }
}

/// Reader that fills the whole buffer unless its source ends.
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
            // The upper bits give the length of frame check sequences.
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

/// `true` if a comment says that the packet was dropped, possibly after a mark, in the format that
/// `crates/sim` and `crates/linux/router` write.
fn is_loss(comment: &[u8]) -> bool {
    let mut parts = comment.split(|&byte| byte == b',');
    parts.any(|part| part.trim_ascii().starts_with(b"dropped: "))
}

/// First two bytes of gzip, ID1 and ID2 (RFC 1952 § 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// Magic number of a Zstandard frame (RFC 8878 § 3.1.1).
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Size of a read, bytes.
const READ_SIZE: usize = 1 << 18;

/// Counter of the bytes read from a file, before decompression.
#[derive(Clone, Debug, Default)]
pub struct Meter(Arc<AtomicU64>);

impl Meter {
    /// Returns the number of bytes read so far.
    #[must_use]
    pub fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

struct Metered<R> {
    inner: R,
    meter: Meter,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(to)?;
        self.meter.0.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// Returns a reader of the decompressed content of a file.
///
/// # Errors
/// If the beginning cannot be read, or if the header of the first Zstandard frame is invalid or
/// requires a window above 100 MiB. Later errors come from the reader.
pub fn unpacked<'a>(
    file: impl Read + Send + 'a,
    meter: Meter,
) -> io::Result<Box<dyn Read + Send + 'a>> {
    let mut bytes = BufReader::with_capacity(READ_SIZE, Metered { inner: file, meter });
    let head = bytes.fill_buf()?;
    if head.starts_with(&GZIP) {
        return Ok(Box::new(MultiGzDecoder::new(bytes)));
    }
    if head.starts_with(&ZSTD) {
        let frame = StreamingDecoder::new(bytes).map_err(io::Error::other)?;
        return Ok(Box::new(Frames { frame }));
    }
    Ok(Box::new(bytes))
}

/// Reader of consecutive Zstandard frames, as `zstd` writes them when it appends (RFC 8878 § 3).
struct Frames<R: BufRead> {
    frame: StreamingDecoder<R, FrameDecoder>,
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        loop {
            let n = self.frame.read(to)?;
            if n > 0 || to.is_empty() {
                return Ok(n);
            }
            self.verify()?;
            if self.frame.get_mut().fill_buf()?.is_empty() {
                return Ok(0);
            }
            self.begin_frame()?;
        }
    }
}

impl<R: BufRead> Frames<R> {
    /// Compares the checksum of a frame that was read to its end (RFC 8878 § 3.1.1), if it has one.
    fn verify(&self) -> io::Result<()> {
        let decoder = &self.frame.decoder;
        match decoder.get_checksum_from_data() {
            Some(written) if decoder.get_calculated_checksum() != Some(written) => {
                let message = "the checksum of a Zstandard frame is not that of its content";
                Err(io::Error::new(io::ErrorKind::InvalidData, message))
            }
            _ => Ok(()),
        }
    }

    /// Begins the next frame; skips the content of a skippable frame (RFC 8878 § 3.1.2).
    fn begin_frame(&mut self) -> io::Result<()> {
        let mut decoder = FrameDecoder::new();
        let source = self.frame.get_mut();
        match decoder.init(&mut *source) {
            Ok(()) => self.frame.decoder = decoder,
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length,
                ..
            })) => {
                io::copy(&mut source.take(u64::from(length)), &mut io::sink())?;
            }
            Err(error) => return Err(io::Error::other(error)),
        }
        Ok(())
    }
}
