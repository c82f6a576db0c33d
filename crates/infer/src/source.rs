//! Bytes of a capture, unpacked if they are packed: what they are says their beginning, not the name of a file.

use std::io::{self, BufRead as _, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;

/// RFC 1952 § 2.3.1: ID1 and ID2.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// RFC 8878 § 3.1.1: the magic number of a Zstandard frame.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// As much as is read at once.
const BUFFER: usize = 1 << 18;
/// Zstandard windows beyond 2²⁷ bytes are refused, so that a file cannot ask for all memory.
const MOST_WINDOW: u32 = 27;

/// Counts what is read of a file, before it is unpacked.
#[derive(Clone, Debug, Default)]
pub struct Meter(Arc<AtomicU64>);

impl Meter {
    /// Bytes that were read so far.
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

/// The unpacked bytes of a file.
///
/// # Errors
/// When the beginning cannot be read, or Zstandard has no memory.
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
        let mut decoder = zstd::Decoder::with_buffer(bytes)?;
        decoder.window_log_max(MOST_WINDOW)?;
        return Ok(Box::new(decoder));
    }
    Ok(Box::new(bytes))
}
