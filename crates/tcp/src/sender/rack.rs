//! RACK at the sender (RFC 8985 § 6): what arrived, and what is lost by now.

use cwnd_cc::Controller as _;
use cwnd_quantity::{Duration, Time};

use super::Sender;
use crate::rack::Rack;
use crate::segment::SackBlocks;
use crate::sent_segments::SentSegments;
use crate::tail_loss_probe::TailLossProbe;
use cwnd_packet::Range;

impl Sender {
    /// New data of `[seq, end)` goes: it is timed, and when it went is noted.
    #[inline(never)]
    pub(super) fn note_original(&mut self, now: Time, seq: u64, end: u64) {
        self.rtt.on_sent(end, now);
        self.sent.on_sent(Range { start: seq, end }, now, self.config.mss);
        self.wait_for_the_tail(now, false);
    }

    /// Up to where segments are acknowledged as a whole (Linux, `tcp_clean_rtx_queue`).
    #[inline(never)]
    pub(super) fn whole(&self, ack: u64) -> u64 {
        if self.rack_tlp.is_none() || !self.config.params.whole_segments {
            return ack;
        }
        self.sent.begin_of(ack, self.config.segments).max(self.seq.una())
    }

    /// Takes SACK blocks in, where RACK looks at each arrival; returns how many bytes they newly
    /// report. Up to `top` something had arrived.
    #[cold]
    pub(super) fn take_sacks(&mut self, now: Time, blocks: &SackBlocks, ack: u64, top: u64) -> u64 {
        let (una, high) = (self.seq.una(), self.seq.high());
        if let Some(again) = told_twice(blocks, ack) {
            self.on_told_twice(again);
        }
        let whole = self.config.params.whole_segments.then_some(self.config.segments);
        let (upwards, pieces) = self.sent.new_blocks(blocks, ack, whole);
        let upwards = pieces.as_deref().unwrap_or(&upwards);
        for block in upwards.iter().filter(|block| block.len > 0) {
            let (start, end) = (block.start(ack).max(ack.max(una)), block.end(ack));
            if end > high {
                continue;
            }
            let mut at = start;
            while let Some(new) = self.sent.gap(at, end) {
                self.on_arrival(now, new, top, None);
                at = new.end;
            }
        }
        // An ACK that was overtaken is no sample (`tcp_ack`, `old_ack`).
        let noted = self.config.params.rtt_from_notes && ack >= una;
        if self.whole(ack) <= una
            && let Some((first, last)) = self.rack_tlp.as_mut().and_then(|tlp| tlp.sacked.take())
            && noted
        {
            self.measure_sacked(now, first, last);
        }
        let new = self.sent.on_sack_above(upwards, ack, una.max(ack), high);
        self.sent.look_at_retransmissions(una);
        if new > 0
            && self.whole(ack) <= una
            && let Some(tlp) = &mut self.rack_tlp
        {
            tlp.rack.on_delivery(now);
        }
        new
    }

    /// All below `ack` has arrived: what of it was not known; up to `top` something had arrived
    /// before this ACK. Returns whether something may be lost by that, and when the first of it
    /// went that went once and was not reported before: the sample of the round trip, unless
    /// anything was acknowledged that went again (Linux, `tcp_clean_rtx_queue`).
    #[inline(never)]
    pub(super) fn take_ack(
        &mut self,
        now: Time,
        ack: u64,
        top: u64,
        echo: Time,
    ) -> (bool, Option<Time>) {
        let noted = self.config.params.rtt_from_notes;
        let Some(tlp) = &mut self.rack_tlp else { return (false, self.first_of(ack)) };
        if tlp.probe.under_way().is_none() && self.sent.is_untouched(self.seq.una()) {
            let (first, last) = self.sent.take_in_order(ack);
            if let Some(last) = last {
                tlp.rack.on_arrival(now, (last, ack), None);
            }
            tlp.rack.on_delivery(now);
            return (false, first.filter(|_| noted));
        }
        let went_again = self.sent.any_again(self.seq.una(), ack);
        let sacked = tlp.sacked.take();
        let mut at = self.seq.una();
        let echo = self.echoes_tell().then_some(echo);
        while let Some(new) = self.sent.gap(at, ack) {
            self.on_arrival(now, new, top, echo);
            at = new.end;
        }
        let Some(tlp) = &mut self.rack_tlp else { return (false, None) };
        tlp.rack.on_delivery(now);
        self.sent.forget_times_below(ack);
        let acked = tlp.sacked.take().filter(|_| !went_again);
        (true, acked.or(sacked).map(|(first, _)| first).filter(|_| noted))
    }

