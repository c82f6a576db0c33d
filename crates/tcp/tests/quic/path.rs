//! Random paths: a path decides for each datagram, in order, if and when it arrives. Transfers of
//! the sender and receiver under test over them, driven by their own decisions.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use cwnd_quantity::{Duration, Rng, Time};
use cwnd_tcp::quic::{Ack, Packet, Params, Receiver, Sender, Sizes};

use super::{MDS, new_reno};

/// Approximate number of full packets of a transfer.
pub const PACKETS: u64 = 300;
/// Stream bytes of a transfer.
pub const BYTES: u64 = PACKETS * 1150;

/// A family of patterns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// Datagrams lost independently, 0.5 to 20 %.
    Random,
    /// Bursts of 2 to 16 datagrams lost.
    Bursts,
    /// Of the last five datagrams of the transfer, and of those after them, 60 % lost.
    Tail,
    /// ACKs lost, up to 40 %, and a few datagrams of data.
    Acks,
    /// Datagrams overtaken by up to 6 others.
    Reordering,
    /// Datagrams that are late by up to two round trips.
    Late,
    /// Delay that steps up and down.
    Steps,
    /// Marks in place of losses.
    Marks,
    /// Two outages: all that is sent in them is lost.
    Outage,
}

impl Family {
    pub const ALL: [Self; 9] = [
        Self::Random,
        Self::Bursts,
        Self::Tail,
        Self::Acks,
        Self::Reordering,
        Self::Late,
        Self::Steps,
        Self::Marks,
        Self::Outage,
    ];
}

/// A path with a random pattern, given by its seed.
#[derive(Clone, Debug)]
pub struct Path {
    family: Family,
    draws: Rng,
    /// One-way delay.
    delay: Duration,
    /// Serialisation time of a datagram at the bottleneck.
    serial: Duration,
    link_free: Time,
    /// Probability that a datagram is lost, late or marked, or begins a burst; the family decides.
    share: f64,
    /// Datagrams that the current burst still drops.
    burst: u64,
    sent: u64,
    /// Approximate number of datagrams of the transfer.
    total: u64,
    outages: [(Time, Time); 2],
}

/// Fate of a datagram.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fate {
    /// Time of arrival, if it is not lost.
    pub arrives: Option<Time>,
    /// `true` if a router marked it CE.
    pub marked: bool,
}

impl Path {
    /// Creates the pattern `seed` of a family, for a transfer that begins at `start`.
    pub fn new(family: Family, seed: u64, start: Time, total: u64) -> Self {
        let mut draws = Rng::named(seed, "path");
        let ms = |ms: f64| Duration::from_secs_f64(ms / 1e3);
        let delay = ms(draws.uniform(2.0, 60.0));
        let serial = ms(draws.uniform(0.05, 1.0));
        let share = match family {
            Family::Random | Family::Marks => draws.uniform(0.005, 0.2),
            Family::Bursts => draws.uniform(0.003, 0.03),
            _ => draws.uniform(0.01, 0.1),
        };
        let mut from = start;
        let outages = [(); 2].map(|()| {
            let begin = from + delay * 2 + ms(draws.uniform(0.0, 300.0));
            from = begin + ms(draws.uniform(100.0, 3000.0));
            (begin, from)
        });
        Self {
            family,
            draws,
            delay,
            serial,
            link_free: start,
            share,
            burst: 0,
            sent: 0,
            total,
            outages,
        }
    }

    /// Returns the one-way delay without queueing.
    pub const fn delay(&self) -> Duration {
        self.delay
    }

