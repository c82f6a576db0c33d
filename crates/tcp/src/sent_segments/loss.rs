//! Loss marks of the scoreboard, look-ups of send times, and sums of bytes.

use cwnd_packet::Range;
use cwnd_quantity::{Divisor, Duration, Time};

use super::{Deadline, SentSegments};
use crate::loss_detection::LossByOrder;

impl SentSegments {
    /// Marks losses by RACK: original data below `edge`, retransmissions by their send times.
    /// Returns `true` if any is found, and the deadline of the last other retransmission that was
    /// sent before the newest arrival; `Time::ZERO` if none was.
    pub fn mark_lost_by_time(
        &mut self,
        edge: u64,
        una: u64,
        now: Time,
        by: Deadline,
    ) -> (bool, Time) {
        let holes = self.detect_losses_below(edge, una, None);
        let again = self
            .retransmissions
            .as_mut()
            .map(|retransmissions| retransmissions.mark_lost_by_time(una, now, by));
        again.map_or((holes, Time::ZERO), |(found, waits)| (holes || found, waits))
    }

    /// Marks data below `edge` lost unless it is SACKed. `lost_retransmission_rule` detects lost
    /// retransmissions; `None` leaves them to RACK or the timer. Returns `true` if any loss is
    /// found.
    pub fn detect_losses_below(
        &mut self,
        edge: u64,
        una: u64,
        lost_retransmission_rule: Option<LossByOrder>,
    ) -> bool {
        let holes = self.mark_lost_below(edge);
        let again = self.review_retransmissions(una, lost_retransmission_rule);
        holes || again
    }

    /// Marks data below `edge` lost unless it is SACKed. Returns `true` if any byte is newly lost.
    pub fn mark_lost_below(&mut self, edge: u64) -> bool {
        if edge <= self.lost_edge {
            return false;
        }
        let covered = self.sacked.covered(self.lost_edge, edge);
        let lost = edge - self.lost_edge - covered;
        self.sacked_below_lost += covered;
        self.newly_lost += lost;
        self.lost_edge = edge;
        if let Some(retransmissions) = &mut self.retransmissions {
            retransmissions.advance_lost_edge(edge);
        }
        lost > 0
    }

    /// Removes the retransmissions that arrived. `lost_retransmission_rule` detects lost ones among
    /// the others. Returns `true` if it finds any.
    #[inline]
    pub fn review_retransmissions(
        &mut self,
        una: u64,
        lost_retransmission_rule: Option<LossByOrder>,
    ) -> bool {
        let Some(retransmissions) = &mut self.retransmissions else { return false };
        retransmissions.review(una, &self.sacked);
        lost_retransmission_rule
            .is_some_and(|rule| retransmissions.mark_lost_by_order(una, &self.sacked, rule))
    }

    /// Returns the last byte of `[from, to)` that is neither SACKed nor lost nor retransmitted.
    pub fn last_missing(&self, from: u64, to: u64) -> Option<u64> {
        let from = from.max(self.lost_edge).max(self.high_rxt);
        let above = to.checked_sub(1).and_then(|last| self.sacked.containing(last));
        let last = above.map_or(to, |range| range.start).checked_sub(1)?;
        (last >= from).then_some(last)
    }

    /// Returns the first byte from `at` on that is not below HighRxt.
    pub fn first_sent_once(&self, at: u64) -> u64 {
        at.max(self.high_rxt)
    }

    /// Returns send time and end of the most recent retransmission in flight that lies within
    /// `range` and whose send time `counts` accepts.
    pub fn last_retransmission(
        &self,
        range: Range,
        counts: impl Fn(Time) -> bool,
    ) -> Option<(Time, u64)> {
        self.retransmissions.as_ref()?.last_within(range, counts)
    }

    /// Returns the send time of the earliest retransmission in flight of this byte, with RACK only;
    /// `None` if none is in flight.
    #[inline]
    pub fn retransmitted_at(&self, byte: u64) -> Option<Time> {
        self.retransmissions.as_ref().and_then(|retransmissions| retransmissions.sent_at(byte))
    }

