//! The network between hosts: lines, pipes, middleboxes and the routes through them.

use std::collections::VecDeque;

use cwnd_aqm::{QueueParams, fifo};
use cwnd_link::{Line, Middlebox, Pace, Settings};
use cwnd_quantity::{Duration, LinkProperties, QueueSize, Rate, Rng, Serialiser, Streams, Time};
use cwnd_scenario::{FlowGroup, Lateness, Link, Scenario};
use cwnd_tcp::Segment;

use crate::capture_headers::Connection;
use crate::connection_ends::Exchange;
use crate::event::{Event, EventQueue, FlowId};
use crate::journey::Journey;
use crate::observers::{Observers, PathId};
use crate::packet::{Packet, without_note};
use crate::pipe::{Entry, LinkParts, Pipe};
use crate::segments::{DropLog, Segments};

mod audit;
mod messages;
mod observing;

pub use messages::Messages;

/// Next element on the route of a packet.
#[derive(Clone, Copy, Debug)]
enum Hop {
    Line(u32),
    Pipe(u32),
    /// A middlebox that tampers with options, at the far end of a link.
    Middlebox(u32),
    /// The host at the end of the route.
    Host,
}

impl Hop {
    /// Arrival of a router's message at the source of the packet that it is about. No line has this
    /// number. The lookup of the line detects it, so packets of hosts need no extra check at each
    /// hop.
    const SOURCE: Self = Self::Line(u32::MAX);
}

/// Entry points of a flow's packets into the network, as indices into the table of hops.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// First hop of data.
    pub forward: u32,
    /// First hop of acknowledgements.
    pub reverse: u32,
    /// First of two consecutive pipes at the hosts; [`NO_EDGE`] if the flow has no pipes of its
    /// own.
    edge: u32,
}

/// Value of [`Route::edge`] without pipes at the hosts: no pipe has this number.
const NO_EDGE: u32 = u32::MAX;

impl Route {
    /// The flow's own pipes at the hosts, if it has them: towards the receiver, and from the
    /// receiver.
    fn edge_pipes(self) -> Option<[u32; 2]> {
        (self.edge != NO_EDGE).then(|| [self.edge, self.edge + 1])
    }
}

/// All lines, pipes, middleboxes and packets between the hosts.
///
/// The alignment to a cache line makes the compiler put it at the start of the world, so that one
/// pointer serves both.
#[derive(Debug)]
#[repr(align(64))]
pub struct Network {
    lines: Vec<Line<Packet>>,
    pipes: Vec<Pipe>,
    middleboxes: Vec<Middlebox>,
    hops: Vec<Hop>,
    links: Vec<LinkParts>,
    segments: Segments,
    /// Packets that hosts and routers sent.
    injected: u64,
    /// Packets that reached a host, and messages that reached their source.
    arrived: u64,
    /// Readers of passing packets and verdicts; `None` in most runs.
    observers: Option<Box<Observers>>,
    /// Start of each route in the table of hops, ascending, and the path of the data on it; `None`
    /// for a route of acknowledgements or messages.
    route_starts: Vec<(u32, Option<PathId>)>,
    /// Messages at their sources, with their arrival times, until the hosts take them.
    delivered_messages: VecDeque<(Time, Packet)>,
    messages: Messages,
}

/// Queue of a host's line, which never drops.
const HOST_QUEUE: QueueParams =
    QueueParams::Fifo(fifo::Params { limit: QueueSize::Packets(u64::MAX) });

impl Network {
    /// Builds the links of a scenario; schedules the timers of their queues and their rate changes.
    pub fn new(scenario: &Scenario, random: &Streams, events: &mut EventQueue) -> Self {
        let mut network = Self {
            lines: Vec::new(),
            pipes: Vec::new(),
            middleboxes: Vec::new(),
            hops: Vec::new(),
            links: Vec::new(),
            segments: Segments::default(),
            injected: 0,
            arrived: 0,
            observers: None,
            route_starts: Vec::new(),
            delivered_messages: VecDeque::new(),
            messages: Messages::default(),
        };
        for link in &scenario.links {
            let parts = network.add_link(link, random);
            network.links.push(parts);
        }
        for (i, line) in (0..).zip(&network.lines) {
            if let Some(at) = line.next_timer() {
                events.push(at, Event::QueueTimer(i));
            }
        }
        for (i, line) in (0..).zip(&network.lines) {
            if let Some(at) = line.next_change() {
                events.push(at, Event::RateChange(i));
            }
        }
        network
    }

