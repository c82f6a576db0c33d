//! Ends of a connection: those of one direction of TCP, those of the requests of a client that
//! opens the connection, and those of QUIC.
//!
//! A client that opens the connection sends requests; the server answers each with data. Each
//! direction has a sender and a receiver of its own. Data flows in one direction at a time, since a
//! client that waits for a response sends no request. So the byte numbers of an exchange say what
//! the data of either end acknowledges.

use core::mem::offset_of;
use core::ops::AddAssign;
use std::sync::Arc;

use cwnd_packet::Ecn;
use cwnd_quantity::{Duration, Time};
use cwnd_tcp::quic::{self, Ack, Params};
use cwnd_tcp::{
    Config, Flags, Handshake, Receiver, ReceiverCounters, Segment, Sender, SenderCounters,
};

/// Counters of both ends of one direction, at the end of the warm-up or now.
#[derive(Clone, Copy, Debug, Default)]
pub struct HalfCounters {
    /// Counters of the sender.
    pub sender: SenderCounters,
    /// Counters of the receiver.
    pub receiver: ReceiverCounters,
}

/// A sender, its receiver and their pending timers.
///
/// Fields are in order of use by packets; see [`Flow`](crate::flow::Flow).
#[derive(Debug)]
#[repr(C)]
pub struct HalfConnection {
    /// Time of the pending [`SenderTimer`](crate::event::Event::SenderTimer); `Time::NEVER` without
    /// one.
    pub sender_timer: Time,
    /// Time of the pending [`ReceiverTimer`](crate::event::Event::ReceiverTimer); `Time::NEVER`
    /// without one.
    pub receiver_timer: Time,
    /// The sending end.
    pub sender: Sender,
    /// Time at which the last byte of a transfer was delivered; `Time::NEVER` before that, and for
    /// a transfer without end.
    pub finished: Time,
    /// The receiving end.
    pub receiver: Receiver,
    /// Counters at the end of the warm-up, or at the end of a flow that ended before it; `None`
    /// until then, without a warm-up, and if the connection started later.
    pub at_warmup_end: Option<Box<HalfCounters>>,
    /// Counts of fates of the segments that timed out; `None` before the first that was not lost.
    pub timeout_fates: Option<Box<FateCounts>>,
}

impl HalfConnection {
    /// Offset of the first sender field that each event reads.
    pub const SENDER_READ_FROM: usize = offset_of!(Self, sender) + Sender::READ_FROM;
    /// Offset of the first receiver field that each data segment reads.
    pub const RECEIVER_READ_FROM: usize = offset_of!(Self, receiver) + Receiver::READ_FROM;

    /// Creates both ends of a connection that is not open yet.
    pub fn new(config: &Arc<Config>) -> Self {
        Self {
            sender_timer: Time::NEVER,
            receiver_timer: Time::NEVER,
            sender: Sender::new(Arc::clone(config)),
            finished: Time::NEVER,
            at_warmup_end: None,
            timeout_fates: None,
            receiver: Receiver::new(Arc::clone(config)),
        }
    }

    /// Arms the sender timer: returns the time at which to schedule its event, or `None` if the
    /// timer is off or an event is pending at that time or earlier.
    ///
    /// Timers are lazy: an event that fires too early is scheduled again, not replaced.
    #[inline(always)]
    pub fn arm_sender(&mut self) -> Option<Time> {
        arm(&mut self.sender_timer, self.sender.next_timer())
    }

    /// Arms the receiver timer (delayed ACK): returns the time at which to schedule its event, or
    /// `None` if the timer is off or an event is pending at that time or earlier.
    #[inline(always)]
    pub fn arm_receiver(&mut self) -> Option<Time> {
        arm(&mut self.receiver_timer, self.receiver.next_timer())
    }

    /// Clears the pending sender timer; `false` if this event is not the pending one.
    #[inline(always)]
    pub fn take_sender_timer(&mut self, now: Time) -> bool {
        take(&mut self.sender_timer, now)
    }

    /// Clears the pending receiver timer; `false` if this event is not the pending one.
    pub fn take_receiver_timer(&mut self, now: Time) -> bool {
        take(&mut self.receiver_timer, now)
    }

