//! Hosts of one side: its senders and receivers, in one thread that waits for sockets and timers.

use core::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io;
use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;

use cwnd_apps::{Actions, Continuation};
use cwnd_quantity::Time;
use cwnd_router::linux::netlink::Netlink;
use cwnd_tables::Histogram;
use rustix::event::{PollFd, PollFlags, epoll, poll};
use rustix::io::Errno;
use rustix::net::netlink::SOCK_DIAG;
use rustix::net::{RecvFlags, SocketFlags, acceptfrom_with, recv};
use rustix::time::Timespec;

use crate::datagrams::{DatagramObservations, Datagrams};
use crate::namespace::{TcpInfo, tcp_info};
use crate::programs;
use crate::sender::{Sender, State, bind_listener};
use crate::world::{Clock, PORT, Side, World};

/// Observations of a flow's sending end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sent {
    /// Last `tcp_info` of its socket, before it closes.
    pub info: TcpInfo,
    /// `tcp_info` at the end of the warm-up; zero without one, or if the flow starts later.
    pub before: TcpInfo,
    /// `true` if `info` was read at least once.
    pub seen: bool,
    /// Time when its application or the group's `stop` ended it, if that was before the end.
    pub stopped: Option<Time>,
}

/// Observations of a flow's receiving end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Received {
    /// Last `tcp_info` of its socket.
    pub info: TcpInfo,
    /// `tcp_info` at the end of the warm-up; zero without one, or if the flow starts later.
    pub before: TcpInfo,
    /// `true` if `info` was read at least once.
    pub seen: bool,
    /// Bytes delivered by the end of the warm-up.
    pub delivered_before: u64,
}

/// State of a socket at one instant.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Time on the grid of samples.
    pub at: Time,
    /// Number of the flow.
    pub flow: usize,
    /// `tcp_info` of the sender.
    pub info: TcpInfo,
    /// Bytes that the receiving application had.
    pub delivered: u64,
}

/// Observations of a side.
#[derive(Debug, Default)]
pub struct SideObservations {
    /// Flows that this side sends, by number.
    pub sent: BTreeMap<usize, Sent>,
    /// Flows that this side receives, by number.
    pub received: BTreeMap<usize, Received>,
    /// Samples in time order.
    pub samples: Vec<Sample>,
    /// Lateness of readings of the sockets.
    pub lateness: Histogram,
    /// Readings left out because the next one was due already.
    pub missed: u64,
    /// Connections that failed, and the reason.
    pub failures: Vec<(usize, String)>,
    /// Groups of datagrams.
    pub datagrams: DatagramObservations,
}

/// Timed actions, at equal times in order of insertion, as in the simulator.
#[derive(Default)]
struct Alarms {
    heap: BinaryHeap<Reverse<(Time, u64, Alarm)>>,
    inserted: u64,
}

impl Alarms {
    fn push(&mut self, at: Time, alarm: Alarm) {
        self.inserted += 1;
        self.heap.push(Reverse((at, self.inserted, alarm)));
    }

    /// Returns the time of the next action; `Time::NEVER` without one.
    fn next(&self) -> Time {
        self.heap.peek().map_or(Time::NEVER, |Reverse((at, ..))| *at)
    }

    fn pop(&mut self) -> Option<(Time, Alarm)> {
        self.heap.pop().map(|Reverse((at, _, alarm))| (at, alarm))
    }
}

/// Timed action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Alarm {
    /// Starts a flow.
    Start(usize),
    /// Wakes an application, as it requested.
    Wake(usize),
    /// Ends a flow.
    Stop(usize),
}

/// Hosts of a side, ready to run.
pub struct Hosts<'w> {
    world: &'w World,
    clock: Clock,
    poll: OwnedFd,
    netlink: Netlink,
    listeners: BTreeMap<usize, OwnedFd>,
    senders: BTreeMap<usize, Sender>,
    receivers: BTreeMap<usize, OwnedFd>,
    datagrams: Datagrams<'w>,
    alarms: Alarms,
    buffer: Vec<u8>,
    seen: SideObservations,
}

