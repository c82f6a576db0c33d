//! Scoreboard: the record of outstanding data, which loss detection, RTT samples, delivery rates
//! and counts of retransmissions read.

mod columns;
mod first_transmissions;
mod loss;
mod retransmissions;
mod sack;

use std::collections::VecDeque;

use cwnd_packet::{Range, Ranges};
use cwnd_quantity::{Duration, Time};

use crate::byte_counts::ByteCounts;
use crate::delivery_rate::{Newest, SendState};
use crate::loss_detection::LossByOrder;
use crate::params::{LossRule, Params, PipeRule, Recovery};
use crate::segment::MAX_SACK_BLOCKS;
use columns::Columns;
pub use columns::{Arrivals, Notes};
use first_transmissions::FirstTransmissions;
use retransmissions::Retransmissions;

/// Remembered SACK blocks: those of one ACK and one more, which fill a cache line.
const LAST_BLOCKS: usize = MAX_SACK_BLOCKS + 1;

/// Scoreboard of the outstanding bytes (RFC 6675 § 3–4, RFC 8985 § 5.2): SACKed and lost ranges,
/// retransmissions with their counts, and send times. Its sums are updated incrementally, not
/// recomputed.
///
/// Two edges replace per-segment marks. `IsLost` is monotone: a byte below a lost one is lost, too,
/// unless it is SACKed. So one number, `lost_edge`, gives all losses. Retransmissions proceed
/// upwards, so `high_rxt` gives all of them. State that only some senders need is `None` in the
/// others.
///
/// Cost: an ACK takes amortised O(log n) in SACKed ranges. Both edges rise, so each range is
/// counted once below each. They fall at most once in a timeout, in an undo and in a recovery
/// without RACK.
// Fields are in order of use, by cache lines: an ACK reads `counts` and the fields from `READ_FROM`
// on, an ACK with SACK blocks also those between.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct SentSegments {
    sacked_below_lost: u64,
    sacked_below_rxt: u64,
    /// Number of retransmissions of each outstanding byte; every sender keeps it.
    counts: ByteCounts,
    /// The last different SACK blocks, the newest first. Most blocks of an ACK are repeated (RFC
    /// 2018 § 4), and are not looked up in `sacked`.
    last_blocks: [Range; LAST_BLOCKS],
    sacked: Ranges,
    /// Sum of the lengths of `sacked`, bytes.
    sacked_bytes: u64,
    /// Bytes found lost since [`SentSegments::take_newly_lost`].
    newly_lost: u64,
    /// Unsacked bytes below this are lost.
    lost_edge: u64,
    /// Unsacked bytes below this were retransmitted (RFC 6675 HighRxt, exclusive).
    high_rxt: u64,
    /// Retransmissions in flight and lost ones, the exception to `high_rxt`; `None` unless lost
    /// retransmissions are detected.
    retransmissions: Option<Box<Retransmissions>>,
    /// Retransmitted ranges that were SACKed and are still counted in the pipe
    /// ([`PipeRule::KeepsRetransmissions`] only).
    arrived: Option<Box<ArrivedRetransmissions>>,
    /// Send times of first transmissions; `None` unless RACK, RTT samples or delivery rates need
    /// them.
    first: Option<Box<FirstTransmissions>>,
}

#[derive(Clone, Debug, Default)]
struct ArrivedRetransmissions {
    ranges: Ranges,
    /// Sum of the lengths of `ranges`.
    bytes: u64,
}

/// A retransmission that is sent.
#[derive(Clone, Copy, Debug)]
pub struct Retransmission {
    pub range: Range,
    /// SND.UNA: all below is acknowledged.
    pub una: u64,
    /// One past the highest byte that had been sent before.
    pub high: u64,
    /// Send time, if HighRxt includes the retransmission (RFC 6675 § 4); else `None`.
    pub marked: Option<Time>,
}

/// RACK's condition of loss: a segment sent before `newest` is lost once `after` has passed since
/// its transmission (RFC 8985 § 6.2, step 5).
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    /// Send time and end of the most recently sent segment that has arrived (RACK.xmit_ts,
    /// RACK.end_seq).
    pub newest: (Time, u64),
    /// Time from the transmission of a segment to its loss (RACK.rtt + RACK.reo_wnd).
    pub after: Duration,
}

impl Deadline {
    /// Time at which a segment with this send time and end is lost; `Time::NEVER` if no segment
    /// sent after it has arrived.
    pub fn of(&self, sent: (Time, u64)) -> Time {
        if sent < self.newest { sent.0 + self.after } else { Time::NEVER }
    }
}

/// Data that a timeout leaves in flight: segments sent within the last round trip, but for the
/// first (RFC 8985 § 6.3; Linux, `tcp_timeout_mark_lost`).
#[derive(Clone, Copy, Debug)]
pub struct Recent {
    pub now: Time,
    pub rtt: Duration,
    /// End of the data that was sent earlier and is lost.
    pub old: u64,
    pub mss: u64,
}

