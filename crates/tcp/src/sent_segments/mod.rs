//! The record of what was sent and not yet acknowledged, which loss detection, round-trip times,
//! delivery rates and counts of retransmissions read.

mod columns;
mod first;
mod loss;
mod pipe;
mod retransmissions;
mod sack;
mod whole;

use std::collections::VecDeque;

use cwnd_packet::{Range, Ranges};
use cwnd_quantity::{Duration, Time};

use crate::byte_counts::ByteCounts;
use crate::delivery_rate::{Newest, Note};
use crate::loss_detection::Overtaken;
use crate::params::{LossRule, Params, PipeRule, Recovery};
use crate::segment::MAX_SACK_BLOCKS;
use columns::Columns;
pub use columns::{Arrivals, Notes};
use first::FirstTransmissions;
use retransmissions::Retransmissions;

/// Those of an ACK and one more: a cache line.
const LAST_BLOCKS: usize = MAX_SACK_BLOCKS + 1;

/// One record of the outstanding bytes (RFC 6675 § 3–4, RFC 8985 § 5.2): what SACK reported, what
/// is lost, what went again and how often, and when; its counts are kept up to date, not
/// recomputed.
///
/// Two edges replace per-segment marks. `IsLost` is monotone: whatever lies below a lost byte and
/// is not SACKed is lost too, so one number, `lost_edge`, tells all losses; retransmissions go
/// upwards, so `high_rxt` tells them all. Parts that only some senders need are absent elsewhere.
///
/// Cost: an ACK takes amortised O(log n) in SACKed ranges. Both edges only rise, so each range is
/// counted once below each. They fall once a timeout, once an undo and once a recovery without
/// RACK.
// In order of use, by cache lines: an ACK reads `counts` and from `READ_FROM` on, one with SACK
// blocks what lies between, too.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct SentSegments {
    sacked_below_lost: u64,
    sacked_below_rxt: u64,
    /// Retransmissions of each outstanding byte, also where nothing else is recorded.
    counts: ByteCounts,
    /// The last blocks that told anything, the newest first: most of an ACK's are repeated (RFC
    /// 2018 § 4), and need not be looked up.
    last_blocks: [Range; LAST_BLOCKS],
    sacked: Ranges,
    /// Sum of their lengths; 0 if nothing is SACKed.
    sacked_bytes: u64,
    /// Bytes found lost since [`SentSegments::take_newly_lost`].
    newly_lost: u64,
    /// Unsacked bytes below this are lost.
    lost_edge: u64,
    /// Unsacked bytes below this were retransmitted (RFC 6675 HighRxt, exclusive).
    high_rxt: u64,
    /// The exception to that: retransmissions that were lost in turn, if they are looked for.
    resent: Option<Box<Retransmissions>>,
    /// Retransmissions that were SACKed, where these count until they are acknowledged
    /// ([`PipeRule::KeepsRetransmissions`]).
    arrived: Option<Box<Arrived>>,
    /// First transmissions, where times are noted.
    first: Option<Box<FirstTransmissions>>,
}

#[derive(Clone, Debug, Default)]
struct Arrived {
    ranges: Ranges,
    /// The sum of their lengths.
    bytes: u64,
}

/// A segment that goes again.
#[derive(Clone, Copy, Debug)]
pub struct Retransmission {
    pub range: Range,
    /// All below is acknowledged.
    pub una: u64,
    /// One past the highest byte that had been sent before.
    pub high: u64,
    /// The time, if HighRxt rises with it (RFC 6675 § 4).
    pub marked: Option<Time>,
}

/// Time after which what has not arrived is lost (RFC 8985 § 6.2, step 5).
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    /// Send time and end of the segment that went last of all that arrived.
    pub newest: (Time, u64),
    /// Time from the transmission of a segment to its loss.
    pub after: Duration,
}

impl Deadline {
    /// Time when a segment with this send time and end is lost; never, if nothing that went after
    /// it arrived.
    pub fn of(&self, sent: (Time, u64)) -> Time {
        if sent < self.newest { sent.0 + self.after } else { Time::NEVER }
    }
}

