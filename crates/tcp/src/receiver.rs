//! The receiving end, composed of parts that own their state.

mod ack_policy;
mod feedback;
pub mod misbehaviour;
mod reassembly;

use std::sync::Arc;

use cwnd_packet::{Echo, Ecn};
use cwnd_quantity::Time;

use crate::config::Config;
use crate::counters::{Delays, ReceiverCounters};
use crate::params::Recovery;
use crate::segment::{Body, Flags, SackBlocks, Segment};
use ack_policy::{Accepted, AckPolicy, Due};
use feedback::Feedback;
use reassembly::{Arrival, Reassembly};

/// The receiving end: reassembles, acknowledges, echoes congestion marks and timestamps.
///
/// Call [`Receiver::on_segment`] for every arriving segment and [`Receiver::on_timer`] at (or
/// after) [`Receiver::next_timer`]; each may give one ACK to send. The application reads at once,
/// so the advertised window stays as configured.
///
/// Cost: a segment in order takes O(1), one behind a hole amortised O(log n) in the ranges that
/// wait ([`cwnd_packet::Ranges`]). SACK blocks are kept as they were last seen, so an ACK searches
/// for none.
// Fields that each segment reads are adjacent: `READ_BYTES` from `READ_FROM` on.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Receiver {
    counters: ReceiverCounters,
    config: Arc<Config>,
    acks: AckPolicy,
    feedback: Feedback,
    data: Reassembly,
}

impl Receiver {
    /// Offset in bytes of the fields that each segment reads.
    pub const READ_FROM: usize = ReceiverCounters::READ_FROM;
    /// Size in bytes of the fields that each segment reads; they should lie in two cache lines.
    pub const READ_BYTES: usize =
        core::mem::offset_of!(Self, data) + Reassembly::READ_BYTES - Self::READ_FROM;

    /// Creates a receiver that has received nothing.
    #[must_use]
    pub fn new(config: Arc<Config>) -> Self {
        Self {
            data: Reassembly::default(),
            acks: AckPolicy::new(&config),
            feedback: Feedback::new(&config),
            counters: ReceiverCounters::default(),
            config,
        }
    }

    /// Prefetches the receiver's two cache lines that the next segment reads.
    #[inline]
    pub fn prefetch_lines(&self) {
        cwnd_memory::prefetch_line(&self.config);
        cwnd_memory::prefetch_line(&self.data);
    }

    /// Prefetches the out-of-order ranges, which lie behind a pointer.
    #[inline]
    pub fn prefetch(&self) {
        self.data.prefetch();
    }

    /// Returns the receiver's counters.
    #[inline]
    #[must_use]
    pub const fn counters(&self) -> &ReceiverCounters {
        &self.counters
    }

    /// Returns the one-way delays of data packets; `None` without `record_delays`.
    #[must_use]
    pub fn delays(&self) -> Option<&Delays> {
        self.feedback.delays()
    }

    /// `true` if the receiver acknowledges data before it arrives, so that losses stay concealed
    /// (`cheat_optimistic_acks`).
    #[must_use]
    pub fn conceals(&self) -> bool {
        self.feedback.conceals()
    }

    /// Begins the counting period of the one-way delays.
    pub fn begin_counting(&mut self) {
        self.feedback.begin_counting();
    }

    /// Returns the time at which [`Receiver::on_timer`] is due; `Time::NEVER` if no ACK waits.
    #[inline]
    #[must_use]
    pub const fn next_timer(&self) -> Time {
        self.acks.deadline()
    }

