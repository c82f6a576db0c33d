//! Sums of delays, for results.

use cwnd_quantity::Duration;

/// Sums for the mean and the minimum of packet delays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delays {
    /// Number of delays.
    pub count: u64,
    /// Sum of the delays.
    pub sum: Duration,
    /// Wire bytes of their packets; 0 for RTT samples.
    pub wire_bytes: u64,
    /// Minimum delay, also from before the counting period; `None` before the first.
    pub least: Option<Duration>,
}

impl Delays {
    /// Adds the delay of a packet of `wire` bytes.
    pub(crate) fn add(&mut self, delay: Duration, wire: u16) {
        self.count += 1;
        self.sum = Duration(self.sum.0.saturating_add(delay.0));
        self.wire_bytes += u64::from(wire);
        self.least = Some(self.least.map_or(delay, |least| least.min(delay)));
    }

    /// Starts the counting period; the minimum stays.
    pub(crate) const fn begin_counting(&mut self) {
        self.count = 0;
        self.sum = Duration::ZERO;
        self.wire_bytes = 0;
    }
}
