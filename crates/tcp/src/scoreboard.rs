use cwnd_quantity::{Duration, Time};

use crate::late::Deadline;
use crate::params::{LossRule, Params, PipeRule, Recovery};
use crate::ranges::{Range, Ranges};
use crate::retransmissions::Retransmissions;
use crate::segment::{MAX_SACK_BLOCKS, SackBlock, SackBlocks};

/// Those of an ACK and one more: a cache line.
const LAST_BLOCKS: usize = MAX_SACK_BLOCKS + 1;

/// The sender's view of SACK (RFC 6675 § 3–4), with its counts kept up to date, not recomputed.
///
/// Two edges replace per-segment marks. `IsLost` is monotone: whatever lies below a lost byte and
/// is not SACKed is lost too, so one number, `lost_edge`, tells all losses; retransmissions go
/// upwards, so `high_rxt` tells them all.
///
/// Cost: an ACK takes amortised O(log n) in SACKed ranges. Both edges only rise, so each range is
/// counted once below each. They fall once a timeout, once an undo and once a recovery without RACK.
// From how many ranges are SACKed on each ACK reads it.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct Scoreboard {
    /// The last blocks that told anything, the newest first: most of an ACK's are repeated (RFC
    /// 2018 § 4), and need not be looked up.
    last_blocks: [Range; LAST_BLOCKS],
    sacked_bytes: u64,
    sacked_below_lost: u64,
    sacked_below_rxt: u64,
    sacked: Ranges,
    /// Bytes found lost since somebody asked.
    newly_lost: u64,
    /// Unsacked bytes below this are lost.
    lost_edge: u64,
    /// Unsacked bytes below this were retransmitted (RFC 6675 HighRxt, exclusive).
    high_rxt: u64,
    /// The exception to that: retransmissions that were lost in turn, if they are looked for.
    resent: Option<Box<Retransmissions>>,
    /// Retransmissions that were SACKed, where these count until they are acknowledged ([`PipeRule::Ns3`]).
    arrived: Option<Box<Arrived>>,
}

#[derive(Clone, Debug, Default)]
struct Arrived {
    ranges: Ranges,
    /// The sum of their lengths.
    bytes: u64,
}

impl Scoreboard {
    /// Where in it what each ACK reads begins, in bytes.
    pub const READ_FROM: usize = core::mem::offset_of!(Self, newly_lost) - size_of::<usize>();

    pub fn new(params: &Params) -> Self {
        let by_time = params.loss_rule == LossRule::Rack;
        let new = || Box::new(Retransmissions::new(params.dup_thresh, by_time));
        let sack = params.recovery == Recovery::Sack;
        let resent = (params.lost_retransmissions && sack).then(new);
        let arrived = (params.pipe_rule == PipeRule::Ns3).then(Box::default);
        Self { resent, arrived, ..Self::default() }
    }

    /// What it points to will be read soon.
    #[inline]
    pub fn soon(&self) {
        self.sacked.soon();
    }

    /// As at the start of the connection, but for what is acknowledged.
    pub fn restart(&mut self, una: u64) {
        let (resent, arrived) = (self.resent.take(), self.arrived.take());
        *self = Self { resent, arrived, ..Self::default() };
        self.restart_retransmissions(una);
        self.advance(una);
    }

    /// Takes the SACK blocks of an ACK; returns how many bytes they newly report.
    pub fn update(&mut self, blocks: &SackBlocks, ack: u64, high: u64) -> u64 {
        self.update_above(blocks, ack, ack, high)
    }

    /// The same of an ACK that says less than is known: all below `una` is acknowledged.
    pub fn update_above(&mut self, blocks: &[SackBlock], ack: u64, una: u64, high: u64) -> u64 {
        let mut new = 0;
        for block in blocks.iter().filter(|block| block.len > 0) {
            let (start, end) = (block.start(ack), block.end(ack));
            // Below the cumulative ACK are duplicates (RFC 2883 § 4), and what was never sent cannot be meant.
            if start < ack || end > high || end <= una {
                continue;
            }
            if !self.has_block(Range { start, end }) {
                self.remember_block(Range { start, end });
                new += self.add(start.max(una), end);
            }
        }
        self.sacked_bytes += new;
        new
    }

    /// `true` if this block is one of the last, so that all of it is known.
    #[inline]
    pub fn has_block(&self, block: Range) -> bool {
        self.last_blocks.contains(&block)
    }

    /// A block takes the place of one that it contains, else of the one that came first.
    fn remember_block(&mut self, block: Range) {
        let within = |last: &Range| block.start <= last.start && last.end <= block.end;
        let place = self.last_blocks.iter().position(within).unwrap_or(LAST_BLOCKS - 1);
        self.last_blocks[..=place].rotate_right(1);
        self.last_blocks[0] = block;
    }

