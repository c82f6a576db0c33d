//! ECN state of the sender (RFC 3168 § 6.1.2).

#[derive(Clone, Copy, Debug)]
pub(super) struct EcnSender {
    /// `true` after a reduction if CWR is in use: the next ECN-capable segment carries it.
    cwr_pending: bool,
    /// `true` if the last ECN-echo found a window below two segments, so that the sender waits
    /// ([`EcnSender::wait_at_one`]).
    waits_at_one: bool,
    /// `true` until the first reduction, and from a timeout to the next reduction if
    /// `ecn_after_timeout` is set: the next ECN-echo counts, whatever it acknowledges.
    next_ece_counts: bool,
    /// Consecutive ECN-echoes that found a window of one segment, at most 255: the wait reaches its
    /// bound long before.
    echoes_at_one: u8,
}

impl EcnSender {
    pub const NEW: Self =
        Self { cwr_pending: false, waits_at_one: false, next_ece_counts: true, echoes_at_one: 0 };

    /// Sets CWR for the next ECN-capable segment if `says`; clears it otherwise.
    pub const fn set_cwr(&mut self, says: bool) {
        self.cwr_pending = says;
    }

    /// Takes the pending CWR: `true` if this segment carries it.
    #[inline]
    pub const fn take_cwr(&mut self) -> bool {
        core::mem::replace(&mut self.cwr_pending, false)
    }

    /// Sets if the next ECN-echo counts whatever it acknowledges.
    pub const fn set_next_ece_counts(&mut self, counts: bool) {
        self.next_ece_counts = counts;
    }

    pub const fn next_ece_counts(self) -> bool {
        self.next_ece_counts
    }

    /// Ends the wait at one segment, as an ECN-echo arrived.
    pub const fn stop_waiting(&mut self) {
        self.waits_at_one = false;
    }

    #[inline]
    pub const fn waits_at_one(self) -> bool {
        self.waits_at_one
    }

    /// Starts the wait after an ECN-echo at a window below two segments. `one`: the window is at
    /// most one segment. `in_a_row`: the echo is for the segment sent after the last one.
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
