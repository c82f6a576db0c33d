//! Loss detection by time: RACK (RFC 8985 § 6), the tail loss probe (§ 7), and their shared timer.

use cwnd_packet::Range;
use cwnd_quantity::{Duration, Time};

use crate::rack::{Rack, TailLossProbe};
use crate::sent_segments::SentSegments;

/// State of RACK-TLP if the sender uses it, which needs SACK; otherwise nothing is kept.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct LossDetector {
    /// Expiry of the reordering or the probe timer; `Time::NEVER` if neither runs.
    deadline: Time,
    rack_tlp: Option<Box<RackTlp>>,
}

/// State of RACK-TLP (RFC 8985), and of D-SACKs.
#[derive(Clone, Debug, Default)]
struct RackTlp {
    rack: Rack,
    probe: TailLossProbe,
    /// The shared timer's use.
    timer: Timer,
    /// Instant at which a sent segment set the probe timer, if no ACK arrived since: others of that
    /// instant change nothing.
    probe_set: Option<Time>,
    /// Send times of the first and last segment that an ACK newly reports, of those sent once.
    sacked: Option<(Time, Time)>,
    /// Segments that D-SACKs reported as duplicates.
    duplicates: u64,
    /// Bytes that D-SACK reported as duplicates and no ACK has counted yet.
    duplicate_bytes: u64,
}

/// Use of the timer, which both share in Linux (tcp_timer.c, `tcp_write_timer_handler`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Timer {
    #[default]
    Off,
    /// End of the reordering window of missing data.
    Reordering,
    /// Tail loss probe, after a long time without an ACK.
    Probe,
}

/// Facts of an ACK that reports arrivals.
pub(super) struct Arrival {
    pub now: Time,
    /// One past the highest byte that had arrived before.
    pub top: u64,
    /// Minimum RTT.
    pub min_rtt: Duration,
    /// Timestamp that the ACK echoes, if it identifies the transmission that arrived.
    pub echo: Option<Time>,
    pub mss: u64,
}

/// Facts for a search for losses.
pub(super) struct Search {
    pub now: Time,
    pub una: u64,
    /// `true` if the reordering window is zero as long as no reordering was seen.
    pub zero_window: bool,
    /// Minimum and smoothed RTT; SACK may arrive before any sample.
    pub min_rtt: Option<Duration>,
    pub srtt: Option<Duration>,
}

/// A D-SACK (RFC 2883).
pub(super) struct Dsack {
    /// End of the data that arrived twice.
    pub end: u64,
    pub segments: u64,
    pub bytes: u64,
    /// Retransmissions sent until now.
    pub retransmissions: u64,
}

impl LossDetector {
    /// New detector, which finds losses if `has_rack`.
    pub fn new(has_rack: bool) -> Self {
        Self { deadline: Time::NEVER, rack_tlp: has_rack.then(Box::default) }
    }

    /// `true` if it finds losses by time (RACK-TLP).
    #[inline]
    pub const fn has_rack(&self) -> bool {
        self.rack_tlp.is_some()
    }

    /// Expiry of its timer; `Time::NEVER` if it is off.
    #[inline]
    pub const fn deadline(&self) -> Time {
        self.deadline
    }

    /// Stops the timer, whichever use it has.
    pub const fn stop(&mut self) {
        self.deadline = Time::NEVER;
    }

    /// Takes the use of a timer that expires.
    pub fn expire(&mut self) -> Timer {
        self.deadline = Time::NEVER;
        self.rack_tlp.as_mut().map_or(Timer::Off, |tlp| core::mem::take(&mut tlp.timer))
    }

    /// RTT of the last arrival, and the number below which all was first sent at least that long
    /// ago (Linux `tcp_rack_skb_timeout`), and retransmitted by no later probe.
    pub fn old_data(&self, sent: &SentSegments, now: Time) -> Option<(Duration, u64)> {
        let tlp = self.rack_tlp.as_ref()?;
        let rtt = tlp.rack.rtt();
        let old = sent.older_than(now, rtt);
        match tlp.probe.in_flight_probe() {
            Some((probe, sent)) if sent + rtt > now => Some((rtt, old.min(probe.start))),
            _ => Some((rtt, old)),
        }
    }