    fn add_link(&mut self, link: &Link, random: &Streams) -> LinkParts {
        let settings = Settings::from(link);
        let line = settings.line(random).map(|line| self.add_line(line));
        let impairments = settings.impairments(random);
        let pipe =
            (line.is_none() || link.delay > Duration::ZERO || impairments.is_some()).then(|| {
                let mut pipe = Pipe::new(link.delay);
                if let Some(impairments) = impairments {
                    let late =
                        self.add_pipe(Pipe::new(link.delay + link.impairments.reorder_delay));
                    pipe = pipe.with_impairments(impairments, late);
                }
                self.add_pipe(pipe)
            });
        let middlebox = self.add_middlebox(link, random);
        LinkParts { line, pipe, middlebox }
    }

    fn add_line(&mut self, line: Line<Packet>) -> u32 {
        self.lines.push(line);
        self.lines.len() as u32 - 1
    }

    fn add_pipe(&mut self, pipe: Pipe) -> u32 {
        self.pipes.push(pipe);
        self.pipes.len() as u32 - 1
    }

    /// Adds a route along one path of `group`.
    ///
    /// With `edge`, the hosts are this round-trip time away from the graph, half of it before the
    /// receiver and half after. With `None` they are at the nodes.
    pub fn add_route(&mut self, id: PathId, group: &FlowGroup, edge: Option<Duration>) -> Route {
        let path = &group.paths[id.1 as usize];
        let edge_pipes = edge
            .map(|edge| [edge / 2, edge - edge / 2].map(|delay| self.add_pipe(Pipe::new(delay))));
        let [into_receiver, out_of_receiver] = match edge_pipes {
            Some(pipes) => pipes.map(|i| Some(Hop::Pipe(i))),
            None => [None; 2],
        };
        let forward = self.add_hops(group.edge_rate, None, &path.route, into_receiver);
        let reverse = self.add_hops(group.edge_rate, out_of_receiver, &path.reverse, None);
        self.route_starts.extend([(forward, Some(id)), (reverse, None)]);
        Route { forward, reverse, edge: edge_pipes.map_or(NO_EDGE, |[first, _]| first) }
    }

    fn add_hops(
        &mut self,
        host_rate: Option<Rate>,
        first: Option<Hop>,
        links: &[usize],
        last: Option<Hop>,
    ) -> u32 {
        let host_line = host_rate.map(|rate| {
            let facts = LinkProperties { rate, bdp_rtt: Duration::ZERO };
            // A FIFO draws no random numbers, so any stream serves.
            let queue = HOST_QUEUE.build(&facts, Rng::named(0, "host"));
            Hop::Line(self.add_line(Line::new(queue, Pace::Rate(Serialiser::new(rate)))))
        });
        let start = self.hops.len() as u32;
        self.hops.extend(host_line);
        self.hops.extend(first);
        for &link in links {
            let LinkParts { line, pipe, middlebox } = self.links[link];
            self.hops.extend(line.map(Hop::Line));
            self.hops.extend(pipe.map(Hop::Pipe));
            self.hops.extend(middlebox.map(Hop::Middlebox));
        }
        self.hops.extend(last);
        self.hops.push(Hop::Host);
        start
    }

    /// `true` if no packet is in the pipes of the flow's own hosts.
    pub fn edge_is_empty(&self, route: Route) -> bool {
        route.edge_pipes().is_none_or(|pipes| pipes.iter().all(|&i| self.pipe(i).held() == 0))
    }

    /// Sets the round-trip time of the pipes at a flow's own hosts. No packet may be in them.
    pub fn set_edge(&mut self, route: Route, edge: Duration) {
        if let Some([into, out_of]) = route.edge_pipes() {
            self.pipes[into as usize].set_delay(edge / 2);
            self.pipes[out_of as usize].set_delay(edge - edge / 2);
        }
    }

    /// Sets the extra delay of each packet in the pipes at a flow's own hosts: towards the
    /// receiver, and from it.
    pub fn set_lateness(&mut self, route: Route, lateness: [Lateness; 2]) {
        let pipes = route.edge_pipes().into_iter().flatten();
        for (pipe, lateness) in pipes.zip(lateness) {
            self.pipes[pipe as usize].set_lateness(lateness);
        }
    }

    /// Sends a segment from a host.
    // Inlined: the segment's fields are written directly into their slot, without a copy.
    #[inline(always)]
    pub fn inject(&mut self, flow: FlowId, hop: u32, segment: Segment, events: &mut EventQueue) {
        let slot = self.segments.put(segment);
        self.send(Packet::new(flow, hop, slot, &segment), events);
    }

    /// Sends a request of a client, or a server's acknowledgement of one.
    #[cold]
    pub fn inject_request(
        &mut self,
        flow: FlowId,
        hop: u32,
        segment: Segment,
        events: &mut EventQueue,
    ) {
        let slot = self.segments.put(segment);
        let packet = Packet::new(flow.requests(), hop, slot, &segment).of_request();
        self.send(packet, events);
    }

