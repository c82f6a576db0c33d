//! The tail loss probe (RFC 8985 § 7).

use cwnd_quantity::Time;

use cwnd_packet::Range;

/// State of a tail loss probe.
#[derive(Clone, Copy, Debug, Default)]
pub struct TailLossProbe {
    /// `true` if it goes now.
    due: bool,
    /// Until this is acknowledged there is no other (TLP.end_seq).
    until: Option<u64>,
    /// `true` if it was no new data (TLP.is_retrans).
    again: bool,
    /// `true` if a D-SACK reported that what it sent again had arrived.
    told: bool,
    /// Data that it sent again and when, while that is in flight.
    under_way: Option<(Range, Time)>,
}

impl TailLossProbe {
    /// Its timer expired: it goes if it is `possible`, unless there was one since the last progress
    /// (§ 7.3). Returns `true` if it goes.
    pub const fn on_timer(&mut self, possible: bool) -> bool {
        self.due = self.until.is_none() && possible;
        self.due
    }

    /// `true` if it goes now.
    pub const fn is_due(&self) -> bool {
        self.due
    }

    /// The same, and from now on it does not.
    pub const fn take_due(&mut self) -> bool {
        core::mem::replace(&mut self.due, false)
    }

    /// It goes, with all up to `high` sent by then; `again` is what it repeats, and when.
    pub const fn on_sent(&mut self, high: u64, again: Option<(Range, Time)>) {
        self.until = Some(high);
        self.again = again.is_some();
        self.under_way = again;
    }

    /// `true` if an ACK of one that went is waited for.
    pub const fn is_awaited(&self) -> bool {
        self.until.is_some()
    }

    /// `true` if that one was no new data, and may arrive twice.
    pub const fn repeats(&self) -> bool {
        self.until.is_some() && self.again
    }

    /// Losses were found: what it would have told is known.
    pub fn forget(&mut self) {
        *self = Self { under_way: self.under_way, ..Self::default() };
    }

    /// Data that it sent again and when, while that is in flight.
    pub const fn under_way(&self) -> Option<(Range, Time)> {
        self.under_way
    }

    /// The same, if that ends at `end`, where it arrives; it is in flight no more.
    pub fn take_under_way(&mut self, end: u64) -> Option<(Range, Time)> {
        self.under_way.take_if(|(again, _)| again.end == end)
    }

    /// Records the loss of the data that the probe sent again.
    pub const fn lose(&mut self) {
        self.under_way = None;
    }

    /// A D-SACK reports so many segments up to `end`. Returns `true` if it is of the probe.
    pub fn on_dsack(&mut self, end: u64, segments: u64) -> bool {
        let is_it = segments == 1 && self.until == Some(end);
        self.told |= is_it;
        is_it
    }

    /// Returns, once it is known, `true` if the probe repaired a loss (§ 7.4; Linux,
    /// `tcp_process_tlp_ack`). All below `una` is acknowledged. A `duplicate`, an ACK without
    /// progress, shows that both transmissions arrived, as D-SACK does.
    pub fn judge(&mut self, una: u64, duplicate: bool) -> Option<bool> {
        let until = self.until.filter(|&until| una >= until)?;
        let repaired = self.again && !self.told && !duplicate;
        if repaired && una == until {
            // One of the two arrived. The next ACK tells whether the other did, too.
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
        assert_eq!(probe.judge(4999, false), None);
        assert_eq!(probe.judge(5000, false), None, "one of the two arrived");
        assert_eq!(probe.judge(6000, false), Some(true));
        assert_eq!(probe.judge(7000, false), None, "it is over");
        assert_eq!(repeated().judge(5000, true), Some(false));
        let mut told = repeated();
        assert!(!told.on_dsack(5000, 2) && told.on_dsack(5000, 1));
        assert_eq!(told.judge(5000, false), Some(false));
    }

    #[test]
    fn no_other_probe_goes_until_the_last_is_acknowledged() {
        let mut probe = repeated();
        assert!(!probe.on_timer(true));
        probe.forget();
        assert!(probe.on_timer(true));
        assert_eq!(probe.take_under_way(4000), None);
        assert_eq!(probe.take_under_way(5000).map(|(_, at)| at), Some(Time(7)));
        assert_eq!(probe.under_way(), None);
    }
}