    /// Processes an arriving data segment or SYN; returns the ACK to send now, if any.
    // Forced, as the compiler would not inline a function with several callers: one of them calls
    // it for every packet.
    #[inline(always)]
    pub fn on_segment(&mut self, now: Time, segment: &Segment) -> Option<Segment> {
        if segment.flags.has(Flags::SYN) {
            return Some(self.on_syn(now, segment));
        }
        self.count(segment);
        let rcv_nxt = self.data.rcv_nxt();
        let new = segment.end() > rcv_nxt;
        let echoed = self.feedback.on_header(segment, new, self.acks.last_ack_sent(rcv_nxt));
        if self.data.is_next(segment.seq) && !self.feedback.misbehaves() {
            // The next segment without holes: no duplicate to report, and no compressed ACK waits.
            self.counters.delivered_bytes += segment.end() - rcv_nxt;
            self.data.deliver(segment.end());
            let immediate = self.on_data(now, segment, new, echoed);
            let acks = &self.config.params.acks;
            if !self.acks.count_in_order(immediate, acks.ack_every) {
                self.acks.wait(now, acks.ack_delay);
                return None;
            }
        } else if self.feedback.has_extras() || self.acks.is_quick() {
            return self.on_other(now, segment, new, echoed);
        } else {
            // RFC 5681 § 4.2: at once for a segment out of order, a duplicate, and one that fills
            // a gap.
            self.accept(segment);
        }
        self.answer(now)
    }

    /// Processes a segment out of order, or any segment of a misbehaving receiver, with quick ACKs
    /// or feedback beyond RFC 5681.
    #[inline(never)]
    fn on_other(
        &mut self,
        now: Time,
        segment: &Segment,
        new: bool,
        echoed: bool,
    ) -> Option<Segment> {
        let held = self.prepare_feedback(now, segment);
        let arrival = self.accept(segment);
        let immediate = self.on_data(now, segment, new, echoed);
        self.acknowledge(now, arrival, immediate, held)
    }

    /// Updates echoes and quick ACKs after a segment was accepted; `new` if it ends above the next
    /// byte expected before, `echoed` as [`Feedback::on_header`] returned it. Returns `true` if its
    /// ACK must not wait.
    #[inline(always)]
    fn on_data(&mut self, now: Time, segment: &Segment, new: bool, echoed: bool) -> bool {
        let immediate = self.feedback.on_data(now, segment);
        let quick = self.acks.on_segment(now, segment, || Accepted {
            rcv_nxt: self.data.rcv_nxt(),
            highest: self.data.highest(),
            duplicate: !new,
            first_mark: self.feedback.has_ece() && !echoed,
        });
        immediate || quick
    }

    /// Returns the ACK of a segment if it is due, else delays or compresses it. `held` is the ACK
    /// to send in place of the one that begins to wait.
    fn acknowledge(
        &mut self,
        now: Time,
        arrival: Arrival,
        immediate: bool,
        held: Option<Segment>,
    ) -> Option<Segment> {
        let params = &self.config.params.acks;
        match self.acks.due(arrival, immediate, self.data.rcv_nxt(), params.ack_every) {
            Due::Now => self.answer(now),
            Due::Compressed => self.compress(now, held),
            Due::Later => {
                self.acks.wait(now, params.ack_delay);
                None
            }
        }
    }

    /// Counts a SYN and returns the SYN-ACK.
    #[cold]
    fn on_syn(&mut self, now: Time, segment: &Segment) -> Segment {
        self.counters.syns += 1;
        self.acks.on_syn(now);
        let mut reply = Segment { ts: segment.ts, flags: Flags::SYN, ..self.ack() };
        self.feedback.on_syn(now, segment, &mut reply);
        reply
    }

    /// Counts a data segment, its wire bytes and its CE mark.
    #[inline(always)]
    fn count(&mut self, segment: &Segment) {
        self.counters.segments += 1;
        self.counters.wire_bytes += u64::from(segment.wire);
        if segment.ecn == Ecn::Ce {
            self.counters.ce_segments += 1;
        }
    }

    /// Prepares feedback for a segment before it is accepted. Returns an ACK of the state before
    /// it, if compressed ACKs wait and this segment touches none of the first blocks that they
    /// report.
    fn prepare_feedback(&mut self, now: Time, segment: &Segment) -> Option<Segment> {
        let rcv_nxt = self.data.rcv_nxt();
        self.feedback.on_arrival(now, segment, rcv_nxt);
        // A concealing receiver skips missing data. The window is checked here, as skipping moves
        // `rcv_nxt`.
        let window = u64::from(self.config.receive_window);
        if self.feedback.conceals() && segment.end() <= rcv_nxt + window {
            self.data.skip_to(segment.seq);
        }
        // Compressed ACKs are sent before a segment that their first blocks do not touch
        // (`tcp_sack_new_ofo_skb`). Departs from Linux, which accepts the segment first if it
        // extends a later block.
        let apart =
            self.acks.is_compressing() && self.data.touches_no_block(segment, AckPolicy::BLOCKS);
        let held = apart.then(|| {
            let mut ack = self.ack();
            self.feedback.report_duplicate(&mut ack);
            ack
        });
        self.feedback.note_duplicate(segment, self.data.rcv_nxt(), self.data.out_of_order());
        held
    }