/// Data that a timeout leaves in flight: what went within the last round trip and is not the first
/// segment (RFC 8985 § 6.3; Linux, `tcp_timeout_mark_lost`).
#[derive(Clone, Copy, Debug)]
pub struct Young {
    pub now: Time,
    pub rtt: Duration,
    /// All below went before that.
    pub old: u64,
    pub mss: u64,
}

impl SentSegments {
    /// Offset of counts of retransmissions, in bytes.
    pub const COUNTS: usize = core::mem::offset_of!(Self, counts);
    /// Offset of what each ACK reads, in bytes.
    pub const READ_FROM: usize = core::mem::offset_of!(Self, sacked_bytes);

    /// A record that keeps what these parameters need, and these notes.
    pub fn new(params: &Params, notes: Notes) -> Self {
        let by_time = params.detection.loss_rule == LossRule::Rack;
        let new = || Box::new(Retransmissions::new(by_time));
        let sack = params.recovery.recovery == Recovery::Sack;
        let resent = (params.detection.lost_retransmissions && sack).then(new);
        let arrived =
            (params.detection.pipe_rule == PipeRule::KeepsRetransmissions).then(Box::default);
        let times = by_time && (sack || params.rtt.rtt_from_notes) || notes.rtt || notes.rates;
        let first = times.then(|| Box::new(FirstTransmissions::new(notes)));
        Self { resent, arrived, first, ..Self::default() }
    }

    /// Prefetches what an ACK reads.
    #[inline]
    pub fn lines_soon(&self) {
        cwnd_memory::line_soon(&self.counts);
        cwnd_memory::line_soon(&self.sacked_bytes);
    }

    /// Prefetches what it points to.
    #[inline]
    pub fn soon(&self) {
        if !self.is_empty() {
            self.sacked.soon();
        }
    }

    /// Data goes for the first time; full segments have `mss` bytes.
    #[inline]
    pub fn on_sent(&mut self, range: Range, now: Time, mss: u64) {
        if let Some(first) = &mut self.first {
            first.on_sent(range.start, range.end, now, mss);
        }
    }

    /// Data goes again. What of it lies above `high` goes for the first time, after a Tahoe or a
    /// divided ACK.
    #[cold]
    pub fn on_sent_again(&mut self, again: Retransmission) {
        let Retransmission { range, una, high, marked } = again;
        self.count_again(Range { start: range.start, end: range.end.min(high) }, una);
        if let Some((columns, sent)) = self.columns() {
            columns.mark_again(sent, range.start, range.end);
        }
        let Some(now) = marked else { return };
        if let Some(resent) = &mut self.resent {
            resent.sent(range, high, now, &self.sacked);
        }
        if range.end > self.high_rxt {
            self.sacked_below_rxt += self.sacked.covered(self.high_rxt, range.end);
            self.high_rxt = range.end;
        }
    }

    /// Counts a retransmission of `range`, and forgets all below `una`.
    #[cold]
    pub fn count_again(&mut self, range: Range, una: u64) {
        self.counts.add(range.start, range.end, una);
    }

