//! Pending events in order of time; events at equal times in order of insertion.

use core::fmt;

use cwnd_quantity::Time;

use crate::priority_queues::{Heap, NO_KEY};
use crate::queue::Queue;

/// An event at one component of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The line's transmission ends, or its next sending opportunity has come.
    LineFree(u32),
    /// The first packet of this pipe leaves it.
    PipeHead(u32),
    /// The queue of this line does its periodic work.
    QueueTimer(u32),
    /// The rate of this line changes.
    RateChange(u32),
    /// The retransmission or pacing timer of this flow's sender, or the client's or QUIC sender's
    /// timer.
    SenderTimer(FlowId),
    /// The delayed-ACK timer of this flow's receiver, server or QUIC receiver.
    ReceiverTimer(FlowId),
    /// The application of this flow starts, or has set this time to wake.
    AppWake(FlowId),
    /// The application of this flow stops writing.
    AppStop(FlowId),
    /// This source of datagrams starts, or has set this time to wake.
    Datagram(u32),
    /// The next arrival of this arrival process.
    Arrival(u32),
    /// A sample of flows and links is due.
    Sample,
    /// The warm-up ends and counting begins.
    WarmupEnd,
    /// A check of the fairness among flows is due.
    Fairness,
    /// A router's message is at the source of the packet that it is about.
    Message,
    /// A forged packet reaches this flow.
    Forged(FlowId),
}

impl Event {
    /// Event kind and component as one number of [`CODE_BITS`]; distinct for distinct events.
    #[inline]
    pub const fn code(self) -> u64 {
        let (kind, component) = match self {
            Self::LineFree(i) => (1, i),
            Self::PipeHead(i) => (2, i),
            Self::QueueTimer(i) => (3, i),
            Self::RateChange(i) => (4, i),
            Self::SenderTimer(id) => (5, id.0),
            Self::ReceiverTimer(id) => (6, id.0),
            Self::AppWake(id) => (7, id.0),
            Self::AppStop(id) => (8, id.0),
            Self::Datagram(i) => (9, i),
            Self::Arrival(i) => (10, i),
            Self::Sample => (11, 0),
            Self::WarmupEnd => (12, 0),
            Self::Fairness => (13, 0),
            Self::Message => (14, 0),
            Self::Forged(id) => (15, id.0),
        };
        kind << 32 | component as u64
    }

    /// The event with this code.
    #[inline]
    const fn from_code(code: u64) -> Self {
        let component = code as u32;
        let id = FlowId(component);
        match code >> 32 {
            1 => Self::LineFree(component),
            2 => Self::PipeHead(component),
            3 => Self::QueueTimer(component),
            4 => Self::RateChange(component),
            5 => Self::SenderTimer(id),
            6 => Self::ReceiverTimer(id),
            7 => Self::AppWake(id),
            8 => Self::AppStop(id),
            9 => Self::Datagram(component),
            10 => Self::Arrival(component),
            11 => Self::Sample,
            12 => Self::WarmupEnd,
            13 => Self::Fairness,
            14 => Self::Message,
            last => {
                debug_assert!(last == 15, "an event without a place here");
                Self::Forged(id)
            }
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LineFree(i) => write!(f, "line {i} is free"),
            Self::PipeHead(i) => write!(f, "a packet leaves pipe {i}"),
            Self::QueueTimer(i) => write!(f, "the queue of line {i} does its periodic work"),
            Self::RateChange(i) => write!(f, "the rate of line {i} changes"),
            Self::SenderTimer(id) => write!(f, "the timer of the sender of {id}"),
            Self::ReceiverTimer(id) => write!(f, "the delayed ACK of {id}"),
            Self::AppWake(id) => write!(f, "the application of {id} writes"),
            Self::AppStop(id) => write!(f, "the application of {id} stops"),
            Self::Datagram(i) => write!(f, "source of datagrams {i}"),
            Self::Arrival(i) => write!(f, "arrival process {i}"),
            Self::Sample => f.write_str("a sample is taken"),
            Self::WarmupEnd => f.write_str("the warm-up ends"),
            Self::Fairness => f.write_str("the shares of the flows are compared"),
            Self::Message => f.write_str("a router's message is at its source"),
            Self::Forged(id) => write!(f, "a forged packet reaches {id}"),
        }
    }
}

impl fmt::Display for FlowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 & REQUESTS != 0 {
            f.write_str("the requests or QUIC ends of ")?;
        }
        write!(f, "flow {}", self.of_requests().slot())?;
        if self.generation() > 0 {
            write!(f, " (after {} others)", self.generation())?;
        }
        Ok(())
    }
}