    fn add(&mut self, start: u64, end: u64) -> u64 {
        let Some(gap) = self.sacked.hole_from(start, end) else { return 0 };
        // All that is new begins here.
        let start = gap.start;
        let fresh_below = |edge: u64, sacked: &Ranges| {
            let end = end.min(edge);
            if start < end { (end - start) - sacked.covered(start, end) } else { 0 }
        };
        if self.arrived.is_some() {
            self.note_arrived(start, end.min(self.high_rxt));
        }
        self.sacked_below_lost += fresh_below(self.lost_edge, &self.sacked);
        self.sacked_below_rxt += fresh_below(self.high_rxt, &self.sacked);
        if let Some(resent) = &mut self.resent {
            resent.sacked(start, end);
        }
        self.sacked.insert(start, end).1
    }

    /// What is SACKed for the first time in this range went again.
    #[cold]
    fn note_arrived(&mut self, start: u64, end: u64) {
        let Some(arrived) = &mut self.arrived else { return };
        let mut from = start;
        while let Some(hole) = self.sacked.hole_from(from, end) {
            arrived.bytes += arrived.ranges.insert(hole.start, hole.end).1;
            from = hole.end;
        }
    }

    /// Finds what has become lost (RFC 6675 § 4, IsLost): a byte with `dup_thresh` discontiguous SACKed ranges above it,
    /// or more than (`dup_thresh` − 1)·MSS SACKed bytes. Returns whether anything has.
    pub fn detect_losses(&mut self, params: &Params, una: u64, mss: u64) -> bool {
        let dup_thresh = params.dup_thresh;
        if params.loss_rule == LossRule::Fack {
            return self.detect_forward(una, u64::from(dup_thresh) * mss);
        }
        let bytes_needed = u64::from(dup_thresh - 1) * mss;
        let mut bytes = 0;
        let mut edge = 0;
        // From the highest down, by one look-up each: mostly the first is enough.
        let mut range = self.sacked.highest();
        for n in 1.. {
            let Some(Range { start, end }) = range else { break };
            bytes += end - start;
            if n >= dup_thresh || bytes > bytes_needed {
                edge = start;
                break;
            }
            range = self.sacked.below(start);
        }
        self.lose_below(edge, una)
    }

    /// RACK: what went once is lost up to `edge`, and retransmissions are by time; whether anything is found, and when the last of these
    /// would be that something overtook.
    pub fn lose_by_time(&mut self, edge: u64, una: u64, now: Time, by: Deadline) -> (bool, Time) {
        let holes = self.lose_below(edge, una);
        let again = self.resent.as_mut().map(|resent| resent.lose_by_time(una, now, by));
        again.map_or((holes, Time::ZERO), |(found, waits)| (holes || found, waits))
    }

    /// The last byte of `[from, to)` that is missing, is not lost and went only once.
    pub fn last_missing(&self, from: u64, to: u64) -> Option<u64> {
        let from = from.max(self.lost_edge).max(self.high_rxt);
        let above = to.checked_sub(1).and_then(|last| self.sacked.containing(last));
        let last = above.map_or(to, |range| range.start).checked_sub(1)?;
        (last >= from).then_some(last)
    }

    /// The first run of bytes of `[from, to)` that did not arrive yet.
    pub fn gap(&self, from: u64, to: u64) -> Option<Range> {
        self.sacked.hole_from(from, to)
    }

    /// Whether nothing arrived out of order, and nothing that is outstanding went again.
    #[inline]
    pub fn is_in_order(&self, una: u64) -> bool {
        self.sacked.is_empty() && self.high_rxt <= una
    }

    /// The first byte from `at` on that went only once.
    pub fn first_once(&self, at: u64) -> u64 {
        at.max(self.high_rxt)
    }

    /// When this byte went again, if that is on its way.
    #[inline]
    pub fn resent_at(&self, byte: u64) -> Option<Time> {
        self.resent.as_ref().and_then(|resent| resent.sent_at(byte))
    }

    /// How many retransmissions are on their way.
    pub fn resent(&self) -> u64 {
        self.resent.as_ref().map_or(0, |resent| resent.in_flight())
    }

    /// What of the retransmissions arrived is no longer on its way, and not lost again.
    pub fn look_at_retransmissions(&mut self, una: u64) {
        if let Some(resent) = &mut self.resent {
            resent.review(una, &self.sacked);
        }
    }

