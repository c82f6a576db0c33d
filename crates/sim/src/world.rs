//! The simulated world, which handles events in order of time until the run is over, and prefetches
//! flow state and segments for the next events (feature `prefetch`).
//!
//! With thousands of flows, neither the flow of a packet nor its segment is still in the cache. A
//! pipe that many flows share knows its next packets; the event queue knows the next pipes.
//! Prefetches are spread over several events: a processor keeps 10–20 outstanding cache misses.

use std::io;
use std::sync::Arc;

use cwnd_link::{Packet as _, Settings};
use cwnd_quantity::{Duration, Streams, Time};
use cwnd_scenario::Scenario;
use cwnd_scenario::requirements::Parts;
use cwnd_tables::{Records, Table};

use crate::capture::Output;
use crate::capture_headers::Connection;
use crate::event::{Event, EventQueue};
#[cfg(feature = "record")]
use crate::flow::Flow;
use crate::network::Network;
use crate::packet::LAST_NOTED;
use crate::qlog::{OpenLog, SenderLogs};
use crate::record::{Fairness, Recorder};
use crate::world::creation::lasting_flows;
use crate::world::hosts::Hosts;
use crate::world::workloads::Workloads;

mod audit;
mod creation;
mod custom_parts;
mod endpoints;
mod hosts;
mod off_path_attack;
mod requests;
mod workloads;

pub use custom_parts::Verdicts;

/// A simulation run in progress: network, hosts, workloads, recorder and pending events.
#[derive(Debug)]
pub struct World {
    scenario: Arc<Scenario>,
    random: Streams,
    events: EventQueue,
    network: Network,
    hosts: Hosts,
    workloads: Workloads,
    recorder: Recorder,
    /// Contracts of custom parts and of the scenario's parts; `None` without custom parts.
    custom_parts: Option<Box<Parts>>,
}

/// Error of a run that its caller stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled;

/// Number of events between two calls of `go_on`. It is small, since one event may take
/// milliseconds.
pub const EVENTS_BETWEEN_CHECKS: u64 = 16;

impl World {
    /// Creates a world with links and without flows; [`World::build`] adds the flows.
    #[must_use]
    pub fn unbuilt(scenario: Arc<Scenario>) -> Self {
        let random = Streams::new(scenario.run.seed);
        Self::with_streams(scenario, random)
    }

    /// [`World::unbuilt`] with given random streams instead of those of the scenario's seed.
    pub(crate) fn with_streams(scenario: Arc<Scenario>, random: Streams) -> Self {
        let mut events = EventQueue::until(Time(scenario.run.duration.0));
        let network = Network::new(&scenario, &random, &mut events);
        let run = &scenario.run;
        let mut world = Self {
            network,
            hosts: Hosts::new(
                scenario.flows.iter().map(lasting_flows).sum(),
                run.warmup == Duration::ZERO,
            ),
            workloads: Workloads::default(),
            recorder: Recorder::new(&scenario, &random),
            custom_parts: None,
            events,
            random,
            scenario: Arc::clone(&scenario),
        };
        if run.warmup > Duration::ZERO {
            world.events.push(Time(run.warmup.0), Event::WarmupEnd);
        }
        if run.sample.is_some() {
            world.events.push(Time::ZERO, Event::Sample);
        }
        if run.until_fair.is_some() {
            world.events.push(Time::ZERO, Event::Fairness);
        }
        for (i, link) in scenario.links.iter().enumerate() {
            let facts = Settings::from(link).facts(&world.random);
            if let Some(messenger) = facts.and_then(|(facts, _)| link.messenger.build(&facts)) {
                world.network.add_messenger(&scenario, i, messenger);
            }
        }
        world
    }