    /// `[new.start, new.end)` arrived, and up to `top` something did before. What the ACK echoes
    /// tells, if it does, whether it was the retransmission that arrived (Linux,
    /// `tcp_skb_spurious_retrans`).
    fn on_arrival(&mut self, now: Time, new: Range, top: u64, echo: Option<Time>) {
        let Some(tlp) = &mut self.rack_tlp else { return };
        let least = self.rtt.min().unwrap_or(Duration::ZERO);
        let is_it = |sent: Time| echo.is_none_or(|echo| echo >= sent);
        // Of several the one counts that went last. Sooner than any round trip comes the original
        // (RFC 8985 § 6.2, step 2).
        let counts = |sent| is_it(sent) && now.since(sent) >= least;
        if let Some(again) = self.sent.last_retransmission(new, counts) {
            tlp.rack.on_arrival(now, again, None);
        }
        let mut end = new.end;
        if let Some((probe, sent)) = tlp.probe.take_under_way(new.end) {
            if is_it(sent) {
                tlp.rack.on_arrival(now, (sent, probe.end), Some(least));
            }
            end = end.min(probe.start);
        }
        // What went only once.
        let start = self.sent.first_once(new.start);
        if start >= end || self.sent.times_again(start) > 0 {
            return;
        }
        if start < top {
            tlp.rack.see_reordering((top - start).div_ceil(self.config.mss));
        }
        if self.sent.times_again(end - 1) == 0
            && let Some((first, last)) = self.sent.sent_at_both(start, end - 1)
        {
            tlp.rack.on_arrival(now, (last, end), None);
            let first = tlp.sacked.map(|(first, _)| first).or(first);
            tlp.sacked = first.map(|first| (first, last));
        }
    }

    /// An ACK that acknowledges nothing new reported data by SACK that went once: a sample of the
    /// round trip (Linux, `tcp_ack_update_rtt`). If it went before the first outstanding segment
    /// went again, the timer begins anew (`tcp_clean_rtx_queue`).
    #[cold]
    fn measure_sacked(&mut self, now: Time, first: Time, last: Time) {
        if !self.config.plan.controller_rtt {
            let (path, rtt) = (self.path(now), self.config.measured(last.0, now.0));
            self.cc.on_sack_rtt(&path, rtt);
        }
        let seen = self.rtt.seen();
        self.take_rtt(now, first);
        if self.config.plan.controller_rtt {
            self.rtt.restore_seen(seen);
        } else {
            self.rtt.see(self.config.measured(last.0, now.0));
        }
        if self.rto.backs_off() {
            self.end_of_backoff(self.seq.una());
        }
        if self.sent.resent_at(self.seq.una()).is_some_and(|again| first < again) {
            self.rto.set(now + self.rto());
        }
    }

    /// Finds what is lost by now, and sets the timer for what is not yet.
    #[cold]
    pub(super) fn detect_by_time(&mut self, now: Time) -> bool {
        let recovery = !self.recovery.is_open();
        let (params, mss) = (&self.config.params, self.config.mss);
        let enough = self.sent.sacked_bytes() > u64::from(params.dup_thresh - 1) * mss;
        let una = self.seq.una();
        let more = Duration(MORE_TICKS * params.rto_granularity.0);
        let Some(tlp) = &mut self.rack_tlp else { return false };
        if !tlp.rack.take_arrived() {
            return false;
        }
        // SACK may come before any sample.
        let least = self.rtt.min().unwrap_or(tlp.rack.rtt());
        let srtt = self.rtt.srtt().unwrap_or(least);
        let lost = tlp.rack.patience(tlp.rack.window(recovery || enough, least, srtt));
        let (before, mut edge) = self.sent.due(now, lost);
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
        let (found, retransmissions) = self.sent.lose_by_time(edge, una, now, lost);
        // The last of what is missing is what is waited for (RFC 8985 § 6.2, step 5: the largest of
        // all).
        if let Some(byte) = self.sent.last_missing(edge.max(una), before)
            && let Some(sent) = self.sent.sent_at(byte)
        {
            waits = waits.max(lost.of((sent, byte)));
        }
        waits = waits.max(retransmissions);
        if waits > now {
            tlp.timer = Timer::Reordering;
            self.loss_deadline = (waits + more).min(now + self.rto());
        } else if tlp.timer == Timer::Reordering {
            tlp.timer = Timer::Off;
            self.loss_deadline = Time::NEVER;
        }
        found
    }

