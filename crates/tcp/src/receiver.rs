mod ack_policy;
mod dsack;
pub mod misbehaviour;
mod reassembly;

use std::sync::Arc;

use cwnd_packet::{Echo, Ecn, Header};
use cwnd_quantity::Time;

use crate::config::Config;
use crate::counters::ReceiverCounters;
use crate::delays::Delays;
use crate::echo::DynEcho;
use crate::params::{AckRule, Recovery};
use crate::segment::{Body, Flags, SackBlocks, Segment};
use crate::signed::Signer;
use ack_policy::compressed_acks::BLOCKS;
use ack_policy::quick_acks::{QuickAcks, Taken};
use dsack::Duplicates;
use misbehaviour::MisbehavingReceiver;
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
// What each segment reads lies together, from how many ranges are out of order to the first of the
// counters.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Receiver {
    data: Reassembly,
    config: Arc<Config>,
    /// Acknowledgement number of the last ACK sent.
    last_ack_sent: u64,
    /// Timestamp to echo (RFC 7323 § 4.3, TS.Recent).
    ts_recent: Time,
    /// Time when a delayed ACK must go; `Time::NEVER` if none is held.
    ack_deadline: Time,
    /// Segments received since the last ACK.
    unacked_segments: u32,
    /// `true` if ACKs carry ECE: from a CE mark until CWR (RFC 3168 § 6.1.3).
    ece: bool,
    /// Parts that most receivers do without.
    habits: Option<Box<Habits>>,
    counters: ReceiverCounters,
}

impl Receiver {
    /// Offset at which a cache line should begin, in bytes: each segment reads two lines.
    pub const READ_FROM: usize = Reassembly::READ_FROM;
}

/// By what a receiver differs from RFC 5681's and RFC 3168's.
// What it echoes, and whether there is anything else, is in its first line.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
struct Habits {
    /// Policy of echoes in place of ECE.
    echo: Option<Box<dyn DynEcho>>,
    /// Its misbehaviour, if there is any.
    misbehaving: Option<Box<MisbehavingReceiver>>,
    /// One-way delays of data, for results: no algorithm reads them.
    delays: Option<Box<Delays>>,
    /// `true` if one of the others looks at a segment before it is taken in.
    looks_ahead: bool,
    /// Linux's, if it acknowledges as Linux does.
    quick: Option<QuickAcks>,
    /// D-SACK: data that arrived twice.
    duplicates: Option<Duplicates>,
    /// Knows what timestamps stand for, for these.
    signer: Signer,
}

impl Habits {
    /// Data was taken in. Whether it is to be acknowledged at once.
    #[inline]
    fn on_segment(&mut self, now: Time, segment: &Segment, taken: impl FnOnce() -> Taken) -> bool {
        if let Some(delays) = &mut self.delays {
            let sent = self.signer.verify(segment.ts).unwrap_or(segment.ts);
            delays.add(now.since(sent), segment.wire);
        }
        let quickly = self.quick.as_mut().is_some_and(|q| q.on_segment(now, segment, &taken()));
        let told = self.echo.as_mut().is_some_and(|policy| policy.on_data(now, segment));
        quickly || told
    }

    /// Echo of the ACK that goes now, and the bytes of options that it takes.
    #[inline]
    fn echoed(&mut self) -> (Echo, u16) {
        let Some(policy) = &mut self.echo else { return (Echo::None, 0) };
        let echo = policy.take();
        (echo, policy.bytes_of(echo))
    }
}

impl Receiver {
    /// A receiver that waits for the first segment.
    #[must_use]
    pub fn new(config: Arc<Config>) -> Self {
        let is_quick = config.params.acks.ack_policy == AckRule::Quick;
        let quick = is_quick.then(|| QuickAcks::new(config.mss, config.params.acks.ack_delay));
        let echo = config.new_echo();
        let delays = config.params.timing.note_delays.then(Box::<Delays>::default);
        let misbehaving = MisbehavingReceiver::new(&config.params.cheat).map(Box::new);
        let signer = config.signer();
        let tells = config.params.acks.dsack && config.params.recovery.recovery == Recovery::Sack;
        let duplicates = tells.then(Duplicates::default);
        let plain = quick.is_none() && echo.is_none() && misbehaving.is_none() && delays.is_none();
        let looks_ahead = quick.is_some() || duplicates.is_some() || misbehaving.is_some();
        let habits = Habits { quick, echo, duplicates, misbehaving, signer, delays, looks_ahead };
        Self {
            ece: false,
            habits: (!plain || tells).then(|| Box::new(habits)),
            config,
            last_ack_sent: 0,
            data: Reassembly::default(),
            ts_recent: Time::ZERO,
            unacked_segments: 0,
            ack_deadline: Time::NEVER,
            counters: ReceiverCounters::default(),
        }
    }

