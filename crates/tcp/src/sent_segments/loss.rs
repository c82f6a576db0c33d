//! Marks of what is lost, and the send times of the rest.

use cwnd_packet::Range;
use cwnd_quantity::{Divisor, Duration, Time};

use super::{Deadline, SentSegments};
use crate::loss_detection::Overtaken;

impl SentSegments {
    /// RACK: data that went once is lost up to `edge`, and retransmissions are by time. Returns
    /// `true` if any is found, and the deadline of the last retransmission that something overtook.
    pub fn lose_by_time(&mut self, edge: u64, una: u64, now: Time, by: Deadline) -> (bool, Time) {
        let holes = self.lose_below(edge, una, None);
        let again = self.resent.as_mut().map(|resent| resent.lose_by_time(una, now, by));
        again.map_or((holes, Time::ZERO), |(found, waits)| (holes || found, waits))
    }

    /// Data that was not SACKed is lost below `edge`. `overtaken` finds lost retransmissions;
    /// `None` leaves them to RACK or the timer. Returns `true` if any is found.
    pub fn lose_below(&mut self, edge: u64, una: u64, overtaken: Option<Overtaken>) -> bool {
        let holes = self.mark_lost_below(edge);
        let again = self.look_at_retransmissions(una, overtaken);
        holes || again
    }

    /// Declares lost what is below `edge` and not SACKed. Returns `true` if there is any.
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

    /// Takes retransmissions that arrived for such: they are neither in flight nor lost again.
    /// `overtaken` finds lost ones among the others. Returns `true` if it finds any.
    #[inline]
    pub fn look_at_retransmissions(&mut self, una: u64, overtaken: Option<Overtaken>) -> bool {
        let Some(resent) = &mut self.resent else { return false };
        resent.review(una, &self.sacked);
        overtaken.is_some_and(|rule| resent.lose_overtaken(una, &self.sacked, rule))
    }

    /// The last byte of `[from, to)` that is missing, is not lost and went only once.
    pub fn last_missing(&self, from: u64, to: u64) -> Option<u64> {
        let from = from.max(self.lost_edge).max(self.high_rxt);
        let above = to.checked_sub(1).and_then(|last| self.sacked.containing(last));
        let last = above.map_or(to, |range| range.start).checked_sub(1)?;
        (last >= from).then_some(last)
    }

    /// The first byte from `at` on that went only once.
    pub fn first_once(&self, at: u64) -> u64 {
        at.max(self.high_rxt)
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

    /// Time when this byte went again, if that is in flight.
    #[inline]
    pub fn resent_at(&self, byte: u64) -> Option<Time> {
        self.resent.as_ref().and_then(|resent| resent.sent_at(byte))
    }

    /// Number of retransmissions in flight.
    pub fn resent(&self) -> u64 {
        self.resent.as_ref().map_or(0, |resent| resent.in_flight())
    }

    /// `true` if retransmissions were found to be lost since the last call of
    /// [`SentSegments::take_lost_again`].
    pub fn has_lost_again(&self) -> bool {
        self.resent.as_ref().is_some_and(|resent| resent.has_found())
    }

    /// `true` if retransmissions were found to be lost since the last call.
    pub fn take_lost_again(&mut self) -> bool {
        self.resent.as_mut().is_some_and(|resent| resent.take_found())
    }

    /// Bytes that were found lost since the last call, each once: what is lost again does not count
    /// again.
    #[inline]
    pub const fn take_newly_lost(&mut self) -> u64 {
        core::mem::replace(&mut self.newly_lost, 0)
    }

    /// So many bytes are lost, as is known without SACK.
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

    /// The next lost range from `una` on that was not retransmitted (RFC 6675 § 4, NextSeg rule 1).
    pub fn next_lost(&self, una: u64) -> Option<Range> {
        if let Some(again) = self.resent.as_ref().and_then(|resent| resent.first_lost()) {
            return Some(Range { start: again.start.max(una), ..again });
        }
        self.sacked.hole_from(self.high_rxt, self.lost_edge)
    }

    /// The next range that was not retransmitted and lies below the highest SACKed byte (NextSeg
    /// rule 3).
    pub fn next_hole(&self) -> Option<Range> {
        let top = self.sacked.highest()?;
        self.sacked.hole_from(self.high_rxt, top.start)
    }

    /// `true` if all from `una` on went once and none of it arrived out of order.
    #[inline]
    pub fn is_untouched(&self, una: u64) -> bool {
        self.is_in_order(una) && self.first.as_ref().is_some_and(|first| una >= first.repeated)
    }

    /// Time when this byte went first, if it is outstanding and that was noted.
    #[inline]
    pub fn sent_at(&self, byte: u64) -> Option<Time> {
        self.first.as_ref()?.sent_at(byte)
    }

    /// The same of two bytes, the first of which is no higher.
    pub fn sent_at_both(&self, first: u64, last: u64) -> Option<(Option<Time>, Time)> {
        self.first.as_ref()?.sent_at_both(first, last)
    }

    /// Start of the last segment that went for the first time.
    pub fn last_segment(&self) -> Option<u64> {
        self.first.as_ref().map(|first| first.last())
    }

    /// The number up to which all went at least `age` ago.
    pub fn older_than(&self, now: Time, age: Duration) -> u64 {
        self.first.as_ref().map_or(0, |first| first.older_than(now, age))
    }

    /// The numbers up to which all that went once went before something that arrived, and up to
    /// which its time is over, too.
    pub fn due(&self, now: Time, lost: Deadline) -> (u64, u64) {
        self.first.as_ref().map_or((0, 0), |first| first.due(now, lost))
    }

    /// Beginning of the segment that this byte went with; the byte itself, if that is not known.
    #[inline]
    pub fn begin_of(&self, byte: u64, segments: Divisor) -> u64 {
        self.first.as_ref().map_or(byte, |first| first.begin_of(byte, segments))
    }
}
