//! Retransmissions in flight, and lost retransmissions.

#[cfg(test)]
mod tests;

use cwnd_packet::{Range, Ranges, SortedMap};
use cwnd_quantity::{Duration, Time};

use super::Deadline;
use crate::loss_detection::{Arrived, InFlight, LossByOrder};

/// Retransmissions in flight and lost ones. Records their arrival, and marks them lost by their
/// order or by RACK.
///
/// Cost of each method, with n retransmissions outstanding: O(log n), plus one step for each
/// retransmission that arrives or is lost. A retransmission is sent, arrives and is lost at most
/// once, so an ACK costs amortised O(log n). A search also visits the retransmissions that begin up
/// to a segment below its range: one, unless segments are short. Linear in n are the steps of a
/// timeout ([`Retransmissions::has_recent`], [`Retransmissions::forget_old`],
/// [`Retransmissions::mark_lost_but_recent`]) and those of an undo
/// ([`Retransmissions::undo_losses`], and the first losses after it, in
/// [`Retransmissions::advance_lost_edge`]).
#[derive(Clone, Debug)]
pub struct Retransmissions {
    /// `true` if losses are detected by send times (RACK), `false` if by numbers of
    /// retransmissions.
    by_time: bool,
    /// Retransmissions in flight, by their first byte.
    in_flight: SortedMap<u64, Retransmission>,
    /// The same retransmissions, in the order in which they are lost.
    order: SortedMap<LossOrder, ()>,
    /// Lost retransmissions: start and end of disjoint ranges.
    lost: SortedMap<u64, u64>,
    lost_bytes: u64,
    /// Number of the next retransmission.
    next: u64,
    /// The highest rank of a retransmission that arrived; `None` before the first.
    arrived: Option<u64>,
    /// `true` if losses were detected since the last [`Retransmissions::take_losses_found`].
    losses_found: bool,
    /// Ranges SACKed since the last review.
    sacked: Vec<Range>,
    /// Length of the longest retransmission in bytes, and the highest end of all.
    longest: u64,
    top: u64,
    duplicated: Option<Box<DuplicatedInFlight>>,
}

#[derive(Clone, Copy, Debug)]
struct Retransmission {
    end: u64,
    /// One past the highest byte sent before the retransmission.
    sent_up_to: u64,
    rank: u64,
}

/// Key of the order of losses. With RACK the rank is the send time in ns, so that the order is that
/// of RACK.xmit_ts and RACK.end_seq (RFC 8985 § 6.2); otherwise it is the number of the
/// retransmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LossOrder {
    rank: u64,
    end: u64,
    start: u64,
}

impl Retransmissions {
    pub const fn new(by_time: bool) -> Self {
        Self {
            by_time,
            in_flight: SortedMap::new(),
            order: SortedMap::new(),
            lost: SortedMap::new(),
            lost_bytes: 0,
            next: 0,
            arrived: None,
            losses_found: false,
            sacked: Vec::new(),
            longest: 0,
            top: 0,
            duplicated: None,
        }
    }

    /// Forgets all retransmissions, after a timeout or at a new recovery.
    pub fn restart(&mut self) {
        *self = Self::new(self.by_time);
    }

    /// Undoes the losses of retransmissions. With RACK, a retransmission in flight is in flight
    /// twice from now on, with its original (Linux, `tcp_undo_cwnd_reduction`: nothing is lost any
    /// more, and `retrans_out` stays). All below `una` is acknowledged.
    pub fn undo_losses(&mut self, una: u64) {
        self.clear_lost();
        if self.by_time {
            let mut duplicated = DuplicatedInFlight::new(una);
            for (start, sent) in self.in_flight.iter().filter(|(_, sent)| sent.end > una) {
                duplicated.insert(start, sent.end);
            }
            self.duplicated = (!self.in_flight.is_empty()).then(|| Box::new(duplicated));
        }
    }

    /// Follows the lost edge to `edge`: the doubles below it begin to count.
    #[inline]
    pub fn advance_lost_edge(&mut self, edge: u64) {
        if let Some(duplicated) = &mut self.duplicated {
            duplicated.count_to(edge);
        }
    }

    /// Returns the bytes from `una` to the lost edge of retransmissions whose originals are in
    /// flight, too; `None` unless an undo left any.
    #[inline]
    pub fn duplicated_bytes(&self, una: u64) -> Option<u64> {
        self.duplicated.as_ref().map(|duplicated| duplicated.bytes_from(una, self.longest))
    }