    /// Starts writing the packets of these links, by their index in the scenario, to a pcapng file.
    /// Call it before the run.
    ///
    /// A packet is written when its last byte leaves the link's transmitter, before propagation, or
    /// when it is dropped. Drops and marks are comments. Captures never change a run. An output
    /// that fails receives no more packets and must keep its error itself.
    ///
    /// # Errors
    /// Errors of the output at its first bytes; `InvalidInput` for an unknown link and for a run of
    /// 2⁴⁸ ns (78.2 hours) or more.
    pub fn capture(&mut self, links: &[usize], to: Output) -> io::Result<()> {
        let invalid = |what: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        if self.events.end() > LAST_NOTED {
            return invalid("a run of more than 78.2 hours cannot be captured");
        }
        if links.iter().any(|&link| link >= self.scenario.links.len()) {
            return invalid("there is no such link to capture");
        }
        self.network.capture(&self.scenario, links, to)?;
        self.register_flows();
        Ok(())
    }

    /// Starts writing the logs of the senders of these groups, by their index in the scenario, in
    /// qlog 0.3: one for each connection, opened at its first packet. Call it before
    /// [`World::run`], which alone writes them; they never change the run.
    ///
    /// An output that fails receives no more events and must keep its error itself.
    ///
    /// # Errors
    /// `InvalidInput` for a group without senders of cwnd: sources of datagrams, and endpoints from
    /// outside.
    pub fn log_senders(&mut self, groups: &[usize], open: OpenLog) -> io::Result<()> {
        let logs = |&g: &usize| {
            self.scenario.flows[g].connects() && self.workloads.groups[g].endpoints.is_none()
        };
        if let Some(&g) = groups.iter().find(|g| !logs(g)) {
            let name = &self.scenario.flows[g].name;
            let what = format!("flow group `{name}` has no senders of cwnd to log");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        self.network.log_senders(SenderLogs::new(&self.scenario, groups, open));
        self.register_flows();
        Ok(())
    }

    /// Starts logging the packets under way in a window of time, about `limit` at most, with their
    /// passage through a link by its index in the scenario. Call it before the run; the log never
    /// changes it. Returns `false` if the link has no queue.
    pub fn log_packets(&mut self, link: usize, window: [Time; 2], limit: usize) -> bool {
        let has_queue = self.network.log_packets(link, window, limit);
        self.register_flows();
        has_queue
    }

    /// Returns the logged packets, after the run; `None` without a log.
    pub fn take_packets(&mut self) -> Option<Table> {
        self.network.take_packets()
    }

    /// Registers the present flows and sources of datagrams with the observers.
    fn register_flows(&mut self) {
        for flow in &self.hosts.flows {
            let of = Connection::new(flow.number, flow.group, flow.path);
            self.network.begin_flow(flow.id, of);
        }
        for stream in &self.hosts.streams {
            let of = Connection::new(stream.number, stream.group, stream.path);
            self.network.begin_flow(stream.id, of);
        }
    }

    /// Runs to the end and returns the records.
    ///
    /// `go_on` receives the simulated time every 16 events; `false` stops the run. Millions of
    /// flows take seconds to free: a caller short of time drops the world in another thread.
    ///
    /// # Errors
    /// [`Cancelled`] if `go_on` returned `false`.
    pub fn run(&mut self, go_on: impl FnMut(Time) -> bool) -> Result<Records, Cancelled> {
        if self.network.sender_logs_mut().is_some() {
            return self.run_by(Self::step_logged, go_on);
        }
        self.run_by(Self::step, go_on)
    }

    #[inline(always)]
    fn run_by(
        &mut self,
        step: impl Fn(&mut Self) -> bool,
        mut go_on: impl FnMut(Time) -> bool,
    ) -> Result<Records, Cancelled> {
        while step(self) {
            if self.events.taken().is_multiple_of(EVENTS_BETWEEN_CHECKS)
                && !go_on(self.events.now())
            {
                return Err(Cancelled);
            }
        }
        Ok(self.finish())
    }

    /// Handles one event; returns `false` when the run is over.
    // Inlined: a run consists of nothing else.
    #[inline(always)]
    pub fn step(&mut self) -> bool {
        let Some((at, event)) = self.next_event() else { return false };
        self.handle(at, event);
        true
    }

    /// Handles one event and logs the senders that it concerns; returns `false` when the run is
    /// over.
    #[cold]
    #[inline(never)]
    fn step_logged(&mut self) -> bool {
        let Some((at, event)) = self.next_event() else { return false };
        self.handle(at, event);
        if let Some(logs) = self.network.sender_logs_mut() {
            logs.log(at, event, |id| self.hosts.flows[id.slot()].logged_sender(id));
        }
        true
    }

    /// Handles all events before `until`; returns `false` when the run is over.
    pub fn advance(&mut self, until: Time) -> bool {
        while self.events.next_time().is_some_and(|at| at < until) {
            if !self.step() {
                return false;
            }
        }
        until < self.events.end()
    }

    /// Takes the next event from the queue; `None` when the run is over.
    #[inline]
    pub(crate) fn next_event(&mut self) -> Option<(Time, Event)> {
        self.events.advance()
    }

    /// Handles an event.
    #[inline]
    pub(crate) fn handle(&mut self, at: Time, event: Event) {
        let acts = match event {
            Event::LineFree(i) => {
                let arrived = self.network.on_line_free(at, i, &mut self.events);
                arrived.and_then(|p| self.deliver(p))
            }
            Event::PipeHead(i) => {
                self.prefetch(i);
                let arrived = self.network.on_pipe_head(at, i, &mut self.events);
                arrived.and_then(|p| self.deliver(p))
            }
            Event::SenderTimer(id) => self.on_sender_timer(id),
            _ => {
                self.handle_rare(at, event);
                None
            }
        };
        // One call for ACKs and timers, so that its code stays in the cache.
        if let Some(id) = acts {
            self.drive(id);
        }
    }

    /// Handles the events that are rarer than arrivals and departures of packets.
    fn handle_rare(&mut self, at: Time, event: Event) {
        match event {
            Event::LineFree(_) | Event::PipeHead(_) | Event::SenderTimer(_) => {}
            Event::QueueTimer(i) => self.network.on_queue_timer(at, i, &mut self.events),
            Event::RateChange(i) => self.network.on_rate_change(at, i, &mut self.events),
            Event::ReceiverTimer(id) => self.on_receiver_timer(id),
            Event::AppWake(id) => self.on_app_wake(id),
            Event::AppStop(id) => self.on_app_stop(id),
            Event::Datagram(index) => self.on_datagram(index),
            Event::Arrival(process) => self.on_arrival(process),
            Event::Sample => self.on_sample(),
            Event::WarmupEnd => self.on_warmup_end(),
            Event::Fairness => self.on_fairness(),
            Event::Message => self.on_message(),
            Event::Forged(id) => self.on_forged(id),
        }
    }

    fn on_sample(&mut self) {
        let Some(interval) = self.scenario.run.sample else { return };
        self.events.push(self.events.now() + interval, Event::Sample);
        self.recorder.sample(self.events.now(), &self.hosts.flows, &mut self.network);
    }

    fn on_fairness(&mut self) {
        if self.recorder.shares_are_fair(&self.hosts.flows, &self.scenario.flows) {
            self.events.end_now();
        } else {
            self.events.push(self.events.now() + Fairness::INTERVAL, Event::Fairness);
        }
    }

    fn on_warmup_end(&mut self) {
        self.hosts.end_warmup();
        self.recorder.end_warmup(self.events.now(), &mut self.network);
    }

    /// Simulated time.
    #[must_use]
    pub const fn now(&self) -> Time {
        self.events.now()
    }

    /// Makes the controllers of the present flows record their calls from now on; QUIC's do not.
    #[cfg(feature = "record")]
    pub fn record_controllers(&mut self) {
        self.hosts.flows.iter_mut().for_each(|flow| flow.data.sender.record());
    }

    /// Controllers of the flows, one for each flow slot.
    #[cfg(feature = "record")]
    pub fn controllers(&self) -> impl Iterator<Item = &cwnd_cc::AnyController> {
        self.hosts.flows.iter().map(Flow::controller)
    }

    /// Time series so far, of flows and of links, for a look at a run that goes on.
    #[must_use]
    pub fn series(&self) -> [Table; 2] {
        self.recorder.series(&self.scenario)
    }

    /// Ends the run and returns its records. Call it once: it takes the recorded rows.
    #[must_use]
    pub fn finish(&mut self) -> Records {
        self.network.end_files();
        self.recorder.expect_flows(self.hosts.flows.len() + self.hosts.streams.len());
        // In order of creation, except for flows in reused slots. Those that arrive and are over
        // already have rows.
        let mut streams = self.hosts.streams.iter().filter(|s| s.started != Time::NEVER).peekable();
        for flow in self.hosts.running() {
            while let Some(stream) = streams.next_if(|s| s.number < flow.number) {
                self.recorder.stream(stream, self.events.end());
            }
            self.recorder.flow(flow, self.events.end());
        }
        streams.for_each(|stream| self.recorder.stream(stream, self.events.end()));
        let recorder = core::mem::take(&mut self.recorder);
        let mut records = recorder.finish(self.events.end(), &self.scenario, &mut self.network);
        records.events = self.events.taken();
        records.delivered_data_packets = self.hosts.data_delivered;
        records
    }
}

/// Number of flows from which prefetches pay; with fewer they would mostly add instructions.
const MANY_FLOWS: usize = 4096;

/// Prefetch distances in a shared pipe, in packets.
mod of_shared_pipe {
    /// Distance for the ring buffer of the pipe. With fewer packets, few flows share the pipe.
    pub const RING: usize = 16;
    /// Distance for the segment, and for the sender or receiver of its flow.
    pub const FAR: usize = 5;
    /// Distance for the rest of the sender, and the histogram, of an ACK's flow.
    pub const NEAR: usize = 3;
    /// Distance for the heap allocations of the flow, which is in the cache by then.
    pub const NEXT: usize = 1;
}

/// Prefetch distances among many busy pipes, in events.
mod of_many_pipes {
    /// Distance for the pipe.
    pub const PIPE: usize = 13;
    /// Distance for the first packet of the pipe.
    pub const PACKET: usize = 9;
    /// Distance for the segment of the packet and its next hop.
    pub const SEGMENT: usize = 6;
    /// Distance for the sender or receiver of the flow, if the next hop is its host.
    pub const FLOW: usize = 3;
}

impl World {
    /// Prefetches the state for the next packets of this pipe if there are many flows, and the next
    /// pipes if many are busy.
    #[inline]
    fn prefetch(&self, pipe: u32) {
        if !cfg!(feature = "prefetch") {
            return;
        }
        if self.hosts.flows.len() >= MANY_FLOWS {
            self.prefetch_packets(pipe);
        }
        if self.events.has_calendar() {
            self.prefetch_pipes();
        }
    }