    /// Notes the arrival in order of data below `ack` that was sent once, its last segment at
    /// `last`.
    pub fn on_in_order(&mut self, now: Time, last: Option<Time>, ack: u64) {
        let Some(tlp) = &mut self.rack_tlp else { return };
        if let Some(last) = last {
            tlp.rack.on_arrival(now, (last, ack), None);
        }
        tlp.rack.on_delivery(now);
    }

    /// Notes the arrival of `range`, of which only what was not yet known counts.
    pub fn on_arrivals(&mut self, sent: &SentSegments, range: Range, arrival: &Arrival) {
        let Some(tlp) = &mut self.rack_tlp else { return };
        let mut at = range.start;
        while let Some(new) = sent.gap(at, range.end) {
            tlp.on_arrival(sent, new, arrival);
            at = new.end;
        }
    }

    /// Finishes an ACK that reported arrivals.
    pub fn on_delivery(&mut self, now: Time) {
        if let Some(tlp) = &mut self.rack_tlp {
            tlp.rack.on_delivery(now);
        }
    }

    /// Takes the send times of the first and last segment reported since the last call, of those
    /// sent once.
    pub fn take_sacked(&mut self) -> Option<(Time, Time)> {
        self.rack_tlp.as_mut()?.sacked.take()
    }

    /// Takes the bytes that D-SACK reported since the last call: needless retransmissions were
    /// delivered, too (`tcp_dsack_seen`).
    pub fn take_duplicate_bytes(&mut self) -> u64 {
        self.rack_tlp.as_mut().map_or(0, |tlp| core::mem::take(&mut tlp.duplicate_bytes))
    }

    /// Processes a D-SACK (Linux `tcp_check_dsack`). Returns `false` if D-SACKs report more
    /// segments than were retransmitted, as the network duplicated data, and without RACK-TLP.
    pub fn on_dsack(&mut self, dsack: &Dsack) -> bool {
        let Some(tlp) = &mut self.rack_tlp else { return false };
        tlp.duplicates += dsack.segments;
        if tlp.duplicates > dsack.retransmissions {
            return false;
        }
        tlp.duplicate_bytes += dsack.bytes;
        if !tlp.probe.on_dsack(dsack.end, dsack.segments) {
            tlp.rack.on_duplicate();
        }
        true
    }

    /// Requests a new search for losses, even without arrivals.
    pub fn request_search(&mut self) {
        if let Some(tlp) = &mut self.rack_tlp {
            tlp.rack.request_search();
        }
    }

    /// Marks segments lost at `search.now`. Returns `true` if there are any, and the time at which
    /// the reordering window of the rest ends (`Time::ZERO` if nothing waits); `None` if nothing
    /// arrived since the last search and none was requested.
    pub fn detect(&mut self, sent: &mut SentSegments, search: &Search) -> Option<(bool, Time)> {
        let tlp = self.rack_tlp.as_mut()?;
        if !tlp.rack.take_arrived() {
            return None;
        }
        let (now, una) = (search.now, search.una);
        let min_rtt = search.min_rtt.unwrap_or(tlp.rack.rtt());
        let srtt = search.srtt.unwrap_or(min_rtt);
        let lost = tlp.rack.deadline(tlp.rack.window(search.zero_window, min_rtt, srtt));
        let (before, mut edge) = sent.due(now, lost);
        let mut waits = Time::ZERO;
        if let Some((probe, sent)) = tlp.probe.in_flight_probe() {
            let over = lost.of((sent, probe.end));
            if over <= now {
                tlp.probe.lose();
            } else {
                edge = edge.min(probe.start);
                waits = if over == Time::NEVER { Time::ZERO } else { over };
            }
        }
        let (found, retransmissions) = sent.mark_lost_by_time(edge, una, now, lost);
        // The timer waits for the last missing segment (RFC 8985 § 6.2, step 5: the largest
        // remaining time).
        if let Some(byte) = sent.last_missing(edge.max(una), before)
            && let Some(sent) = sent.sent_at(byte)
        {
            waits = waits.max(lost.of((sent, byte)));
        }
        Some((found, waits.max(retransmissions)))
    }

