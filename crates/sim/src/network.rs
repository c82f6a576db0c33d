//! Lines, pipes and the routes through them, built from a scenario.

use std::collections::VecDeque;
use std::io;

use cwnd_aqm::{QueueParams, fifo};
use cwnd_link::{Line, Middlebox, Pace, Settings};
use cwnd_quantity::{Duration, LinkFacts, QueueSize, Rate, Rng, Serialiser, Streams, Time};
use cwnd_scenario::{FlowGroup, Lateness, Link, Scenario};
use cwnd_tcp::Segment;

use crate::capture::{Capture, Output};
use crate::capture_headers::Connection;
use crate::event::{Event, EventQueue, FlowId};
use crate::losses::Losses;
use crate::packet::{Packet, without_note};
use crate::pipe::{Entry, Pipe};
use crate::place::LinkParts;
use crate::requests::Turn;
use crate::segments::Segments;
use crate::watch::{Watch, WayId};

mod audit;
mod dead;
mod messages;
mod middleboxes;

pub use messages::Messages;

/// Where a packet goes next.
#[derive(Clone, Copy, Debug)]
enum Hop {
    Line(u32),
    Pipe(u32),
    /// Something that tampers with options, at the far end of a link.
    Middlebox(u32),
    /// It has arrived at its host.
    Host,
}

impl Hop {
    /// It is a router's message and has arrived at the source of the packet that it is about. No line has this number, which
    /// is found out where a line is looked up: the packets of hosts need not ask at each hop.
    const SOURCE: Self = Self::Line(u32::MAX);
}

/// Where a flow's packets enter the network, as indices into the table of hops.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// Data.
    pub forward: u32,
    /// Acknowledgements.
    pub reverse: u32,
    /// The first of the two pipes at the hosts, which follow each other; [`NO_EDGE`] if the flow has none of its own.
    edge: u32,
}

/// No pipe has this number.
const NO_EDGE: u32 = u32::MAX;

impl Route {
    /// The pipes at the hosts, if the flow has its own: on the way to the receiver, and back.
    fn edge_pipes(self) -> Option<[u32; 2]> {
        (self.edge != NO_EDGE).then(|| [self.edge, self.edge + 1])
    }
}

/// Everything between the hosts.
///
/// Whole cache lines: so the compiler puts it at the start of the world, and a pointer to one is a pointer to both.
#[derive(Debug)]
#[repr(align(64))]
pub struct Network {
    lines: Vec<Line<Packet>>,
    pipes: Vec<Pipe>,
    middleboxes: Vec<Middlebox>,
    hops: Vec<Hop>,
    links: Vec<LinkParts>,
    segments: Segments,
    /// Packets that hosts sent.
    injected: u64,
    /// Packets that reached a host.
    arrived: u64,
    /// Those who read what passes; `None` in most runs.
    watch: Option<Box<Watch>>,
    /// Where each route starts in the table of hops, in its order, and which way data goes that is on it; `None` if what
    /// is on it is no data.
    data_from: Vec<(u32, Option<WayId>)>,
    /// Messages that have reached their sources.
    mailbox: VecDeque<(Time, Packet)>,
    messages: Messages,
}

/// A queue at a host never drops: the host's own socket buffer is what bounds it.
const HOST_QUEUE: QueueParams =
    QueueParams::Fifo(fifo::Params { limit: QueueSize::Packets(u64::MAX) });

