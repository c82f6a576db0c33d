//! Loss marks of the scoreboard, and look-ups of send times.

use cwnd_packet::Range;
use cwnd_quantity::{Divisor, Duration, Time};

use super::{Deadline, SentSegments};
use crate::loss_detection::LossByOrder;

impl SentSegments {
    /// Marks losses by RACK: original data below `edge`, retransmissions by their send times.
    /// Returns `true` if any is found, and the deadline of the last retransmission sent before the
    /// newest arrival; `Time::ZERO` if none was.
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

    /// Returns the first byte from `at` on that was not retransmitted.
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

    /// Returns the next range that is neither SACKed nor retransmitted below the highest SACKed
    /// range (RFC 6675 § 4, NextSeg rule 3).
    pub fn next_hole(&self) -> Option<Range> {
        let top = self.sacked.highest()?;
        self.sacked.hole_from(self.high_rxt, top.start)
    }

    /// `true` if all data from `una` on was sent once and none of it is SACKed.
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