    /// Returns the number of retransmissions in flight.
    pub fn retransmissions(&self) -> u64 {
        self.retransmissions.as_ref().map_or(0, |retransmissions| retransmissions.in_flight())
    }

    /// `true` if lost retransmissions were detected since the last call of
    /// [`SentSegments::take_lost_retransmission`].
    pub fn has_lost_retransmission(&self) -> bool {
        self.retransmissions
            .as_ref()
            .is_some_and(|retransmissions| retransmissions.has_losses_found())
    }

    /// Returns `true` if lost retransmissions were detected since the last call.
    pub fn take_lost_retransmission(&mut self) -> bool {
        self.retransmissions
            .as_mut()
            .is_some_and(|retransmissions| retransmissions.take_losses_found())
    }

    /// Returns the bytes marked lost since the last call; a lost retransmission does not count
    /// again.
    #[inline]
    pub const fn take_newly_lost(&mut self) -> u64 {
        core::mem::replace(&mut self.newly_lost, 0)
    }

    /// Counts bytes as newly lost, for senders without SACK.
    pub const fn note_lost(&mut self, bytes: u64) {
        self.newly_lost += bytes;
    }

    /// `true` if byte `at`, not SACKed, is lost (RFC 6675 § 4, IsLost).
    pub const fn is_lost(&self, at: u64) -> bool {
        at < self.lost_edge
    }

    /// `true` if byte `at` was retransmitted and is not known to be lost again.
    pub fn was_retransmitted(&self, at: u64) -> bool {
        at < self.high_rxt && self.next_lost(at).is_none_or(|lost| at < lost.start)
    }

    /// Returns the next lost range from `una` on that was not retransmitted, or whose
    /// retransmission was lost (RFC 6675 § 4, NextSeg rule 1).
    pub fn next_lost(&self, una: u64) -> Option<Range> {
        if let Some(again) =
            self.retransmissions.as_ref().and_then(|retransmissions| retransmissions.first_lost())
        {
            return Some(Range { start: again.start.max(una), ..again });
        }
        self.sacked.hole_from(self.high_rxt, self.lost_edge)
    }

    /// Returns all ranges like that of [`SentSegments::next_lost`], in two ascending sequences.
    pub fn lost_ranges(&self, una: u64) -> impl Iterator<Item = Range> {
        let again = self.retransmissions.iter().flat_map(|again| again.lost());
        let mut from = self.high_rxt.max(una);
        let holes = core::iter::from_fn(move || {
            let hole = self.sacked.hole_from(from, self.lost_edge)?;
            from = hole.end;
            Some(hole)
        });
        again.filter(move |range| range.end > una).chain(holes)
    }

    /// Returns the next range that is neither SACKed nor retransmitted below the highest SACKed
    /// range (RFC 6675 § 4, NextSeg rule 3).
    pub fn next_hole(&self) -> Option<Range> {
        let top = self.sacked.highest()?;
        self.sacked.hole_from(self.high_rxt, top.start)
    }

    /// `true` if no data from `una` on is SACKed or was retransmitted, rescues and tail loss probes
    /// aside; `false` if no send times are kept.
    #[inline]
    pub fn is_untouched(&self, una: u64) -> bool {
        self.is_in_order(una) && self.first.as_ref().is_some_and(|first| una >= first.repeated)
    }

    /// Returns the time of the first transmission of this byte; `None` if it is not outstanding or
    /// was not recorded.
    #[inline]
    pub fn sent_at(&self, byte: u64) -> Option<Time> {
        self.first.as_ref()?.sent_at(byte)
    }

    /// Returns the times of the first transmission of two bytes, the first of which is no higher;
    /// `None` if that of `last` is unknown.
    pub fn sent_at_both(&self, first: u64, last: u64) -> Option<(Option<Time>, Time)> {
        self.first.as_ref()?.sent_at_both(first, last)
    }

