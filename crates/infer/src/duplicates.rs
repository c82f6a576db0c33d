//! Duplicates: packets that captures of all interfaces or of mirror ports hold more than once.

use cwnd_quantity::{Duration, Time};

use crate::headers::Segment;

/// Sets of the table and packets of each, which fit a cache line. A copy is found while fewer than
/// four packets since then fall into its set: 1,000 packets between both miss 1 in 10,000.
const SETS: usize = 1 << 12;
const WAYS: usize = 4;

/// Longest time to a copy that has the same IPv4 identification.
pub const IDENTIFIED: Duration = Duration::from_millis(100);
/// Longest time to a copy of a SYN, which is sent again after a second (RFC 6298 § 2.1).
pub const HANDSHAKE: Duration = Duration::from_millis(1);
/// Longest time to a copy without identification: at 1 Gbit/s two full segments are 12 µs apart.
pub const AT_ONCE: Duration = Duration::from_micros(10);
/// … or so many times what a copy of the handshake took: queues of a mirror port vary.
pub const TIMES: u64 = 8;

/// The packets seen last, by the digests of their headers.
#[derive(Debug)]
pub struct Duplicates {
    /// Digest and time, the newest first.
    sets: Vec<[(u64, Time); WAYS]>,
}

impl Default for Duplicates {
    fn default() -> Self {
        Self { sets: vec![[(0, Time::ZERO); WAYS]; SETS] }
    }
}

impl Duplicates {
    /// The time since the packet was seen last, if it was seen before; remembers it.
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
