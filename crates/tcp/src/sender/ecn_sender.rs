//! State of ECN at the sender (RFC 3168 § 6.1.2).

#[derive(Clone, Copy, Debug)]
pub(super) struct EcnSender {
    /// `true` after a reduction, for whatever reason: the next new data segment carries CWR.
    cwr_pending: bool,
    /// `true` if the last ECN-echo found a window of one segment, and is waited for.
    waits_at_one: bool,
    /// `true` until anything makes the window smaller, and from a timeout to the next reduction if
    /// `ecn_after_timeout` is set: the next ECN-echo counts, whatever is acknowledged.
    first_counts: bool,
    /// ECN-echoes in a row that found a window of one segment, at most 255: the wait reaches its
    /// bound long before.
    echoes_at_one: u8,
}

impl EcnSender {
    pub const NEW: Self =
        Self { cwr_pending: false, waits_at_one: false, first_counts: true, echoes_at_one: 0 };

    /// The window was reduced, which CWR says if it `says` so.
    pub const fn set_cwr(&mut self, says: bool) {
        self.cwr_pending = says;
    }

    /// `true` if a segment of new data carries CWR; the next does not.
    #[inline]
    pub const fn take_cwr(&mut self) -> bool {
        core::mem::replace(&mut self.cwr_pending, false)
    }

    /// The next ECN-echo counts, whatever is acknowledged, if `counts`.
    pub const fn set_first_counts(&mut self, counts: bool) {
        self.first_counts = counts;
    }

    pub const fn first_counts(self) -> bool {
        self.first_counts
    }

    /// An ECN-echo came, and no other is waited for.
    pub const fn stop_waiting(&mut self) {
        self.waits_at_one = false;
    }

    #[inline]
    pub const fn waits_at_one(self) -> bool {
        self.waits_at_one
    }

    /// An ECN-echo counts and finds less than two segments: `one` if it is one at most, `in_a_row`
    /// if it is for the segment that the last one let go.
    pub const fn wait_at_one(&mut self, one: bool, in_a_row: bool) {
        self.waits_at_one = true;
        self.echoes_at_one = match (one, in_a_row) {
            (false, _) => 0,
            (true, true) => self.echoes_at_one.saturating_add(1),
            (true, false) => 1,
        };
    }

    /// Doublings of the wait at one segment.
    pub const fn doublings(self) -> u32 {
        self.echoes_at_one.saturating_sub(1) as u32
    }
}