    /// Records a retransmission of `range`, when all data up to `sent_up_to` has been sent. If SACK
    /// already reported some of it, the next review counts it as arrived.
    pub fn sent(&mut self, range: Range, sent_up_to: u64, at: Time, sacked: &Ranges) {
        if let Some(end) = self.lost.remove(range.start) {
            self.lost_bytes -= end - range.start;
        }
        self.remove(range.start);
        let rank = if self.by_time { at.0 } else { self.next };
        self.next += 1;
        self.longest = self.longest.max(range.end - range.start);
        self.top = self.top.max(range.end);
        self.order.insert(LossOrder { rank, end: range.end, start: range.start }, ());
        self.in_flight.insert(range.start, Retransmission { end: range.end, sent_up_to, rank });
        if sacked.overlaps(range.start, range.end) {
            self.sacked.push(range);
        }
    }

    /// Queues a SACKed range for the next review, unless it lies above all retransmissions.
    #[inline]
    pub fn sacked(&mut self, start: u64, end: u64) {
        if start < self.top {
            self.sacked.push(Range { start, end });
        }
    }

    /// Removes the retransmission that begins at `start` from those in flight.
    fn remove(&mut self, start: u64) -> Option<Retransmission> {
        let sent = self.in_flight.remove(start)?;
        self.order.remove(LossOrder { rank: sent.rank, end: sent.end, start });
        if let Some(duplicated) = &mut self.duplicated {
            duplicated.remove(start, sent.end);
        }
        Some(sent)
    }

    /// Adds a lost retransmission; each byte counts once, as retransmissions with other boundaries
    /// may overlap.
    fn mark_lost(&mut self, range: Range) {
        let Range { start, end } = range;
        if start >= end {
            return;
        }
        let mut at = self.lost.below(start).map_or(start, |(_, reaches)| reaches.max(start));
        while at < end {
            let (first, reaches) = self.lost.from(at).unwrap_or((end, end));
            if first > at {
                let next = first.min(end);
                self.lost.insert(at, next);
                self.lost_bytes += next - at;
                at = next;
            } else if at == start && reaches < end {
                // A shorter lost retransmission began at the same byte.
                let next = self.lost.from(at + 1).map_or(end, |(next, _)| next.min(end));
                self.lost.insert(at, next);
                self.lost_bytes += next - reaches;
                at = next;
            } else {
                at = reaches;
            }
        }
        self.longest = self.longest.max(end - start);
        self.top = self.top.max(end);
    }

    fn clear_lost(&mut self) {
        self.lost.clear();
        self.lost_bytes = 0;
    }

    /// Returns the first retransmission in flight, from `from` on, that overlaps `range`.
    /// Retransmissions may overlap: that of a whole segment contains earlier ones of its parts.
    fn next_in(&self, mut from: u64, range: Range) -> Option<(u64, Retransmission)> {
        // A retransmission that begins before `range` may reach into it.
        from = from.max(range.start.saturating_sub(self.longest));
        loop {
            let (start, sent) = self.in_flight.from(from).filter(|&(s, _)| s < range.end)?;
            if sent.end > range.start {
                return Some((start, sent));
            }
            from = start + 1;
        }
    }

    /// Removes lost retransmissions and doubles below `una`, which is acknowledged.
    #[inline]
    pub fn advance(&mut self, una: u64) {
        // Most ACKs find neither, so the test is inlined and the work is not.
        if !self.lost.is_empty() || self.duplicated.is_some() {
            self.forget_lost_below(una);
        }
    }

    #[inline(never)]
    fn forget_lost_below(&mut self, una: u64) {
        while let Some((start, end)) = self.lost.first().filter(|&(start, _)| start < una) {
            self.lost.pop_first();
            self.lost_bytes -= end - start;
            if end > una {
                self.mark_lost(Range { start: una, end });
            }
        }
        if let Some(duplicated) = &mut self.duplicated {
            duplicated.forget_below(una);
        }
    }

    /// Removes the retransmissions that arrived, by the cumulative ACK `una` and the ranges SACKed
    /// since the last review.
    pub fn review(&mut self, una: u64, sacked: &Ranges) {
        self.advance(una);
        let mut from = 0;
        while let Some((start, sent)) = self.in_flight.from(from).filter(|&(start, _)| start < una)
        {
            if sent.end <= una {
                self.arrive(start);
            }
            from = start + 1;
        }
        let mut reported = core::mem::take(&mut self.sacked);
        for range in reported.drain(..) {
            self.take_arrived(range, sacked);
        }
        self.sacked = reported;
    }

