//! The probe timeout (RFC 9002 § 6.2).

use cwnd_quantity::{Duration, Time};

/// Backoff and probes of the probe timeout (PTO).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProbeTimer {
    /// PTOs in a row (pto_count).
    count: u32,
    /// Probes that may still be sent, regardless of the window.
    probes: u8,
}

/// Probes of one PTO (§ 6.2.4: one, and at most two).
const PROBES: u8 = 2;

impl ProbeTimer {
    /// Returns the number of PTOs in a row.
    pub const fn count(self) -> u32 {
        self.count
    }

    /// Returns the number of probes that may still be sent, regardless of the window.
    pub const fn probes(self) -> u8 {
        self.probes
    }

    /// Returns the time of the next PTO, if the last packet that elicits an ACK was sent at `last`
    /// (§ A.8); `period` is the PTO without backoff.
    pub fn deadline(self, last: Time, period: Duration) -> Time {
        last + period * 1_u64.checked_shl(self.count).unwrap_or(u64::MAX)
    }

    /// Counts an expired PTO, and allows its probes (§ A.9).
    pub const fn on_expiry(&mut self) {
        self.count = self.count.saturating_add(1);
        self.probes = PROBES;
    }

    /// Counts a packet that elicits an ACK as a probe, if one is due.
    pub const fn on_sent(&mut self) {
        self.probes = self.probes.saturating_sub(1);
    }

    /// Ends the backoff, at an ACK of a new packet (§ 6.2.1, § A.7). Probes that are due stay due.
    pub const fn on_ack(&mut self) {
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_expiry_doubles_the_timeout_and_an_acknowledgement_ends_that() {
        let mut timer = ProbeTimer::default();
        let at = |timer: ProbeTimer| timer.deadline(Time(5), Duration(100)).0;
        assert_eq!(at(timer), 105);
        timer.on_expiry();
        timer.on_expiry();
        assert_eq!((at(timer), timer.probes()), (405, 2));
        timer.on_sent();
        timer.on_ack();
        assert_eq!((at(timer), timer.probes(), timer.count()), (105, 1, 0));
        (0..70).for_each(|_| timer.on_expiry());
        assert_eq!(timer.deadline(Time(5), Duration(100)), Time::NEVER);
    }
}
