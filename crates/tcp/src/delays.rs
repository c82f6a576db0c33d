//! Sums of delays, for results.

use cwnd_quantity::Duration;

/// Delays of packets: what their mean and their least are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delays {
    /// How many were counted.
    pub count: u64,
    /// All of them together.
    pub sum: Duration,
    /// Bytes of their packets on the wire, where that is known.
    pub wire_bytes: u64,
    /// The least ever; `None` before the first.
    pub least: Option<Duration>,
}

impl Delays {
    /// One more, of a packet of so many bytes.
    pub(crate) fn add(&mut self, delay: Duration, wire: u16) {
        self.count += 1;
        self.sum = Duration(self.sum.0.saturating_add(delay.0));
        self.wire_bytes += u64::from(wire);
        self.least = Some(self.least.map_or(delay, |least| least.min(delay)));
    }

    /// Counting begins; the least stays.
    pub(crate) const fn begin_counting(&mut self) {
        self.count = 0;
        self.sum = Duration::ZERO;
        self.wire_bytes = 0;
    }
}