    /// Nothing was delivered, and something may be lost all the same: the window stays, and if less
    /// is in flight so much more may go (Linux,
    /// `tcp_cwnd_reduction`).
    fn detect_undelivered(&mut self, now: Time) -> bool {
        let before = self.sent.pipe(self.seq.una(), self.seq.nxt());
        let found = self.detect_by_time(now);
        let left = before.saturating_sub(self.sent.pipe(self.seq.una(), self.seq.nxt()));
        if self.recovery.is_fast()
            && let Some(prr) = self.recovery.prr_mut()
        {
            prr.allow_more(left);
        }
        found
    }

    /// The timer of what is missing, or of the tail, expires.
    #[cold]
    pub(super) fn on_loss_timer(&mut self, now: Time) {
        self.loss_deadline = Time::NEVER;
        let Some(tlp) = &mut self.rack_tlp else { return };
        match core::mem::take(&mut tlp.timer) {
            Timer::Off => {}
            Timer::Probe => self.probe_the_tail(now),
            Timer::Reordering => {
                tlp.rack.look();
                let found = self.detect_undelivered(now);
                // While a timeout is repaired any loss does (`tcp_rack_reo_timeout`).
                let repairs = self.recovery.is_loss();
                let recovers = repairs && self.config.params.recovers_in_loss;
                if found && (recovers || self.is_still_short()) {
                    self.enter_recovery(now);
                    // Linux lets it count as if a segment had arrived (`tcp_rack_reo_timeout`).
                    self.update_prr(self.config.mss, false);
                }
            }
        }
    }

    /// An ACK was taken in, before which `flight` was in flight; `told` if it told anything else
    /// than `advanced`. Returns whether losses were found meanwhile.
    #[inline(never)]
    pub(super) fn after_ack(&mut self, now: Time, flight: u64, advanced: bool, told: bool) -> bool {
        if let Some(tlp) = &mut self.rack_tlp {
            tlp.probe_set = None;
            if tlp.probe.is_awaited() {
                self.judge_probe(now, flight, !advanced && !told);
            }
        }
        let needless = self.undo.all_arrived();
        let mut found = needless && self.take_back_needless(now);
        if !advanced && !told && self.recovery.is_fast() {
            // What an ACK before left open (`Judged::Open`).
            found |= self.detect_undelivered(now);
        }
        if (advanced || needless) && self.is_still_short() || self.loses_in_loss() {
            self.enter_recovery(now);
        }
        if advanced {
            self.wait_for_the_tail(now, true);
        }
        found
    }

    /// The other end tells that `[again.start, again.end)` arrived twice (RFC 2883; Linux,
    /// `tcp_check_dsack`).
    #[cold]
    fn on_told_twice(&mut self, again: Range) {
        let (mss, una) = (self.config.mss, self.seq.una());
        let segments = (again.end - again.start).div_ceil(mss);
        let Some(tlp) = &mut self.rack_tlp else { return };
        tlp.told_twice += segments;
        if tlp.told_twice > self.counters.retransmissions {
            // It was the network that sent it twice.
            return;
        }
        // What was sent again needlessly was delivered, too (`tcp_dsack_seen`).
        tlp.told += segments * mss;
        if !tlp.probe.on_dsack(again.end, segments) {
            tlp.rack.on_duplicate();
        }
        let went_again = again.end <= una || self.sent.times_again(again.start.max(una)) > 0;
        if went_again {
            self.undo.arrived_twice(again.end, segments);
        }
    }