    /// Of the retransmissions on their way within `range` that `counts` accepts, the one that went
    /// last: when, and where it ends.
    pub fn last_retransmission(
        &self,
        range: Range,
        counts: impl Fn(Time) -> bool,
    ) -> Option<(Time, u64)> {
        self.resent.as_ref()?.last_within(range, counts)
    }

    /// Nothing is lost any more, and what went again is on its way as often as it went (Linux, `tcp_undo_cwnd_reduction`): losses are found
    /// anew.
    pub fn find_again(&mut self, una: u64) {
        self.lost_edge = una;
        self.sacked_below_lost = self.sacked.covered(0, una);
        if let Some(resent) = &mut self.resent {
            resent.find_again(una);
        }
    }

    /// FACK: whatever lies `distance` or more below the highest SACKed byte, however much of that was SACKed.
    fn detect_forward(&mut self, una: u64, distance: u64) -> bool {
        self.lose_below(self.top(una).saturating_sub(distance), una)
    }

    /// Whether retransmissions were found to be lost since the last call of [`Scoreboard::take_lost_again`].
    pub fn has_lost_again(&self) -> bool {
        self.resent.as_ref().is_some_and(|resent| resent.has_found())
    }

    /// Whether retransmissions were found to be lost since the last call.
    pub fn take_lost_again(&mut self) -> bool {
        self.resent.as_mut().is_some_and(|resent| resent.take_found())
    }

    /// Bytes that were found lost since the last call, each once: what is lost again does not count again.
    #[inline]
    pub const fn take_newly_lost(&mut self) -> u64 {
        core::mem::replace(&mut self.newly_lost, 0)
    }

    /// So many bytes are lost, as is known without SACK.
    pub const fn note_lost(&mut self, bytes: u64) {
        self.newly_lost += bytes;
    }

    fn lose_below(&mut self, edge: u64, una: u64) -> bool {
        let holes = self.mark_lost_below(edge);
        let again = self.resent.as_mut().is_some_and(|resent| resent.review(una, &self.sacked));
        holes || again
    }

    /// Declares lost what is below `edge` and not SACKed; whether there is anything.
    pub fn mark_lost_below(&mut self, edge: u64) -> bool {
        if edge <= self.lost_edge {
            return false;
        }
        let covered = self.sacked.covered(self.lost_edge, edge);
        let lost = edge - self.lost_edge - covered;
        self.sacked_below_lost += covered;
        self.newly_lost += lost;
        self.lost_edge = edge;
        if let Some(resent) = &mut self.resent {
            resent.lose_originals(edge);
        }
        lost > 0
    }

    /// Everything below `una` has arrived; returns how much of it had been reported by SACK before.
    pub fn advance(&mut self, una: u64) -> u64 {
        let mut gone = 0;
        if !self.sacked.is_empty() {
            gone = self.sacked.covered(0, una);
            if gone > 0 {
                self.sacked_below_lost -= self.sacked.covered(0, una.min(self.lost_edge));
                self.sacked_below_rxt -= self.sacked.covered(0, una.min(self.high_rxt));
                self.sacked_bytes -= gone;
                self.sacked.remove_below(una);
            }
            if let Some(resent) = &mut self.resent {
                resent.review(una, &self.sacked);
            }
        } else if let Some(resent) = &mut self.resent {
            resent.advance(una);
        }
        if let Some(arrived) = &mut self.arrived {
            arrived.bytes -= arrived.ranges.covered(0, una);
            arrived.ranges.remove_below(una);
        }
        self.lost_edge = self.lost_edge.max(una);
        self.high_rxt = self.high_rxt.max(una);
        gone
    }

    /// Forgets which bytes were retransmitted: a timeout begins anew from `una`.
    pub fn restart_retransmissions(&mut self, una: u64) {
        self.high_rxt = una;
        self.sacked_below_rxt = 0;
        if let Some(arrived) = &mut self.arrived {
            **arrived = Arrived::default();
        }
        if let Some(resent) = &mut self.resent {
            resent.restart();
        }
    }

    /// A timeout: what went again is lost, but for what did so within the last round trip and is not the first (Linux,
    /// `tcp_timeout_mark_lost`).
    pub fn lose_retransmissions(&mut self, una: u64, now: Time, rtt: Duration, mss: u64) {
        let Some(resent) = self.resent.as_mut().filter(|resent| resent.has_young(una, now, rtt))
        else {
            self.restart_retransmissions(una);
            return;
        };
        resent.forget_old(una, now, rtt);
        let mut at = una;
        while let Some(hole) = self.sacked.hole_from(at, self.high_rxt) {
            resent.lose_but_young(hole, mss);
            at = hole.end;
        }
    }