    /// Passes a payload that may be out of order to reassembly, and counts delivered bytes and
    /// duplicates.
    #[inline(never)]
    fn accept(&mut self, segment: &Segment) -> Arrival {
        let before = self.data.rcv_nxt();
        let window = u64::from(self.config.receive_window);
        let (arrival, duplicate) = self.data.accept(segment, window);
        self.counters.delivered_bytes += self.data.rcv_nxt() - before;
        // A branch in place of an addition, as this counter lies in a cache line that few segments
        // read.
        if duplicate {
            self.counters.duplicates += 1;
        }
        arrival
    }

    /// Compresses the ACK of a segment behind a hole. Returns the ACK if it must be sent now; if it
    /// waits, returns `held` completed.
    fn compress(&mut self, now: Time, held: Option<Segment>) -> Option<Segment> {
        if held.is_some() {
            self.note_ack();
        }
        if !self.acks.compress(now, self.data.rcv_nxt()) {
            return self.answer(now);
        }
        let mut held = held?;
        self.feedback.complete_held(&mut held);
        Some(held)
    }

    /// Returns the ACK that waited, or the next piece of a divided one, if the timer has expired.
    pub fn on_timer(&mut self, now: Time) -> Option<Segment> {
        if now < self.acks.deadline() {
            return None;
        }
        if let Some((ack, more)) = self.feedback.next_piece() {
            self.acks.on_piece_sent(now, more, self.config.params.acks.ack_delay);
            return Some(ack);
        }
        self.acks.on_expiry();
        self.answer(now)
    }

    /// Counts a waiting ACK as sent, as data of this end carries its acknowledgement number (RFC
    /// 9293 § 3.8.6.3).
    pub fn on_piggybacked(&mut self) {
        if self.acks.deadline() != Time::NEVER {
            self.note_ack();
        }
    }

    /// Returns the acknowledgement that data of this end carries: of all bytes received in order,
    /// at most those below `number`, without SACK blocks and echo.
    #[must_use]
    pub fn piggyback_ack(&self, number: u64) -> Segment {
        let seq = number.min(self.data.rcv_nxt());
        Segment { seq, body: Body::ack(self.config.receive_window), ..self.ack() }
    }

    /// Counts and returns the ACK that is due; `None` if the timer sends it in pieces.
    #[inline]
    fn answer(&mut self, now: Time) -> Option<Segment> {
        if self.feedback.has_extras() {
            return self.answer_with_extras(now);
        }
        self.note_ack();
        Some(self.ack())
    }

    #[inline(never)]
    fn answer_with_extras(&mut self, now: Time) -> Option<Segment> {
        let from = self.acks.last_ack_sent(self.data.rcv_nxt());
        self.note_ack();
        let mut ack = self.ack();
        if self.feedback.complete(&mut ack, from) {
            self.acks.send_pieces(now);
            return None;
        }
        Some(ack)
    }

    fn note_ack(&mut self) {
        self.acks.on_ack_sent(self.data.rcv_nxt());
        self.counters.acks_sent += 1;
    }

    /// Returns an ACK of all data received in order, with SACK blocks if SACK is on, without an
    /// echo.
    #[inline(always)]
    fn ack(&self) -> Segment {
        let sack =
            if self.config.params.recovery.recovery == Recovery::Sack && self.data.has_holes() {
                self.data.sack_blocks()
            } else {
                SackBlocks::default()
            };
        let window = self.config.receive_window;
        Segment {
            seq: self.data.rcv_nxt(),
            ts: self.feedback.ts_recent(),
            len: 0,
            wire: self.config.ack_wire,
            flags: self.feedback.flags(),
            ecn: Ecn::NotEct,
            body: Body::Ack { window, echo: Echo::None, sack },
        }
    }
}