    /// SACK alone reported so many new bytes: where segments come later than `dup_thresh` the
    /// window grows by them all the same (Linux, `tcp_may_raise_cwnd`); they count no more when
    /// they are acknowledged.
    ///
    /// Returns the bytes that count.
    #[cold]
    pub(super) fn grow_by_sacked(&self, bytes: u64) -> u64 {
        let degree = self.rack_tlp.as_ref().map_or(0, |tlp| tlp.rack.most_late());
        let open = self.recovery.is_open() && self.recovery.cwr().is_none();
        let open = open && !self.is_still_short();
        if !open || degree <= u64::from(self.config.params.dup_thresh) {
            return 0;
        }
        bytes
    }

    /// A recovery is over.
    #[cold]
    pub(super) fn after_recovery(&mut self) {
        if let Some(tlp) = &mut self.rack_tlp {
            tlp.rack.on_recovered(false);
        }
    }
}

/// RACK-TLP (RFC 8985), and what D-SACK tells it.
#[derive(Clone, Debug, Default)]
pub(super) struct RackTlp {
    pub rack: Rack,
    pub probe: TailLossProbe,
    /// The timer of both.
    pub timer: Timer,
    /// The instant at which a segment that went set the probe timer, and no ACK came since: others
    /// of that instant change nothing.
    pub probe_set: Option<Time>,
    /// Of what an ACK newly tells of and went once: when the first and the last of it went.
    pub sacked: Option<(Time, Time)>,
    /// Segments that D-SACKs reported to have arrived twice.
    pub told_twice: u64,
    /// Bytes that the ACK reports to have arrived twice.
    pub told: u64,
}

impl RackTlp {
    /// The number up to which all went longer ago than the last arrival took (Linux,
    /// `tcp_rack_skb_timeout`), a probe of the tail included.
    pub fn old(&self, sent: &SentSegments, now: Time) -> u64 {
        let rtt = self.rack.rtt();
        let old = sent.older_than(now, rtt);
        match self.probe.under_way() {
            Some((probe, sent)) if sent + rtt > now => old.min(probe.start),
            _ => old,
        }
    }
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

/// Data that arrived twice, as the first block of an ACK may tell (RFC 2883 § 4): it lies below the
/// ACK, or within the second block.
fn told_twice(blocks: &SackBlocks, ack: u64) -> Option<Range> {
    let [first, second, ..] = blocks.map(|b| Range { start: b.start(ack), end: b.end(ack) });
    let within = second.start <= first.start && first.end <= second.end;
    let again = first.start < ack || blocks[1].len > 0 && within;
    (again && first.start < first.end).then_some(first)
}

/// The timer waits so many ticks longer than what is missing needs, or the tail (Linux,
/// `TCP_TIMEOUT_MIN_US`).
pub(super) const MORE_TICKS: u64 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{LossRule, Params};
    use crate::sent_segments::Notes;

    #[test]
    fn what_went_within_the_last_round_trip_is_not_old() {
        let ms = |ms: u64| Time(ms * 1_000_000);
        let params = Params { loss_rule: LossRule::Rack, ..Params::default() };
        let (mut tlp, mut sent) =
            (RackTlp::default(), SentSegments::new(&params, Notes::default()));
        for n in 0..20 {
            sent.on_sent(Range { start: n * 1000, end: (n + 1) * 1000 }, ms(n), 1000);
        }
        assert_eq!(tlp.old(&sent, ms(19)), 20_000, "no arrival has told how long that is");
        let (_, last) = sent.take_in_order(1000);
        tlp.rack.on_arrival(ms(40), (last.unwrap(), 1000), None);
        assert_eq!(tlp.old(&sent, ms(50)), 11_000);
        assert_eq!(tlp.old(&sent, ms(59)), 20_000);
        tlp.probe.on_sent(20_000, Some((Range { start: 19_000, end: 20_000 }, ms(30))));
        assert_eq!((tlp.old(&sent, ms(59)), tlp.old(&sent, ms(70))), (19_000, 20_000));
    }
}