impl<'w> Hosts<'w> {
    /// Opens the listening sockets; the calling thread must be in the side's namespace.
    pub fn open(world: &'w World, side: Side) -> io::Result<Self> {
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut listeners = BTreeMap::new();
        for (g, group) in world.scenario.flows.iter().enumerate().filter(|(_, g)| g.connects()) {
            if Side::of_node(group.paths[0].to) == side {
                let socket = bind_listener(
                    SocketAddrV4::new(side.address(g), PORT),
                    programs::echoes_by_code(group).then(|| &*world.controllers[g]),
                )?;
                epoll::add(&poll, &socket, token(LISTENER, g), epoll::EventFlags::IN)?;
                listeners.insert(g, socket);
            }
        }
        let datagrams = Datagrams::open(world, side)?;
        for (g, socket) in datagrams.sinks() {
            epoll::add(&poll, socket, token(SINK, g), epoll::EventFlags::IN)?;
        }
        let mut alarms = Alarms::default();
        for (i, flow) in world.flows.iter().enumerate() {
            if world.sender_side(i) == side {
                alarms.push(flow.start, Alarm::Start(i));
                let group = &world.scenario.flows[flow.group];
                // Sources of datagrams know when they stop.
                if let Some(stop) = group.stop.filter(|_| group.connects()) {
                    alarms.push(stop, Alarm::Stop(i));
                }
            }
        }
        Ok(Self {
            world,
            clock: Clock::starting_at(0),
            poll,
            netlink: Netlink::open(Some(SOCK_DIAG))?,
            listeners,
            senders: BTreeMap::new(),
            receivers: BTreeMap::new(),
            datagrams,
            alarms,
            buffer: vec![0; BUFFER_BYTES],
            seen: SideObservations::default(),
        })
    }

    /// Runs until the end of the run, or until the world is stopped.
    pub fn run(mut self, clock: Clock) -> io::Result<SideObservations> {
        self.clock = clock;
        self.datagrams.begin();
        let run = &self.world.scenario.run;
        let (warmup, end) = (Time(run.warmup.0), Time(run.duration.0));
        let interval = self.world.interval();
        let mut tick = Time::ZERO;
        let mut warm = warmup == Time::ZERO;
        let mut events = Vec::with_capacity(EVENTS);
        loop {
            let now = self.clock.now();
            if now >= end || self.world.stopped() {
                // Events at the end itself are excluded, as in the simulator.
                self.fire_alarms(now.min(Time(end.0.saturating_sub(1))))?;
                self.sample_sockets(end, false)?;
                self.seen.datagrams = self.datagrams.finish();
                return Ok(self.seen);
            }
            if !warm && now >= warmup {
                warm = true;
                self.sample_sockets(warmup, false)?;
                self.note_warmup();
            }
            self.fire_alarms(now)?;
            if now >= tick {
                let behind = now.since(tick).0 / interval.0.max(1);
                self.seen.missed += behind;
                tick += interval * behind;
                self.seen.lateness.add(now.since(tick));
                self.sample_sockets(tick, run.sample.is_some())?;
                tick += interval;
            }
            let next =
                self.alarms.next().min(tick).min(end).min(if warm { Time::NEVER } else { warmup });
            self.wait(next, &mut events)?;
        }
    }

    fn wait(&mut self, until: Time, events: &mut Vec<epoll::Event>) -> io::Result<()> {
        let left = until.since(self.clock.now()).0;
        let timeout = Timespec {
            tv_sec: (left / NS_PER_S).cast_signed(),
            tv_nsec: (left % NS_PER_S).cast_signed(),
        };
        events.clear();
        // The timeout of epoll_wait(2) would be rounded up to a millisecond.
        match poll(&mut [PollFd::new(&self.poll, PollFlags::IN)], Some(&timeout)) {
            Ok(0) | Err(Errno::INTR) => return Ok(()),
            other => other?,
        };
        let ready = rustix::buffer::spare_capacity(events);
        epoll::wait(&self.poll, ready, Some(&Timespec::default()))?;
        for event in events.iter() {
            let data = event.data.u64();
            let index = (data & INDEX) as usize;
            match data & !INDEX {
                LISTENER => self.accept(index)?,
                RECEIVER => self.receive(index)?,
                SINK => self.datagrams.receive(index, self.clock, &mut self.buffer)?,
                _ => self.on_sender(index, event.flags)?,
            }
        }
        Ok(())
    }

    /// Carries out the timed actions that are due.
    fn fire_alarms(&mut self, now: Time) -> io::Result<()> {
        while self.alarms.next() <= now
            && let Some((at, alarm)) = self.alarms.pop()
        {
            match alarm {
                Alarm::Start(flow) | Alarm::Wake(flow) if self.sends_datagrams(flow) => {
                    let next = self.datagrams.wake(flow, at, self.clock, &mut self.buffer);
                    next.into_iter().for_each(|at| self.alarms.push(at, Alarm::Wake(flow)));
                }
                Alarm::Start(flow) => self.start(flow)?,
                Alarm::Wake(flow) => {
                    let what = self.senders.get_mut(&flow).and_then(|s| s.session.timer(at));
                    what.map_or(Ok(()), |what| self.apply(flow, what))?;
                }
                Alarm::Stop(flow) => self.stop(flow)?,
            }
        }
        Ok(())
    }

