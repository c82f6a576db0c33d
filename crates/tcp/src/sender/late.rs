//! RACK at the sender (RFC 8985 § 6): what arrived, what is lost by now; and data that came late and was taken for lost: how that is seen
//! (RFC 3522) and taken back (RFC 4015).

use cwnd_cc::Controller as _;
use cwnd_quantity::{Duration, Time};

use super::undo::Before;
use super::{FastRecovery, Sender, State};
use crate::late::Wait;
use crate::params::Recovery;
use crate::ranges::Range;
use crate::segment::{SackBlock, SackBlocks};

impl Sender {
    /// Data of `[seq, end)` goes for the first time.
    #[inline(never)]
    pub(super) fn note_original(&mut self, now: Time, seq: u64, end: u64) {
        if let Some(late) = &mut self.late {
            late.on_sent(seq, end, now, self.config.mss);
        }
        self.wait_for_the_tail(now, false);
    }

    /// Up to where segments are acknowledged as a whole (Linux, `tcp_clean_rtx_queue`).
    #[inline(never)]
    pub(super) fn whole(&self, ack: u64) -> u64 {
        match &self.late {
            Some(late) if self.config.params.whole_segments => {
                late.begin_of(ack, self.config.segments).max(self.una)
            }
            _ => ack,
        }
    }

    /// What SACK tells of segments as a whole (Linux, `tcp_match_skb_to_sack`), and whether a block leaves out where a segment begins.
    fn whole_blocks(&self, blocks: &SackBlocks, ack: u64) -> (SackBlocks, bool) {
        let Some(late) = self.late.as_ref().filter(|_| self.config.params.whole_segments) else {
            return (*blocks, false);
        };
        let (mut whole, mut leaves_out) = (SackBlocks::default(), false);
        let told = blocks.iter().filter(|block| block.len > 0).map(|block| {
            let range = Range { start: block.start(ack), end: block.end(ack) };
            // What is below the ACK arrived twice.
            let of = if block.offset < 0 { range } else { late.whole(range, self.config.segments) };
            leaves_out |= of.start > range.start;
            of
        });
        for (slot, of) in whole.iter_mut().zip(told.filter(|of| of.start < of.end)) {
            *slot = SackBlock::of(ack, of.start, of.end);
        }
        (whole, leaves_out)
    }

    /// A segment whose beginning the blocks before left out is passed over for as long as blocks hold it: what they tell without such, from
    /// the lowest (Linux, `tcp_sacktag_write_queue`, which looks only at what is not in `recv_sack_cache`).
    #[cold]
    fn pass_over(&mut self, told: &SackBlocks, upwards: &SackBlocks, ack: u64) -> Vec<SackBlock> {
        let (segments, is_first) = (self.config.segments, self.scoreboard.is_empty());
        let Some(late) = &mut self.late else { return Vec::new() };
        let before = core::mem::take(&mut late.left_out);
        let mut pieces = Vec::new();
        for block in upwards.iter().filter(|block| block.len > 0) {
            let (mut from, end) = (block.start(ack), block.end(ack));
            for &segment in before.iter().filter(|_| !is_first) {
                if from <= segment.start && segment.end <= end {
                    pieces.push(SackBlock::of(ack, from, segment.start));
                    from = segment.end;
                    late.left_out.push(segment);
                }
            }
            pieces.push(SackBlock::of(ack, from, end));
        }
        for block in told.iter().filter(|block| block.len > 0 && block.offset >= 0) {
            let (start, end) = (block.start(ack), block.end(ack));
            let begin = late.begin_of(start, segments);
            if begin < start {
                let end = late.whole(Range { start, end }, segments).start;
                late.left_out.push(Range { start: begin, end });
            }
        }
        late.left_out.sort_unstable_by_key(|segment| segment.start);
        pieces.retain(|piece| piece.len > 0);
        pieces
    }

    /// The blocks but those that ACKs before told of, too; all of them while segments are left out.
    fn without_known(&self, blocks: &SackBlocks, ack: u64) -> SackBlocks {
        let mut unknown = *blocks;
        if self.late.as_ref().is_some_and(|late| late.left_out.is_empty()) {
            for block in unknown.iter_mut().filter(|block| block.len > 0) {
                let range = Range { start: block.start(ack), end: block.end(ack) };
                if self.scoreboard.has_block(range) {
                    *block = SackBlock::default();
                }
            }
        }
        unknown
    }