impl SentSegments {
    /// Offset of `counts`, in bytes.
    pub const COUNTS: usize = core::mem::offset_of!(Self, counts);
    /// Offset in bytes of the fields that each ACK reads.
    pub const READ_FROM: usize = core::mem::offset_of!(Self, sacked_bytes);

    /// Creates an empty scoreboard with the state that these parameters and `notes` need.
    pub fn new(params: &Params, notes: Notes) -> Self {
        let by_time = params.detection.loss_rule == LossRule::Rack;
        let new = || Box::new(Retransmissions::new(by_time));
        let sack = params.recovery.recovery == Recovery::Sack;
        let retransmissions = (params.detection.lost_retransmissions && sack).then(new);
        let arrived =
            (params.detection.pipe_rule == PipeRule::KeepsRetransmissions).then(Box::default);
        let times = by_time && (sack || params.rtt.rtt_from_notes) || notes.rtt || notes.rates;
        let first = times.then(|| Box::new(FirstTransmissions::new(notes)));
        Self { retransmissions, arrived, first, ..Self::default() }
    }

    /// Prefetches the cache lines that an ACK reads.
    #[inline]
    pub fn prefetch_lines(&self) {
        cwnd_memory::prefetch_line(&self.counts);
        cwnd_memory::prefetch_line(&self.sacked_bytes);
    }

    /// Prefetches the SACKed ranges, which lie behind a pointer.
    #[inline]
    pub fn prefetch(&self) {
        if !self.is_empty() {
            self.sacked.prefetch();
        }
    }

    /// Records a first transmission; full segments have `mss` bytes.
    #[inline]
    pub fn on_sent(&mut self, range: Range, now: Time, mss: u64) {
        if let Some(first) = &mut self.first {
            first.on_sent(range.start, range.end, now, mss);
        }
    }

    /// Records a retransmission. Its part above `high`, if any, is sent for the first time.
    #[cold]
    pub fn on_retransmission_sent(&mut self, again: Retransmission) {
        let Retransmission { range, una, high, marked } = again;
        self.count_retransmission(Range { start: range.start, end: range.end.min(high) }, una);
        if let Some((columns, sent)) = self.columns() {
            columns.mark_retransmitted(sent, range.start, range.end);
        }
        let Some(now) = marked else { return };
        if let Some(retransmissions) = &mut self.retransmissions {
            retransmissions.sent(range, high, now, &self.sacked);
        }
        if range.end > self.high_rxt {
            self.sacked_below_rxt += self.sacked.covered(self.high_rxt, range.end);
            self.high_rxt = range.end;
        }
    }

    /// Counts a retransmission of `range`, and forgets all below `una`.
    #[cold]
    pub fn count_retransmission(&mut self, range: Range, una: u64) {
        self.counts.add(range.start, range.end, una);
    }

    /// Advances the SACKed ranges and both edges to `una`; returns how many of the bytes below it
    /// SACK had reported. `lost_retransmission_rule` detects lost retransmissions if anything was
    /// SACKed; `None` leaves them to RACK or the timer.
    pub fn on_ack(&mut self, una: u64, lost_retransmission_rule: Option<LossByOrder>) -> u64 {
        let mut gone = 0;
        if !self.is_empty() {
            gone = self.sacked.covered(0, una);
            if gone > 0 {
                self.sacked_below_lost -= self.sacked.covered(0, una.min(self.lost_edge));
                self.sacked_below_rxt -= self.sacked.covered(0, una.min(self.high_rxt));
                self.sacked_bytes -= gone;
                self.sacked.remove_below(una);
            }
            self.review_retransmissions(una, lost_retransmission_rule);
        } else if let Some(retransmissions) = &mut self.retransmissions {
            retransmissions.advance(una);
        }
        if let Some(arrived) = &mut self.arrived {
            arrived.bytes -= arrived.ranges.covered(0, una);
            arrived.ranges.remove_below(una);
        }
        self.lost_edge = self.lost_edge.max(una);
        self.high_rxt = self.high_rxt.max(una);
        gone
    }

    /// Attaches a delivery-rate note to a transmission of `range`, which was recorded before;
    /// `again` if some of it is a retransmission.
    pub fn record_send_state(&mut self, range: Range, note: SendState, again: bool) {
        if let Some((columns, sent)) = self.columns() {
            columns.record_send_state(sent, range, note, again);
        }
    }

    /// Marks segments as SACKed for RTT samples and delivery rates: `ranges` are an ACK's blocks,
    /// of which `new` bytes are reported for the first time.
    pub fn note_sacked(&mut self, ranges: impl Iterator<Item = Range>, mut new: u64) {
        let Some((columns, sent)) = self.columns() else { return };
        for range in ranges {
            new = columns.report(sent, range, new);
        }
    }