    fn sends_datagrams(&self, flow: usize) -> bool {
        !self.world.scenario.flows[self.world.flows[flow].group].connects()
    }

    fn start(&mut self, flow: usize) -> io::Result<()> {
        let (mut sender, now) = (Sender::connect(self.world, flow)?, self.clock.now());
        let what = sender.session.start(now);
        let flags = epoll::EventFlags::OUT | epoll::EventFlags::RDHUP;
        epoll::add(&self.poll, &sender.socket, token(SENDER, flow), flags)?;
        self.seen.sent.insert(flow, Sent::default());
        self.senders.insert(flow, sender);
        self.apply(flow, what)
    }

    /// Carries out an action of a flow's application.
    fn apply(&mut self, flow: usize, what: Actions) -> io::Result<()> {
        let Some(sender) = self.senders.get_mut(&flow) else { return Ok(()) };
        sender.take(what);
        if let Some(at) = what.wake {
            self.alarms.push(at, Alarm::Wake(flow));
        }
        match what.then {
            Continuation::More | Continuation::Last => self.write(flow),
            Continuation::Stop => self.stop(flow),
        }
    }

    /// Ends a flow because its application or its group stops; closing the socket resets it.
    fn stop(&mut self, flow: usize) -> io::Result<()> {
        if let Some(sender) = self.senders.remove(&flow) {
            self.read_tcp_info(flow, &sender)?;
            self.seen.sent.entry(flow).or_default().stopped = Some(self.clock.now());
        }
        Ok(())
    }

    /// Handles an event of a sender's socket.
    fn on_sender(&mut self, flow: usize, flags: epoll::EventFlags) -> io::Result<()> {
        let Some(sender) = self.senders.get_mut(&flow) else { return Ok(()) };
        let gone = epoll::EventFlags::ERR | epoll::EventFlags::HUP | epoll::EventFlags::RDHUP;
        if flags.intersects(gone) {
            let closing = sender.state == State::Closing;
            if let Some(error) = sender.error().filter(|_| !closing) {
                self.seen.failures.push((flow, io::Error::from(error).to_string()));
            }
            self.drop_sender(flow)?;
            return Ok(());
        }
        self.write(flow)
    }

    fn write(&mut self, flow: usize) -> io::Result<()> {
        let Some(sender) = self.senders.get_mut(&flow) else { return Ok(()) };
        if let Err(error) = sender.write(&self.buffer) {
            self.seen.failures.push((flow, error.to_string()));
            return self.drop_sender(flow);
        }
        // A socket without data to write would always be ready.
        let flags = if sender.state == State::Writing {
            epoll::EventFlags::OUT | epoll::EventFlags::RDHUP
        } else {
            epoll::EventFlags::RDHUP
        };
        epoll::modify(&self.poll, &sender.socket, token(SENDER, flow), flags)?;
        Ok(())
    }

    fn drop_sender(&mut self, flow: usize) -> io::Result<()> {
        if let Some(sender) = self.senders.remove(&flow) {
            epoll::delete(&self.poll, &sender.socket)?;
        }
        Ok(())
    }