    /// Bytes presumed in the network (RFC 6675 § 4, SetPipe).
    #[inline]
    pub fn pipe(&self, una: u64, nxt: u64) -> u64 {
        if self.is_in_order(una) && self.lost_edge <= una {
            return nxt - una;
        }
        self.pipe_of_parts(una, nxt)
    }

    #[inline(never)]
    fn pipe_of_parts(&self, una: u64, nxt: u64) -> u64 {
        let not_lost =
            nxt.saturating_sub(self.lost_edge) - (self.sacked_bytes - self.sacked_below_lost);
        let retransmitted = (self.high_rxt - una) - self.sacked_below_rxt;
        let lost_again = self.resent.as_ref().map_or(0, |resent| resent.lost_bytes());
        let arrived = self.arrived.as_ref().map_or(0, |arrived| arrived.bytes);
        not_lost + retransmitted + arrived + self.doubled(una) - lost_again
    }

    /// Bytes below the edge that are on their way again and are not lost.
    #[inline]
    fn doubled(&self, una: u64) -> u64 {
        let resent = self.resent.as_ref();
        resent.and_then(|resent| resent.doubled_bytes(una)).unwrap_or(0)
    }

    /// Whether more is lost than went again and is on its way: else nothing more goes again, whatever it is that is lost (Linux,
    /// `tcp_xmit_retransmit_queue`). The two are the same but for what is on its way with its original.
    pub fn may_repair(&self, una: u64) -> bool {
        let doubles = self.resent.as_ref().is_some_and(|r| r.doubled_bytes(una).is_some());
        !doubles || self.lost_bytes(una) > self.retransmitted_bytes(una)
    }

    /// `true` if anything from `una` on, which is not SACKed, is lost.
    pub fn is_short(&self, una: u64) -> bool {
        self.is_lost(una) && (self.doubled(una) == 0 || self.lost_bytes(una) > 0)
    }

    /// Whether byte `at`, not SACKed, is lost (RFC 6675 § 4, IsLost).
    pub const fn is_lost(&self, at: u64) -> bool {
        at < self.lost_edge
    }

    /// Whether byte `at` was retransmitted and is not known to be lost again.
    pub fn was_retransmitted(&self, at: u64) -> bool {
        at < self.high_rxt && self.next_lost(at).is_none_or(|lost| at < lost.start)
    }

    /// The next lost range from `una` on that was not retransmitted (RFC 6675 § 4, NextSeg rule 1).
    pub fn next_lost(&self, una: u64) -> Option<Range> {
        if let Some(again) = self.resent.as_ref().and_then(|resent| resent.first_lost()) {
            return Some(Range { start: again.start.max(una), ..again });
        }
        self.sacked.hole_from(self.high_rxt, self.lost_edge)
    }

    /// The next range that was not retransmitted and lies below the highest SACKed byte (NextSeg rule 3).
    pub fn next_hole(&self) -> Option<Range> {
        let top = self.sacked.highest()?;
        self.sacked.hole_from(self.high_rxt, top.start)
    }

    /// A range was retransmitted, when data up to `nxt` had been sent.
    pub fn retransmitted(&mut self, range: Range, nxt: u64, now: Time) {
        let end = range.end;
        if let Some(resent) = &mut self.resent {
            resent.sent(range, nxt, now, &self.sacked);
        }
        if end > self.high_rxt {
            self.sacked_below_rxt += self.sacked.covered(self.high_rxt, end);
            self.high_rxt = end;
        }
    }

    /// One past the highest SACKed byte; `una` if nothing is SACKed.
    pub fn top(&self, una: u64) -> u64 {
        self.sacked.highest().map_or(una, |range| range.end)
    }

    /// The ranges that SACK reported above the cumulative ACK.
    pub const fn sacked(&self) -> &Ranges {
        &self.sacked
    }

    /// Whether the first unacknowledged byte is SACKed: then the receiver threw away what it had reported (RFC 2018 § 8).
    pub fn reneged(&self, una: u64) -> bool {
        !self.sacked.is_empty() && self.sacked.containing(una).is_some()
    }

    /// Bytes above the cumulative ACK that SACK reported.
    pub const fn sacked_bytes(&self) -> u64 {
        self.sacked_bytes
    }

    /// Bytes above the cumulative ACK that are lost, whether they went again or not.
    pub fn lost_bytes(&self, una: u64) -> u64 {
        self.lost_edge.saturating_sub(una) - self.sacked_below_lost - self.doubled(una)
    }

