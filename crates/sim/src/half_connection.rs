//! One direction of a connection: the end that sends its data and the end that receives it.

use core::mem::offset_of;
use std::sync::Arc;

use cwnd_quantity::Time;
use cwnd_tcp::{Config, Receiver, ReceiverCounters, Sender, SenderCounters};

use crate::timeouts::{Fate, Told};

/// Counters of both ends at the end of the warm-up.
#[derive(Clone, Copy, Debug, Default)]
pub struct WarmupCounters {
    /// At the sender.
    pub sender: SenderCounters,
    /// At the receiver.
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
    /// Time of the pending [`ReceiverTimer`](crate::event::Event::ReceiverTimer).
    pub receiver_timer: Time,
    /// The sending end.
    pub sender: Sender,
    /// Delivery of the last byte of a transfer; `Time::NEVER` before, and without end.
    pub finished: Time,
    /// The receiving end.
    pub receiver: Receiver,
    /// Counters at the end of the warm-up.
    pub before: Option<Box<WarmupCounters>>,
    /// Fates of the segments that timed out; `None` before the first.
    pub told: Option<Box<Told>>,
}

impl HalfConnection {
    /// Offset of the first field that each event reads.
    pub const SENDER_READ_FROM: usize = offset_of!(Self, sender) + Sender::READ_FROM;
    /// Offset of the first field that each data segment reads.
    pub const RECEIVER_READ_FROM: usize = offset_of!(Self, receiver) + Receiver::READ_FROM;

    /// Both ends before the connection opens.
    pub fn new(config: &Arc<Config>) -> Self {
        Self {
            sender_timer: Time::NEVER,
            receiver_timer: Time::NEVER,
            sender: Sender::new(Arc::clone(config)),
            finished: Time::NEVER,
            before: None,
            told: None,
            receiver: Receiver::new(Arc::clone(config)),
        }
    }

    /// The time for which a sender timer must be scheduled; `None` if one is pending by then.
    ///
    /// Timers are lazy: an event that fires early is postponed, not replaced.
    #[inline(always)]
    pub fn arm_sender(&mut self) -> Option<Time> {
        arm(&mut self.sender_timer, self.sender.next_timer())
    }

    /// The time for which a receiver timer must be scheduled; `None` if one is pending by then.
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

    /// Handles the sender's timer; returns the segment that timed out, if one did.
    pub fn times_out(&mut self, now: Time) -> Option<Expired> {
        let sender = &mut self.sender;
        let (syn, before) = (!sender.is_established(), sender.counters().expiries());
        sender.on_timer(now);
        let of = if syn { Expired::Syn } else { Expired::Data };
        (sender.counters().expiries() != before).then_some(of)
    }

    /// Bytes delivered in order.
    #[inline]
    pub fn delivered_bytes(&self) -> u64 {
        self.receiver.counters().delivered_bytes
    }

    /// Notes the fate of a segment that timed out.
    #[cold]
    pub fn tell(&mut self, fate: Fate) {
        if fate != Fate::Lost {
            self.told.get_or_insert_default().add(fate);
        }
    }

    /// Counting begins.
    pub fn end_warmup(&mut self) {
        let (sender, receiver) = (*self.sender.counters(), *self.receiver.counters());
        self.before = Some(Box::new(WarmupCounters { sender, receiver }));
        self.sender.begin_counting();
        self.receiver.begin_counting();
        if let Some(told) = &mut self.told {
            told.before = told.total;
        }
    }
}

/// A segment whose retransmission timer expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expired {
    /// The SYN.
    Syn,
    /// The first segment that is not acknowledged.
    Data,
}

/// Makes `at` the time of the pending timer if that comes later; returns it then.
#[inline(always)]
pub fn arm(pending: &mut Time, at: Time) -> Option<Time> {
    (at < *pending).then(|| {
        *pending = at;
        at
    })
}

/// Clears the pending timer if it is due now; `false` if not.
#[inline(always)]
pub fn take(pending: &mut Time, now: Time) -> bool {
    let due = *pending == now;
    if due {
        *pending = Time::NEVER;
    }
    due
}
