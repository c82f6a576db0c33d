//! Decompression of capture files. The first bytes decide the format, not the file name.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

/// First two bytes of gzip, ID1 and ID2 (RFC 1952 § 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// Magic number of a Zstandard frame (RFC 8878 § 3.1.1).
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Size of a read, bytes.
const BUFFER: usize = 1 << 18;

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
    let mut bytes = BufReader::with_capacity(BUFFER, Metered { inner: file, meter });
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
