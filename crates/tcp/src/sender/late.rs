//! RACK at the sender (RFC 8985 § 6): what arrived, what is lost by now; and data that came late and was taken for lost: how that is seen
//! (RFC 3522) and taken back (RFC 4015).

use cwnd_units::{Duration, Time};

use super::undo::Before;
use super::{Sender, State};
use crate::late::Wait;
use crate::params::Recovery;
use crate::ranges::Range;
use crate::segment::SackBlocks;

impl Sender {
    /// Data of `[seq, end)` goes for the first time.
    #[inline(never)]
    pub(super) fn note_original(&mut self, now: Time, seq: u64, end: u64) {
        if let Some(late) = &mut self.late {
            late.on_sent(seq, end, now);
        }
        self.wait_for_the_tail(now, false);
    }

    /// Takes SACK blocks in, as the scoreboard does without RACK; returns how many bytes they newly report. Up to `top` something had arrived.
    #[cold]
    pub(super) fn take_sacks(&mut self, now: Time, blocks: &SackBlocks, ack: u64, top: u64) -> u64 {
        let (una, high) = (self.una, self.high);
        // Linux looks at them from the lowest (tcp_input.c, `tcp_sacktag_write_queue`).
        let mut upwards = *blocks;
        upwards.sort_unstable_by_key(|block| block.offset);
        for block in upwards.iter().filter(|block| block.len > 0) {
            let (start, end) = (block.start(ack), block.end(ack));
            if start < ack || end > high {
                continue;
            }
            let mut at = start;
            while let Some(new) = self.scoreboard.gap(at, end) {
                self.on_arrival(now, new, top, None);
                at = new.end;
            }
        }
        let new = self.scoreboard.update(blocks, ack, high);
        self.scoreboard.look_at_retransmissions(una);
        new
    }

    /// All below `ack` has arrived: what of it was not known; up to `top` something had arrived before this ACK. Returns whether something may
    /// be lost by that.
    #[inline(never)]
    pub(super) fn take_ack(&mut self, now: Time, ack: u64, top: u64, echo: Time) -> bool {
        let Some(late) = &mut self.late else { return false };
        if self.scoreboard.is_in_order(self.una) && late.tail.under_way.is_none() {
            late.on_in_order(now, ack);
            return false;
        }
        let mut at = self.una;
        let echo = self.echoes_tell().then_some(echo);
        while let Some(new) = self.scoreboard.gap(at, ack) {
            self.on_arrival(now, new, top, echo);
            at = new.end;
        }
        if let Some(late) = &mut self.late {
            late.forget_below(ack);
        }
        true
    }

    /// `[new.start, new.end)` arrived, and up to `top` something did before. What the ACK echoes tells, if it does, whether it was the
    /// retransmission that arrived (Linux, `tcp_skb_spurious_retrans`).
    fn on_arrival(&mut self, now: Time, new: Range, top: u64, echo: Option<Time>) {
        let Some(late) = &mut self.late else { return };
        let least = self.rtt.min().unwrap_or(Duration::ZERO);
        let is_it = |sent: Time| echo.is_none_or(|echo| echo >= sent);
        for (sent, end) in self.scoreboard.retransmissions(new).filter(|&(sent, _)| is_it(sent)) {
            late.on_arrival(now, (sent, end), Some(least));
        }
        let mut end = new.end;
        let probe = late.tail.under_way.filter(|(probe, _)| probe.end == new.end);
        if let Some((probe, sent)) = probe {
            if is_it(sent) {
                late.on_arrival(now, (sent, probe.end), Some(least));
            }
            end = end.min(probe.start);
            late.tail.under_way = None;
        }
        // What went only once.
        let start = self.scoreboard.first_once(new.start);
        if start >= end || self.copies.of(start) > 0 {
            return;
        }
        if start < top {
            late.see_reordering();
        }
        if let Some(sent) = late.sent_at(end - 1).filter(|_| self.copies.of(end - 1) == 0) {
            late.on_arrival(now, (sent, end), None);
        }
    }

