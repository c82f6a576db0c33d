//! Round trips of data: one ends when all is acknowledged that was outstanding at its start.

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rounds {
    count: u64,
    /// The present one ends when everything below this is acknowledged.
    end: u64,
}

impl Rounds {
    /// The number of round trips that are over.
    #[inline]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// All below `ack` is acknowledged, where all below `high` was sent.
    #[inline]
    pub const fn on_ack(&mut self, ack: u64, high: u64) {
        if ack >= self.end {
            self.count += 1;
            self.end = high;
        }
    }
}
