//! Propagation: what enters leaves a delay later; what the faults of a link do to it; and how far from it receivers are.

use core::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use cwnd_link::{Fate, Faults, Losses, Packet as _, Settings};
use cwnd_units::{Duration, Streams, Time};

use crate::config::Direction;
use crate::packet::{Endpoint, parse};
use crate::pool::Packet;

/// Packets under way, each with the time at which it arrives.
#[derive(Debug)]
pub struct Delay {
    delay: Duration,
    receivers: Receivers,
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
            receivers: Receivers::of(of),
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
        exit += self.receivers.behind(bytes);
        self.under_way.push(Reverse((exit, self.entered, packet.buffer)));
        self.entered += 1;
        true
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

/// How far the receivers of flows are, by the ends of the senders.
#[derive(Clone, Debug)]
pub struct Receivers(BTreeMap<Endpoint, Duration>);

impl Receivers {
    pub fn of(of: &Direction) -> Self {
        Self(of.flow_delays.clone())
    }

    /// The way of a packet from a sender, with these bytes, to its receiver.
    #[inline]
    fn behind(&self, bytes: &[u8]) -> Duration {
        if self.0.is_empty() {
            return Duration::ZERO;
        }
        parse(bytes).map_or(Duration::ZERO, |packet| self.of_sender(packet.source))
    }

    /// The way of a packet to a sender, from its receiver.
    #[inline]
    pub fn before(&self, sender: Endpoint) -> Duration {
        if self.0.is_empty() { Duration::ZERO } else { self.of_sender(sender) }
    }

    fn of_sender(&self, sender: Endpoint) -> Duration {
        [sender, Endpoint::any_port(sender.address)]
            .iter()
            .find_map(|end| self.0.get(end))
            .copied()
            .unwrap_or_default()
    }
}

/// Packets on the way from their receivers to the router.
#[derive(Debug, Default)]
pub struct Approach {
    /// By arrival, then in order of entry.
    under_way: BTreeMap<(Time, u64), Packet>,
    entered: u64,
}

impl Approach {
    pub fn enter(&mut self, arrival: Time, packet: Packet) {
        self.under_way.insert((arrival, self.entered), packet);
        self.entered += 1;
    }

    /// The next packet, and when it arrives.
    #[inline]
    pub fn first(&self) -> Option<(Time, &Packet)> {
        self.under_way.first_key_value().map(|(&(arrival, _), packet)| (arrival, packet))
    }

    /// When the next packet arrives.
    #[inline]
    pub fn next(&self) -> Time {
        self.first().map_or(Time::NEVER, |(arrival, _)| arrival)
    }

    /// It arrives.
    pub fn leave(&mut self) -> Option<Packet> {
        self.under_way.pop_first().map(|(_, packet)| packet)
    }

    /// Packets under way.
    pub fn held(&self) -> u64 {
        self.under_way.len() as u64
    }
}
