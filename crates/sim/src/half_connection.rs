//! One direction of a connection: the end that sends its data and the end that receives it.

use core::mem::offset_of;
use std::sync::Arc;

use cwnd_quantity::Time;
use cwnd_tcp::{Config, Receiver, ReceiverCounters, Sender, SenderCounters};

use crate::timeouts::{Fate, FateCounts};

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

    /// Arms the sender timer: returns the time at which to schedule its event, or `None` if an
    /// event is pending at that time or earlier.
    ///
    /// Timers are lazy: an event that fires too early is scheduled again, not replaced.
    #[inline(always)]
    pub fn arm_sender(&mut self) -> Option<Time> {
        arm(&mut self.sender_timer, self.sender.next_timer())
    }

    /// Arms the receiver timer (delayed ACK): returns the time at which to schedule its event, or
    /// `None` if an event is pending at that time or earlier.
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
