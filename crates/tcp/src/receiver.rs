//! The receiving end, composed of parts that own their state.

mod ack_policy;
mod dsack;
mod feedback;
pub mod misbehaviour;
mod reassembly;

use std::sync::Arc;

use cwnd_packet::{Echo, Ecn};
use cwnd_quantity::Time;

use crate::config::Config;
use crate::counters::ReceiverCounters;
use crate::delays::Delays;
use crate::params::Recovery;
use crate::segment::{Body, Flags, SackBlocks, Segment};
use ack_policy::{AckPolicy, Due, Taken};
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
// What each segment reads lies together: `READ_BYTES` from `READ_FROM` on.
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
    /// Offset of what each segment reads, in bytes.
    pub const READ_FROM: usize = ReceiverCounters::READ_FROM;
    /// Bytes that each segment reads: they should lie in two cache lines.
    pub const READ_BYTES: usize =
        core::mem::offset_of!(Self, data) + Reassembly::READ_BYTES - Self::READ_FROM;

    /// A receiver that waits for the first segment.
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

    /// Asks for what the next segment reads of the receiver.
    #[inline]
    pub fn lines_soon(&self) {
        cwnd_memory::line_soon(&self.config);
        cwnd_memory::line_soon(&self.data);
    }

    /// Prefetches what it points to.
    #[inline]
    pub fn soon(&self) {
        self.data.soon();
    }

    /// Its counters.
    #[inline]
    #[must_use]
    pub const fn counters(&self) -> &ReceiverCounters {
        &self.counters
    }

    /// One-way delays of data packets, where they are noted (`note_delays`).
    #[must_use]
    pub fn delays(&self) -> Option<&Delays> {
        self.feedback.delays()
    }

    /// `true` if it acknowledges data that has not arrived, and perhaps never does (`cheat_ahead`).
    #[must_use]
    pub fn conceals(&self) -> bool {
        self.feedback.conceals()
    }

    /// Counting begins.
    pub fn begin_counting(&mut self) {
        self.feedback.begin_counting();
    }

    /// Time at which [`Receiver::on_timer`] wants to be called; `Time::NEVER` if not at all.
    #[inline]
    #[must_use]
    pub const fn next_timer(&self) -> Time {
        self.acks.deadline()
    }

    /// A data segment or SYN arrived; returns the ACK to send now, if any.
    // Inlined where it is called for every packet, though it is called elsewhere, too.
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
            // Nothing arrives twice, and no ACK waits behind a hole.
            self.counters.delivered_bytes += segment.end() - rcv_nxt;
            self.data.deliver(segment.end());
            let hurries = self.on_data(now, segment, new, echoed);
            let acks = &self.config.params.acks;
            if !self.acks.count_in_order(hurries, acks.ack_every) {
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

    /// A segment arrived that is not the next one, or the receiver misbehaves, and there is more
    /// to it than RFC 5681.
    #[inline(never)]
    fn on_other(
        &mut self,
        now: Time,
        segment: &Segment,
        new: bool,
        echoed: bool,
    ) -> Option<Segment> {
        let held = self.before(now, segment);
        let arrival = self.accept(segment);
        let hurries = self.on_data(now, segment, new, echoed);
        self.acknowledge(now, arrival, hurries, held)
    }

    /// Data was taken in, `new` if it brought any; `echoed` if ACKs carried ECE before. Returns
    /// `true` if its ACK must not wait.
    #[inline(always)]
    fn on_data(&mut self, now: Time, segment: &Segment, new: bool, echoed: bool) -> bool {
        let told = self.feedback.on_data(now, segment);
        let quick = self.acks.on_segment(now, segment, || Taken {
            rcv_nxt: self.data.rcv_nxt(),
            highest: self.data.highest(),
            duplicate: !new,
            first_mark: self.feedback.has_ece() && !echoed,
        });
        told || quick
    }

    /// Sends the ACK of a segment, or lets it wait. `held` goes before an ACK that waits.
    fn acknowledge(
        &mut self,
        now: Time,
        arrival: Arrival,
        hurries: bool,
        held: Option<Segment>,
    ) -> Option<Segment> {
        let params = &self.config.params.acks;
        match self.acks.due(arrival, hurries, self.data.rcv_nxt(), params.ack_every) {
            Due::Now => self.answer(now),
            Due::Compressed => self.compress(now, held),
            Due::Later => {
                self.acks.wait(now, params.ack_delay);
                None
            }
        }
    }

    /// A SYN arrived; returns the SYN-ACK.
    #[cold]
    fn on_syn(&mut self, now: Time, segment: &Segment) -> Segment {
        self.counters.syns += 1;
        self.acks.on_syn(now);
        let mut reply = Segment { ts: segment.ts, flags: Flags::SYN, ..self.ack() };
        self.feedback.on_syn(now, segment, &mut reply);
        reply
    }

    /// Counts a data segment.
    #[inline(always)]
    fn count(&mut self, segment: &Segment) {
        self.counters.segments += 1;
        self.counters.wire_bytes += u64::from(segment.wire);
        if segment.ecn == Ecn::Ce {
            self.counters.ce_segments += 1;
        }
    }

    /// Looks at a segment that is not taken in yet. Returns the ACK that goes before those that
    /// report it.
    fn before(&mut self, now: Time, segment: &Segment) -> Option<Segment> {
        let rcv_nxt = self.data.rcv_nxt();
        self.feedback.on_arrival(now, segment, rcv_nxt);
        // What is missing is passed over. That it is behind the window must be seen first.
        let window = u64::from(self.config.receive_window);
        if self.feedback.conceals() && segment.end() <= rcv_nxt + window {
            self.data.pass_over(segment.seq);
        }
        // ACKs that wait go before a segment that the blocks which they report first do not reach
        // (`tcp_sack_new_ofo_skb`). Departs from Linux, which takes it in first if it lengthens a
        // later block.
        let apart = self.acks.is_compressing() && self.data.is_apart(segment, AckPolicy::BLOCKS);
        let held = apart.then(|| {
            let mut ack = self.ack();
            self.feedback.report_duplicate(&mut ack);
            ack
        });
        self.feedback.note_duplicate(segment, self.data.rcv_nxt(), self.data.out_of_order());
        held
    }

    /// Takes in a payload that may be out of order, and counts it.
    #[inline(never)]
    fn accept(&mut self, segment: &Segment) -> Arrival {
        let before = self.data.rcv_nxt();
        let window = u64::from(self.config.receive_window);
        let (arrival, duplicate) = self.data.accept(segment, window);
        self.counters.delivered_bytes += self.data.rcv_nxt() - before;
        // Asked, as this counter lies in a line that few segments read.
        if duplicate {
            self.counters.duplicates += 1;
        }
        arrival
    }

    /// A segment left a hole, or filled one of several: its ACK goes, or waits for others after
    /// `held` has gone.
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

    /// The delayed-ACK timer may have expired; returns the ACK if it has.
    pub fn on_timer(&mut self, now: Time) -> Option<Segment> {
        if now < self.acks.deadline() {
            return None;
        }
        if let Some((ack, more)) = self.feedback.owed() {
            self.acks.on_piece_sent(now, more, self.config.params.acks.ack_delay);
            return Some(ack);
        }
        self.acks.on_expiry();
        self.answer(now)
    }

    /// Drops a waiting ACK: data of this end carries what it would report (RFC 9293 § 3.8.6.3).
    pub fn carried(&mut self) {
        if self.acks.deadline() != Time::NEVER {
            self.note_ack();
        }
    }

    /// The acknowledgement of all bytes below `number` that data of this end carries, without an
    /// echo.
    #[must_use]
    pub fn carries(&self, number: u64) -> Segment {
        let seq = number.min(self.data.rcv_nxt());
        Segment { seq, body: Body::ack(self.config.receive_window), ..self.ack() }
    }

    /// The ACK that is due; `None` if the timer sends it in pieces.
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

    /// An ACK of all that arrived in order, without an echo.
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
