//! Propagation: the link's delay, its impairments, and the additional delay to far receivers.

use core::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap};

use cwnd_link::{Fate, LinkImpairments, LossCounts, Packet as _, Settings};
use cwnd_quantity::{Duration, Streams, Time};

use crate::config::Direction;
use crate::packet::{Endpoint, Packet};

/// Packets under way, ordered by arrival, and by entry if they arrive at the same time.
#[derive(Debug, Default)]
pub struct InFlight {
    packets: BinaryHeap<Reverse<Entry>>,
    entered: u64,
}

#[derive(Debug)]
struct Entry {
    arrival: Time,
    number: u64,
    packet: Packet,
}

impl InFlight {
    #[inline]
    pub fn enter(&mut self, arrival: Time, packet: Packet) {
        self.packets.push(Reverse(Entry { arrival, number: self.entered, packet }));
        self.entered += 1;
    }

    /// Returns the next packet and its arrival.
    #[inline]
    pub fn first(&self) -> Option<(Time, &Packet)> {
        self.packets.peek().map(|Reverse(first)| (first.arrival, &first.packet))
    }

    /// Returns the arrival of the next packet, or [`Time::NEVER`].
    #[inline]
    pub fn next(&self) -> Time {
        self.first().map_or(Time::NEVER, |(arrival, _)| arrival)
    }

    /// Removes the next packet that has arrived by now, and returns it with its arrival.
    #[inline]
    pub fn leave(&mut self, now: Time) -> Option<(Time, Packet)> {
        if self.next() > now {
            return None;
        }
        self.packets.pop().map(|Reverse(first)| (first.arrival, first.packet))
    }

    /// Returns the number of packets under way.
    pub fn held(&self) -> u64 {
        self.packets.len() as u64
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.arrival, self.number).cmp(&(other.arrival, other.number))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Entry {}

/// Propagation of packets behind a line.
#[derive(Debug)]
pub struct Delay {
    delay: Duration,
    /// Packets under way. Those of different flows may overtake each other, as receivers differ in
    /// distance.
    pub in_flight: InFlight,
    last_exit: Time,
    last_late_exit: Time,
    impairments: Option<Box<LinkImpairments>>,
}

impl Delay {
    pub fn new(of: &Direction, random: &Streams) -> Self {
        Self {
            delay: of.delay,
            in_flight: InFlight::default(),
            last_exit: Time::ZERO,
            last_late_exit: Time::ZERO,
            impairments: Settings::from(of).impairments(random).map(Box::new),
        }
    }

    /// Lets a packet enter, and returns `true` if it is under way, `false` if an impairment lost
    /// it.
    #[inline]
    pub fn enter(&mut self, now: Time, packet: Packet) -> bool {
        let mut exit = now + self.delay;
        let mut late = false;
        if let Some(impairments) = &mut self.impairments {
            match impairments.apply(now, packet.has_payload()) {
                Fate::Lost => return false,
                Fate::Late(by) => {
                    late = true;
                    exit += by;
                }
                Fate::Delayed(by) => exit += by,
            }
        }
        // Packets keep their order, except those that an impairment holds back.
        let last = if late { &mut self.last_late_exit } else { &mut self.last_exit };
        exit = exit.max(*last);
        *last = exit;
        self.in_flight.enter(exit + packet.receiver_delay, packet);
        true
    }

    /// Returns the shortest time from entry to exit.
    #[inline]
    pub const fn shortest(&self) -> Duration {
        self.delay
    }

    /// Returns the numbers of packets lost.
    pub fn lost(&self) -> LossCounts {
        self.impairments.as_ref().map(|impairments| impairments.lost()).unwrap_or_default()
    }
}

/// Additional delays of receivers beyond a link ([`Direction::flow_delays`]).
#[derive(Debug)]
pub struct Receivers(BTreeMap<Endpoint, Duration>);

impl Receivers {
    pub fn new(of: &Direction) -> Self {
        Self(of.flow_delays.clone())
    }

    /// Returns the additional delay of the receivers of this sender.
    #[inline]
    pub fn of(&self, sender: Endpoint) -> Duration {
        if self.0.is_empty() { Duration::ZERO } else { self.find(sender) }
    }

    fn find(&self, sender: Endpoint) -> Duration {
        let of_host = || self.0.get(&Endpoint::any_port(sender.address));
        self.0.get(&sender).or_else(of_host).copied().unwrap_or_default()
    }
}
