//! Detection of losses by time: RACK (RFC 8985 § 6), the tail loss probe (§ 7), and the timer that
//! both share.

use cwnd_packet::Range;
use cwnd_quantity::{Duration, Time};

use crate::rack::Rack;
use crate::sent_segments::SentSegments;
use crate::tail_loss_probe::TailLossProbe;

/// Losses by time, where SACK reports what arrived; without it nothing is kept.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct LossDetector {
    /// Time when the reordering window of missing data is over, or the tail is probed;
    /// `Time::NEVER` if neither timer runs.
    deadline: Time,
    rack_tlp: Option<Box<RackTlp>>,
}

/// RACK-TLP (RFC 8985), and what D-SACK reports to it.
#[derive(Clone, Debug, Default)]
struct RackTlp {
    rack: Rack,
    probe: TailLossProbe,
    /// The timer of both.
    timer: Timer,
    /// The instant at which a segment that went set the probe timer, and no ACK came since: others
    /// of that instant change nothing.
    probe_set: Option<Time>,
    /// Of what an ACK newly reports and went once: when the first and the last of it went.
    sacked: Option<(Time, Time)>,
    /// Segments that D-SACKs reported to have arrived twice.
    twice: u64,
    /// Bytes that the ACK reports to have arrived twice.
    twice_bytes: u64,
}

/// Timer that runs: Linux has one for both (tcp_timer.c, `tcp_write_timer_handler`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Timer {
    #[default]
    Off,
    /// Until the reordering window of missing data is over.
    Reordering,
    /// No ACK came for long: the tail is probed.
    Probe,
}

/// Facts of an ACK by which data arrived.
pub(super) struct Arrival {
    pub now: Time,
    /// One past the highest byte that had arrived before.
    pub top: u64,
    /// The least round trip.
    pub least: Duration,
    /// Timestamp that the ACK echoes, if that shows which transmission arrived.
    pub echo: Option<Time>,
    pub mss: u64,
}

/// Facts of a search for losses.
pub(super) struct Search {
    pub now: Time,
    pub una: u64,
    /// `true` if no reordering window is left while nothing was reordered.
    pub hurries: bool,
    /// The least and the smoothed round trip; SACK may come before any sample.
    pub least: Option<Duration>,
    pub srtt: Option<Duration>,
}

/// A D-SACK (RFC 2883).
pub(super) struct Dsack {
    /// End of the data that arrived twice, and its size.
    pub end: u64,
    pub segments: u64,
    pub bytes: u64,
    /// Retransmissions until now.
    pub retransmissions: u64,
}

impl LossDetector {
    /// A detector that finds losses `by_time`.
    pub fn new(by_time: bool) -> Self {
        Self { deadline: Time::NEVER, rack_tlp: by_time.then(Box::default) }
    }

    /// `true` if it finds losses by time.
    #[inline]
    pub const fn is_by_time(&self) -> bool {
        self.rack_tlp.is_some()
    }

    /// Time at which its timer expires.
    #[inline]
    pub const fn deadline(&self) -> Time {
        self.deadline
    }

    /// The timer is stopped.
    pub const fn stop(&mut self) {
        self.deadline = Time::NEVER;
    }

    /// The timer expires, and was this one.
    pub fn expire(&mut self) -> Timer {
        self.deadline = Time::NEVER;
        self.rack_tlp.as_mut().map_or(Timer::Off, |tlp| core::mem::take(&mut tlp.timer))
    }

    /// Round-trip time of the last arrival, and the number up to which all went longer ago (Linux,
    /// `tcp_rack_skb_timeout`), a probe of the tail included.
    pub fn old(&self, sent: &SentSegments, now: Time) -> Option<(Duration, u64)> {
        let tlp = self.rack_tlp.as_ref()?;
        let rtt = tlp.rack.rtt();
        let old = sent.older_than(now, rtt);
        match tlp.probe.under_way() {
            Some((probe, sent)) if sent + rtt > now => Some((rtt, old.min(probe.start))),
            _ => Some((rtt, old)),
        }
    }

    /// All below `ack` arrived in its order and went once, the last of it at `last`.
    pub fn on_in_order(&mut self, now: Time, last: Option<Time>, ack: u64) {
        let Some(tlp) = &mut self.rack_tlp else { return };
        if let Some(last) = last {
            tlp.rack.on_arrival(now, (last, ack), None);
        }
        tlp.rack.on_delivery(now);
    }

    /// All of `range` arrived: looks at what of it was not known.
    pub fn on_arrivals(&mut self, sent: &SentSegments, range: Range, arrival: &Arrival) {
        let Some(tlp) = &mut self.rack_tlp else { return };
        let mut at = range.start;
        while let Some(new) = sent.gap(at, range.end) {
            tlp.on_arrival(sent, new, arrival);
            at = new.end;
        }
    }

