//! Datagrams without a connection: a source that sends at its own pace, and a sink that counts.

use cwnd_apps::workloads::udp::LARGEST_DATAGRAM;
use cwnd_apps::{AnyApplication, Do, Session, Then};
use cwnd_packet::Ecn;
use cwnd_quantity::{Bytes, Duration, Rng, Time};
use cwnd_tcp::{Body, Flags, Segment};

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
    /// Which of its group's ways it goes.
    pub way: u32,
    /// Where its packets enter the network.
    pub route: Route,
    /// Propagation round-trip time, were there a way back.
    pub base_rtt: Duration,
    /// When it began; `Time::NEVER` before.
    pub started: Time,
    /// From when on it sends nothing more.
    pub stop: Time,
    /// When the last datagram arrived.
    pub last_arrival: Time,
    /// What it counted.
    pub counters: Counters,
    /// What had been counted when the warm-up ended.
    pub before: Counters,
    /// Routers' messages that reached it.
    pub messages: u64,
    /// Its application.
    pub session: Session,
    /// How much of each datagram is headers.
    header: Bytes,
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

impl Stream {
    /// A source that has not begun, whose datagrams have this much of headers.
    pub fn new(identity: Identity, header: Bytes, app: AnyApplication, rng: Rng) -> Self {
        let Identity { id, number, group, way, route, base_rtt, stop, .. } = identity;
        Self {
            id,
            number,
            group,
            way,
            route,
            base_rtt,
            started: Time::NEVER,
            stop,
            last_arrival: Time::ZERO,
            counters: Counters::default(),
            before: Counters::default(),
            messages: 0,
            session: Session::new(app, rng),
            header,
        }
    }

    /// Its turn has come: at its start, and whenever it wanted.
    pub fn turn(&mut self, now: Time) -> Option<Do> {
        if now >= self.stop {
            return None;
        }
        if self.started != Time::NEVER {
            return self.session.timer(now);
        }
        self.started = now;
        Some(self.session.start(now))
    }

    /// What the application sends with this, if it does; its timer is for others.
    pub fn carry_out(&mut self, now: Time, what: Do) -> Option<Segment> {
        match what.then {
            Then::More | Then::Last => {}
            Then::Stop => self.stop = self.stop.min(now),
        }
        (what.write > 0).then(|| {
            self.counters.sent += 1;
            self.datagram(now, what.write)
        })
    }

    fn datagram(&self, now: Time, payload: u64) -> Segment {
        let wire = LARGEST_DATAGRAM.0.min(payload.saturating_add(self.header.0));
        Segment {
            seq: self.counters.sent,
            ts: now,
            len: wire.saturating_sub(self.header.0) as u32,
            wire: wire as u16,
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

    /// Whether so much has arrived that somebody wants to hear of it.
    pub fn is_of_interest(&self) -> bool {
        self.session.is_of_interest(self.counters.received_bytes)
    }

    /// Tells the application of it.
    pub fn hear_delivered(&mut self, now: Time) -> Do {
        self.session.delivered(now, self.counters.received_bytes).what
    }

    /// Counting begins.
    pub fn end_warmup(&mut self) {
        self.before = self.counters;
    }
}
