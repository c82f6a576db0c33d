//! Duplicates: packets that captures of all interfaces or of mirror ports contain more than once.

use cwnd_quantity::{Duration, Time};

use crate::headers::Segment;

/// Number of sets of the table. The packets of a set fit a cache line. A copy is found while fewer
/// than four later packets fall into its set: with 1,000 packets in between, 1 copy in 10,000 is
/// missed.
const SETS: usize = 1 << 12;
const WAYS: usize = 4;

/// Longest time to a copy that has the same IPv4 identification, other than zero.
pub const IDENTIFIED: Duration = Duration::from_millis(100);
/// Longest time to a copy of a SYN or SYN-ACK without identification. A retransmission comes after
/// a second (RFC 6298 § 2.1).
pub const HANDSHAKE: Duration = Duration::from_millis(1);
/// Longest time to a copy without identification: at 1 Gbit/s two full segments are 12 µs apart.
pub const AT_ONCE: Duration = Duration::from_micros(10);
/// Longest time to a copy without identification, as a multiple of the longest time to a copy of
/// the handshake, if that is more than [`AT_ONCE`]: queues of a mirror port vary.
pub const TIMES: u64 = 8;

/// Table of the packets seen last, by the digests of their headers.
#[derive(Debug)]
pub struct Duplicates {
    /// Digest and capture time of the packets of each set, newest first.
    sets: Vec<[(u64, Time); WAYS]>,
}

impl Default for Duplicates {
    fn default() -> Self {
        Self { sets: vec![[(0, Time::ZERO); WAYS]; SETS] }
    }
}

impl Duplicates {
    /// Returns the time since the same packet was last seen, if it was, and records this packet.
    #[inline]
    pub fn since(&mut self, segment: &Segment) -> Option<Duration> {
        let set = &mut self.sets[segment.digest as usize % SETS];
        let found = set.iter().position(|&(digest, _)| digest == segment.digest);
        let last = found.map(|place| set[place].1);
        set.copy_within(..found.unwrap_or(WAYS - 1), 1);
        set[0] = (segment.digest, segment.at);
        last.map(|last| segment.at.since(last))
    }
}
