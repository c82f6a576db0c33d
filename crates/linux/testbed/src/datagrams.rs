//! Datagrams of a side: sources, which send at the simulator's times, and a sink for each group,
//! which measures transit times and loss. Each datagram carries its number and its send time, as
//! both sides have one clock.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use cwnd_apps::{Continuation, Session, Transport};
use cwnd_quantity::{Bytes, Duration, Time};
use cwnd_scenario::FlowGroup;
use cwnd_tables::{Arrivals, Buckets, Histogram, LastTransit};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, connect, recvfrom, send,
    socket_with,
};

use crate::namespace::receive_buffer_drops;
use crate::unsupported::{STAMP_BYTES, UDP_HEADERS};
use crate::world::{Clock, PORT, Side, World};

/// Lateness of sends that 1 % of the datagrams may exceed, as at the router.
pub const MAX_LATENESS: Duration = Duration::from_millis(1);

/// Sources and sinks of a side.
pub struct Datagrams<'w> {
    world: &'w World,
    sources: BTreeMap<usize, Source>,
    sinks: BTreeMap<usize, OwnedFd>,
    /// Datagrams that full buffers of sockets dropped in the namespace before the run.
    drops_before: u64,
    seen: DatagramObservations,
}

/// Observations of a side's datagrams. Counts exclude the warm-up unless stated otherwise.
#[derive(Debug, Default)]
pub struct DatagramObservations {
    /// Flows that this side sends, by number.
    pub sent: BTreeMap<usize, SentDatagrams>,
    /// Flows that this side receives, by number.
    pub received: BTreeMap<usize, ReceivedDatagrams>,
    /// Absolute differences in transit time between consecutive arrivals of a flow, by group.
    pub jitter: BTreeMap<usize, Buckets>,
    /// Lateness of sends, of the whole run.
    pub lateness: Histogram,
    /// Datagrams that full buffers of sockets dropped.
    pub receive_buffer_drops: u64,
}

/// Counters of a source.
#[derive(Clone, Copy, Debug, Default)]
pub struct SentDatagrams {
    /// Datagrams sent.
    pub datagrams: u64,
    /// Datagrams sent in the whole run.
    total: u64,
    /// Datagrams that the kernel did not accept, or that were late and due at the end, whole run.
    pub refused: u64,
}

/// Counters of a sink.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReceivedDatagrams {
    /// Payload, bytes.
    pub bytes: u64,
    /// Payload and headers, bytes.
    pub wire_bytes: u64,
    /// Payload in the whole run, bytes.
    pub total_bytes: u64,
    /// Arrival time of the last datagram; zero before the first.
    pub last_arrival: Time,
    /// Datagrams in the whole run.
    pub arrivals: Arrivals,
    /// Datagrams within the warm-up.
    pub arrivals_in_warmup: Arrivals,
    last_transit: LastTransit,
}

/// Source of the datagrams of one flow.
#[derive(Debug)]
struct Source {
    socket: OwnedFd,
    session: Session,
    has_started: bool,
    /// Time from which it sends nothing more.
    stop: Time,
}

impl<'w> Datagrams<'w> {
    /// Opens the sockets of a side, in the calling thread's namespace.
    pub fn open(world: &'w World, side: Side) -> io::Result<Self> {
        let mut sinks = BTreeMap::new();
        for (g, group) in world.scenario.flows.iter().enumerate().filter(|(_, g)| !g.connects()) {
            if Side::of_node(group.paths[0].to) == side {
                let socket = open()?;
                bind(&socket, &SocketAddrV4::new(side.address(g), PORT))?;
                sinks.insert(g, socket);
            }
        }
        let mut sources = BTreeMap::new();
        for (i, flow) in world.flows.iter().enumerate() {
            let group = &world.scenario.flows[flow.group];
            if group.connects() || world.sender_side(i) != side {
                continue;
            }
            let socket = open()?;
            bind(&socket, &world.sender(i))?;
            connect(&socket, &world.receiver(i))?;
            let session = Session::new(group.workload.maker()(), flow.rng.clone());
            let stop = group.stop.unwrap_or(Time::NEVER);
            sources.insert(i, Source { socket, session, has_started: false, stop });
        }
        let seen = DatagramObservations::default();
        Ok(Self { world, sources, sinks, drops_before: 0, seen })
    }