    /// Takes SACK blocks in, as the scoreboard does without RACK; returns how many bytes they newly report. Up to `top` something had arrived.
    #[cold]
    pub(super) fn take_sacks(&mut self, now: Time, blocks: &SackBlocks, ack: u64, top: u64) -> u64 {
        let (una, high) = (self.una, self.high);
        if let Some(again) = told_twice(blocks, ack) {
            self.on_told_twice(again);
        }
        let unknown = self.without_known(blocks, ack);
        let blocks = &unknown;
        let (mut upwards, leaves_out) = self.whole_blocks(blocks, ack);
        // Linux looks at them from the lowest (tcp_input.c, `tcp_sacktag_write_queue`).
        upwards.sort_unstable_by_key(|block| block.offset);
        let passes = leaves_out || self.late.as_ref().is_some_and(|late| !late.left_out.is_empty());
        let pieces = if passes { self.pass_over(blocks, &upwards, ack) } else { Vec::new() };
        let upwards = if passes { &pieces[..] } else { &upwards[..] };
        for block in upwards.iter().filter(|block| block.len > 0) {
            let (start, end) = (block.start(ack).max(ack.max(una)), block.end(ack));
            if end > high {
                continue;
            }
            let mut at = start;
            while let Some(new) = self.scoreboard.gap(at, end) {
                self.on_arrival(now, new, top, None);
                at = new.end;
            }
        }
        // An ACK that was overtaken is no sample (`tcp_ack`, `old_ack`).
        let noted = self.config.params.rtt_from_notes && ack >= una;
        if self.whole(ack) <= una
            && let Some((first, last)) = self.late.as_mut().and_then(|late| late.sacked.take())
            && noted
        {
            self.measure_sacked(now, first, last);
        }
        let new = self.scoreboard.update_above(upwards, ack, una.max(ack), high);
        self.scoreboard.look_at_retransmissions(una);
        if new > 0
            && self.whole(ack) <= una
            && let Some(late) = &mut self.late
        {
            late.on_delivery(now);
        }
        new
    }