    /// Handles the sender's timer; returns which segment's retransmission timer expired, if it did.
    pub fn on_sender_timer(&mut self, now: Time) -> Option<Expired> {
        let sender = &mut self.sender;
        let (syn, before) = (!sender.is_established(), sender.counters().expiries());
        sender.on_timer(now);
        let of = if syn { Expired::Syn } else { Expired::Data };
        (sender.counters().expiries() != before).then_some(of)
    }

    /// Bytes delivered in order to the receiver's application.
    #[inline]
    pub fn delivered_bytes(&self) -> u64 {
        self.receiver.counters().delivered_bytes
    }

    /// Counts the fate of a segment that timed out; lost segments are not counted.
    #[cold]
    pub fn count_fate(&mut self, fate: Fate) {
        if fate != Fate::Lost {
            self.timeout_fates.get_or_insert_default().add(fate);
        }
    }

    /// Stores the counters at the end of the warm-up and starts counting at both ends.
    pub fn end_warmup(&mut self) {
        let (sender, receiver) = (*self.sender.counters(), *self.receiver.counters());
        self.at_warmup_end = Some(Box::new(HalfCounters { sender, receiver }));
        self.sender.begin_counting();
        self.receiver.begin_counting();
        if let Some(fates) = &mut self.timeout_fates {
            fates.at_warmup_end = fates.total;
        }
    }
}

/// A segment whose retransmission timer expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expired {
    /// The SYN.
    Syn,
    /// The first unacknowledged data segment.
    Data,
}

/// Sets the pending timer to `at` if `at` is earlier, and then returns it.
#[inline(always)]
pub fn arm(pending: &mut Time, at: Time) -> Option<Time> {
    (at < *pending).then(|| {
        *pending = at;
        at
    })
}

/// Clears the pending timer and returns `true` if it is due at `now`.
#[inline(always)]
pub fn take(pending: &mut Time, now: Time) -> bool {
    let due = *pending == now;
    if due {
        *pending = Time::NEVER;
    }
    due
}

/// True fate of a segment when its retransmission timer expired.
///
/// A timeout with RTO < RTT, which breaks the implicit packet conservation principle (Mondal &
/// Kuzmanovic 2008, § 2.3), has [`Fate::UnderWay`] or [`Fate::AckLate`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Every transmission of the segment was lost.
    Lost,
    /// Not delivered, but not every transmission was lost: one was on its way or in a queue.
    UnderWay,
    /// Delivered, and no ACK of it was lost: the ACK was on its way or not sent yet.
    AckLate,
    /// Delivered, but an ACK of it was lost.
    AckLost,
}

/// Numbers of timeouts with each fate other than [`Fate::Lost`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fates {
    /// Timeouts with [`Fate::UnderWay`].
    pub under_way: u64,
    /// Timeouts with [`Fate::AckLate`].
    pub ack_late: u64,
    /// Timeouts with [`Fate::AckLost`].
    pub ack_lost: u64,
}

/// Fate counts over the whole run, and at the end of the warm-up.
#[derive(Clone, Copy, Debug, Default)]
pub struct FateCounts {
    /// Counts since the start of the run.
    pub total: Fates,
    /// Counts at the end of the warm-up; zero before.
    pub at_warmup_end: Fates,
}

impl AddAssign<&Self> for Fates {
    fn add_assign(&mut self, other: &Self) {
        self.under_way += other.under_way;
        self.ack_late += other.ack_late;
        self.ack_lost += other.ack_lost;
    }
}

impl FateCounts {
    /// Adds the counts of the connection's other direction.
    pub fn add_all(&mut self, other: &Self) {
        self.total += &other.total;
        self.at_warmup_end += &other.at_warmup_end;
    }

    /// Counts one timeout; [`Fate::Lost`] is not counted.
    pub const fn add(&mut self, fate: Fate) {
        let Fates { under_way, ack_late, ack_lost } = &mut self.total;
        match fate {
            Fate::Lost => {}
            Fate::UnderWay => *under_way += 1,
            Fate::AckLate => *ack_late += 1,
            Fate::AckLost => *ack_lost += 1,
        }
    }