    /// Begins the run, after the calibration.
    pub fn begin(&mut self) {
        self.drops_before = receive_buffer_drops();
    }

    /// Iterates over the groups that this side receives, with their sockets.
    pub fn sinks(&self) -> impl Iterator<Item = (usize, BorrowedFd<'_>)> {
        self.sinks.iter().map(|(&group, socket)| (group, socket.as_fd()))
    }

    /// Starts a source, or wakes it at a time that it set: it sends what it would send at that time
    /// in the simulator. Returns the next time.
    pub fn wake(&mut self, flow: usize, at: Time, clock: Clock, buffer: &mut [u8]) -> Option<Time> {
        let source = self.sources.get_mut(&flow).filter(|source| at < source.stop)?;
        let what = match core::mem::replace(&mut source.has_started, true) {
            true => source.session.timer(at)?,
            false => source.session.start(at),
        };
        if what.then == Continuation::Stop {
            source.stop = at;
        }
        let sent = self.seen.sent.entry(flow).or_default();
        if what.write > 0 {
            let group = &self.world.scenario.flows[self.world.flows[flow].group];
            let wire = what.write + headers(group).0;
            let datagram = &mut buffer[..(wire - UDP_HEADERS.0) as usize];
            let now = clock.now();
            let lateness = now.since(at);
            self.seen.lateness.add(lateness);
            if now.0 >= self.world.scenario.run.duration.0 {
                // The router has stopped. Datagrams of the last instant are merely cut off.
                sent.refused += u64::from(lateness > MAX_LATENESS);
                return what.wake;
            }
            let stamp = u128::from(sent.total + 1) << 64 | u128::from(now.0);
            datagram[..STAMP_BYTES].copy_from_slice(&stamp.to_ne_bytes());
            match send(&source.socket, datagram, SendFlags::empty()) {
                Ok(_) => {
                    sent.total += 1;
                    sent.datagrams += u64::from(at.0 >= self.world.scenario.run.warmup.0);
                }
                Err(_) => sent.refused += 1,
            }
            datagram[..STAMP_BYTES].fill(0);
        }
        what.wake
    }

    /// Receives the datagrams of a group that have arrived.
    pub fn receive(&mut self, group: usize, clock: Clock, buffer: &mut [u8]) -> io::Result<()> {
        let Some(socket) = self.sinks.get(&group) else { return Ok(()) };
        let headers = headers(&self.world.scenario.flows[group]).0;
        let warmup = Time(self.world.scenario.run.warmup.0);
        loop {
            let (bytes, _, from) = match recvfrom(socket, &mut *buffer, RecvFlags::empty()) {
                Ok(received) => received,
                Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let now = clock.now();
            let from = from.and_then(|from| SocketAddrV4::try_from(from).ok());
            let Some(flow) = from.and_then(|from| self.world.flow_of(from)) else { continue };
            let Some(stamp) = buffer[..bytes].first_chunk() else { continue };
            let received = self.seen.received.entry(flow).or_default();
            let wire = bytes as u64 + UDP_HEADERS.0;
            received.last_arrival = now;
            received.total_bytes += wire - headers;
            let stamp = u128::from_ne_bytes(*stamp);
            let transit = now.since(Time(stamp as u64));
            received.arrivals.add((stamp >> 64) as u64);
            if now < warmup {
                received.arrivals_in_warmup = received.arrivals;
            }
            let difference = received.last_transit.next(transit);
            if now >= warmup {
                received.bytes += wire - headers;
                received.wire_bytes += wire;
                let jitter = self.seen.jitter.entry(group).or_default();
                difference.into_iter().for_each(|difference| jitter.add(difference));
            }
        }
    }

    /// Ends the run; returns its observations.
    pub fn finish(mut self) -> DatagramObservations {
        self.seen.receive_buffer_drops = receive_buffer_drops() - self.drops_before;
        self.seen
    }
}

/// Returns the bytes of headers in each datagram of a group, as its workload counts them.
fn headers(group: &FlowGroup) -> Bytes {
    match group.workload.facts().transport {
        Transport::Datagrams { header, .. } => header,
        Transport::Connection => Bytes(0),
    }
}

fn open() -> io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    Ok(socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?)
}