    /// What is lost by now; and the timer waits for what is not yet.
    #[cold]
    pub(super) fn detect_late(&mut self, now: Time) -> bool {
        let recovery = !matches!(self.recovery, State::Open);
        let (params, mss) = (&self.config.params, self.config.mss);
        let enough = self.scoreboard.sacked_bytes() > u64::from(params.dup_thresh - 1) * mss;
        let (una, rto) = (self.una, self.rto());
        let Some(late) = &mut self.late else { return false };
        if !late.take_arrived() {
            return false;
        }
        // SACK may come before any sample.
        let least = self.rtt.min().unwrap_or(late.rtt());
        let srtt = self.rtt.srtt().unwrap_or(least);
        let lost = late.patience(late.window(recovery || enough, least, srtt));
        let (before, mut edge) = late.due(now, lost);
        let mut waits = Time::ZERO;
        if let Some((probe, sent)) = late.tail.under_way {
            let over = lost.of((sent, probe.end));
            if over <= now {
                late.tail.under_way = None;
            } else {
                edge = edge.min(probe.start);
                waits = if over == Time::NEVER { Time::ZERO } else { over };
            }
        }
        let (found, retransmissions) = self.scoreboard.lose_by_time(edge, una, now, lost);
        // The last of what is missing is what is waited for (RFC 8985 § 6.2, step 5: the largest of all).
        if let Some(byte) = self.scoreboard.last_missing(edge.max(una), before)
            && let Some(sent) = late.sent_at(byte)
        {
            waits = waits.max(lost.of((sent, byte)));
        }
        waits = waits.max(retransmissions);
        if waits > now {
            late.waits_for = Wait::Order;
            self.late_deadline = (waits + LEAST_WAIT).min(now + rto);
        } else if late.waits_for == Wait::Order {
            late.waits_for = Wait::Nothing;
            self.late_deadline = Time::NEVER;
        }
        found
    }

    /// The timer of what is missing, or of the tail, expires.
    #[cold]
    pub(super) fn on_late(&mut self, now: Time) {
        self.late_deadline = Time::NEVER;
        let Some(late) = &mut self.late else { return };
        match core::mem::take(&mut late.waits_for) {
            Wait::Nothing => {}
            Wait::Tail => self.probe_the_tail(now),
            Wait::Order => {
                late.look();
                if self.detect_late(now) && self.is_still_short() {
                    self.enter_recovery(now);
                }
            }
        }
    }

    /// An ACK was taken in, before which `flight` was in flight; `told` if it told anything else than `advanced`.
    #[inline(never)]
    pub(super) fn after_ack(&mut self, now: Time, flight: u64, advanced: bool, told: bool) {
        if self.late.as_ref().is_some_and(|late| late.tail.until.is_some()) {
            self.judge_probe(now, flight, !advanced && !told);
        }
        if advanced {
            if self.is_still_short() {
                self.enter_recovery(now);
            }
            self.wait_for_the_tail(now, true);
        }
    }

    /// A recovery begins, and its first segment goes again: what to come back to if that arrives all the same.
    pub(super) fn remember(&mut self, now: Time) -> Option<Box<Before>> {
        let sack = self.config.params.recovery == Recovery::Sack;
        let plain = self.rack && sack && self.echoes_tell() && self.cc.beyond_window().is_none();
        plain.then(|| self.as_it_is(now))
    }

    /// The first ACK of a recovery that acknowledges new data, with the timestamp that it echoes: if what let it go is older than the
    /// retransmission, the original came late (RFC 3522 § 3.2, steps 4 to 6; Linux `tcp_packet_delayed`). Then the window is again as it
    /// was (RFC 4015 § 3.2; `tcp_undo_cwnd_reduction`), and from now on what is missing has time.
    #[cold]
    pub(super) fn judge(&mut self, echo: Time) {
        match self.recovery {
            State::Recovery(_) => {}
            State::Loss { .. } => return self.judge_timeout(echo),
            State::Open => {
                self.before = None;
                return;
            }
        }
        let Some(before) = self.before.take() else { return };
        if !before.is_younger_than(echo) {
            return;
        }
        self.take_back(Some(before));
        self.counters.undone += 1;
        if let Some(late) = &mut self.late {
            late.see_reordering();
            // Losses are looked for anew (`tcp_undo_cwnd_reduction`).
            late.look();
        }
    }
}

/// The timer waits so much longer than what is missing needs (Linux, `TCP_TIMEOUT_MIN_US`: two ticks of a millisecond).
pub(super) const LEAST_WAIT: Duration = Duration::from_millis(2);
