//! Round trips counted in data: one ends once all data outstanding at its start is acknowledged.

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rounds {
    count: u64,
    /// The current round trip ends once all bytes below this are acknowledged.
    end: u64,
}

impl Rounds {
    /// Number of round trips completed.
    #[inline]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Processes a cumulative ACK of all below `ack`, with SND.MAX at `high`.
    #[inline]
    pub const fn on_ack(&mut self, ack: u64, high: u64) {
        if ack >= self.end {
            self.count += 1;
            self.end = high;
        }
    }
}
