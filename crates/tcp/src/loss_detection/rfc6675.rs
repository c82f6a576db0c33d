//! Loss detection by the data SACKed above a byte (RFC 6675 § 4, IsLost).

use cwnd_packet::{Range, Ranges};

/// Rule of RFC 6675: a byte is lost with `dup_thresh` discontiguous SACKed ranges above it, or more
/// than (`dup_thresh` − 1)·MSS SACKed bytes.
#[derive(Clone, Copy, Debug)]
pub struct Rfc6675 {
    dup_thresh: u32,
    /// Most SACKed bytes above a byte that is not lost.
    bytes: u64,
}

impl Rfc6675 {
    pub const fn new(dup_thresh: u32, mss: u64) -> Self {
        Self { dup_thresh, bytes: (dup_thresh - 1) as u64 * mss }
    }

    /// Returns the lost edge: all bytes below it are lost unless SACKed; 0 if none is.
    pub fn edge(self, sacked: &Ranges) -> u64 {
        let (mut ranges, mut bytes) = (0, 0);
        // From the highest range down, by one look-up each: mostly the first is enough.
        let mut range = sacked.highest();
        while let Some(Range { start, end }) = range {
            (ranges, bytes) = (ranges + 1, bytes + (end - start));
            if ranges >= self.dup_thresh || bytes > self.bytes {
                return start;
            }
            range = sacked.below(start);
        }
        0
    }
}