    /// Sends a datagram with its payload from the host of an endpoint from outside: its flow, its
    /// first hop, and `true` if it goes from the end of the flow's path to its start.
    #[cold]
    pub fn inject_payload(
        &mut self,
        (flow, hop, back): (FlowId, u32, bool),
        segment: Segment,
        payload: Vec<u8>,
        events: &mut EventQueue,
    ) {
        let slot = self.segments.put(segment);
        self.segments.put_payload(slot, payload);
        let packet = Packet::new(flow.requests(), hop, slot, &segment);
        self.send(if back { packet.of_request() } else { packet }, events);
    }

    /// Takes the payload of a datagram that reached the host of an endpoint from outside.
    pub fn take_payload(&mut self, packet: Packet) -> Vec<u8> {
        self.segments.take_payload(packet.slot())
    }

    /// Stores a segment in its slot and returns it for the host to complete before
    /// [`send`](Self::send).
    #[inline(always)]
    pub fn put(
        &mut self,
        flow: FlowId,
        hop: u32,
        segment: Segment,
        packet: &mut Option<Packet>,
    ) -> &mut Segment {
        let slot = self.segments.put(segment);
        // From the argument, not from the slot: reading back fields just written would stall.
        *packet = Some(Packet::new(flow, hop, slot, &segment));
        self.segments.get_mut(slot)
    }

    /// Starts a packet on its route. Every route has a line or a pipe, so it never arrives at once.
    #[inline]
    pub fn send(&mut self, packet: Packet, events: &mut EventQueue) {
        let now = events.now();
        self.injected += 1;
        self.segments.depart(packet.slot(), now);
        if let Some(observers) = &mut self.observers {
            observers.sent_by_host(now, packet, self.segments.get_mut(packet.slot()));
        }
        let arrived = self.forward(now, packet, events);
        debug_assert!(arrived.is_none(), "a route without line or pipe");
    }

    /// Moves a packet to its next line, pipe or host; returns it if that is a host.
    #[inline]
    fn forward(&mut self, now: Time, packet: Packet, events: &mut EventQueue) -> Option<Packet> {
        let (hop, packet) = packet.next_hop();
        match self.hops[hop as usize] {
            Hop::Line(i) => {
                let Some(line) = self.lines.get_mut(i as usize) else {
                    self.deliver_message(now, packet, events);
                    return None;
                };
                if let Some(at) = line.arrive(now, packet, &mut self.segments) {
                    events.push(at, Event::LineFree(i));
                }
                if self.observers.is_some() {
                    self.report_arrival(now, i, packet, events);
                }
                None
            }
            Hop::Pipe(i) => {
                self.enter_pipe(now, i, packet, events);
                None
            }
            Hop::Middlebox(i) => self.pass_middlebox(now, i, packet, events),
            Hop::Host => {
                self.arrived += 1;
                if let Some(observers) = &mut self.observers {
                    observers.received_by_host(now, packet, self.segments.get_mut(packet.slot()));
                }
                Some(packet)
            }
        }
    }

    #[inline]
    fn enter_pipe(&mut self, now: Time, i: u32, packet: Packet, events: &mut EventQueue) {
        let entry = self.pipes[i as usize].enter(now, packet);
        if let Some(observers) = &mut self.observers {
            let lost = matches!(entry, Entry::Lost);
            observers.entered_pipe(now, i, packet, &self.segments, lost);
        }
        match entry {
            Entry::Queued => {}
            Entry::Lost => self.segments.lose(packet),
            Entry::First(at) => events.push(at, Event::PipeHead(i)),
            // A pipe for late packets has no impairments, so the recursion ends after one step.
            Entry::Late(late, packet) => self.enter_pipe(now, late, packet, events),
        }
    }

    /// Prefetches the segment of this packet.
    #[inline]
    pub fn prefetch_segment(&self, packet: Packet) {
        self.segments.prefetch(packet.slot());
    }

    /// Prefetches the table entry of this packet's next hop.
    #[inline]
    pub fn prefetch_hop(&self, packet: Packet) {
        let (hop, _) = packet.next_hop();
        self.hops.get(hop as usize).into_iter().for_each(cwnd_memory::prefetch);
    }

    /// `true` if this packet's next hop is its host.
    #[inline]
    pub fn is_last_hop(&self, packet: Packet) -> bool {
        let (hop, _) = packet.next_hop();
        matches!(self.hops[hop as usize], Hop::Host)
    }

    /// The segment of a packet that reached its host.
    #[inline]
    pub fn segment(&self, packet: Packet) -> &Segment {
        self.segments.get(packet.slot())
    }