    /// Bytes above the cumulative ACK that went again and are not known to be lost again.
    pub fn retransmitted_bytes(&self, una: u64) -> u64 {
        let again = self.high_rxt.saturating_sub(una) - self.sacked_below_rxt;
        again - self.resent.as_ref().map_or(0, |resent| resent.lost_bytes())
    }

    /// Whether nothing is SACKed.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.sacked.is_empty()
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    const MSS: u64 = 1000;

    fn three() -> Params {
        Params { dup_thresh: 3, ..Params::default() }
    }

    fn ack(at: u64, blocks: &[(u64, u64)]) -> SackBlocks {
        let mut sack = SackBlocks::default();
        for (slot, &(start, end)) in sack.iter_mut().zip(blocks) {
            *slot = SackBlock::of(at, start, end);
        }
        sack
    }

    #[test]
    fn three_segments_above_a_hole_make_it_lost() {
        let mut board = Scoreboard::default();
        let high = 10 * MSS;
        assert_eq!(board.update(&ack(0, &[(MSS, 2 * MSS)]), 0, high), MSS);
        board.detect_losses(&three(), 0, MSS);
        assert_eq!(board.next_lost(0), None);
        assert_eq!(board.pipe(0, high), 9 * MSS);
        board.update(&ack(0, &[(MSS, 4 * MSS)]), 0, high);
        board.detect_losses(&three(), 0, MSS);
        assert_eq!(board.next_lost(0), Some(Range { start: 0, end: MSS }));
        assert_eq!(board.pipe(0, high), 6 * MSS, "six above the SACKed, the lost one is gone");
        board.retransmitted(Range { start: 0, end: MSS }, high, Time::ZERO);
        assert_eq!(board.pipe(0, high), 7 * MSS);
        assert_eq!(board.next_lost(0), None);
    }

    #[test]
    fn holes_are_retransmitted_from_the_lowest_and_a_timeout_begins_anew() {
        let mut board = Scoreboard::default();
        let high = 12 * MSS;
        board.update(&ack(0, &[(8 * MSS, 12 * MSS), (4 * MSS, 5 * MSS), (MSS, 2 * MSS)]), 0, high);
        board.detect_losses(&three(), 0, MSS);
        let mut seen = Vec::new();
        while let Some(hole) = board.next_lost(0) {
            let end = hole.end.min(hole.start + MSS);
            seen.push(hole.start / MSS);
            board.retransmitted(Range { start: hole.start, end }, high, Time::ZERO);
        }
        assert_eq!(seen, [0, 2, 3, 5, 6, 7]);
        board.mark_lost_below(high);
        board.restart_retransmissions(0);
        assert_eq!(board.pipe(0, high), 0);
        board.advance(2 * MSS);
        assert_eq!(board.next_lost(0).map(|h| h.start), Some(2 * MSS));
    }

    proptest::proptest! {
        /// The counts kept incrementally equal those computed afresh, segment by segment, from the RFC's definitions.
        #[test]
        fn pipe_is_what_set_pipe_computes(ops in proptest::collection::vec((0u64..30, 1u64..5, 0u8..4), 1..80)) {
            let (mut una, nxt) = (0u64, 40u64);
            let mut board = Scoreboard::default();
            let mut sacked = std::collections::BTreeSet::new();
            let (mut lost_edge, mut high_rxt) = (0u64, 0u64);
            for (at, len, op) in ops {
                match op {
                    0 | 1 => {
                        let (start, end) = (at.max(una + 1), (at.max(una + 1) + len).min(nxt));
                        if start < end {
                            board.update(&ack(una, &[(start, end)]), una, nxt);
                            sacked.extend(start..end);
                            board.detect_losses(&three(), una, 1);
                            // IsLost by definition, MSS 1: three bytes SACKed above (DupThresh ranges imply it).
                            let lost = (una..nxt).filter(|b| sacked.range(b + 1..).count() >= 3 && !sacked.contains(b)).max();
                            lost_edge = lost_edge.max(lost.map_or(0, |b| b + 1));
                        }
                    }
                    2 => {
                        if let Some(hole) = board.next_lost(0) {
                            board.retransmitted(Range { start: hole.start, end: hole.start + 1 }, nxt, Time::ZERO);
                            high_rxt = hole.start + 1;
                        }
                    }
                    _ => {
                        una = una.max(at.min(nxt));
                        board.advance(una);
                        sacked.retain(|&b| b >= una);
                        high_rxt = high_rxt.max(una);
                    }
                }
                let pipe = (una..nxt).filter(|b| !sacked.contains(b))
                    .map(|b| u64::from(b >= lost_edge) + u64::from(b < high_rxt)).sum::<u64>();
                proptest::prop_assert_eq!(board.pipe(una, nxt), pipe);
            }
        }
    }
}