    /// All below `ack` has arrived: what of it was not known; up to `top` something had arrived before this ACK. Returns whether something may
    /// be lost by that, and when the first of it went that went once and was not reported before: the sample of the round trip, unless
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
        let Some(late) = &mut self.late else { return (false, self.first_of(now, ack)) };
        let once = late.went_once(self.una) && late.tail.under_way.is_none();
        if once && self.scoreboard.is_in_order(self.una) {
            let first = late.on_in_order(now, ack);
            return (false, first.filter(|_| noted));
        }
        let went_again = self.retransmit_counts.any_in(self.una, ack);
        let sacked = late.sacked.take();
        let mut at = self.una;
        let echo = self.echoes_tell().then_some(echo);
        while let Some(new) = self.scoreboard.gap(at, ack) {
            self.on_arrival(now, new, top, echo);
            at = new.end;
        }
        let Some(late) = &mut self.late else { return (false, None) };
        late.on_delivery(now);
        late.forget_below(ack);
        let acked = late.sacked.take().filter(|_| !went_again);
        (true, acked.or(sacked).map(|(first, _)| first).filter(|_| noted))
    }

    /// `[new.start, new.end)` arrived, and up to `top` something did before. What the ACK echoes tells, if it does, whether it was the
    /// retransmission that arrived (Linux, `tcp_skb_spurious_retrans`).
    fn on_arrival(&mut self, now: Time, new: Range, top: u64, echo: Option<Time>) {
        let Some(late) = &mut self.late else { return };
        let least = self.rtt.min().unwrap_or(Duration::ZERO);
        let is_it = |sent: Time| echo.is_none_or(|echo| echo >= sent);
        // Of several the one counts that went last. Sooner than any round trip comes the original
        // (RFC 8985 § 6.2, step 2).
        let counts = |sent| is_it(sent) && now.since(sent) >= least;
        if let Some(again) = self.scoreboard.last_retransmission(new, counts) {
            late.on_arrival(now, again, None);
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
        if start >= end || self.retransmit_counts.of(start) > 0 {
            return;
        }
        if start < top {
            late.see_reordering((top - start).div_ceil(self.config.mss));
        }
        if self.retransmit_counts.of(end - 1) == 0
            && let Some((first, last)) = late.sent_at_both(start, end - 1)
        {
            late.on_arrival(now, (last, end), None);
            let first = late.sacked.map(|(first, _)| first).or(first);
            late.sacked = first.map(|first| (first, last));
        }
    }

    /// An ACK that acknowledges nothing new reported data by SACK that went once: a sample of the round trip (Linux, `tcp_ack_update_rtt`).
    /// If it went before the first outstanding segment went again, the timer begins anew (`tcp_clean_rtx_queue`).
    #[cold]
    fn measure_sacked(&mut self, now: Time, first: Time, last: Time) {
        if self.timing.is_none() {
            let (path, rtt) = (self.path(now), self.config.measured(last.0, now.0));
            self.cc.on_sack_rtt(&path, rtt);
        }
        let seen = self.rtt.seen();
        self.take_rtt(now, first);
        if self.timing.is_some() {
            self.rtt.set_seen(seen);
        } else {
            self.rtt.see(self.config.measured(last.0, now.0));
        }
        if self.backoff > 0 {
            self.end_of_backoff(self.una);
        }
        if self.scoreboard.resent_at(self.una).is_some_and(|again| first < again) {
            self.rto_deadline = now + self.rto();
        }
    }

    /// What is lost by now; and the timer waits for what is not yet.
    #[cold]
    pub(super) fn detect_late(&mut self, now: Time) -> bool {
        let recovery = !matches!(self.recovery, State::Open);
        let (params, mss) = (&self.config.params, self.config.mss);
        let enough = self.scoreboard.sacked_bytes() > u64::from(params.dup_thresh - 1) * mss;
        let una = self.una;
        let more = Duration(MORE_TICKS * params.rto_granularity.0);
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
            self.late_deadline = (waits + more).min(now + self.rto());
        } else if late.waits_for == Wait::Order {
            late.waits_for = Wait::Nothing;
            self.late_deadline = Time::NEVER;
        }
        found
    }

    /// Nothing was delivered, and something may be lost all the same: the window stays, and if less
    /// is in flight so much more may go (Linux,
    /// `tcp_cwnd_reduction`).
    fn detect_undelivered(&mut self, now: Time) -> bool {
        let before = self.scoreboard.pipe(self.una, self.nxt);
        let found = self.detect_late(now);
        let left = before.saturating_sub(self.scoreboard.pipe(self.una, self.nxt));
        if let State::Recovery(FastRecovery { prr: Some(prr), .. }) = &mut self.recovery {
            prr.allow_more(left);
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
                let found = self.detect_undelivered(now);
                // While a timeout is repaired any loss does (`tcp_rack_reo_timeout`).
                let repairs = matches!(self.recovery, State::Loss { .. });
                let recovers = repairs && self.config.params.recovers_in_loss;
                if found && (recovers || self.is_still_short()) {
                    self.enter_recovery(now);
                    // Linux lets it count as if a segment had arrived (`tcp_rack_reo_timeout`).
                    self.update_prr(self.config.mss, false);
                }
            }
        }
    }

    /// An ACK was taken in, before which `flight` was in flight; `told` if it told anything else than `advanced`. Returns whether losses were
    /// found meanwhile.
    #[inline(never)]
    pub(super) fn after_ack(&mut self, now: Time, flight: u64, advanced: bool, told: bool) -> bool {
        if let Some(late) = &mut self.late {
            late.tail_set = None;
            if late.tail.until.is_some() {
                self.judge_probe(now, flight, !advanced && !told);
            }
        }
        let needless = self.before.as_ref().is_some_and(|before| before.all_arrived());
        let mut found = needless && self.take_back_needless(now);
        if !advanced && !told && matches!(self.recovery, State::Recovery(_)) {
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

    /// The other end tells that `[again.start, again.end)` arrived twice (RFC 2883; Linux, `tcp_check_dsack`).
    #[cold]
    fn on_told_twice(&mut self, again: Range) {
        let (mss, una) = (self.config.mss, self.una);
        let segments = (again.end - again.start).div_ceil(mss);
        let Some(late) = &mut self.late else { return };
        late.twice += segments;
        if late.twice > self.counters.retransmissions {
            // It was the network that sent it twice.
            return;
        }
        // What was sent again needlessly was delivered, too (`tcp_dsack_seen`).
        late.told += segments * mss;
        if segments == 1 && late.tail.until == Some(again.end) {
            late.tail.told = true;
        } else {
            late.on_duplicate();
        }
        let went_again = again.end <= una || self.retransmit_counts.of(again.start.max(una)) > 0;
        if let Some(before) = self.before.as_mut().filter(|_| went_again) {
            before.arrived_twice(again.end, segments);
        }
    }

    /// SACK alone reported so many new bytes: where segments come later than `dup_thresh` the window grows by them all the same (Linux,
    /// `tcp_may_raise_cwnd`); they count no more when they are acknowledged.
    ///
    /// Returns the bytes that count.
    #[cold]
    pub(super) fn grow_by_sacked(&self, bytes: u64) -> u64 {
        let degree = self.late.as_ref().map_or(0, |late| late.most_late());
        let open = matches!(self.recovery, State::Open) && self.cwr.is_none();
        let open = open && !self.is_still_short();
        if !open || degree <= u64::from(self.config.params.dup_thresh) {
            return 0;
        }
        bytes
    }

    /// A recovery is over.
    #[cold]
    pub(super) fn after_recovery(&mut self) {
        if let Some(late) = &mut self.late {
            late.on_recovered(false);
        }
    }

    /// All that went again had arrived: nothing was lost (RFC 3708 § 2; Linux, `tcp_try_undo_dsack`), whether the recovery is over or not.
    #[cold]
    fn take_back_needless(&mut self, now: Time) -> bool {
        if matches!(self.recovery, State::Loss { .. }) {
            // With the next progress (`tcp_process_loss`).
            return false;
        }
        let before = self.before.take();
        self.take_recovery_back(now, before);
        self.counters.undone += 1;
        if let Some(late) = &mut self.late {
            late.on_recovered(true);
        }
        self.detect_late(now)
    }

    /// A recovery begins, and its first segment goes again, or is on its way again: what to come back to if that arrives all the same.
    pub(super) fn remember(&mut self, now: Time, is_on_its_way: bool) -> Option<Box<Before>> {
        let marks = self.config.params.recovery == Recovery::Sack || self.marks_without_sack();
        let looks = self.rack && marks;
        // What went again before tells nothing of this recovery: at zero no echo is older.
        let tells = self.echoes_tell() && !is_on_its_way;
        let at = if tells { now } else { Time::ZERO };
        looks.then(|| self.as_it_is(at))
    }

    /// The first ACK of a recovery that acknowledges new data, with the timestamp that it echoes: if what let it go is older than the
    /// retransmission, the original came late (RFC 3522 § 3.2, steps 4 to 6; Linux `tcp_packet_delayed`). Then the window is again as it
    /// was (RFC 4015 § 3.2; `tcp_undo_cwnd_reduction`), and from now on what is missing has time. Before the ACK all below `prior` had arrived.
    #[cold]
    pub(super) fn judge(&mut self, now: Time, echo: Time, prior: u64) -> Judged {
        let needless = self.before.as_ref().is_some_and(|before| before.all_arrived());
        if needless && !matches!(self.recovery, State::Loss { .. }) {
            let found = self.take_back_needless(now);
            return if found { Judged::Lost } else { Judged::Nothing };
        }
        match self.recovery {
            State::Recovery(_) => {}
            State::Loss { .. } => {
                self.judge_timeout(now, echo, needless);
                return Judged::Nothing;
            }
            // Once a recovery is over duplicates of all that went again take it back until the next reduction.
            State::Open => return Judged::Nothing,
        }
        if !self.before.as_ref().is_some_and(|before| before.is_younger_than(echo)) {
            return Judged::Nothing;
        }
        // How late it was, while a part is still missing (`tcp_try_undo_partial`).
        let mss = self.config.mss;
        let partial = matches!(&self.recovery, State::Recovery(r) if self.una < r.recover);
        let degree = if partial {
            (self.scoreboard.top(self.una + mss) - mss - prior).div_ceil(mss)
        } else {
            1
        };
        let mut probed = false;
        if let Some(late) = &mut self.late {
            late.see_reordering(degree);
            probed = late.tail.under_way.is_some();
        }
        self.scoreboard.look_at_retransmissions(self.una);
        if partial && (probed || self.scoreboard.resent() > 0) {
            return Judged::Open;
        }
        let before = self.before.take();
        if partial {
            self.take_back(now, before);
        } else {
            self.take_recovery_back(now, before);
        }
        self.counters.undone += 1;
        Judged::Nothing
    }
}

/// What follows from the first news of a recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judged {
    Nothing,
    /// Losses were found meanwhile.
    Lost,
    /// Something that came late, but other data is on its way again: until it is known what becomes of that the recovery goes on, and this ACK
    /// finds no loss (Linux, `tcp_try_undo_partial`).
    Open,
}

/// What arrived twice, as the first block of an ACK may tell (RFC 2883 § 4): it lies below the ACK, or within the second block.
fn told_twice(blocks: &SackBlocks, ack: u64) -> Option<Range> {
    let [first, second, ..] = blocks.map(|b| Range { start: b.start(ack), end: b.end(ack) });
    let within = second.start <= first.start && first.end <= second.end;
    let again = first.start < ack || blocks[1].len > 0 && within;
    (again && first.start < first.end).then_some(first)
}

/// The timer waits so many ticks longer than what is missing needs, or the tail (Linux, `TCP_TIMEOUT_MIN_US`).
pub(super) const MORE_TICKS: u64 = 2;
