//! The simulated world: takes events in order of time until the run is over.

use std::io;
use std::sync::Arc;

use cwnd_apps::Do;
use cwnd_link::Settings;
use cwnd_quantity::{Duration, Streams, Time};
use cwnd_scenario::Scenario;
use cwnd_scenario::needs::Parts;
use cwnd_tables::Records;

use crate::capture::Output;
use crate::datagrams::Stream;
use crate::event::{Event, EventQueue, FlowId};
use crate::fairness::{Fairness, shares_delivered};
use crate::flow::Flow;
use crate::network::Network;
use crate::packet::{LAST_NOTED, Packet};
use crate::record::Recorder;
use crate::stack::Connection;
use crate::world::creation::lasting_flows;
use crate::world::workloads::Workloads;

mod audit;
mod creation;
mod custom_parts;
mod off_path_attack;
mod prefetch;
mod requests;
mod timeout_oracle;
mod workloads;

pub use custom_parts::Verdicts;

/// A run in progress.
#[derive(Debug)]
pub struct World {
    scenario: Arc<Scenario>,
    random: Streams,
    events: EventQueue,
    network: Network,
    flows: Vec<Flow>,
    streams: Vec<Stream>,
    workloads: Workloads,
    /// Whether the warm-up is over.
    counting: bool,
    data_delivered: u64,
    recorder: Recorder,
    /// What ends the run early.
    fairness: Option<Fairness>,
    /// What parts of one's own declare, with those that the scenario names; `None` without any.
    own_parts: Option<Box<Parts>>,
}

/// The run was stopped from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled;

/// Events between two looks at whether to go on: few, for one event may take milliseconds.
pub const EVENTS_BETWEEN_LOOKS: u64 = 16;

impl World {
    /// A world with links and without flows: those come with [`World::build`].
    #[must_use]
    pub fn unbuilt(scenario: Arc<Scenario>) -> Self {
        let random = Streams::new(scenario.run.seed);
        Self::with_streams(scenario, random)
    }