    /// An ACK that reported arrivals was taken in.
    pub fn on_delivery(&mut self, now: Time) {
        if let Some(tlp) = &mut self.rack_tlp {
            tlp.rack.on_delivery(now);
        }
    }

    /// Send times of the first and the last segment that arrivals reported since the last call, of
    /// those that went once.
    pub fn take_sacked(&mut self) -> Option<(Time, Time)> {
        self.rack_tlp.as_mut()?.sacked.take()
    }

    /// Bytes that D-SACK reported since the last call: needless retransmissions were delivered, too
    /// (`tcp_dsack_seen`).
    pub fn take_twice(&mut self) -> u64 {
        self.rack_tlp.as_mut().map_or(0, |tlp| core::mem::take(&mut tlp.twice_bytes))
    }

    /// A D-SACK came (Linux, `tcp_check_dsack`). Returns `false` if it was the network that sent
    /// the data twice.
    pub fn on_dsack(&mut self, dsack: &Dsack) -> bool {
        let Some(tlp) = &mut self.rack_tlp else { return false };
        tlp.twice += dsack.segments;
        if tlp.twice > dsack.retransmissions {
            return false;
        }
        tlp.twice_bytes += dsack.bytes;
        if !tlp.probe.on_dsack(dsack.end, dsack.segments) {
            tlp.rack.on_duplicate();
        }
        true
    }

    /// Losses are looked for anew.
    pub fn look(&mut self) {
        if let Some(tlp) = &mut self.rack_tlp {
            tlp.rack.look();
        }
    }

    /// Finds what is lost by now. Returns `true` if anything is, and the time for which the rest is
    /// waited for; `None` if nothing arrived since the last search.
    pub fn detect(&mut self, sent: &mut SentSegments, search: &Search) -> Option<(bool, Time)> {
        let tlp = self.rack_tlp.as_mut()?;
        if !tlp.rack.take_arrived() {
            return None;
        }
        let (now, una) = (search.now, search.una);
        let least = search.least.unwrap_or(tlp.rack.rtt());
        let srtt = search.srtt.unwrap_or(least);
        let lost = tlp.rack.patience(tlp.rack.window(search.hurries, least, srtt));
        let (before, mut edge) = sent.due(now, lost);
        let mut waits = Time::ZERO;
        if let Some((probe, sent)) = tlp.probe.under_way() {
            let over = lost.of((sent, probe.end));
            if over <= now {
                tlp.probe.lose();
            } else {
                edge = edge.min(probe.start);
                waits = if over == Time::NEVER { Time::ZERO } else { over };
            }
        }
        let (found, retransmissions) = sent.lose_by_time(edge, una, now, lost);
        // The last of what is missing is what is waited for (RFC 8985 § 6.2, step 5: the largest of
        // all).
        if let Some(byte) = sent.last_missing(edge.max(una), before)
            && let Some(sent) = sent.sent_at(byte)
        {
            waits = waits.max(lost.of((sent, byte)));
        }
        Some((found, waits.max(retransmissions)))
    }

    /// Missing data is waited for until then.
    pub fn wait_for_order(&mut self, until: Time) {
        if let Some(tlp) = &mut self.rack_tlp {
            tlp.timer = Timer::Reordering;
            self.deadline = until;
        }
    }

    /// Nothing is missing any more, or it is lost.
    pub fn end_wait_for_order(&mut self) {
        self.stop_timer(Timer::Reordering);
    }

    fn stop_timer(&mut self, timer: Timer) {
        if let Some(tlp) = self.rack_tlp.as_mut().filter(|tlp| tlp.timer == timer) {
            tlp.timer = Timer::Off;
            self.deadline = Time::NEVER;
        }
    }

    /// The most segments by which anything was late.
    pub fn most_late(&self) -> u64 {
        self.rack_tlp.as_ref().map_or(0, |tlp| tlp.rack.most_late())
    }

    /// Something was so many segments late. Returns `true` if a probe of the tail is in flight.
    pub fn see_reordering(&mut self, segments: u64) -> bool {
        let Some(tlp) = &mut self.rack_tlp else { return false };
        tlp.rack.see_reordering(segments);
        tlp.probe.under_way().is_some()
    }

    /// A recovery is over; needless, if it was taken back as all that went again had arrived.
    pub fn on_recovered(&mut self, needless: bool) {
        if let Some(tlp) = &mut self.rack_tlp {
            tlp.rack.on_recovered(needless);
        }
    }

