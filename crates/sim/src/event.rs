//! What will happen, in order of time; equal times in order of insertion.

use core::fmt;

use cwnd_units::Time;

/// Something that will happen to one component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The packet on this line has been sent, or its next sending opportunity has come.
    LineFree(u32),
    /// The first packet in this pipe arrives at its end.
    PipeHead(u32),
    /// The queue discipline of this line has periodic work.
    QueueTimer(u32),
    /// The next change of this line's rate.
    RateChange(u32),
    /// The retransmission or pacing timer of this flow's sender.
    SenderTimer(FlowId),
    /// The delayed-ACK timer of this flow's receiver.
    ReceiverTimer(FlowId),
    /// The application of this flow starts it or writes again.
    AppWake(FlowId),
    /// The application of this flow stops writing.
    AppStop(FlowId),
    /// The turn of this source of datagrams.
    Datagram(u32),
    /// The next connection of this arrival process.
    Arrival(u32),
    /// Time to sample.
    Sample,
    /// Counting begins.
    WarmupEnd,
    /// Time to see whether flows share alike.
    Fairness,
}

impl Event {
    /// What kind of event it is and whom it is for, as one number; no two events share it.
    pub const fn code(self) -> u64 {
        let (kind, whom) = match self {
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
        };
        kind << 32 | whom as u64
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
        }
    }
}

impl fmt::Display for FlowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "flow {}", self.slot())?;
        if self.generation() > 0 {
            write!(f, " (after {} others)", self.generation())?;
        }
        Ok(())
    }
}

/// A flow's slot and the generation of its use, so that what was meant for an earlier flow in the slot is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowId(u32);

/// Bits of a [`FlowId`] that number the slot: 16 million flows at a time.
const SLOT_BITS: u32 = 24;
const LAST_SLOT: u32 = (1 << SLOT_BITS) - 1;

impl FlowId {
    /// The flow in `slot`, which had `generation` flows before (counted modulo 256).
    pub const fn new(slot: u32, generation: u8) -> Self {
        Self((generation as u32) << SLOT_BITS | slot)
    }

    /// Source of datagrams number `index`, beyond all slots of flows: those are taken from zero up, these from the end down.
    pub const fn datagrams(index: u32) -> Self {
        Self(LAST_SLOT - index)
    }

    /// Which source of datagrams this would be; no less than their number if it is a flow.
    pub const fn datagrams_index(self) -> usize {
        LAST_SLOT as usize - self.slot()
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

    /// All bits.
    #[inline]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The flow with these bits.
    #[inline]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Time in the upper half, insertion number in the lower: one comparison orders both.
    key: u128,
    event: Event,
}

/// The pending events.
///
/// Two heaps: packets on lines and in pipes change places millions of times a second, while timers wait by the
/// hundred and hardly move. Apart, the busy heap stays a handful of entries deep.
#[derive(Debug, Default)]
pub struct EventQueue {
    busy: Heap,
    timers: Heap,
    sequence: u64,
}

impl EventQueue {
    /// Adds an event.
    #[inline]
    pub fn push(&mut self, at: Time, event: Event) {
        self.sequence += 1;
        let entry = Entry { key: u128::from(at.0) << 64 | u128::from(self.sequence), event };
        match event {
            Event::LineFree(_) | Event::PipeHead(_) => self.busy.push(entry),
            _ => self.timers.push(entry),
        }
    }

    /// Takes the earliest event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, Event)> {
        let entry = if self.busy.min_key() <= self.timers.min_key() {
            self.busy.pop()
        } else {
            self.timers.pop()
        }?;
        Some((Time((entry.key >> 64) as u64), entry.event))
    }
}

impl EventQueue {
    /// All that is pending, in no order.
    pub fn pending(&self) -> impl Iterator<Item = (Time, Event)> {
        let entries = self.busy.0.iter().chain(&self.timers.0);
        entries.map(|e| (Time((e.key >> 64) as u64), e.event))
    }
}

/// A 4-ary min-heap: half as deep as a binary one, its children in one or two cache lines.
#[derive(Debug, Default)]
struct Heap(Vec<Entry>);

const ARITY: usize = 4;

impl Heap {
    #[inline]
    fn min_key(&self) -> u128 {
        self.0.first().map_or(u128::MAX, |e| e.key)
    }

    #[inline]
    fn push(&mut self, entry: Entry) {
        let mut hole = self.0.len();
        self.0.push(entry);
        while hole > 0 {
            let parent = (hole - 1) / ARITY;
            if self.0[parent].key <= entry.key {
                break;
            }
            self.0[hole] = self.0[parent];
            hole = parent;
        }
        self.0[hole] = entry;
    }

    #[inline]
    fn pop(&mut self) -> Option<Entry> {
        let last = self.0.pop()?;
        let Some(&min) = self.0.first() else { return Some(last) };
        let len = self.0.len();
        let mut hole = 0;
        loop {
            let first = hole * ARITY + 1;
            if first >= len {
                break;
            }
            let mut least = first;
            for child in first + 1..(first + ARITY).min(len) {
                if self.0[child].key < self.0[least].key {
                    least = child;
                }
            }
            if self.0[least].key >= last.key {
                break;
            }
            self.0[hole] = self.0[least];
            hole = least;
        }
        self.0[hole] = last;
        Some(min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn events_come_in_order_of_time_and_then_of_insertion(
            ops in proptest::collection::vec((0u64..50, 0u8..4), 1..300)
        ) {
            let mut queue = EventQueue::default();
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
}