    /// Everything below `una` has arrived; returns how much of it had been reported by SACK before.
    /// `overtaken` finds lost retransmissions; `None` leaves them to RACK or the timer.
    pub fn on_ack(&mut self, una: u64, overtaken: Option<Overtaken>) -> u64 {
        let mut gone = 0;
        if !self.is_empty() {
            gone = self.sacked.covered(0, una);
            if gone > 0 {
                self.sacked_below_lost -= self.sacked.covered(0, una.min(self.lost_edge));
                self.sacked_below_rxt -= self.sacked.covered(0, una.min(self.high_rxt));
                self.sacked_bytes -= gone;
                self.sacked.remove_below(una);
            }
            self.look_at_retransmissions(una, overtaken);
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

    /// Notes a transmission of `range` for delivery rates, after the writer of the transmission;
    /// `again` if some of it went before.
    pub fn note_rate(&mut self, range: Range, note: Note, again: bool) {
        if let Some((columns, sent)) = self.columns() {
            columns.note_rate(sent, range, note, again);
        }
    }

    /// The SACK blocks of an ACK reported these ranges, some perhaps again, and so many new bytes.
    pub fn note_sacked(&mut self, ranges: impl Iterator<Item = Range>, mut new: u64) {
        let Some((columns, sent)) = self.columns() else { return };
        for range in ranges {
            new = columns.report(sent, range, new);
        }
    }

    /// Segments that arrived since the last call, for round-trip times.
    pub fn take_arrivals(&mut self) -> Arrivals {
        self.columns().map_or_else(Arrivals::default, |(columns, _)| columns.take_arrivals())
    }

    /// Send time of the newest segment that SACK reported since the last call of this or of
    /// [`SentSegments::take_arrivals`].
    pub fn take_sacked(&mut self) -> Option<Time> {
        self.columns()?.0.take_sacked()
    }

    /// The segment that went last of those that arrived since the last call.
    pub fn take_newest(&mut self) -> Newest {
        self.columns().map_or_else(Newest::default, |(columns, _)| columns.take_newest())
    }

    #[inline]
    fn columns(&mut self) -> Option<(&mut Columns, &mut VecDeque<(u64, Time)>)> {
        self.first.as_mut()?.columns()
    }

    /// All below `ack` has arrived, in its order, and went once: when the first and the last of it
    /// went.
    #[inline]
    pub fn take_in_order(&mut self, ack: u64) -> (Option<Time>, Option<Time>) {
        let Some(first) = &mut self.first else { return (None, None) };
        first.take_in_order(ack)
    }

    /// Forgets when data below `una` went.
    pub fn forget_times_below(&mut self, una: u64) {
        if let Some(first) = &mut self.first {
            first.forget_below(una);
        }
    }

    /// A timeout: all from `una` to `high` is lost and goes again, but for what is young.
    #[cold]
    pub fn on_timeout(&mut self, una: u64, high: u64, young: Option<Young>) {
        if let Some(young) = young {
            self.mark_lost_below(young.old);
            self.lose_retransmissions(una, young);
        } else {
            self.mark_lost_below(high);
            self.restart_retransmissions(una);
        }
        if let (Some(first), Some(end)) = (&mut self.first, self.counts.end()) {
            first.repeated = first.repeated.max(end);
        }
    }

    /// Forgets what SACK reported (RFC 2018 § 8): nothing is lost, and nothing went again.
    pub fn restart(&mut self, una: u64) {
        let (resent, arrived) = (self.resent.take(), self.arrived.take());
        let (counts, first) = (core::mem::take(&mut self.counts), self.first.take());
        *self = Self { counts, arrived, resent, first, ..Self::default() };
        self.restart_retransmissions(una);
        self.on_ack(una, None);
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

    /// A timeout: what went again is lost, but for what did so within the last round trip and is
    /// not the first (Linux, `tcp_timeout_mark_lost`).
    fn lose_retransmissions(&mut self, una: u64, young: Young) {
        let Young { now, rtt, mss, .. } = young;
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

    /// Takes losses back: nothing is lost, and what went again is in flight as often as it went
    /// (Linux, `tcp_undo_cwnd_reduction`). Losses are found anew.
    pub fn undo(&mut self, una: u64) {
        self.lost_edge = una;
        self.sacked_below_lost = self.sacked.covered(0, una);
        if let Some(resent) = &mut self.resent {
            resent.find_again(una);
        }
    }

    /// `true` if any byte of `[start, end)` went again.
    pub fn any_again(&self, start: u64, end: u64) -> bool {
        self.counts.any_in(start, end)
    }

    /// Number of retransmissions of `byte`.
    pub fn times_again(&self, byte: u64) -> u64 {
        self.counts.of(byte)
    }

    /// Bytes from `una` on that went again, as pairs of start and end.
    pub fn went_again(&self, una: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.counts.above(una)
    }
}