    /// Sets the reordering timer to `until`.
    pub fn set_reordering_timer(&mut self, until: Time) {
        if let Some(tlp) = &mut self.rack_tlp {
            tlp.timer = Timer::Reordering;
            self.deadline = until;
        }
    }

    /// Stops the reordering timer, as no missing data waits.
    pub fn stop_reordering_timer(&mut self) {
        self.stop_timer(Timer::Reordering);
    }

    fn stop_timer(&mut self, timer: Timer) {
        if let Some(tlp) = self.rack_tlp.as_mut().filter(|tlp| tlp.timer == timer) {
            tlp.timer = Timer::Off;
            self.deadline = Time::NEVER;
        }
    }

    /// Maximum reordering seen, segments.
    pub fn reordering(&self) -> u64 {
        self.rack_tlp.as_ref().map_or(0, |tlp| tlp.rack.reordering())
    }

    /// Notes a reordering by `segments`. Returns `true` if a probe that was a retransmission is in
    /// flight.
    pub fn on_reordering(&mut self, segments: u64) -> bool {
        let Some(tlp) = &mut self.rack_tlp else { return false };
        tlp.rack.on_reordering(segments);
        tlp.probe.in_flight_probe().is_some()
    }

    /// Notes the end of a recovery; `needless` if it was undone because D-SACK reported every
    /// retransmission.
    pub fn on_recovered(&mut self, needless: bool) {
        if let Some(tlp) = &mut self.rack_tlp {
            tlp.rack.on_recovered(needless);
        }
    }

    /// Notes an ACK, after which the next segment sets the probe timer. Returns `true` if the ACK
    /// of a probe is awaited.
    pub fn on_ack(&mut self) -> bool {
        self.rack_tlp.as_mut().is_some_and(|tlp| {
            tlp.probe_set = None;
            tlp.probe.is_awaited()
        })
    }

    /// Notes that a segment sent at `at`, or an ACK or a lone segment (`None`), sets the probe
    /// timer. Returns `false` for a further segment of the same instant, and without RACK-TLP.
    pub fn sets_probe(&mut self, at: Option<Time>) -> bool {
        let Some(tlp) = &mut self.rack_tlp else { return false };
        if tlp.timer == Timer::Probe && at.is_some() && tlp.probe_set == at {
            return false;
        }
        tlp.probe_set = at;
        true
    }

    /// Sets the probe timer to `deadline`.
    pub fn set_probe(&mut self, deadline: Time) {
        if let Some(tlp) = &mut self.rack_tlp {
            tlp.timer = Timer::Probe;
            self.deadline = deadline;
        }
    }

    /// Stops the probe timer.
    pub fn stop_probe(&mut self) {
        self.stop_timer(Timer::Probe);
    }

    /// Ends the wait for a probe's ACK and stops the probe timer, as losses were found (Linux
    /// `tcp_init_cwnd_reduction`, `tcp_enter_loss`).
    pub fn cancel_probe(&mut self) {
        self.stop_probe();
        if let Some(tlp) = &mut self.rack_tlp {
            tlp.probe.forget();
        }
    }

    /// Processes an expiry of the probe timer. Returns `true` if a probe follows: it is `possible`,
    /// and the outcome of no earlier probe is awaited.
    pub fn on_probe_timer(&mut self, possible: bool) -> bool {
        self.rack_tlp.as_mut().is_some_and(|tlp| tlp.probe.on_timer(possible))
    }

    /// `true` if a probe is due.
    #[inline]
    pub fn is_probe_due(&self) -> bool {
        self.rack_tlp.as_ref().is_some_and(|tlp| tlp.probe.is_due())
    }

    /// Takes the due probe: `true` if there is one.
    pub fn take_probe_due(&mut self) -> bool {
        self.rack_tlp.as_mut().is_some_and(|tlp| tlp.probe.take_due())
    }