    /// Marks lost the retransmissions that later data overtook, by the rule `by`; all below `una`
    /// is acknowledged. Returns `true` if there are any.
    pub fn mark_lost_by_order(&mut self, una: u64, sacked: &Ranges, by: LossByOrder) -> bool {
        let top = sacked.highest().map_or(una, |range| range.end);
        let mut found = false;
        while let Some((LossOrder { rank, end, start }, ())) = self.order.first() {
            let sent_up_to = self.in_flight.get(start).map_or(u64::MAX, |sent| sent.sent_up_to);
            let sent = InFlight { number: rank, sent_up_to };
            // Number and `sent_up_to` rise in this order: the first that is not lost ends the
            // search.
            if !by.is_lost(sent, Arrived { top, number: self.arrived }) {
                break;
            }
            self.remove(start);
            self.mark_lost(Range { start: start.max(una), end });
            found = true;
        }
        self.losses_found |= found;
        found
    }

    fn arrive(&mut self, start: u64) {
        let sent = self.remove(start);
        self.arrived = self.arrived.max(sent.map(|sent| sent.rank));
    }

    /// Removes the retransmissions, in flight and lost, that the newly SACKed `range` reports as
    /// arrived.
    fn take_arrived(&mut self, range: Range, sacked: &Ranges) {
        let mut from = 0;
        while let Some((start, sent)) = self.next_in(from, range) {
            if sacked.overlaps(start, sent.end) {
                self.arrive(start);
            }
            from = start + 1;
        }
        from = range.start.saturating_sub(self.longest);
        while let Some((start, end)) = self.lost.from(from).filter(|&(s, _)| s < range.end) {
            if sacked.overlaps(start, end) {
                self.lost.remove(start);
                self.lost_bytes -= end - start;
            }
            from = start + 1;
        }
    }

    /// Marks lost the retransmissions whose RACK deadline has passed. Returns `true` if there are
    /// any, and the deadline of the last other one that was sent before the newest arrival;
    /// `Time::ZERO` if none was.
    pub fn mark_lost_by_time(&mut self, una: u64, now: Time, by: Deadline) -> (bool, Time) {
        let mut found = false;
        let over = |position: LossOrder| by.of((Time(position.rank), position.end));
        while let Some((position, ())) = self.order.first()
            && over(position) <= now
        {
            self.remove(position.start);
            self.mark_lost(Range { start: position.start.max(una), end: position.end });
            found = true;
        }
        self.losses_found |= found;
        let (Time(rank), end) = by.newest;
        let overtaken = self.order.below(LossOrder { rank, end, start: 0 });
        (found, overtaken.map_or(Time::ZERO, |(position, ())| over(position)))
    }

    /// `true` if a retransmission was sent within the last `rtt`, apart from one at `una`.
    pub fn has_recent(&self, una: u64, now: Time, rtt: Duration) -> bool {
        self.in_flight.iter().any(|(start, sent)| is_recent(start, sent, una, now, rtt))
    }

    /// Forgets the retransmissions that are older than `rtt` or begin at `una`, and all lost ones.
    pub fn forget_old(&mut self, una: u64, now: Time, rtt: Duration) {
        let old =
            self.in_flight.iter().filter(|&(start, sent)| !is_recent(start, sent, una, now, rtt));
        let old: Vec<u64> = old.map(|(start, _)| start).collect();
        for start in old {
            self.remove(start);
        }
        self.clear_lost();
    }

    /// Marks lost, segment by segment, the bytes of a hole of which no retransmission is in flight.
    pub fn mark_lost_but_recent(&mut self, hole: Range, mss: u64) {
        let (mut at, mut from) = (hole.start, 0);
        while let Some((start, sent)) = self.next_in(from, hole) {
            self.mark_range_lost(at, start, mss);
            at = at.max(sent.end);
            from = start + 1;
        }
        self.mark_range_lost(at, hole.end, mss);
    }

    fn mark_range_lost(&mut self, mut at: u64, end: u64, mss: u64) {
        while at < end {
            let next = (at + mss).min(end);
            self.mark_lost(Range { start: at, end: next });
            at = next;
        }
    }

