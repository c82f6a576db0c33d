//! Datagrams without a connection: a source that sends at its own pace, and a sink that counts.

use cwnd_scenario::{Arrivals, Cycle, Datagrams};
use cwnd_tcp::{Body, Flags, Segment};
use cwnd_units::{Duration, Ecn, Rng, Serialiser, Time};

use crate::event::FlowId;
use crate::flow::Identity;
use crate::network::Route;

/// A source of datagrams and its sink.
#[derive(Debug)]
pub struct Stream {
    /// Beyond the slots of connections, so that a packet tells which it is.
    pub id: FlowId,
    /// Number in results: in order of creation.
    pub number: u32,
    /// Index of its group.
    pub group: u32,
    /// Where its packets enter the network.
    pub route: Route,
    /// Propagation round-trip time, were there a way back.
    pub base_rtt: Duration,
    /// When it began; `Time::NEVER` before.
    pub started: Time,
    /// When it sends no more.
    pub stop: Time,
    /// When the last datagram arrived.
    pub last_arrival: Time,
    /// What it counted.
    pub counters: Counters,
    /// What had been counted when the warm-up ended.
    pub before: Counters,
    what: Datagrams,
    /// Keeps constant gaps exact: what rounding leaves of one is in the next.
    gaps: Serialiser,
    /// Until when it sends before the next pause.
    on_until: Time,
    rng: Rng,
}

/// What a source and its sink count; everything only grows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams received.
    pub received: u64,
    /// Their payload.
    pub received_bytes: u64,
    /// Their bytes on the wire.
    pub received_wire_bytes: u64,
}

/// What a source does at an instant.
#[derive(Debug)]
pub struct Turn {
    /// The datagram it sends, if it does.
    pub datagram: Option<Segment>,
    /// When its next turn is; `None` is never.
    pub next: Option<Time>,
}

impl Stream {
    /// A source that has not begun.
    pub fn new(identity: Identity, what: &Datagrams, rng: Rng) -> Self {
        let Identity { id, number, group, route, base_rtt } = identity;
        Self {
            id,
            number,
            group,
            route,
            base_rtt,
            started: Time::NEVER,
            stop: Time::NEVER,
            last_arrival: Time::ZERO,
            counters: Counters::default(),
            before: Counters::default(),
            gaps: Serialiser::new(what.rate),
            what: what.clone(),
            on_until: Time::ZERO,
            rng,
        }
    }

    /// Its turn has come: at its start, and whenever it said.
    pub fn turn(&mut self, now: Time) -> Turn {
        if now >= self.stop {
            return Turn { datagram: None, next: None };
        }
        let begins = self.started == Time::NEVER;
        if begins {
            self.started = now;
        }
        if begins || now >= self.on_until {
            self.on_until = match &self.what.cycle {
                None => Time::NEVER,
                Some(Cycle { on, .. }) => now + on.sample(&mut self.rng).max(Duration(1)),
            };
            self.gaps.idle();
            // A Poisson process has no event at the instant at which one begins to look.
            if self.what.arrivals == Arrivals::Poisson {
                return Turn { datagram: None, next: Some(self.after_gap(now)) };
            }
        }
        self.counters.sent += 1;
        Turn { datagram: Some(self.datagram(now)), next: Some(self.after_gap(now)) }
    }

    /// When the next datagram is due, or the end of the pause that comes before it.
    fn after_gap(&mut self, now: Time) -> Time {
        let wire = self.what.size.0 as u32;
        let gap = match self.what.arrivals {
            Arrivals::Constant => self.gaps.next(wire),
            Arrivals::Poisson => {
                let mean = f64::from(wire) * 8.0 / self.what.rate.0 as f64;
                Duration::from_secs_f64(self.rng.exponential(mean))
            }
        };
        match &self.what.cycle {
            Some(Cycle { off, .. }) if now + gap >= self.on_until => {
                self.on_until += off.sample(&mut self.rng);
                self.on_until
            }
            _ => now + gap,
        }
    }

    fn datagram(&self, now: Time) -> Segment {
        Segment {
            seq: self.counters.sent,
            ts: now,
            len: (self.what.size.0 - self.what.header.0) as u32,
            wire: self.what.size.0 as u16,
            flags: Flags::default(),
            ecn: Ecn::NotEct,
            body: Body::DATA,
        }
    }

    /// A datagram arrived.
    pub fn receive(&mut self, now: Time, datagram: &Segment) {
        self.last_arrival = now;
        self.counters.received += 1;
        self.counters.received_bytes += u64::from(datagram.len);
        self.counters.received_wire_bytes += u64::from(datagram.wire);
    }

    /// Counting begins.
    pub fn end_warmup(&mut self) {
        self.before = self.counters;
    }
}