    /// Returns the start of the last segment that was sent for the first time.
    pub fn last_segment(&self) -> Option<u64> {
        self.first.as_ref().map(|first| first.last())
    }

    /// Returns the number up to which all data was first sent at least `age` ago.
    pub fn older_than(&self, now: Time, age: Duration) -> u64 {
        self.first.as_ref().map_or(0, |first| first.older_than(now, age))
    }

    /// Returns two numbers: up to the first, all data was first sent before the newest arrival; up
    /// to the second, its deadline has passed, too (RACK).
    pub fn due(&self, now: Time, lost: Deadline) -> (u64, u64) {
        self.first.as_ref().map_or((0, 0), |first| first.due(now, lost))
    }

    /// Returns the start of the segment that first carried this byte; the byte itself if that is
    /// unknown.
    #[inline]
    pub fn begin_of(&self, byte: u64, segments: Divisor) -> u64 {
        self.first.as_ref().map_or(byte, |first| first.begin_of(byte, segments))
    }
}

/// Sums over the scoreboard: bytes in flight (RFC 6675 § 4, SetPipe), lost and retransmitted.
impl SentSegments {
    /// `true` if nothing is SACKed, and no outstanding data lies below HighRxt.
    #[inline]
    pub fn is_in_order(&self, una: u64) -> bool {
        self.is_empty() && self.high_rxt <= una
    }

    /// Returns the bytes presumed in the network (RFC 6675 § 4, SetPipe), with `nxt` the next byte
    /// to send.
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
        let lost_again =
            self.retransmissions.as_ref().map_or(0, |retransmissions| retransmissions.lost_bytes());
        let arrived = self.arrived.as_ref().map_or(0, |arrived| arrived.bytes);
        not_lost + retransmitted + arrived + self.duplicated(una) - lost_again
    }

    /// Returns the bytes of retransmissions below the lost edge whose originals are in flight, too
    /// (after an undo).
    #[inline]
    fn duplicated(&self, una: u64) -> u64 {
        let retransmissions = self.retransmissions.as_ref();
        retransmissions
            .and_then(|retransmissions| retransmissions.duplicated_bytes(una))
            .unwrap_or(0)
    }

    /// `true` unless an undo left retransmissions in flight beside their originals, and no more
    /// bytes are lost than retransmitted: in that case nothing is retransmitted (Linux,
    /// `tcp_xmit_retransmit_queue`).
    pub fn may_repair(&self, una: u64) -> bool {
        let duplicated =
            self.retransmissions.as_ref().is_some_and(|r| r.duplicated_bytes(una).is_some());
        !duplicated || self.lost_bytes(una) > self.retransmitted_bytes(una)
    }

    /// `true` if data from `una` on is lost; byte `una` is not SACKed.
    #[inline]
    pub fn has_losses(&self, una: u64) -> bool {
        self.is_lost(una) && self.has_losses_beyond_duplicates(una)
    }

    #[inline(never)]
    fn has_losses_beyond_duplicates(&self, una: u64) -> bool {
        self.duplicated(una) == 0 || self.lost_bytes(una) > 0
    }

    /// Returns the bytes above the cumulative ACK that are lost, whether retransmitted or not.
    pub fn lost_bytes(&self, una: u64) -> u64 {
        self.lost_edge.saturating_sub(una) - self.sacked_below_lost - self.duplicated(una)
    }

    /// Returns the bytes above the cumulative ACK that were retransmitted and not SACKed, less lost
    /// retransmissions.
    pub fn retransmitted_bytes(&self, una: u64) -> u64 {
        let again = self.high_rxt.saturating_sub(una) - self.sacked_below_rxt;
        again
            - self
                .retransmissions
                .as_ref()
                .map_or(0, |retransmissions| retransmissions.lost_bytes())
    }
}

#[cfg(test)]
mod tests {
    use cwnd_quantity::Time;

    use super::super::Retransmission;
    use super::*;
    use crate::loss_detection::Rfc6675;
    use crate::segment::{SackBlock, SackBlocks};
    use cwnd_packet::Range;