    /// Asks for what the next segment reads of the receiver.
    #[inline]
    pub fn lines_soon(&self) {
        cwnd_memory::line_soon(&self.config);
        cwnd_memory::line_soon(&self.counters);
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
        self.habits.as_ref()?.delays.as_deref()
    }

    /// `true` if it acknowledges data that has not arrived, and perhaps never does (`cheat_ahead`).
    #[must_use]
    pub fn conceals(&self) -> bool {
        self.habits
            .as_ref()
            .and_then(|habits| habits.misbehaving.as_deref())
            .is_some_and(MisbehavingReceiver::conceals)
    }

    /// Counting begins.
    pub fn begin_counting(&mut self) {
        if let Some(delays) = self.habits.as_mut().and_then(|habits| habits.delays.as_mut()) {
            delays.begin_counting();
        }
    }

    /// Time at which [`Receiver::on_timer`] wants to be called; `Time::NEVER` if not at all.
    #[inline]
    #[must_use]
    pub const fn next_timer(&self) -> Time {
        self.ack_deadline
    }

    /// A data segment or SYN arrived; returns the ACK to send now, if any.
    // Inlined where it is called for every packet, though it is called elsewhere, too.
    #[inline(always)]
    pub fn on_segment(&mut self, now: Time, segment: &Segment) -> Option<Segment> {
        if segment.flags.has(Flags::SYN) {
            return Some(self.on_syn(now, segment));
        }
        self.counters.segments += 1;
        self.counters.wire_bytes += u64::from(segment.wire);
        let in_window = segment.end() > self.data.rcv_nxt();
        let echoed = self.on_marks(segment, in_window);
        // RFC 7323 § 4.3 (2), § 5.3 R2: echo what will be acknowledged first; no duplicates, and
        // never an older time.
        if in_window && segment.seq <= self.last_ack_sent && segment.ts >= self.ts_recent {
            self.ts_recent = segment.ts;
        }
        let held = match &self.habits {
            Some(habits) if habits.looks_ahead && !self.is_next(segment) => {
                self.before(now, segment)
            }
            _ => None,
        };
        let arrival = self.accept(segment);
        let mut at_once = arrival != Arrival::InOrder;
        if let Some(habits) = &mut self.habits {
            let taken = || Taken {
                rcv_nxt: self.data.rcv_nxt(),
                highest: self.data.highest(),
                duplicate: !in_window,
                first_mark: self.ece && !echoed,
            };
            let hasty = habits.on_segment(now, segment, taken);
            at_once |= hasty;
            let waits = arrival == Arrival::BehindHole && !hasty && habits.quick.is_some();
            if waits && self.may_wait() {
                return self.behind_hole(now, held);
            }
        }
        if at_once || self.is_due() {
            return self.answer(now);
        }
        if self.ack_deadline == Time::NEVER {
            self.ack_deadline = self.deadline(now);
        }
        None
    }

    /// Looks at CWR and the ECN field. Returns `true` if ACKs carry ECE from before a mark of this
    /// segment.
    #[inline(always)]
    fn on_marks(&mut self, segment: &Segment, in_window: bool) -> bool {
        if segment.flags.has(Flags::CWR) {
            self.ece = false;
        }
        let echoed = self.ece;
        if segment.ecn == Ecn::Ce {
            // After CWR was looked at: a segment with both begins a new episode (RFC 3168
            // § 6.1.3). Not for a duplicate (§ 6.1.5).
            self.ece |= in_window && self.echoes_ece();
            self.counters.ce_segments += 1;
        }
        echoed
    }

    /// A SYN arrived; returns the SYN-ACK.
    #[cold]
    fn on_syn(&mut self, now: Time, segment: &Segment) -> Segment {
        self.counters.syns += 1;
        if let Some(quick) = self.quick() {
            quick.on_syn(now);
        }
        let (told, bytes) = self.answer_to_syn(now, segment);
        let mut reply = self.ack(segment.ts, told);
        reply.wire = reply.wire.saturating_add(bytes);
        reply.flags = Flags::SYN;
        if let Some(misbehaving) = self.misbehaving() {
            misbehaving.arrived(now, segment, true);
            misbehaving.forge(&mut reply);
        }
        reply
    }