    /// Counts since the end of the warm-up.
    pub const fn counted(&self) -> Fates {
        let Self { total, at_warmup_end } = self;
        Fates {
            under_way: total.under_way - at_warmup_end.under_way,
            ack_late: total.ack_late - at_warmup_end.ack_late,
            ack_lost: total.ack_lost - at_warmup_end.ack_lost,
        }
    }
}

/// Half of a connection that carries requests, with the state of the current request.
#[derive(Debug)]
pub struct Requests {
    /// Sender and receiver of requests: the client sends, the server receives.
    pub half: HalfConnection,
    /// Current request and response.
    pub exchange: Exchange,
    /// Time at which the current request was written, which opens the connection if it is the
    /// first.
    pub written_at: Time,
    /// `true` from a request until its response is complete.
    pub awaiting_response: bool,
    /// Recorded response that is complete at the client and unacknowledged at the server: its row,
    /// and the time of its request.
    pub unacknowledged: Option<(usize, Time)>,
    /// State of the handshake at the server until it accepts the connection.
    handshake: Option<Handshake>,
}

/// Byte numbers of a request and its response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// Number of this request on the connection, from 1; 0 before the first.
    pub number: u32,
    /// Number of the request's first byte.
    pub request_start: u64,
    /// Number of the byte after the request's last.
    pub request_end: u64,
    /// Number of the response's first byte.
    pub response_start: u64,
}

impl Exchange {
    /// State before the first request.
    pub const FIRST: Self = Self { number: 0, request_start: 0, request_end: 0, response_start: 0 };
}

impl Requests {
    /// Creates the requests of a connection that is not open yet.
    pub fn new(config: &Arc<Config>) -> Self {
        Self {
            half: HalfConnection::new(config),
            exchange: Exchange::default(),
            written_at: Time::NEVER,
            awaiting_response: false,
            unacknowledged: None,
            handshake: Some(Handshake::default()),
        }
    }

    /// Writes a request of the client, whose response starts at byte `response_start`; returns its
    /// byte numbers.
    pub fn begin_exchange(&mut self, now: Time, bytes: u64, response_start: u64) -> Exchange {
        let request_start = self.exchange.request_end;
        self.exchange = Exchange {
            number: self.exchange.number + 1,
            request_start,
            request_end: request_start.saturating_add(bytes),
            response_start,
        };
        (self.written_at, self.awaiting_response) = (now, true);
        self.half.sender.write(bytes);
        self.exchange
    }

    /// Delivers a segment to the server. Returns the immediate ACK, and the handshake at the first
    /// segment after the SYN.
    pub fn on_server_segment(
        &mut self,
        now: Time,
        segment: &Segment,
    ) -> (Option<Segment>, Option<Handshake>) {
        let accepted = if segment.flags.has(Flags::SYN) {
            if let Some(handshake) = &mut self.handshake {
                // Departs from RFC 9293 § 3.10.7.4: the SYN-ACK has no timer of its own, each SYN
                // gets one.
                *handshake = Handshake { syn_acks: handshake.syn_acks + 1, last: now };
            }
            None
        } else {
            self.handshake.take()
        };
        (self.half.receiver.on_segment(now, segment), accepted)
    }

    /// Bytes of requests that a response segment from byte `seq` on acknowledges; `None` if it is
    /// of an earlier response or acknowledges nothing new.
    pub fn acknowledged_by_response(&self, seq: u64) -> Option<u64> {
        let Exchange { request_end, response_start, .. } = self.exchange;
        (seq >= response_start && request_end > self.half.sender.acknowledged())
            .then_some(request_end)
    }

    /// Bytes of responses that a request segment from byte `seq` on acknowledges; `None` if it is
    /// of an earlier request or acknowledges no more than `known`.
    pub const fn acknowledged_by_request(&self, seq: u64, known: u64) -> Option<u64> {
        let Exchange { request_start, response_start, .. } = self.exchange;
        if seq >= request_start && response_start > known { Some(response_start) } else { None }
    }
}