    /// [`World::unbuilt`], with the random streams of the scenario's seed given.
    pub(crate) fn with_streams(scenario: Arc<Scenario>, random: Streams) -> Self {
        let mut events = EventQueue::until(Time(scenario.run.duration.0));
        let network = Network::new(&scenario, &random, &mut events);
        let run = &scenario.run;
        let mut world = Self {
            network,
            flows: cwnd_memory::with_capacity(scenario.flows.iter().map(lasting_flows).sum()),
            streams: Vec::new(),
            workloads: Workloads::default(),
            counting: run.warmup == Duration::ZERO,
            data_delivered: 0,
            recorder: Recorder::new(&scenario, &random),
            fairness: run.until_fair.map(Fairness::new),
            own_parts: None,
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
        if world.fairness.is_some() {
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

    /// Writes the packets of these links, by their index in the scenario, to a pcapng file; before the run.
    ///
    /// A link's packet is written when its last byte leaves, or when it is dropped; drops and marks are comments. What is
    /// written never changes the run. An output that fails later gets no more: it must remember its error itself.
    ///
    /// # Errors
    /// Those of the output's first bytes; `InvalidInput` for a link that does not exist and for a run of 78 hours or more.
    pub fn capture(&mut self, links: &[usize], to: Output) -> io::Result<()> {
        let invalid = |what: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        if self.events.end() > LAST_NOTED {
            return invalid("a run of 78 hours or more cannot be captured");
        }
        if links.iter().any(|&link| link >= self.scenario.links.len()) {
            return invalid("there is no such link to capture");
        }
        self.network.capture(&self.scenario, links, to)?;
        for flow in &self.flows {
            let of = Connection::new(flow.number, flow.group, flow.way);
            self.network.begin_flow(flow.id, of);
        }
        for stream in &self.streams {
            let of = Connection::new(stream.number, stream.group, stream.way);
            self.network.begin_flow(stream.id, of);
        }
        Ok(())
    }

    /// Runs to the end. `go_on` is asked now and then, with the simulated time, whether to.
    ///
    /// Millions of flows take seconds to free: who has no time leaves the world to another thread.
    ///
    /// # Errors
    /// [`Cancelled`] if `go_on` said no.
    pub fn run(&mut self, mut go_on: impl FnMut(Time) -> bool) -> Result<Records, Cancelled> {
        while self.step() {
            if self.events.taken().is_multiple_of(EVENTS_BETWEEN_LOOKS) && !go_on(self.events.now())
            {
                return Err(Cancelled);
            }
        }
        Ok(self.finish())
    }

    /// Takes one event; false when the run is over.
    // Inlined: a run is this and nothing else, and it is called for each event.
    #[inline(always)]
    pub fn step(&mut self) -> bool {
        let Some((at, event)) = self.next_event() else { return false };
        self.handle(at, event);
        true
    }

    /// Takes the next event from the queue; `None` when the run is over.
    #[inline]
    pub(crate) fn next_event(&mut self) -> Option<(Time, Event)> {
        self.events.advance()
    }

    /// Does what an event asks for.
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
        // In one place, whether an ACK came or a timer: so its code is in the cache.
        if let Some(id) = acts {
            self.drive(id);
        }
    }

    /// The same of what happens less often than packets come and go.
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

    /// The flow, unless its slot has passed to another.
    #[inline]
    fn flow(&mut self, id: FlowId) -> Option<&mut Flow> {
        self.flows.get_mut(id.slot()).filter(|f| f.id == id)
    }

    /// A packet is at its host. Returns whose sender may have something to send.
    #[inline]
    fn deliver(&mut self, packet: Packet) -> Option<FlowId> {
        let (now, counting) = (self.events.now(), self.counting);
        let segment = self.network.segment(packet);
        let Some(flow) = self.flows.get_mut(packet.flow().slot()).filter(|f| f.id == packet.flow())
        else {
            self.deliver_datagram(packet);
            return None;
        };
        if segment.is_ack() {
            if let Some(rtt) = flow.sender.on_segment(now, segment)
                && counting
            {
                flow.rtt.add(rtt);
            }
            self.network.taken(packet);
            return Some(packet.flow());
        }
        let reply = flow.receiver.on_segment(now, segment);
        self.data_delivered += u64::from(segment.len > 0);
        if flow.is_of_interest() {
            self.on_delivered(packet, reply);
            return None;
        }
        self.network.taken(packet);
        self.reply(packet.flow(), reply);
        None
    }

    /// A receiver answers, now or later.
    #[inline(always)]
    fn reply(&mut self, id: FlowId, reply: Option<cwnd_tcp::Segment>) {
        if let Some(ack) = reply {
            self.send_ack(id, ack);
        }
        // The ACK that goes may be one that was held back, and what it left behind waits on.
        self.arm_receiver(id);
    }

    /// A packet that is no flow's is at its host: a datagram, or what was meant for a flow that is over.
    #[cold]
    fn deliver_datagram(&mut self, packet: Packet) {
        if self.streams.len() <= packet.flow().datagrams_index() {
            return self.deliver_request(packet);
        }
        if let Some(stream) = self.streams.get_mut(packet.flow().datagrams_index()) {
            stream.receive(self.events.now(), self.network.segment(packet));
            self.data_delivered += 1;
            if stream.is_of_interest() {
                let what = stream.hear_delivered(self.events.now());
                self.carry_out_datagram(packet.flow().datagrams_index() as u32, what);
            }
        }
        self.network.taken(packet);
    }

    /// A router's message is at the source of the packet that it is about.
    #[cold]
    #[inline(never)]
    fn on_message(&mut self) {
        let Some(packet) = self.network.take_message() else { return };
        let (now, id) = (self.events.now(), packet.flow());
        let segment = *self.network.segment(packet);
        self.network.taken(packet);
        if let Some(flow) = self.flow(id) {
            flow.sender.on_segment(now, &segment);
            self.drive_sender(id);
        } else if let Some(stream) = self.streams.get_mut(id.datagrams_index()) {
            stream.messages += 1;
        }
    }

    fn on_datagram(&mut self, index: u32) {
        let turn = self.streams[index as usize].turn(self.events.now());
        turn.into_iter().for_each(|what| self.carry_out_datagram(index, what));
    }

    // Apart, so that the loop over events keeps its registers.
    #[inline(never)]
    fn carry_out_datagram(&mut self, index: u32, what: Do) {
        let stream = &mut self.streams[index as usize];
        let (flow, hop) = (stream.id, stream.route.forward);
        if let Some(segment) = stream.carry_out(self.events.now(), what) {
            self.network.inject(self.events.now(), flow, hop, segment, &mut self.events);
        }
        if let Some(at) = what.wake {
            self.events.push(at.max(self.events.now()), Event::Datagram(index));
        }
    }

    fn send_ack(&mut self, id: FlowId, ack: cwnd_tcp::Segment) {
        let hop = self.flows[id.slot()].route.reverse;
        self.network.inject(self.events.now(), id, hop, ack, &mut self.events);
    }

    /// Timers are lazy: one event is pending, and one that comes early is put off, not replaced.
    // Inlined where it is called for every packet, though it is called elsewhere, too.
    #[inline(always)]
    fn arm_receiver(&mut self, id: FlowId) {
        let flow = &mut self.flows[id.slot()];
        let at = flow.receiver.next_timer();
        if at < flow.receiver_timer {
            flow.receiver_timer = at;
            self.events.push(at, Event::ReceiverTimer(id));
        }
    }

    fn on_receiver_timer(&mut self, id: FlowId) {
        let now = self.events.now();
        let Some(flow) = self.flow(id) else { return self.on_server_timer(id) };
        if flow.receiver_timer != now {
            return;
        }
        flow.receiver_timer = Time::NEVER;
        if let Some(ack) = flow.receiver.on_timer(now) {
            self.send_ack(id, ack);
        }
        self.arm_receiver(id);
    }

    #[inline]
    fn on_sender_timer(&mut self, id: FlowId) -> Option<FlowId> {
        let now = self.events.now();
        let Some(flow) = self.flow(id) else {
            self.on_client_timer(id);
            return None;
        };
        if flow.sender_timer != now {
            return None;
        }
        flow.sender_timer = Time::NEVER;
        if flow.sender.may_expire(now) {
            self.on_retransmission_timer(id);
        }
        if self.network.losses().are_crowded() {
            self.thin_out_losses();
        }
        Some(id)
    }

    /// It is not only that pacing is over.
    #[cold]
    #[inline(never)]
    fn on_retransmission_timer(&mut self, id: FlowId) {
        let sender = &mut self.flows[id.slot()].sender;
        let (syn, before) = (!sender.is_established(), sender.counters().expiries());
        sender.on_timer(self.events.now());
        if sender.counters().expiries() != before {
            self.tell_of_timeout(id, syn);
        }
    }

    /// Sends what the sender may, for another reason than an ACK or its timer.
    #[cold]
    #[inline(never)]
    fn drive_sender(&mut self, id: FlowId) {
        self.drive(id);
    }

    /// Sends what the sender may, sees to its timer and to its application.
    #[inline(always)]
    fn drive(&mut self, id: FlowId) {
        let slot = id.slot();
        let now = self.events.now();
        let hop = self.flows[slot].route.forward;
        let mut goes_on = true;
        while goes_on {
            let (network, mut packet) = (&mut self.network, None);
            let sender = &mut self.flows[slot].sender;
            goes_on = sender.transmit(now, |segment| network.put(id, hop, segment, &mut packet));
            let Some(packet) = packet else { break };
            self.network.set_out(now, packet, &mut self.events);
        }
        let flow = &mut self.flows[slot];
        let at = flow.sender.next_timer();
        if at < flow.sender_timer {
            flow.sender_timer = at;
            self.events.push(at, Event::SenderTimer(id));
        }
        if flow.sender.is_drained() || flow.sender.has_failed() {
            self.on_drained(id);
        }
    }

    /// All that was written is acknowledged: the connection is over, or its application wants to hear of it.
    #[cold]
    fn on_drained(&mut self, id: FlowId) {
        let flow = &mut self.flows[id.slot()];
        if let Some(requests) = flow.requests.as_mut().filter(|_| flow.sender.is_drained())
            && let Some(response) = requests.unacknowledged.take()
        {
            self.recorder.acknowledged(response, self.events.now());
        }
        if flow.is_over() && self.workloads.groups[flow.group as usize].gives_slots_away {
            self.retire(id);
        } else if flow.stop <= self.events.now() {
            flow.stopped = flow.stopped.min(self.events.now());
        } else if !flow.has_failed()
            && let Some(what) = flow.session.acked(self.events.now())
            && self.carry_out(id, what)
        {
            self.drive_sender(id);
        }
    }

    /// With this packet as much arrived as the application wants to hear of, or all of its transfer.
    #[cold]
    #[inline(never)]
    fn on_delivered(&mut self, packet: Packet, reply: Option<cwnd_tcp::Segment>) {
        let id = packet.flow();
        if self.flows[id.slot()].requests.is_some() {
            return self.on_response(packet, reply);
        }
        self.network.taken(packet);
        self.reply(id, reply);
        let flow = &mut self.flows[id.slot()];
        let what = flow.hear_delivered(self.events.now()).what;
        if flow.stop > self.events.now() && self.carry_out(id, what) {
            self.drive_sender(id);
        }
    }

    /// Does what the application says; true if there may be something to send.
    fn carry_out(&mut self, id: FlowId, what: Do) -> bool {
        if let Some(at) = what.wake {
            self.events.push(at.max(self.events.now()), Event::AppWake(id));
        }
        if what.request > 0 {
            self.ask(id, what.request);
        }
        self.flows[id.slot()].carry_out(self.events.now(), what)
    }

    fn on_app_wake(&mut self, id: FlowId) {
        let now = self.events.now();
        let Some(flow) = self.flow(id).filter(|flow| flow.stop > now) else { return };
        let Some(what) = flow.wake(now) else { return };
        self.answer(id, what);
    }

    fn on_app_stop(&mut self, id: FlowId) {
        self.flows[id.slot()].stop_sending(self.events.now());
        self.drive_sender(id);
    }

    fn on_sample(&mut self) {
        let Some(interval) = self.scenario.run.sample else { return };
        self.events.push(self.events.now() + interval, Event::Sample);
        self.recorder.sample(self.events.now(), &self.flows, &mut self.network);
    }

    fn on_fairness(&mut self) {
        let Some(fairness) = &mut self.fairness else { return };
        if fairness.reached(shares_delivered(&self.flows, &self.scenario.flows)) {
            self.events.end_now();
        } else {
            self.events.push(self.events.now() + Fairness::INTERVAL, Event::Fairness);
        }
    }

    fn on_warmup_end(&mut self) {
        self.counting = true;
        self.flows.iter_mut().filter(|f| f.started != Time::NEVER).for_each(Flow::end_warmup);
        self.streams.iter_mut().for_each(Stream::end_warmup);
        self.recorder.end_warmup(self.events.now(), &mut self.network);
    }

    /// Simulated time.
    #[must_use]
    pub const fn now(&self) -> Time {
        self.events.now()
    }

    /// From now on the controllers of the flows that exist write down what they are told.
    #[cfg(feature = "record")]
    pub fn record_controllers(&mut self) {
        self.flows.iter_mut().for_each(|flow| flow.sender.record());
    }

    /// The controllers of the flows.
    #[cfg(feature = "record")]
    pub fn controllers(&self) -> impl Iterator<Item = &cwnd_cc::AnyController> {
        self.flows.iter().map(|flow| flow.sender.controller())
    }

    /// Closes the books: what comes later is not recorded.
    #[must_use]
    pub fn finish(&mut self) -> Records {
        self.network.end_capture();
        self.recorder.expect_flows(self.flows.len() + self.streams.len());
        // In the order of the file, as far as flows keep their places.
        let mut streams = self.streams.iter().filter(|s| s.started != Time::NEVER).peekable();
        for flow in self.flows.iter().filter(|f| f.started != Time::NEVER) {
            while let Some(stream) = streams.next_if(|s| s.number < flow.number) {
                self.recorder.stream(stream, self.events.end());
            }
            self.recorder.flow(flow, self.events.end());
        }
        streams.for_each(|stream| self.recorder.stream(stream, self.events.end()));
        let recorder = core::mem::take(&mut self.recorder);
        let mut records = recorder.finish(self.events.end(), &self.scenario, &mut self.network);
        records.events = self.events.taken();
        records.delivered_data_packets = self.data_delivered;
        records
    }
}