    /// Times of a packet that reached its host.
    #[inline]
    pub fn journey(&self, packet: Packet) -> Journey {
        self.segments.journey(packet.slot())
    }

    /// Frees the slot of a segment that its host has read.
    #[inline]
    pub fn free_segment(&mut self, packet: Packet) {
        self.segments.remove(packet.slot());
    }

    /// Handles [`Event::LineFree`]; returns the packet if its next hop is a host.
    #[inline]
    pub fn on_line_free(&mut self, now: Time, i: u32, events: &mut EventQueue) -> Option<Packet> {
        let line = &mut self.lines[i as usize];
        if line.free_at() != now {
            // A stale event: the rate changed after it was scheduled, and a newer event is pending.
            return None;
        }
        let sent = line.on_free(now, &mut self.segments);
        if let Some(at) = line.next_free() {
            events.push(at, Event::LineFree(i));
        }
        if self.observers.is_some() {
            self.report_departure(now, i, sent, events);
        }
        self.forward(now, sent?, events)
    }

    /// Handles [`Event::PipeHead`]; returns the packet if its next hop is a host.
    #[inline]
    pub fn on_pipe_head(&mut self, now: Time, i: u32, events: &mut EventQueue) -> Option<Packet> {
        let pipe = &mut self.pipes[i as usize];
        let packet = pipe.leave();
        if let Some((at, next)) = pipe.first() {
            events.push(at, Event::PipeHead(i));
            // The segment was written about a round trip ago and is no longer in the cache.
            self.segments.prefetch(next.slot());
        }
        self.forward(now, packet?, events)
    }

    /// Handles [`Event::QueueTimer`].
    pub fn on_queue_timer(&mut self, now: Time, i: u32, events: &mut EventQueue) {
        let line = &mut self.lines[i as usize];
        if line.next_timer().is_none_or(|at| at > now) {
            // A stale event: the queue that scheduled it was replaced.
            return;
        }
        line.on_timer(now);
        if let Some(at) = line.next_timer() {
            events.push(at, Event::QueueTimer(i));
        }
    }

    /// Replaces a line by what `make` builds from it, before anything is sent. Schedules the timer
    /// of its queue if that differs from the old one.
    pub fn rebuild_line(
        &mut self,
        i: u32,
        make: impl FnOnce(Line<Packet>) -> Line<Packet>,
        events: &mut EventQueue,
    ) {
        let before = self.lines.remove(i as usize);
        let awaited = before.next_timer();
        let line = make(before);
        if let Some(at) = line.next_timer().filter(|&at| awaited != Some(at)) {
            events.push(at, Event::QueueTimer(i));
        }
        self.lines.insert(i as usize, line);
    }

    /// Handles [`Event::RateChange`].
    pub fn on_rate_change(&mut self, now: Time, i: u32, events: &mut EventQueue) {
        let line = &mut self.lines[i as usize];
        let free = line.on_change(now);
        if let Some(at) = line.next_change() {
            events.push(at, Event::RateChange(i));
        }
        if let Some(at) = free {
            events.push(at, Event::LineFree(i));
        }
    }

    /// Log of lost packets.
    #[inline]
    pub const fn drop_log(&self) -> &DropLog {
        self.segments.drop_log()
    }

    /// Log of lost packets, mutable.
    pub const fn drop_log_mut(&mut self) -> &mut DropLog {
        self.segments.drop_log_mut()
    }

    /// Segments in flight, without capture notes.
    pub fn in_flight(&self) -> impl Iterator<Item = Segment> {
        self.segments.iter().map(without_note)
    }

    /// Starts a flow: assigns its slot in the drop log and registers it with the observers.
    pub fn begin_flow(&mut self, id: FlowId, of: Connection) {
        self.segments.drop_log_mut().begin_flow(id);
        if let Some(log) = self.packet_log_mut() {
            log.begin_flow(id, of.number());
        }
        if let Some(logs) = self.sender_logs_mut() {
            logs.begin_flow(id, &of);
        }
        if let Some(capture) = self.capture_mut() {
            capture.begin_flow(id, of);
        }
    }

    /// Registers a client's new request with captures.
    pub fn begin_exchange(&mut self, id: FlowId, exchange: Exchange) {
        if let Some(capture) = self.capture_mut() {
            capture.begin_exchange(id, exchange);
        }
    }

    /// Lines, pipes and middleboxes of the scenario's links, in its order.
    pub fn links(&self) -> &[LinkParts] {
        &self.links
    }

    /// The line with index `i`.
    pub fn line_mut(&mut self, i: u32) -> &mut Line<Packet> {
        &mut self.lines[i as usize]
    }

    /// The pipe with index `i`.
    pub fn pipe(&self, i: u32) -> &Pipe {
        &self.pipes[i as usize]
    }
}