    /// Notes a probe that was sent, with SND.MAX at `high`; `again` is the range that it
    /// retransmits and its time.
    pub fn on_probe_sent(&mut self, high: u64, again: Option<(Range, Time)>) {
        self.deadline = Time::NEVER;
        if let Some(tlp) = &mut self.rack_tlp {
            tlp.timer = Timer::Off;
            tlp.probe.on_sent(high, again);
        }
    }

    /// `true` if the awaited probe was a retransmission, which may arrive twice.
    pub fn probe_is_retransmission(&self) -> bool {
        self.rack_tlp.as_ref().is_some_and(|tlp| tlp.probe.is_retransmission())
    }

    /// `true` if a probe that was a retransmission is in flight.
    pub fn is_probing(&self) -> bool {
        self.rack_tlp.as_ref().is_some_and(|tlp| tlp.probe.in_flight_probe().is_some())
    }

    /// Outcome of the probe once it is known: `true` if it repaired a loss
    /// ([`TailLossProbe::outcome`]).
    pub fn probe_outcome(&mut self, una: u64, duplicate: bool) -> Option<bool> {
        self.rack_tlp.as_mut()?.probe.outcome(una, duplicate)
    }
}

impl RackTlp {
    /// Notes the arrival of `new`. The timestamp echo may show if the retransmission arrived (Linux
    /// `tcp_skb_spurious_retrans`).
    fn on_arrival(&mut self, sent: &SentSegments, new: Range, arrival: &Arrival) {
        let &Arrival { now, top, min_rtt, echo, mss } = arrival;
        let is_it = |sent: Time| echo.is_none_or(|echo| echo >= sent);
        // Of several retransmissions the last sent counts. An arrival sooner than the minimum RTT
        // is the original (RFC 8985 § 6.2, step 2).
        let counts = |sent| is_it(sent) && now.since(sent) >= min_rtt;
        if let Some(again) = sent.last_retransmission(new, counts) {
            self.rack.on_arrival(now, again, None);
        }
        let mut end = new.end;
        if let Some((probe, sent)) = self.probe.take_in_flight_probe(new.end) {
            if is_it(sent) {
                self.rack.on_arrival(now, (sent, probe.end), Some(min_rtt));
            }
            end = end.min(probe.start);
        }
        // Data that was sent only once.
        let start = sent.first_sent_once(new.start);
        if start >= end || sent.retransmit_count(start) > 0 {
            return;
        }
        if start < top {
            self.rack.on_reordering((top - start).div_ceil(mss));
        }
        if sent.retransmit_count(end - 1) == 0
            && let Some((first, last)) = sent.sent_at_both(start, end - 1)
        {
            self.rack.on_arrival(now, (last, end), None);
            let first = self.sacked.map(|(first, _)| first).or(first);
            self.sacked = first.map(|first| (first, last));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{LossRule, Params};
    use crate::sent_segments::Notes;

    #[test]
    fn what_went_within_the_last_round_trip_is_not_old() {
        let ms = |ms: u64| Time(ms * 1_000_000);
        let params = Params::default().with(|p| p.detection.loss_rule = LossRule::Rack);
        let (mut loss, mut sent) =
            (LossDetector::new(true), SentSegments::new(&params, Notes::default()));
        let old =
            |loss: &LossDetector, sent: &SentSegments, now| loss.old_data(sent, now).unwrap().1;
        for n in 0..20 {
            sent.on_sent(Range { start: n * 1000, end: (n + 1) * 1000 }, ms(n), 1000);
        }
        assert_eq!(old(&loss, &sent, ms(19)), 20_000, "no arrival has told how long that is");
        let (_, last) = sent.take_in_order(1000);
        loss.on_in_order(ms(40), last, 1000);
        assert_eq!(old(&loss, &sent, ms(50)), 11_000);
        assert_eq!(old(&loss, &sent, ms(59)), 20_000);
        loss.on_probe_sent(20_000, Some((Range { start: 19_000, end: 20_000 }, ms(30))));
        assert_eq!((old(&loss, &sent, ms(59)), old(&loss, &sent, ms(70))), (19_000, 20_000));
    }
}