impl Network {
    /// Builds the links of a scenario; schedules their periodic events.
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
            watch: None,
            data_from: Vec::new(),
            mailbox: VecDeque::new(),
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
        let faults = settings.faults(random);
        let pipe = (line.is_none() || link.delay > Duration::ZERO || faults.is_some()).then(|| {
            let mut pipe = Pipe::new(link.delay);
            if let Some(faults) = faults {
                let late = self.add_pipe(Pipe::new(link.delay + link.impairments.reorder_delay));
                pipe = pipe.with_faults(faults, late);
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

    /// A route for flows of `group` that go this way of it. Their hosts are `edge` of round-trip
    /// time away from the graph, half before the receiver and half after it; with `None` they are
    /// in it.
    pub fn add_route(&mut self, id: WayId, group: &FlowGroup, edge: Option<Duration>) -> Route {
        let way = &group.ways[id.1 as usize];
        let edge_pipes = edge
            .map(|edge| [edge / 2, edge - edge / 2].map(|delay| self.add_pipe(Pipe::new(delay))));
        let [into_receiver, out_of_receiver] = match edge_pipes {
            Some(pipes) => pipes.map(|i| Some(Hop::Pipe(i))),
            None => [None; 2],
        };
        let forward = self.add_hops(group.edge_rate, None, &way.route, into_receiver);
        let reverse = self.add_hops(group.edge_rate, out_of_receiver, &way.reverse, None);
        self.data_from.extend([(forward, Some(id)), (reverse, None)]);
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
            let facts = LinkFacts { rate, bdp_rtt: Duration::ZERO };
            // A FIFO draws no random numbers: any stream serves.
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

    /// Whether no packet is between the graph and the hosts of a route of their own.
    pub fn edge_is_empty(&self, route: Route) -> bool {
        route.edge_pipes().is_none_or(|pipes| pipes.iter().all(|&i| self.pipe(i).held() == 0))
    }

    /// Moves the hosts of a route of their own to another distance; no packet may be on its way there.
    pub fn set_edge(&mut self, route: Route, edge: Duration) {
        if let Some([into, out_of]) = route.edge_pipes() {
            self.pipes[into as usize].set_delay(edge / 2);
            self.pipes[out_of as usize].set_delay(edge - edge / 2);
        }
    }

    /// Sets how late the receiver's host takes data, and the sender's host acknowledgements.
    pub fn set_lateness(&mut self, route: Route, lateness: [Lateness; 2]) {
        let pipes = route.edge_pipes().into_iter().flatten();
        for (pipe, lateness) in pipes.zip(lateness) {
            self.pipes[pipe as usize].set_lateness(lateness);
        }
    }

    /// A host sends a segment.
    // Inlined, so that the segment's fields go from where they are made to their place without a copy on the way.
    #[inline(always)]
    pub fn inject(&mut self, flow: FlowId, hop: u32, segment: Segment, events: &mut EventQueue) {
        let place = self.segments.put(segment);
        self.set_out(Packet::new(flow, hop, place, &segment), events);
    }

    /// A client sends a request, or a server acknowledges one.
    #[cold]
    pub fn inject_request(
        &mut self,
        flow: FlowId,
        hop: u32,
        segment: Segment,
        events: &mut EventQueue,
    ) {
        let place = self.segments.put(segment);
        let packet = Packet::new(flow.requests(), hop, place, &segment).of_request();
        self.set_out(packet, events);
    }

    /// A segment that a host will send gets its place, where the host completes it before it [sets out](Self::set_out).
    #[inline(always)]
    pub fn put(
        &mut self,
        flow: FlowId,
        hop: u32,
        segment: Segment,
        packet: &mut Option<Packet>,
    ) -> &mut Segment {
        let place = self.segments.put(segment);
        // Of the segment as it was handed over: what was just written would have to be read back.
        *packet = Some(Packet::new(flow, hop, place, &segment));
        self.segments.get_mut(place)
    }

    /// A packet begins its way. Every route has a line or a pipe, so it never arrives at once.
    #[inline]
    pub fn set_out(&mut self, packet: Packet, events: &mut EventQueue) {
        let now = events.now();
        self.injected += 1;
        if let Some(watch) = &mut self.watch {
            watch.sent_by_host(now, packet.flow(), self.segments.get_mut(packet.place()));
        }
        let arrived = self.forward(now, packet, events);
        debug_assert!(arrived.is_none(), "a route without line or pipe");
    }

    /// Takes a packet to its next line, pipe or host; returns it if that is a host.
    #[inline]
    fn forward(&mut self, now: Time, packet: Packet, events: &mut EventQueue) -> Option<Packet> {
        let (hop, packet) = packet.next_hop();
        match self.hops[hop as usize] {
            Hop::Line(i) => {
                let Some(line) = self.lines.get_mut(i as usize) else {
                    self.put_into_mailbox(now, packet, events);
                    return None;
                };
                if let Some(at) = line.arrive(now, packet, &mut self.segments) {
                    events.push(at, Event::LineFree(i));
                }
                if self.watch.is_some() {
                    self.read_verdicts(now, i, events);
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
                if let Some(watch) = &mut self.watch {
                    watch.received_by_host(packet.flow(), self.segments.get_mut(packet.place()));
                }
                Some(packet)
            }
        }
    }

    #[inline]
    fn enter_pipe(&mut self, now: Time, i: u32, packet: Packet, events: &mut EventQueue) {
        let entry = self.pipes[i as usize].enter(now, packet);
        if let Some(watch) = &mut self.watch {
            let segment = self.segments.get(packet.place());
            watch.entered_pipe(now, i, packet.flow(), segment, matches!(entry, Entry::Lost));
        }
        match entry {
            Entry::Queued => {}
            Entry::Lost => self.segments.lose(packet),
            Entry::First(at) => events.push(at, Event::PipeHead(i)),
            // A pipe for late packets has no faults of its own, so this goes one step deep.
            Entry::Late(late, packet) => self.enter_pipe(now, late, packet, events),
        }
    }

    /// The segment of this packet will be read soon.
    #[inline]
    pub fn segment_soon(&self, packet: Packet) {
        self.segments.soon(packet.place());
    }

    /// The table's entry of this packet's next hop will be read soon.
    #[inline]
    pub fn hop_soon(&self, packet: Packet) {
        let (hop, _) = packet.next_hop();
        self.hops.get(hop as usize).into_iter().for_each(cwnd_memory::soon);
    }

    /// Whether this packet is at its host next.
    #[inline]
    pub fn is_last_hop(&self, packet: Packet) -> bool {
        let (hop, _) = packet.next_hop();
        matches!(self.hops[hop as usize], Hop::Host)
    }

    /// The segment of a packet that reached its host.
    #[inline]
    pub fn segment(&self, packet: Packet) -> &Segment {
        self.segments.get(packet.place())
    }

    /// The host has taken the segment of this packet.
    #[inline]
    pub fn taken(&mut self, packet: Packet) {
        self.segments.remove(packet.place());
    }

    /// [`Event::LineFree`]: returns the packet if its next stop is a host.
    #[inline]
    pub fn on_line_free(&mut self, now: Time, i: u32, events: &mut EventQueue) -> Option<Packet> {
        let line = &mut self.lines[i as usize];
        if line.free_at() != now {
            // An event that came too early (the rate changed under it) has a successor already.
            return None;
        }
        let sent = line.on_free(now, &mut self.segments);
        if let Some(at) = line.wanted() {
            events.push(at, Event::LineFree(i));
        }
        if self.watch.is_some() {
            self.tell_of_departure(now, i, sent, events);
        }
        self.forward(now, sent?, events)
    }

    /// [`Event::PipeHead`]: returns the packet if its next stop is a host.
    #[inline]
    pub fn on_pipe_head(&mut self, now: Time, i: u32, events: &mut EventQueue) -> Option<Packet> {
        let pipe = &mut self.pipes[i as usize];
        let packet = pipe.leave();
        if let Some((at, next)) = pipe.first() {
            events.push(at, Event::PipeHead(i));
            // It was written a round trip ago: others have taken its place in the cache.
            self.segments.soon(next.place());
        }
        self.forward(now, packet?, events)
    }

    /// [`Event::QueueTimer`].
    pub fn on_queue_timer(&mut self, now: Time, i: u32, events: &mut EventQueue) {
        let line = &mut self.lines[i as usize];
        if line.next_timer().is_none_or(|at| at > now) {
            // The clock of a queue that was replaced.
            return;
        }
        line.on_timer(now);
        if let Some(at) = line.next_timer() {
            events.push(at, Event::QueueTimer(i));
        }
    }

    /// Makes another line of one, before anything is sent.
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

    /// [`Event::RateChange`].
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

    /// Writes the packets of these links to `to`.
    pub fn capture(&mut self, scenario: &Scenario, links: &[usize], to: Output) -> io::Result<()> {
        let watch = self.watch.get_or_insert_default();
        let capture = watch.capture.get_or_insert_with(|| Capture::new(scenario, &self.links));
        capture.add(scenario, links, to)?;
        capture.read_lines(&mut self.lines);
        Ok(())
    }

    /// The line may have sent a packet and taken another: tells those who read along.
    #[cold]
    #[inline(never)]
    fn tell_of_departure(
        &mut self,
        now: Time,
        i: u32,
        sent: Option<Packet>,
        events: &mut EventQueue,
    ) {
        self.read_verdicts(now, i, events);
        if let (Some(watch), Some(packet)) = (&mut self.watch, sent) {
            watch.left_line(now, i, packet.flow(), self.segments.get(packet.place()));
        }
    }

    /// What was lost.
    #[inline]
    pub const fn losses(&self) -> &Losses {
        self.segments.losses()
    }

    /// The same, to be changed.
    pub const fn losses_mut(&mut self) -> &mut Losses {
        self.segments.losses_mut()
    }

    /// The segments that are under way.
    pub fn under_way(&self) -> impl Iterator<Item = Segment> {
        self.segments.iter().map(without_note)
    }

    /// A flow begins: what captures must know of it, and its losses are its own from now on.
    pub fn begin_flow(&mut self, id: FlowId, of: Connection) {
        self.segments.losses_mut().begin_flow(id);
        if let Some(capture) = self.captured() {
            capture.begin_flow(id, of);
        }
    }

    /// A client asks: what captures must know of it.
    pub fn begin_turn(&mut self, id: FlowId, turn: Turn) {
        if let Some(capture) = self.captured() {
            capture.begin_turn(id, turn);
        }
    }

    fn captured(&mut self) -> Option<&mut Capture> {
        self.watch.as_mut()?.capture.as_mut()
    }

    /// No packet comes any more: hands on what captures hold.
    pub fn end_capture(&mut self) {
        if let Some(capture) = self.captured() {
            capture.end();
        }
    }

    /// The parts of the scenario's links, in its order.
    pub fn links(&self) -> &[LinkParts] {
        &self.links
    }

    /// A line.
    pub fn line_mut(&mut self, i: u32) -> &mut Line<Packet> {
        &mut self.lines[i as usize]
    }

    /// A pipe.
    pub fn pipe(&self, i: u32) -> &Pipe {
        &self.pipes[i as usize]
    }
}