    /// Echo of what routers wrote into a SYN that asked them, and the bytes of options that it
    /// takes.
    fn answer_to_syn(&mut self, now: Time, segment: &Segment) -> (Echo, u16) {
        let asked = segment.header().is_some_and(|header| header != Header::None);
        let Some(habits) = self.habits.as_mut().filter(|_| asked) else { return (Echo::None, 0) };
        if let Some(policy) = &mut habits.echo {
            policy.on_data(now, segment);
        }
        habits.echoed()
    }

    /// The delayed-ACK timer may have expired; returns the ACK if it has.
    pub fn on_timer(&mut self, now: Time) -> Option<Segment> {
        if now < self.ack_deadline {
            return None;
        }
        if let Some((ack, more)) = self.misbehaving().and_then(MisbehavingReceiver::owes) {
            self.ack_deadline = match (more, self.unacked_segments) {
                (true, _) => now,
                (false, 0) => Time::NEVER,
                (false, _) => self.deadline(now),
            };
            return Some(ack);
        }
        if let Some(quick) = self.quick() {
            quick.on_expiry();
        }
        self.answer(now)
    }

    /// Time until which an ACK waits for a second segment.
    fn deadline(&self, now: Time) -> Time {
        let quick = self.habits.as_ref().and_then(|habits| habits.quick.as_ref());
        quick.map_or_else(|| now + self.config.params.acks.ack_delay, |quick| quick.deadline(now))
    }

    /// Drops a waiting ACK: data of this end carries what it would report (RFC 9293 § 3.8.6.3).
    pub fn carried(&mut self) {
        if self.ack_deadline != Time::NEVER {
            self.note_ack();
        }
    }

    /// The acknowledgement of all bytes below `number` that data of this end carries, without an
    /// echo.
    #[must_use]
    pub fn carries(&self, number: u64) -> Segment {
        let seq = number.min(self.data.rcv_nxt());
        Segment {
            seq,
            body: Body::ack(self.config.receive_window),
            ..self.ack(self.ts_recent, Echo::None)
        }
    }

    /// `true` unless more than a full segment was delivered since the last ACK (Linux,
    /// `__tcp_ack_snd_check`).
    fn may_wait(&self) -> bool {
        let sack = self.config.params.recovery.recovery == Recovery::Sack;
        sack && self.data.rcv_nxt() - self.last_ack_sent <= self.config.mss
    }

    /// A segment left a hole, or filled one of several: its ACK goes, or waits for others after
    /// `held` has gone.
    fn behind_hole(&mut self, now: Time, held: Option<Segment>) -> Option<Segment> {
        if held.is_some() {
            self.note_ack();
        }
        let rcv_nxt = self.data.rcv_nxt();
        let quick = self.quick()?;
        let first = !quick.compressed.is_waiting();
        if quick.compressed.goes_at_once(rcv_nxt) {
            return self.answer(now);
        }
        if first {
            let compression = quick.compression();
            self.ack_deadline = self.ack_deadline.min(now + compression);
        }
        let mut held = held?;
        if let Some(misbehaving) = self.misbehaving() {
            misbehaving.forge(&mut held);
        }
        if let (Some(habits), Body::Ack { echo, .. }) = (&mut self.habits, &mut held.body) {
            let (told, bytes) = habits.echoed();
            *echo = told;
            held.wire = held.wire.saturating_add(bytes);
        }
        Some(held)
    }

    fn quick(&mut self) -> Option<&mut QuickAcks> {
        self.habits.as_mut()?.quick.as_mut()
    }

    /// `true` if marks are echoed as RFC 3168 says.
    fn echoes_ece(&self) -> bool {
        self.habits.as_ref().is_none_or(|habits| habits.echo.is_none())
    }

    /// `true` if ACKs wait and the blocks that they would report first do not reach a segment: then
    /// they go before it is taken in. (Linux takes it in first if it lengthens a later block.)
    fn is_apart(&self, segment: &Segment) -> bool {
        let Some(habits) = &self.habits else { return false };
        let waiting = habits.quick.as_ref().is_some_and(|quick| quick.compressed.is_waiting());
        if !waiting || segment.seq <= self.data.rcv_nxt() {
            return false;
        }
        let blocks = &self.data.sack_blocks()[..BLOCKS];
        blocks.iter().all(|block| {
            let (start, end) = (block.start(self.data.rcv_nxt()), block.end(self.data.rcv_nxt()));
            block.len > 0 && (segment.end() < start || end < segment.seq)
        })
    }

    /// `true` if `segment` is the next one, none is missing and the receiver is honest: then
    /// nothing arrives twice, and no ACK waits behind a hole.
    #[inline]
    fn is_next(&self, segment: &Segment) -> bool {
        let honest = self.habits.as_ref().is_none_or(|habits| habits.misbehaving.is_none());
        self.data.is_next(segment.seq) && honest
    }