    /// Draws the fate of the next datagram of data.
    pub fn data(&mut self, now: Time) -> Fate {
        self.sent += 1;
        self.link_free = self.link_free.max(now) + self.serial;
        let hit = self.draws.unit() < self.share;
        let (mut lost, mut late) = (false, Duration::ZERO);
        match self.family {
            Family::Random => lost = hit,
            Family::Bursts => lost = self.burst(hit),
            Family::Tail => lost = self.sent > self.total - 5 && self.draws.unit() < 0.6,
            Family::Acks => lost = hit && self.draws.unit() < 0.2,
            Family::Reordering if hit => late = self.serial * (1 + self.draws.bits() % 6),
            Family::Late if hit => late = self.some_of(self.delay * 4),
            Family::Steps => late = if self.sent / 40 % 2 == 1 { self.delay * 2 } else { late },
            Family::Outage => lost = self.is_out(now),
            Family::Marks | Family::Reordering | Family::Late => {}
        }
        let arrives = (!lost).then(|| self.link_free + self.delay + late);
        Fate { arrives, marked: hit && self.family == Family::Marks }
    }

    /// Draws the fate of the next datagram of ACKs.
    pub fn ack(&mut self, now: Time) -> Fate {
        let lost = match self.family {
            Family::Acks => self.draws.unit() < 4.0 * self.share,
            Family::Outage => self.is_out(now),
            _ => false,
        };
        Fate { arrives: (!lost).then(|| now + self.delay), marked: false }
    }

    fn burst(&mut self, begins: bool) -> bool {
        if self.burst == 0 && begins {
            self.burst = 2 + self.draws.bits() % 15;
        }
        let lost = self.burst > 0;
        self.burst = self.burst.saturating_sub(1);
        lost
    }

    fn some_of(&mut self, most: Duration) -> Duration {
        Duration((most.0 as f64 * self.draws.unit()) as u64)
    }

    fn is_out(&self, now: Time) -> bool {
        self.outages.iter().any(|&(begin, end)| now >= begin && now < end)
    }
}

/// Sizes of quinn's packets.
const SIZES: Sizes = Sizes { payload: 1162, overhead: 38 };
/// Start of each transfer.
const START: Time = Time(1_000_000_000);

enum Arrival {
    Data(Packet, bool),
    Ack(Ack),
}

/// Transfers [`BYTES`] over the pattern `seed` of a family; returns the time that it takes.
pub fn transfer(family: Family, seed: u64, params: &Arc<Params>) -> Duration {
    let mut path = Path::new(family, seed, START, PACKETS);
    let mut sender = Sender::new(params, new_reno(MDS), SIZES);
    let mut receiver = Receiver::new(Arc::clone(params));
    for _ in 0..3 {
        // quinn's handshake takes as many RTT samples.
        sender.on_handshake_rtt(Time::ZERO, path.delay() * 2);
    }
    sender.write(BYTES);
    let (mut arrivals, mut queue, mut order) = (BTreeMap::new(), BinaryHeap::new(), 0_u64);
    let mut now = START;
    while !sender.is_drained() {
        let mut put = |at: Option<Time>, arrival: Arrival| {
            order += 1;
            if let Some(at) = at {
                queue.push(Reverse((at, order)));
                arrivals.insert(order, arrival);
            }
        };
        while let Some(packet) = sender.poll_transmit(now) {
            let fate = path.data(now);
            put(fate.arrives, Arrival::Data(packet, fate.marked));
        }
        if let Some(ack) = receiver.poll_ack(now) {
            put(path.ack(now).arrives, Arrival::Ack(ack));
        }
        let arrival = queue.peek().map_or(Time::NEVER, |Reverse((at, _))| *at);
        let timers = sender.next_timer().min(receiver.next_timer());
        assert!(arrival.min(timers) < START + Duration::from_secs(3600), "{family:?} {seed} ends");
        now = now.max(arrival.min(timers));
        if arrival > timers {
            sender.on_timer(now);
            continue;
        }
        let Some(Reverse((_, number))) = queue.pop() else { continue };
        match arrivals.remove(&number) {
            Some(Arrival::Data(packet, marked)) => receiver.on_packet(now, &packet, marked),
            Some(Arrival::Ack(ack)) => sender.on_ack(now, &ack.frame()),
            None => {}
        }
    }
    assert_eq!((receiver.delivered(), sender.acknowledged()), (BYTES, BYTES), "{family:?} {seed}");
    now.since(START)
}