    /// Takes the segments that arrived since the last call, for RTT samples.
    pub fn take_arrivals(&mut self) -> Arrivals {
        self.columns().map_or_else(Arrivals::default, |(columns, _)| columns.take_arrivals())
    }

    /// Takes the send time of the newest segment SACKed since the last call of this or of
    /// [`SentSegments::take_arrivals`].
    pub fn take_sacked(&mut self) -> Option<Time> {
        self.columns()?.0.take_sacked()
    }

    /// Takes the most recently sent segment of those that arrived since the last call, for delivery
    /// rates.
    pub fn take_newest(&mut self) -> Newest {
        self.columns().map_or_else(Newest::default, |(columns, _)| columns.take_newest())
    }

    #[inline]
    fn columns(&mut self) -> Option<(&mut Columns, &mut VecDeque<(u64, Time)>)> {
        self.first.as_mut()?.columns()
    }

    /// Removes the send times of the data below `ack`, which arrived in order; returns those of its
    /// first and last segment.
    #[inline]
    pub fn take_in_order(&mut self, ack: u64) -> (Option<Time>, Option<Time>) {
        let Some(first) = &mut self.first else { return (None, None) };
        first.take_in_order(ack)
    }

    /// Removes the send times of data below `una`.
    pub fn forget_times_below(&mut self, una: u64) {
        if let Some(first) = &mut self.first {
            first.forget_below(una);
        }
    }

    /// Marks all from `una` to `high` lost after a timeout, but for the data that `recent` leaves
    /// in flight.
    #[cold]
    pub fn on_timeout(&mut self, una: u64, high: u64, recent: Option<Recent>) {
        if let Some(recent) = recent {
            self.mark_lost_below(recent.old);
            self.mark_retransmissions_lost(una, recent);
        } else {
            self.mark_lost_below(high);
            self.restart_retransmissions(una);
        }
        if let (Some(first), Some(end)) = (&mut self.first, self.counts.end()) {
            first.repeated = first.repeated.max(end);
        }
    }

    /// Forgets SACKed and lost ranges after the receiver reneged (RFC 2018 § 8), and resets HighRxt
    /// to `una`. Counts of retransmissions and send times stay.
    pub fn restart(&mut self, una: u64) {
        let (retransmissions, arrived) = (self.retransmissions.take(), self.arrived.take());
        let (counts, first) = (core::mem::take(&mut self.counts), self.first.take());
        *self = Self { counts, arrived, retransmissions, first, ..Self::default() };
        self.restart_retransmissions(una);
        self.on_ack(una, None);
    }

    /// Forgets which bytes were retransmitted: a timeout or a new recovery retransmits from `una`
    /// on.
    pub fn restart_retransmissions(&mut self, una: u64) {
        self.high_rxt = una;
        self.sacked_below_rxt = 0;
        if let Some(arrived) = &mut self.arrived {
            **arrived = ArrivedRetransmissions::default();
        }
        if let Some(retransmissions) = &mut self.retransmissions {
            retransmissions.restart();
        }
    }

    /// Marks retransmissions lost after a timeout, but for those sent within the last round trip
    /// that do not begin at `una` (Linux, `tcp_timeout_mark_lost`).
    fn mark_retransmissions_lost(&mut self, una: u64, recent: Recent) {
        let Recent { now, rtt, mss, .. } = recent;
        let Some(retransmissions) = self
            .retransmissions
            .as_mut()
            .filter(|retransmissions| retransmissions.has_recent(una, now, rtt))
        else {
            self.restart_retransmissions(una);
            return;
        };
        retransmissions.forget_old(una, now, rtt);
        let mut at = una;
        while let Some(hole) = self.sacked.hole_from(at, self.high_rxt) {
            retransmissions.mark_lost_but_recent(hole, mss);
            at = hole.end;
        }
    }

    /// Undoes the loss marks: retransmissions and their originals are both in flight (Linux,
    /// `tcp_undo_cwnd_reduction`). Losses are detected anew.
    pub fn undo(&mut self, una: u64) {
        self.lost_edge = una;
        self.sacked_below_lost = self.sacked.covered(0, una);
        if let Some(retransmissions) = &mut self.retransmissions {
            retransmissions.undo_losses(una);
        }
    }

    /// `true` if any byte of `[start, end)` was retransmitted.
    pub fn any_retransmitted(&self, start: u64, end: u64) -> bool {
        self.counts.any_in(start, end)
    }

    /// Returns the number of retransmissions of `byte`.
    pub fn retransmit_count(&self, byte: u64) -> u64 {
        self.counts.of(byte)
    }

    /// Returns the retransmitted ranges from `una` on, as pairs of start and end.
    pub fn retransmitted_ranges(&self, una: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.counts.above(una)
    }
}