    fn accept(&mut self, group: usize) -> io::Result<()> {
        let Some(listener) = self.listeners.get(&group) else { return Ok(()) };
        loop {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let (socket, from) = match acceptfrom_with(listener, flags) {
                Ok(accepted) => accepted,
                Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let from = from.and_then(|from| SocketAddrV4::try_from(from).ok());
            let Some(flow) = from.and_then(|from| self.world.flow_of(from)) else { continue };
            crate::sender::reset_on_close(&socket)?;
            epoll::add(&self.poll, &socket, token(RECEIVER, flow), epoll::EventFlags::IN)?;
            self.receivers.insert(flow, socket);
            self.seen.received.entry(flow).or_default();
        }
    }

    fn receive(&mut self, flow: usize) -> io::Result<()> {
        let Some(socket) = self.receivers.get(&flow) else { return Ok(()) };
        loop {
            match recv(socket, &mut self.buffer[..], RecvFlags::empty()) {
                Ok((0, _)) => break,
                Ok((bytes, _)) => {
                    self.world.deliver(flow, bytes as u64, self.clock.now());
                    if bytes < self.buffer.len() {
                        return Ok(());
                    }
                }
                Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
                // The sender's application stopped.
                Err(Errno::CONNRESET | Errno::PIPE) => break,
                Err(error) => return Err(error.into()),
            }
        }
        self.read_receiver(flow)?;
        if let Some(socket) = self.receivers.remove(&flow) {
            epoll::delete(&self.poll, &socket)?;
        }
        Ok(())
    }

    /// Reads the senders' sockets, and finds finished transfers. Records samples if `record` is
    /// set; otherwise it also reads the receivers' sockets.
    fn sample_sockets(&mut self, at: Time, record: bool) -> io::Result<()> {
        let senders = core::mem::take(&mut self.senders);
        for (&flow, sender) in &senders {
            let told = self.read_tcp_info(flow, sender)?;
            if let Some(info) = told.filter(|_| record) {
                let delivered = self.world.delivered(flow);
                self.seen.samples.push(Sample { at, flow, info, delivered });
            }
        }
        self.senders = senders;
        if !record {
            let flows: Vec<usize> = self.receivers.keys().copied().collect();
            flows.into_iter().try_for_each(|flow| self.read_receiver(flow))?;
        }
        let drained: Vec<usize> = self
            .senders
            .iter()
            .filter(|(flow, sender)| {
                sender.state == State::Draining
                    && self.seen.sent.get(flow).is_some_and(|s| s.seen && s.info.unacked_bytes == 0)
            })
            .map(|(&flow, _)| flow)
            .collect();
        drained.into_iter().try_for_each(|flow| self.drained(flow))?;
        let told = self.senders.iter_mut().filter_map(|(&flow, sender)| {
            let total = self.world.delivered(flow);
            let wants = sender.session.reaches_threshold(total);
            wants.then(|| (flow, sender.session.delivered(at, total).what))
        });
        let told = told.filter(|(_, what)| *what != Actions::NOTHING);
        let told: Vec<(usize, Actions)> = told.collect();
        told.into_iter().try_for_each(|(flow, what)| self.apply(flow, what))
    }

    /// Handles the acknowledgement of all written data: ends the connection or reports to its
    /// application.
    fn drained(&mut self, flow: usize) -> io::Result<()> {
        let now = self.clock.now();
        let Some(sender) = self.senders.get_mut(&flow) else { return Ok(()) };
        sender.state = State::Waiting;
        match sender.session.acked(now) {
            Some(what) => return self.apply(flow, what),
            None if sender.session.size().is_some() => sender.close(),
            None => {}
        }
        Ok(())
    }

    /// Reads the `tcp_info` of a sender, and keeps it unless the sender is closing.
    fn read_tcp_info(&mut self, flow: usize, sender: &Sender) -> io::Result<Option<TcpInfo>> {
        let (local, remote) = (self.world.sender(flow), self.world.receiver(flow));
        let told = tcp_info(&mut self.netlink, local, remote)?;
        if let Some(info) = told.filter(|_| sender.state != State::Closing) {
            let sent = self.seen.sent.entry(flow).or_default();
            (sent.info, sent.seen) = (info, true);
        }
        Ok(told)
    }

    /// Reads the `tcp_info` of a receiver, and keeps it.
    fn read_receiver(&mut self, flow: usize) -> io::Result<()> {
        let (local, remote) = (self.world.receiver(flow), self.world.sender(flow));
        if let Some(info) = tcp_info(&mut self.netlink, local, remote)? {
            let received = self.seen.received.entry(flow).or_default();
            (received.info, received.seen) = (info, true);
        }
        Ok(())
    }

    /// Keeps the state at the end of the warm-up.
    fn note_warmup(&mut self) {
        self.seen.sent.values_mut().for_each(|sent| sent.before = sent.info);
        for (&flow, received) in &mut self.seen.received {
            received.before = received.info;
            received.delivered_before = self.world.delivered(flow);
        }
    }
}

fn token(kind: u64, index: usize) -> epoll::EventData {
    epoll::EventData::new_u64(kind | index as u64)
}

/// Upper bits of a token: kind of the socket.
const SENDER: u64 = 0;
const LISTENER: u64 = 1 << 62;
const RECEIVER: u64 = 2 << 62;
const SINK: u64 = 3 << 62;
const INDEX: u64 = (1 << 62) - 1;
/// Maximum number of events handled at a time.
const EVENTS: usize = 64;
/// Maximum size of a read or write, bytes.
const BUFFER_BYTES: usize = 1 << 18;
const NS_PER_S: u64 = 1_000_000_000;
