//! The tail loss probe (RFC 8985 § 7).

use cwnd_quantity::Time;

use cwnd_packet::Range;

/// State of a tail loss probe.
#[derive(Clone, Copy, Debug, Default)]
pub struct TailLossProbe {
    /// `true` if a probe is to be sent now.
    due: bool,
    /// End of the data whose ACK ends the probe, `None` without one; no other probe is sent before
    /// (TLP.end_seq).
    until: Option<u64>,
    /// `true` if the probe was a retransmission (TLP.is_retrans).
    again: bool,
    /// `true` if a D-SACK reported that the retransmitted data had arrived.
    dsack_seen: bool,
    /// Range and send time of the probe's retransmission, while it is in flight.
    in_flight_probe: Option<(Range, Time)>,
}

impl TailLossProbe {
    /// Processes an expiry of the probe timer. Returns `true` if a probe follows: it is `possible`,
    /// and the outcome of no earlier probe is awaited (§ 7.3).
    pub const fn on_timer(&mut self, possible: bool) -> bool {
        self.due = self.until.is_none() && possible;
        self.due
    }

    /// `true` if a probe is to be sent now.
    pub const fn is_due(&self) -> bool {
        self.due
    }

    /// Takes the due probe: `true` if there is one.
    pub const fn take_due(&mut self) -> bool {
        core::mem::replace(&mut self.due, false)
    }

    /// Notes the probe as sent, with SND.MAX at `high`; `again` is the range that it retransmits
    /// and its time.
    pub const fn on_sent(&mut self, high: u64, again: Option<(Range, Time)>) {
        self.until = Some(high);
        self.again = again.is_some();
        self.in_flight_probe = again;
    }

    /// `true` if the ACK of a probe is awaited.
    pub const fn is_awaited(&self) -> bool {
        self.until.is_some()
    }

    /// `true` if the awaited probe was a retransmission, which may arrive twice.
    pub const fn is_retransmission(&self) -> bool {
        self.until.is_some() && self.again
    }

    /// Ends the wait for the ACK of a probe, as losses were found; its retransmission stays noted
    /// while in flight.
    pub fn forget(&mut self) {
        *self = Self { in_flight_probe: self.in_flight_probe, ..Self::default() };
    }

    /// Range and send time of the probe's retransmission, while it is in flight.
    pub const fn in_flight_probe(&self) -> Option<(Range, Time)> {
        self.in_flight_probe
    }

    /// Takes the range in flight that the probe retransmitted, and its time, if it ends at `end`,
    /// where data arrives.
    pub fn take_in_flight_probe(&mut self, end: u64) -> Option<(Range, Time)> {
        self.in_flight_probe.take_if(|(again, _)| again.end == end)
    }

    /// Notes the loss of the data that the probe retransmitted.
    pub const fn lose(&mut self) {
        self.in_flight_probe = None;
    }

    /// Processes a D-SACK of `segments` up to `end`. Returns `true` if it is for the probe.
    pub fn on_dsack(&mut self, end: u64, segments: u64) -> bool {
        let is_it = segments == 1 && self.until == Some(end);
        self.dsack_seen |= is_it;
        is_it
    }

    /// Returns the outcome of the probe once an ACK of all below `una` decides it, `None` until
    /// then: `true` if it repaired a loss (§ 7.4; Linux `tcp_process_tlp_ack`). A `duplicate`, an
    /// ACK without progress, shows that both transmissions arrived, as D-SACK does.
    pub fn outcome(&mut self, una: u64, duplicate: bool) -> Option<bool> {
        let until = self.until.filter(|&until| una >= until)?;
        let repaired = self.again && !self.dsack_seen && !duplicate;
        if repaired && una == until {
            // One of the two arrived. The next ACK shows if the other did, too.
            return None;
        }
        *self = Self::default();
        Some(repaired)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repeated() -> TailLossProbe {
        let mut probe = TailLossProbe::default();
        assert!(probe.on_timer(true) && probe.take_due() && !probe.is_due());
        probe.on_sent(5000, Some((Range { start: 4000, end: 5000 }, Time(7))));
        probe
    }

    /// RFC 8985 § 7.4.2: an ACK above TLP.end_seq without a D-SACK.
    #[test]
    fn a_probe_repaired_a_loss_unless_anything_tells_that_both_arrived() {
        let mut probe = repeated();
        assert_eq!(probe.outcome(4999, false), None);
        assert_eq!(probe.outcome(5000, false), None, "one of the two arrived");
        assert_eq!(probe.outcome(6000, false), Some(true));
        assert_eq!(probe.outcome(7000, false), None, "it is over");
        assert_eq!(repeated().outcome(5000, true), Some(false));
        let mut duplicated = repeated();
        assert!(!duplicated.on_dsack(5000, 2) && duplicated.on_dsack(5000, 1));
        assert_eq!(duplicated.outcome(5000, false), Some(false));
    }

    #[test]
    fn no_other_probe_goes_until_the_last_is_acknowledged() {
        let mut probe = repeated();
        assert!(!probe.on_timer(true));
        probe.forget();
        assert!(probe.on_timer(true));
        assert_eq!(probe.take_in_flight_probe(4000), None);
        assert_eq!(probe.take_in_flight_probe(5000).map(|(_, at)| at), Some(Time(7)));
        assert_eq!(probe.in_flight_probe(), None);
    }
}
