//! Propagation: what enters leaves a delay later; what the faults of a link do to it; and how far from it receivers are.

use core::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap};

use cwnd_link::{Fate, Faults, Losses, Packet as _, Settings};
use cwnd_quantity::{Duration, Streams, Time};

use crate::config::Direction;
use crate::packet::Endpoint;
use crate::pool::Packet;

/// Packets under way: who arrives first leaves first, and of an instant who entered first.
#[derive(Debug, Default)]
pub struct UnderWay {
    packets: BinaryHeap<Reverse<Traveller>>,
    entered: u64,
}

#[derive(Debug)]
struct Traveller {
    arrival: Time,
    number: u64,
    packet: Packet,
}

impl UnderWay {
    #[inline]
    pub fn enter(&mut self, arrival: Time, packet: Packet) {
        self.packets.push(Reverse(Traveller { arrival, number: self.entered, packet }));
        self.entered += 1;
    }

    /// The next packet, and when it arrives.
    #[inline]
    pub fn first(&self) -> Option<(Time, &Packet)> {
        self.packets.peek().map(|Reverse(first)| (first.arrival, &first.packet))
    }

    /// When the next packet arrives.
    #[inline]
    pub fn next(&self) -> Time {
        self.first().map_or(Time::NEVER, |(arrival, _)| arrival)
    }

    /// The packet that has arrived by now, and when it did.
    #[inline]
    pub fn leave(&mut self, now: Time) -> Option<(Time, Packet)> {
        if self.next() > now {
            return None;
        }
        self.packets.pop().map(|Reverse(first)| (first.arrival, first.packet))
    }

    /// How many there are.
    pub fn held(&self) -> u64 {
        self.packets.len() as u64
    }
}

impl Ord for Traveller {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.arrival, self.number).cmp(&(other.arrival, other.number))
    }
}

impl PartialOrd for Traveller {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Traveller {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Traveller {}

/// The way behind a line.
#[derive(Debug)]
pub struct Delay {
    delay: Duration,
    /// With receivers that are not as far, packets of different flows pass each other.
    pub under_way: UnderWay,
    last_exit: Time,
    last_late_exit: Time,
    faults: Option<Box<Faults>>,
}

impl Delay {
    pub fn new(of: &Direction, random: &Streams) -> Self {
        Self {
            delay: of.delay,
            under_way: UnderWay::default(),
            last_exit: Time::ZERO,
            last_late_exit: Time::ZERO,
            faults: Settings::from(of).faults(random).map(Box::new),
        }
    }

    /// A packet enters; whether it is under way. One that isn't is lost.
    #[inline]
    pub fn enter(&mut self, now: Time, packet: Packet) -> bool {
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
        self.under_way.enter(exit + packet.beyond, packet);
        true
    }

    /// The shortest time from entry to exit.
    #[inline]
    pub const fn shortest(&self) -> Duration {
        self.delay
    }

    /// What was lost.
    pub fn lost(&self) -> Losses {
        self.faults.as_ref().map(|faults| faults.lost()).unwrap_or_default()
    }
}

/// How far receivers are beyond a link ([`Direction::flow_delays`]).
#[derive(Debug)]
pub struct Receivers(BTreeMap<Endpoint, Duration>);

impl Receivers {
    pub fn new(of: &Direction) -> Self {
        Self(of.flow_delays.clone())
    }

    /// How far those of this sender are.
    #[inline]
    pub fn of(&self, sender: Endpoint) -> Duration {
        if self.0.is_empty() { Duration::ZERO } else { self.find(sender) }
    }

    fn find(&self, sender: Endpoint) -> Duration {
        let of_host = || self.0.get(&Endpoint::any_port(sender.address));
        self.0.get(&sender).or_else(of_host).copied().unwrap_or_default()
    }
}
