//! Datagrams without a connection: sources with a pace of their own, and sinks that count.

use cwnd_apps::workloads::udp::LARGEST_DATAGRAM;
use cwnd_apps::{Actions, AnyApplication, Continuation, Session};
use cwnd_packet::Ecn;
use cwnd_quantity::{Bytes, Duration, Rng, Time};
use cwnd_tables::{Arrivals, LastTransit};
use cwnd_tcp::{Body, Flags, Segment};

use crate::event::FlowId;
use crate::flow::Identity;
use crate::network::Route;

/// Source of datagrams and its sink.
#[derive(Debug)]
pub struct Stream {
    /// Identifier beyond the slots of connections; packets carry it.
    pub id: FlowId,
    /// Number in results, in order of creation.
    pub number: u32,
    /// Index of its group.
    pub group: u32,
    /// Index of its path in the group.
    pub path: u32,
    /// Entry points of its packets into the network.
    pub route: Route,
    /// Propagation round-trip time of its path and hosts; nothing uses the way back.
    pub base_rtt: Duration,
    /// Time at which it started; `Time::NEVER` before.
    pub started: Time,
    /// Time from which it sends nothing more.
    pub stop: Time,
    /// Arrival time of the last datagram; zero before the first.
    pub last_arrival: Time,
    /// Transit time of the last datagram that arrived.
    pub last_transit: LastTransit,
    /// Counters since the start of the run.
    pub counters: Counters,
    /// Counters at the end of the warm-up.
    pub at_warmup_end: Counters,
    /// Routers' messages that reached it.
    pub messages: u64,
    /// Application that decides when to send.
    pub session: Session,
    /// Bytes of headers in each datagram.
    header: Bytes,
}

/// Cumulative counters of a source and its sink.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams received.
    pub received: Arrivals,
    /// Payload bytes received.
    pub received_bytes: u64,
    /// Bytes received, with headers.
    pub received_wire_bytes: u64,
}

impl Stream {
    /// Creates a source that has not started; `header` is the size of the headers of each datagram.
    pub fn new(identity: Identity, header: Bytes, app: AnyApplication, rng: Rng) -> Self {
        let Identity { id, number, group, path, route, base_rtt, stop, .. } = identity;
        Self {
            id,
            number,
            group,
            path,
            route,
            base_rtt,
            started: Time::NEVER,
            stop,
            last_arrival: Time::ZERO,
            last_transit: LastTransit::default(),
            counters: Counters::default(),
            at_warmup_end: Counters::default(),
            messages: 0,
            session: Session::new(app, rng),
            header,
        }
    }

    /// Starts the source, or wakes it at a time that its application set; `None` once it has
    /// stopped, and if its timer is not due.
    pub fn wake(&mut self, now: Time) -> Option<Actions> {
        if now >= self.stop {
            return None;
        }
        if self.started != Time::NEVER {
            return self.session.timer(now);
        }
        self.started = now;
        Some(self.session.start(now))
    }

    /// Carries out what the application decided, except for its timer; returns the datagram if it
    /// sends one.
    pub fn carry_out(&mut self, now: Time, what: Actions) -> Option<Segment> {
        match what.then {
            Continuation::More | Continuation::Last => {}
            Continuation::Stop => self.stop = self.stop.min(now),
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

    /// Counts a datagram that arrived.
    pub fn receive(&mut self, now: Time, datagram: &Segment) {
        self.last_arrival = now;
        self.counters.received.add(datagram.seq);
        self.counters.received_bytes += u64::from(datagram.len);
        self.counters.received_wire_bytes += u64::from(datagram.wire);
    }

    /// `true` if the bytes received reach what the application waits for.
    pub fn reaches_threshold(&self) -> bool {
        self.session.reaches_threshold(self.counters.received_bytes)
    }

    /// Reports the bytes received to the application; returns its decision.
    pub fn notify_delivered(&mut self, now: Time) -> Actions {
        self.session.delivered(now, self.counters.received_bytes).what
    }

    /// Stores the counters at the end of the warm-up.
    pub fn end_warmup(&mut self) {
        self.at_warmup_end = self.counters;
    }
}