    /// Takes the payload in.
    #[inline(always)]
    fn accept(&mut self, segment: &Segment) -> Arrival {
        let before = self.data.rcv_nxt();
        if self.data.is_next(segment.seq) {
            self.data.deliver(segment.end());
            self.counters.delivered_bytes += segment.end() - before;
            self.unacked_segments += 1;
            return Arrival::InOrder;
        }
        let window = u64::from(self.config.receive_window);
        let (arrival, duplicate) = self.data.accept_out_of_order(segment, window);
        self.counters.delivered_bytes += self.data.rcv_nxt() - before;
        self.counters.duplicates += u64::from(duplicate);
        arrival
    }

    /// Departs from RFC 5681 § 4.2, which counts full-sized segments: short ones count alike.
    fn is_due(&self) -> bool {
        self.unacked_segments >= self.config.params.acks.ack_every
    }

    /// The ACK that is due.
    #[inline]
    fn answer(&mut self, now: Time) -> Option<Segment> {
        let from = self.last_ack_sent;
        self.note_ack();
        if self.habits.is_some() {
            return self.answer_by_habit(now, from);
        }
        Some(self.ack(self.ts_recent, Echo::None))
    }

    /// The same of an end that has habits; `from` had been acknowledged before.
    #[inline(never)]
    fn answer_by_habit(&mut self, now: Time, from: u64) -> Option<Segment> {
        let (echo, bytes) = self.habits.as_mut().map_or((Echo::None, 0), |habits| habits.echoed());
        let mut ack = self.ack_of_habit(echo);
        ack.wire = ack.wire.saturating_add(bytes);
        if let Some(misbehaving) = self.misbehaving() {
            misbehaving.forge(&mut ack);
            if misbehaving.divide(from, &ack) {
                // They go at this instant, by the timer.
                self.ack_deadline = now;
                return None;
            }
        }
        Some(ack)
    }

    /// An ACK with what arrived twice, if that is told.
    fn ack_of_habit(&mut self, echo: Echo) -> Segment {
        let mut ack = self.ack(self.ts_recent, echo);
        let habits = self.habits.as_deref_mut();
        if let Some(duplicates) = habits.and_then(|habits| habits.duplicates.as_mut())
            && let Body::Ack { sack, .. } = &mut ack.body
        {
            duplicates.tell(ack.seq, sack);
        }
        ack
    }

    fn misbehaving(&mut self) -> Option<&mut MisbehavingReceiver> {
        self.habits.as_mut()?.misbehaving.as_deref_mut()
    }

    /// A segment comes, and is not taken in yet. Returns the ACK that goes first.
    #[inline(never)]
    fn before(&mut self, now: Time, segment: &Segment) -> Option<Segment> {
        let rcv_nxt = self.data.rcv_nxt();
        if let Some(misbehaving) = self.misbehaving() {
            misbehaving.arrived(now, segment, segment.end() > rcv_nxt);
            if misbehaving.conceals() {
                // What is missing is passed over. That it is behind the window must be seen first.
                let window = u64::from(self.config.receive_window);
                if segment.end() <= rcv_nxt + window {
                    self.data.pass_over(segment.seq);
                }
            }
        }
        let held = self.is_apart(segment).then(|| self.ack_of_habit(Echo::None));
        if let Some(habits) = &mut self.habits
            && let Some(duplicates) = &mut habits.duplicates
        {
            duplicates.on_segment(segment, self.data.rcv_nxt(), self.data.out_of_order());
        }
        held
    }

    fn note_ack(&mut self) {
        self.unacked_segments = 0;
        if let Some(quick) = self.quick() {
            quick.on_ack_sent();
        }
        self.ack_deadline = Time::NEVER;
        self.last_ack_sent = self.data.rcv_nxt();
        self.counters.acks_sent += 1;
    }

    fn ack(&self, ts: Time, echo: Echo) -> Segment {
        let params = &self.config.params;
        let flags = if self.ece { Flags::ECE } else { Flags::default() };
        let sack = if params.recovery.recovery == Recovery::Sack && self.data.has_holes() {
            self.data.sack_blocks()
        } else {
            SackBlocks::default()
        };
        Segment {
            seq: self.data.rcv_nxt(),
            ts,
            len: 0,
            wire: self.config.ack_wire,
            flags,
            ecn: Ecn::NotEct,
            body: Body::Ack { window: self.config.receive_window, echo, sack },
        }
    }
}