/// Sender and receiver of QUIC and their pending timers.
#[derive(Debug)]
pub struct QuicEnds {
    params: Arc<Params>,
    /// The sending end.
    pub sender: quic::Sender,
    /// The receiving end.
    pub receiver: quic::Receiver,
    /// Time of the pending [`SenderTimer`](crate::event::Event::SenderTimer); `Time::NEVER` without
    /// one.
    pub sender_timer: Time,
    /// Time of the pending [`ReceiverTimer`](crate::event::Event::ReceiverTimer); `Time::NEVER`
    /// without one.
    pub receiver_timer: Time,
    /// Counts at the end of the warm-up; zero before it, and if the connection started later.
    pub at_warmup_end: WarmupCounters,
}

/// Counts of a QUIC connection at the end of the warm-up.
#[derive(Clone, Copy, Debug, Default)]
pub struct WarmupCounters {
    /// Counters of sender and receiver.
    pub counters: HalfCounters,
    /// Times that persistent congestion was established.
    pub persistent_congestion: u64,
}

impl QuicEnds {
    /// Creates both ends of a connection after its handshake.
    pub fn new(config: &quic::Config) -> Self {
        Self {
            params: Arc::clone(config.params()),
            sender: quic::Sender::of(config),
            receiver: quic::Receiver::new(Arc::clone(config.params())),
            sender_timer: Time::NEVER,
            receiver_timer: Time::NEVER,
            at_warmup_end: WarmupCounters::default(),
        }
    }

    /// Parameters of both ends.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Returns the next packet that the sender may send now.
    pub fn transmit(&mut self, now: Time) -> Option<Segment> {
        let packet = self.sender.poll_transmit(now)?;
        Some(packet.segment(now, &self.params))
    }

    /// Delivers an ACK to the sender; returns its RTT sample.
    pub fn on_ack(&mut self, now: Time, segment: &Segment) -> Option<Duration> {
        let ack = Ack::of(segment)?;
        self.sender.on_ack(now, &ack.frame());
        self.sender.recovery().sample()
    }

    /// Delivers data to the receiver; returns the ACK if it is due at once.
    pub fn on_data(&mut self, now: Time, segment: &Segment) -> Option<Segment> {
        let packet = quic::Packet::of(segment, &self.params)?;
        self.receiver.on_packet(now, &packet, segment.ecn == Ecn::Ce);
        self.acknowledge(now)
    }

    /// Returns an ACK if one is due.
    pub fn acknowledge(&mut self, now: Time) -> Option<Segment> {
        Some(self.receiver.poll_ack(now)?.segment(now, &self.params))
    }

    /// Arms the sender timer: returns the time at which to schedule its event, or `None` if the
    /// timer is off or an event is pending at that time or earlier.
    ///
    /// A time in the past becomes `now` (RFC 9002 § A.8): an ACK may shorten the probe timeout that
    /// far.
    pub fn arm_sender(&mut self, now: Time) -> Option<Time> {
        arm(&mut self.sender_timer, self.sender.next_timer().max(now))
    }

    /// Arms the receiver timer (delayed ACK): returns the time at which to schedule its event, or
    /// `None` if the timer is off or an event is pending at that time or earlier.
    pub fn arm_receiver(&mut self) -> Option<Time> {
        arm(&mut self.receiver_timer, self.receiver.next_timer())
    }

    /// Clears the pending sender timer and returns `true` if it is due at `now`.
    pub fn take_sender_timer(&mut self, now: Time) -> bool {
        take(&mut self.sender_timer, now)
    }

    /// Clears the pending receiver timer and returns `true` if it is due at `now`.
    pub fn take_receiver_timer(&mut self, now: Time) -> bool {
        take(&mut self.receiver_timer, now)
    }

    /// Counters of both ends until now.
    pub fn counters(&self) -> HalfCounters {
        HalfCounters { sender: self.sender.counters(), receiver: self.receiver.counters() }
    }

    /// Stores the counts at the end of the warm-up.
    pub fn end_warmup(&mut self) {
        self.at_warmup_end = WarmupCounters {
            counters: self.counters(),
            persistent_congestion: self.sender.persistent_congestion(),
        };
    }
}
