//! Propagation: what enters leaves a delay later; and what the faults of a link do to it.

use core::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use cwnd_link::{Fate, Faults, Losses, Packet as _, Settings};
use cwnd_units::{Duration, Streams, Time};

use crate::config::Direction;
use crate::packet::{Endpoint, Parsed, parse};
use crate::pool::Packet;

/// Packets under way, each with the time at which it arrives.
#[derive(Debug)]
pub struct Delay {
    delay: Duration,
    flow_delays: BTreeMap<Endpoint, Duration>,
    /// By exit, then in order of entry: with delays of their own, packets of different flows pass each other.
    under_way: BinaryHeap<Reverse<(Time, u64, u32)>>,
    entered: u64,
    last_exit: Time,
    last_late_exit: Time,
    faults: Option<Box<Faults>>,
}

impl Delay {
    pub fn new(of: &Direction, random: &Streams) -> Self {
        Self {
            delay: of.delay,
            flow_delays: of.flow_delays.clone(),
            under_way: BinaryHeap::new(),
            entered: 0,
            last_exit: Time::ZERO,
            last_late_exit: Time::ZERO,
            faults: Settings::from(of).faults(random).map(Box::new),
        }
    }

    /// A packet enters, with these bytes; whether it is under way. One that isn't is lost.
    #[inline]
    pub fn enter(&mut self, now: Time, packet: Packet, bytes: &[u8]) -> bool {
        let mut exit = now + self.delay;
        let mut late = false;
        if let Some(faults) = &mut self.faults {
            match faults.strike(now, packet.has_payload()) {
                Fate::Lost => return false,
                Fate::Late(by) => {
                    late = true;
                    exit += by;
                }
                Fate::Delayed(by) => exit += by,
            }
        }
        // Order is kept, but for the packets that are held back.
        let last = if late { &mut self.last_late_exit } else { &mut self.last_exit };
        exit = exit.max(*last);
        *last = exit;
        if !self.flow_delays.is_empty() {
            exit += self.of_flow(bytes);
        }
        self.under_way.push(Reverse((exit, self.entered, packet.buffer)));
        self.entered += 1;
        true
    }

    /// What a flow has of its own: by one of its ends, with its port or without.
    fn of_flow(&self, bytes: &[u8]) -> Duration {
        let Some(Parsed { source, destination, .. }) = parse(bytes) else { return Duration::ZERO };
        let any_port = |end: Endpoint| Endpoint::any_port(end.address);
        [source, destination, any_port(source), any_port(destination)]
            .iter()
            .find_map(|end| self.flow_delays.get(end))
            .copied()
            .unwrap_or_default()
    }

    /// When the next packet arrives.
    #[inline]
    pub fn next(&self) -> Time {
        self.under_way.peek().map_or(Time::NEVER, |&Reverse((exit, ..))| exit)
    }

    /// The shortest time from entry to exit.
    #[inline]
    pub const fn shortest(&self) -> Duration {
        self.delay
    }

    /// The packet that has arrived by now: when it did, and its buffer.
    #[inline]
    pub fn leave(&mut self, now: Time) -> Option<(Time, u32)> {
        if self.next() > now {
            return None;
        }
        self.under_way.pop().map(|Reverse((exit, _, buffer))| (exit, buffer))
    }

    /// What was lost.
    pub fn lost(&self) -> Losses {
        self.faults.as_ref().map(|faults| faults.lost()).unwrap_or_default()
    }

    /// Packets under way.
    pub fn held(&self) -> u64 {
        self.under_way.len() as u64
    }
}