    /// Returns the send time of the earliest retransmission in flight that contains this byte; with
    /// RACK only.
    #[inline]
    pub fn sent_at(&self, byte: u64) -> Option<Time> {
        if self.in_flight.is_empty() {
            return None;
        }
        let (mut sent_at, mut from) = (None, 0);
        while let Some((start, sent)) = self.next_in(from, Range { start: byte, end: byte + 1 }) {
            sent_at = Some(sent_at.map_or(sent.rank, |rank: u64| rank.min(sent.rank)));
            from = start + 1;
        }
        sent_at.map(Time)
    }

    /// Returns the number of retransmissions in flight.
    pub fn in_flight(&self) -> u64 {
        self.in_flight.len() as u64
    }

    /// Returns send time and end of the most recent retransmission in flight that lies within
    /// `range` and whose send time `counts` accepts; with RACK only.
    #[inline]
    pub fn last_within(&self, range: Range, counts: impl Fn(Time) -> bool) -> Option<(Time, u64)> {
        if range.start >= self.top {
            return None;
        }
        let (mut last, mut from) = (None, range.start);
        while let Some((start, sent)) = self.in_flight.from(from).filter(|&(s, _)| s < range.end) {
            if sent.end <= range.end && counts(Time(sent.rank)) {
                last = last.max(Some((Time(sent.rank), sent.end)));
            }
            from = start + 1;
        }
        last
    }

    /// `true` if losses were detected since the last [`Retransmissions::take_losses_found`].
    pub const fn has_losses_found(&self) -> bool {
        self.losses_found
    }

    /// Returns `true` if losses were detected since the last call.
    pub const fn take_losses_found(&mut self) -> bool {
        core::mem::replace(&mut self.losses_found, false)
    }

    /// Returns the lowest range of lost retransmissions.
    pub fn first_lost(&self) -> Option<Range> {
        self.lost.first().map(Range::from)
    }

    /// Returns the ranges of lost retransmissions.
    pub fn lost(&self) -> impl Iterator<Item = Range> {
        self.lost.iter().map(Range::from)
    }

    /// Returns the bytes of lost retransmissions.
    pub const fn lost_bytes(&self) -> u64 {
        self.lost_bytes
    }
}

fn is_recent(start: u64, sent: Retransmission, una: u64, now: Time, rtt: Duration) -> bool {
    start > una && Time(sent.rank) + rtt > now
}

/// Doubles: retransmissions in flight whose originals are presumed in flight, too: neither is
/// marked lost.
#[derive(Clone, Debug, Default)]
struct DuplicatedInFlight {
    /// End and start of each, in the order of the ends.
    by_end: SortedMap<(u64, u64), ()>,
    /// Lost edge: `bytes` is the sum of the doubles that end at or below it.
    counted_to: u64,
    bytes: u64,
}

impl DuplicatedInFlight {
    /// Creates an empty set, with nothing above `una` lost.
    fn new(una: u64) -> Self {
        Self { by_end: SortedMap::new(), counted_to: una, bytes: 0 }
    }

    fn insert(&mut self, start: u64, end: u64) {
        self.by_end.insert((end, start), ());
    }

    fn remove(&mut self, start: u64, end: u64) {
        if self.by_end.remove((end, start)).is_some() && end <= self.counted_to {
            self.bytes -= end - start;
        }
    }

    fn count_to(&mut self, edge: u64) {
        if edge > self.counted_to {
            let more = self.by_end.range((self.counted_to + 1, 0), (edge + 1, 0));
            self.bytes += more.map(|((end, start), ())| end - start).sum::<u64>();
            self.counted_to = edge;
        }
    }

    fn forget_below(&mut self, una: u64) {
        while let Some(((end, start), ())) =
            self.by_end.first().filter(|((end, _), ())| *end <= una)
        {
            self.remove(start, end);
        }
    }

    /// Returns the counted bytes from `una` on; a double that begins below counts in part.
    /// `longest` bounds their length.
    fn bytes_from(&self, una: u64, longest: u64) -> u64 {
        let mut bytes = self.bytes;
        let mut next = self.by_end.first();
        let last = self.counted_to.min(una.saturating_add(longest));
        while let Some(((end, start), ())) = next.filter(|((end, _), ())| *end <= last) {
            bytes -= una.min(end).saturating_sub(start);
            next = self.by_end.from((end, start + 1));
        }
        bytes
    }
}