    const MSS: u64 = 1000;

    fn send_again(board: &mut SentSegments, start: u64, end: u64, high: u64) {
        let (range, marked) = (Range { start, end }, Some(Time::ZERO));
        board.on_retransmission_sent(Retransmission { range, una: 0, high, marked });
    }

    fn detect(board: &mut SentSegments, una: u64, mss: u64) {
        let edge = Rfc6675::new(3, mss).edge(board.sacked());
        board.detect_losses_below(edge, una, None);
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
        let mut board = SentSegments::default();
        let high = 10 * MSS;
        assert_eq!(board.on_sack(&ack(0, &[(MSS, 2 * MSS)]), 0, high), MSS);
        detect(&mut board, 0, MSS);
        assert_eq!(board.next_lost(0), None);
        assert_eq!(board.pipe(0, high), 9 * MSS);
        board.on_sack(&ack(0, &[(MSS, 4 * MSS)]), 0, high);
        detect(&mut board, 0, MSS);
        assert_eq!(board.next_lost(0), Some(Range { start: 0, end: MSS }));
        assert_eq!(board.pipe(0, high), 6 * MSS, "six above the SACKed, the lost one is gone");
        send_again(&mut board, 0, MSS, high);
        assert_eq!(board.pipe(0, high), 7 * MSS);
        assert_eq!(board.next_lost(0), None);
    }

    #[test]
    fn holes_are_retransmitted_from_the_lowest_and_a_timeout_begins_anew() {
        let mut board = SentSegments::default();
        let high = 12 * MSS;
        board.on_sack(&ack(0, &[(8 * MSS, 12 * MSS), (4 * MSS, 5 * MSS), (MSS, 2 * MSS)]), 0, high);
        detect(&mut board, 0, MSS);
        let mut seen = Vec::new();
        while let Some(hole) = board.next_lost(0) {
            let end = hole.end.min(hole.start + MSS);
            seen.push(hole.start / MSS);
            send_again(&mut board, hole.start, end, high);
        }
        assert_eq!(seen, [0, 2, 3, 5, 6, 7]);
        board.mark_lost_below(high);
        board.restart_retransmissions(0);
        assert_eq!(board.pipe(0, high), 0);
        board.on_ack(2 * MSS, None);
        assert_eq!(board.next_lost(0).map(|h| h.start), Some(2 * MSS));
    }

    proptest::proptest! {
        /// The pipe kept incrementally equals that computed afresh, byte by byte, from the RFC's
        /// definitions.
        #[test]
        fn pipe_is_what_set_pipe_computes(
            ops in proptest::collection::vec((0u64..30, 1u64..5, 0u8..4), 1..80)
        ) {
            let (mut una, nxt) = (0u64, 40u64);
            let mut board = SentSegments::default();
            let mut sacked = std::collections::BTreeSet::new();
            let (mut lost_edge, mut high_rxt) = (0u64, 0u64);
            for (at, len, op) in ops {
                match op {
                    0 | 1 => {
                        let (start, end) = (at.max(una + 1), (at.max(una + 1) + len).min(nxt));
                        if start < end {
                            board.on_sack(&ack(una, &[(start, end)]), una, nxt);
                            sacked.extend(start..end);
                            detect(&mut board, una, 1);
                            // IsLost by definition, MSS 1: three bytes SACKed above (DupThresh
                            // ranges imply it).
                            let three_above = |b: &u64| sacked.range(b + 1..).count() >= 3;
                            let lost =
                                (una..nxt).filter(|b| three_above(b) && !sacked.contains(b)).max();
                            lost_edge = lost_edge.max(lost.map_or(0, |b| b + 1));
                        }
                    }
                    2 => {
                        if let Some(hole) = board.next_lost(0) {
                            send_again(&mut board, hole.start, hole.start + 1, nxt);
                            high_rxt = hole.start + 1;
                        }
                    }
                    _ => {
                        una = una.max(at.min(nxt));
                        board.on_ack(una, None);
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