    // Not inlined, like `prefetch_pipes`: runs with few flows need neither.
    #[inline(never)]
    fn prefetch_packets(&self, pipe: u32) {
        use of_shared_pipe::{FAR, NEAR, NEXT, RING};

        let pipe = self.network.pipe(pipe);
        if pipe.held() <= RING as u64 {
            return;
        }
        pipe.prefetch(RING);
        for distance in [FAR, NEAR, NEXT] {
            let Some(packet) = pipe.peek(distance) else { continue };
            let Some(flow) = self.hosts.flows.get(packet.flow().slot()) else { continue };
            let data = packet.has_payload();
            match distance {
                FAR => {
                    self.network.prefetch_segment(packet);
                    flow.prefetch_end(data);
                }
                NEAR => flow.prefetch_rest(data),
                _ => flow.prefetch_heap(data),
            }
        }
    }

    #[inline(never)]
    fn prefetch_pipes(&self) {
        use of_many_pipes::{FLOW, PACKET, PIPE, SEGMENT};

        let peek_pipe = |events| self.events.peek_pipe(events).map(|i| self.network.pipe(i));
        let peek_packet = |events| peek_pipe(events).and_then(|pipe| pipe.peek(0));
        if let Some(pipe) = peek_pipe(PIPE) {
            cwnd_memory::prefetch(pipe);
        }
        if let Some(pipe) = peek_pipe(PACKET) {
            pipe.prefetch(0);
        }
        if let Some(packet) = peek_packet(SEGMENT) {
            self.network.prefetch_segment(packet);
            self.network.prefetch_hop(packet);
        }
        if let Some(packet) = peek_packet(FLOW)
            && self.network.is_last_hop(packet)
            && let Some(flow) = self.hosts.flows.get(packet.flow().slot())
        {
            flow.prefetch_end(packet.has_payload());
        }
    }
}