    /// An ACK came, so that the next segment sets the probe timer. Returns `true` if one of a probe
    /// is waited for.
    pub fn on_ack(&mut self) -> bool {
        self.rack_tlp.as_mut().is_some_and(|tlp| {
            tlp.probe_set = None;
            tlp.probe.is_awaited()
        })
    }

    /// The probe timer is to be set at `at`, by a segment; `None` by an ACK. Returns `false` if
    /// that changes nothing, or nothing is probed.
    pub fn sets_probe(&mut self, at: Option<Time>) -> bool {
        let Some(tlp) = &mut self.rack_tlp else { return false };
        if tlp.timer == Timer::Probe && at.is_some() && tlp.probe_set == at {
            return false;
        }
        tlp.probe_set = at;
        true
    }

    /// The tail is probed then.
    pub fn set_probe(&mut self, deadline: Time) {
        if let Some(tlp) = &mut self.rack_tlp {
            tlp.timer = Timer::Probe;
            self.deadline = deadline;
        }
    }

    /// The tail is not probed.
    pub fn stop_probe(&mut self) {
        self.stop_timer(Timer::Probe);
    }

    /// Losses were found: what a probe would have shown is known (Linux,
    /// `tcp_init_cwnd_reduction`, `tcp_enter_loss`).
    pub fn forget_probe(&mut self) {
        self.stop_probe();
        if let Some(tlp) = &mut self.rack_tlp {
            tlp.probe.forget();
        }
    }

    /// The probe timer expired: the probe goes next if it is `possible`, unless there was one since
    /// the last progress. Returns `true` if it goes.
    pub fn on_probe_timer(&mut self, possible: bool) -> bool {
        self.rack_tlp.as_mut().is_some_and(|tlp| tlp.probe.on_timer(possible))
    }

    /// `true` if a probe goes now.
    #[inline]
    pub fn is_probe_due(&self) -> bool {
        self.rack_tlp.as_ref().is_some_and(|tlp| tlp.probe.is_due())
    }

    /// The same, and from now on it does not.
    pub fn take_probe_due(&mut self) -> bool {
        self.rack_tlp.as_mut().is_some_and(|tlp| tlp.probe.take_due())
    }

    /// A probe went, with all up to `high` sent by then; `again` is what it repeats, and when.
    pub fn on_probe_sent(&mut self, high: u64, again: Option<(Range, Time)>) {
        self.deadline = Time::NEVER;
        if let Some(tlp) = &mut self.rack_tlp {
            tlp.timer = Timer::Off;
            tlp.probe.on_sent(high, again);
        }
    }

    /// `true` if a probe that went was no new data, and may arrive twice.
    pub fn probe_repeats(&self) -> bool {
        self.rack_tlp.as_ref().is_some_and(|tlp| tlp.probe.repeats())
    }

    /// `true` if a probe that was no new data is in flight.
    pub fn is_probing(&self) -> bool {
        self.rack_tlp.as_ref().is_some_and(|tlp| tlp.probe.under_way().is_some())
    }

    /// Returns, once it is known, `true` if the probe repaired a loss ([`TailLossProbe::judge`]).
    pub fn judge_probe(&mut self, una: u64, duplicate: bool) -> Option<bool> {
        self.rack_tlp.as_mut()?.probe.judge(una, duplicate)
    }
}

impl RackTlp {
    /// `new` arrived. What the ACK echoes shows, if it does, whether it was the retransmission that
    /// arrived (Linux, `tcp_skb_spurious_retrans`).
    fn on_arrival(&mut self, sent: &SentSegments, new: Range, arrival: &Arrival) {
        let &Arrival { now, top, least, echo, mss } = arrival;
        let is_it = |sent: Time| echo.is_none_or(|echo| echo >= sent);
        // Of several the one counts that went last. Sooner than any round trip comes the original
        // (RFC 8985 § 6.2, step 2).
        let counts = |sent| is_it(sent) && now.since(sent) >= least;
        if let Some(again) = sent.last_retransmission(new, counts) {
            self.rack.on_arrival(now, again, None);
        }
        let mut end = new.end;
        if let Some((probe, sent)) = self.probe.take_under_way(new.end) {
            if is_it(sent) {
                self.rack.on_arrival(now, (sent, probe.end), Some(least));
            }
            end = end.min(probe.start);
        }
        // What went only once.
        let start = sent.first_once(new.start);
        if start >= end || sent.times_again(start) > 0 {
            return;
        }
        if start < top {
            self.rack.see_reordering((top - start).div_ceil(mss));
        }
        if sent.times_again(end - 1) == 0
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
        let old = |loss: &LossDetector, sent: &SentSegments, now| loss.old(sent, now).unwrap().1;
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