/// Slot of a flow and the generation of its use, by which packets and events of an earlier flow in
/// the slot are recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowId(u32);

/// Bits of a [`FlowId`] that number the slot: up to 16 million, half of them for streams of
/// requests and sources of datagrams.
const SLOT_BITS: u32 = 24;
const LAST_SLOT: u32 = (1 << SLOT_BITS) - 1;
/// Bit that distinguishes a stream of requests from its flow; it halves the slots for flows.
const REQUESTS: u32 = 1 << REQUESTS_BIT;
/// Position of the bit [`REQUESTS`] in a [`FlowId`].
pub const REQUESTS_BIT: u32 = SLOT_BITS - 1;

impl FlowId {
    /// Identifier of the flow in `slot` in this generation, modulo 256. The end of a flow begins a
    /// generation, and so does the next flow in its slot.
    pub const fn new(slot: u32, generation: u8) -> Self {
        Self((generation as u32) << SLOT_BITS | slot)
    }

    /// Identifier of source of datagrams `index`, counted down from the last slot; flows count up
    /// from zero.
    pub const fn datagrams(index: u32) -> Self {
        Self(LAST_SLOT - index)
    }

    /// Index of the source of datagrams with this identifier; at least the number of sources if it
    /// is a flow's.
    pub const fn datagrams_index(self) -> usize {
        LAST_SLOT as usize - self.slot()
    }

    /// Identifier of this flow's requests, or of its QUIC ends. Their packets and timers find no
    /// flow in a slot, so that those of other flows need no check.
    pub const fn requests(self) -> Self {
        Self(self.0 | REQUESTS)
    }

    /// Identifier of the flow that this stream of requests belongs to.
    pub const fn of_requests(self) -> Self {
        Self(self.0 & !REQUESTS)
    }

    /// Index of the slot.
    #[inline]
    pub const fn slot(self) -> usize {
        (self.0 & LAST_SLOT) as usize
    }

    /// Generation of the slot's use.
    #[inline]
    pub const fn generation(self) -> u8 {
        (self.0 >> SLOT_BITS) as u8
    }

    /// The identifier as a number.
    #[inline]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The identifier with these bits.
    #[inline]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }
}

/// Pending events, and the simulation clock.
///
/// Events of lines and pipes change millions of times a second. The others change less often and
/// have a heap of their own.
///
/// A key is one number: time in the highest bits, then the order of insertion, then
/// [`Event::code`].
#[derive(Debug, Default)]
pub struct EventQueue {
    busy: Queue,
    timers: Heap,
    /// Number of the last insertion; a renumbering numbers the pending events from 1.
    sequence: u64,
    /// Time of the event that was taken last.
    now: Time,
    end: Time,
    /// Number of events taken.
    taken: u64,
}

/// Bits of a key for the event's code.
const CODE_BITS: u32 = 36;
/// Bits of a key for the number of the insertion; when they run out, pending events are renumbered.
const SEQUENCE_BITS: u32 = 28;
const TIME_SHIFT: u32 = CODE_BITS + SEQUENCE_BITS;

impl EventQueue {
    /// Creates an empty queue for a run until `end`.
    pub fn until(end: Time) -> Self {
        Self { end, ..Self::default() }
    }

    /// Simulated time.
    #[inline]
    pub const fn now(&self) -> Time {
        self.now
    }

    /// End of the run.
    pub const fn end(&self) -> Time {
        self.end
    }

    /// Ends the run at this instant.
    pub const fn end_now(&mut self) {
        self.end = self.now;
    }

    /// Number of events taken.
    #[inline]
    pub const fn taken(&self) -> u64 {
        self.taken
    }

    /// Takes the next event and advances the clock to it; `None` when the run is over.
    #[inline]
    pub fn advance(&mut self) -> Option<(Time, Event)> {
        let (at, event) = self.pop()?;
        if at >= self.end {
            // The audit expects it among the pending events.
            self.push(at, event);
            return None;
        }
        debug_assert!(at >= self.now, "time goes forward");
        self.now = at;
        self.taken += 1;
        Some((at, event))
    }

    /// Returns the time of the next event; `None` without one.
    #[inline]
    pub fn next_time(&mut self) -> Option<Time> {
        let next = self.busy.min().min(self.timers.min());
        (next != NO_KEY).then(|| decode(next).0)
    }

    /// Adds an event.
    // Inlined, so that the kind of event is known at compile time where its key is made.
    #[inline(always)]
    pub fn push(&mut self, at: Time, event: Event) {
        self.sequence += 1;
        if self.sequence >> SEQUENCE_BITS != 0 {
            self.renumber();
        }
        let below = self.sequence << CODE_BITS | event.code();
        let entry = u128::from(at.0) << TIME_SHIFT | u128::from(below);
        match event {
            Event::LineFree(_) | Event::PipeHead(_) => self.busy.push(entry),
            Event::QueueTimer(_)
            | Event::RateChange(_)
            | Event::SenderTimer(_)
            | Event::ReceiverTimer(_)
            | Event::AppWake(_)
            | Event::AppStop(_)
            | Event::Datagram(_)
            | Event::Arrival(_)
            | Event::Sample
            | Event::WarmupEnd
            | Event::Fairness
            | Event::Message
            | Event::Forged(_) => self.timers.push(entry),
        }
    }

    /// Takes the earliest event.
    #[inline]
    fn pop(&mut self) -> Option<(Time, Event)> {
        let (busy, timer) = (self.busy.min(), self.timers.min());
        let entry = if busy < timer {
            self.busy.remove_min();
            busy
        } else if timer != NO_KEY {
            self.timers.remove_min();
            timer
        } else {
            return None;
        };
        Some(decode(entry))
    }

    /// Pipe whose event follows after `n` other events of lines and pipes, unless one is inserted
    /// before it; `None` if it is not known or is a line.
    #[inline]
    pub fn peek_pipe(&self, n: usize) -> Option<u32> {
        match self.busy.peek(n).map(|entry| decode(entry).1) {
            Some(Event::PipeHead(i)) => Some(i),
            _ => None,
        }
    }

    /// `true` if so many lines and pipes are busy that the next of their events are known.
    #[inline]
    pub const fn has_calendar(&self) -> bool {
        self.busy.has_calendar()
    }

    /// All pending events, unsorted.
    pub fn pending(&self) -> impl Iterator<Item = (Time, Event)> {
        self.busy.iter().chain(self.timers.iter()).map(decode)
    }

    /// Renumbers the insertions of pending events from 1, in the same order.
    #[cold]
    fn renumber(&mut self) {
        let mut pending: Vec<u128> = self.busy.iter().chain(self.timers.iter()).collect();
        pending.sort_unstable_by_key(|&entry| entry as u64 >> CODE_BITS);
        (self.busy, self.timers, self.sequence) = Default::default();
        for (at, event) in pending.into_iter().map(decode) {
            self.push(at, event);
        }
        self.sequence += 1;
    }
}

/// Time and event of a key.
#[inline]
const fn decode(entry: u128) -> (Time, Event) {
    let code = entry as u64 & ((1 << CODE_BITS) - 1);
    (Time((entry >> TIME_SHIFT) as u64), Event::from_code(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn events_come_in_order_of_time_and_then_of_insertion(
            ops in proptest::collection::vec((0u64..50, 0u8..4), 1..300)
        ) {
            // The insertion numbers run out in the middle.
            let sequence = (1 << SEQUENCE_BITS) - 100;
            let mut queue = EventQueue { sequence, ..EventQueue::default() };
            let mut model: Vec<(u64, u32)> = Vec::new();
            for (n, (at, op)) in ops.into_iter().enumerate() {
                let n = n as u32;
                match op {
                    0 => {
                        let next = model.iter().copied().min();
                        model.retain(|e| Some(*e) != next);
                        let found = queue.pop().map(|(t, e)| match e {
                            Event::LineFree(i) | Event::Arrival(i) => (t.0, i),
                            other => panic!("{other:?}"),
                        });
                        proptest::prop_assert_eq!(found, next);
                        continue;
                    }
                    1 => queue.push(Time(at), Event::Arrival(n)),
                    _ => queue.push(Time(at), Event::LineFree(n)),
                }
                model.push((at, n));
            }
        }
    }

    #[test]
    fn an_event_is_read_back_from_its_code() {
        let id = FlowId::new(LAST_SLOT, u8::MAX);
        let events = [
            Event::LineFree(u32::MAX),
            Event::PipeHead(0),
            Event::QueueTimer(1),
            Event::RateChange(2),
            Event::SenderTimer(id),
            Event::ReceiverTimer(id),
            Event::AppWake(id),
            Event::AppStop(id),
            Event::Datagram(3),
            Event::Arrival(4),
            Event::Sample,
            Event::WarmupEnd,
            Event::Fairness,
            Event::Message,
        ];
        for event in events {
            assert_eq!(Event::from_code(event.code()), event);
            assert_eq!(event.code() >> CODE_BITS, 0);
        }
    }
}
