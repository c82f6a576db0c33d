//! Hosts: both ends of connections, sources and sinks of datagrams, their packets, timers and
//! applications. A timeout oracle finds the fate of each timed-out segment, which no sender knows.

use cwnd_apps::Actions;
use cwnd_quantity::Time;

use super::World;
use crate::connection_ends::{Expired, Fate, HalfConnection, Requests};
use crate::datagrams::Stream;
use crate::event::{Event, FlowId};
use crate::flow::Flow;
use crate::packet::Packet;
use crate::segments::HalfLosses;

/// Connections and sources of datagrams, in slots.
#[derive(Debug)]
pub(super) struct Hosts {
    pub(super) flows: Vec<Flow>,
    pub(super) streams: Vec<Stream>,
    /// `true` once the warm-up is over.
    pub(super) counting: bool,
    pub(super) data_delivered: u64,
}

impl Hosts {
    /// Creates no connections, but room for those that last for the whole run.
    pub(super) fn new(lasting_flows: usize, counting: bool) -> Self {
        Self {
            flows: cwnd_memory::with_capacity(lasting_flows),
            streams: Vec::new(),
            counting,
            data_delivered: 0,
        }
    }

    /// The flow with this id; `None` if no flow or another one has its slot.
    #[inline]
    pub(super) fn flow(&mut self, id: FlowId) -> Option<&mut Flow> {
        self.flows.get_mut(id.slot()).filter(|f| f.id == id)
    }

    /// Flows that have started.
    pub(super) fn running(&self) -> impl Iterator<Item = &Flow> {
        self.flows.iter().filter(|f| f.started != Time::NEVER)
    }

    /// Stores the counters of the started flows and of all sources of datagrams at the end of the
    /// warm-up.
    pub(super) fn end_warmup(&mut self) {
        self.counting = true;
        self.flows.iter_mut().filter(|f| f.started != Time::NEVER).for_each(Flow::end_warmup);
        self.streams.iter_mut().for_each(Stream::end_warmup);
    }
}

impl World {
    /// Delivers a packet to its host; returns the flow of an ACK, whose sender may then send.
    #[inline]
    pub(super) fn deliver(&mut self, packet: Packet) -> Option<FlowId> {
        let (now, counting) = (self.events.now(), self.hosts.counting);
        let segment = self.network.segment(packet);
        let Some(flow) =
            self.hosts.flows.get_mut(packet.flow().slot()).filter(|f| f.id == packet.flow())
        else {
            self.deliver_datagram(packet);
            return None;
        };
        if packet.is_ack() {
            if let Some(rtt) = flow.data.sender.on_segment(now, segment)
                && counting
            {
                flow.rtt.add(rtt);
            }
            self.network.free_segment(packet);
            return Some(packet.flow());
        }
        let reply = flow.data.receiver.on_segment(now, segment);
        if segment.len > 0 {
            self.hosts.data_delivered += 1;
            self.recorder.packet(flow.group, self.network.journey(packet));
        }
        if flow.reaches_threshold() {
            self.on_delivered(packet, reply);
            return None;
        }
        self.network.free_segment(packet);
        self.reply(packet.flow(), reply);
        None
    }

    /// Sends the ACK that a receiver returned, and arms its timer.
    #[inline(always)]
    pub(super) fn reply(&mut self, id: FlowId, reply: Option<cwnd_tcp::Segment>) {
        if let Some(ack) = reply {
            self.send_ack(id, ack);
        }
        // The returned ACK may be one that was held back; data received since may need a new timer.
        self.arm_receiver(id);
    }

    /// Delivers a packet that finds no flow: a datagram, a packet of requests or QUIC, or a packet
    /// for a flow that is over.
    #[cold]
    fn deliver_datagram(&mut self, packet: Packet) {
        if self.hosts.streams.len() <= packet.flow().datagrams_index() {
            return self.deliver_request(packet);
        }
        if let Some(stream) = self.hosts.streams.get_mut(packet.flow().datagrams_index()) {
            let (now, journey) = (self.events.now(), self.network.journey(packet));
            stream.receive(now, self.network.segment(packet));
            self.hosts.data_delivered += 1;
            self.recorder.datagram(stream.group, journey, now, &mut stream.last_transit);
            if stream.reaches_threshold() {
                let what = stream.notify_delivered(self.events.now());
                self.carry_out_datagram(packet.flow().datagrams_index() as u32, what);
            }
        }
        self.network.free_segment(packet);
    }

    /// Delivers a router's message to the source of the packet that it is about.
    #[cold]
    #[inline(never)]
    pub(super) fn on_message(&mut self) {
        let Some(packet) = self.network.take_message() else { return };
        let (now, id) = (self.events.now(), packet.flow());
        let segment = *self.network.segment(packet);
        self.network.free_segment(packet);
        if let Some(flow) = self.hosts.flow(id) {
            flow.data.sender.on_segment(now, &segment);
            self.drive_sender(id);
        } else if let Some(stream) = self.hosts.streams.get_mut(id.datagrams_index()) {
            stream.messages += 1;
        }
    }

    pub(super) fn on_datagram(&mut self, index: u32) {
        let decision = self.hosts.streams[index as usize].wake(self.events.now());
        decision.into_iter().for_each(|what| self.carry_out_datagram(index, what));
    }

    // Not inlined, so that the event loop keeps its registers.
    #[inline(never)]
    fn carry_out_datagram(&mut self, index: u32, what: Actions) {
        let stream = &mut self.hosts.streams[index as usize];
        let (flow, hop) = (stream.id, stream.route.forward);
        if let Some(segment) = stream.carry_out(self.events.now(), what) {
            self.network.inject(flow, hop, segment, &mut self.events);
        }
        if let Some(at) = what.wake {
            self.events.push(at.max(self.events.now()), Event::Datagram(index));
        }
    }

    fn send_ack(&mut self, id: FlowId, ack: cwnd_tcp::Segment) {
        let hop = self.hosts.flows[id.slot()].route.reverse;
        self.network.inject(id, hop, ack, &mut self.events);
    }

    // Inlined for the call on every packet, although it has other callers.
    #[inline(always)]
    fn arm_receiver(&mut self, id: FlowId) {
        let flow = &mut self.hosts.flows[id.slot()];
        if let Some(at) = flow.data.arm_receiver() {
            self.events.push(at, Event::ReceiverTimer(id));
        }
    }

    pub(super) fn on_receiver_timer(&mut self, id: FlowId) {
        let now = self.events.now();
        let Some(flow) = self.hosts.flow(id) else { return self.on_server_timer(id) };
        if !flow.data.take_receiver_timer(now) {
            return;
        }
        if let Some(ack) = flow.data.receiver.on_timer(now) {
            self.send_ack(id, ack);
        }
        self.arm_receiver(id);
    }

    #[inline]
    pub(super) fn on_sender_timer(&mut self, id: FlowId) -> Option<FlowId> {
        let now = self.events.now();
        let Some(flow) = self.hosts.flow(id) else {
            self.on_client_timer(id);
            return None;
        };
        if !flow.data.take_sender_timer(now) {
            return None;
        }
        if flow.data.sender.may_expire(now) {
            self.on_retransmission_timer(id);
        }
        if self.network.drop_log().needs_pruning() {
            self.prune_drop_log();
        }
        Some(id)
    }

    /// Handles a sender timer at which the retransmission timer may have expired.
    #[cold]
    #[inline(never)]
    fn on_retransmission_timer(&mut self, id: FlowId) {
        let half = &mut self.hosts.flows[id.slot()].data;
        if let Some(expired) = half.on_sender_timer(self.events.now()) {
            self.classify_timeout(id, expired);
        }
    }

    /// Sends what a sender of TCP or QUIC may send. For rare events: after a pure ACK or a timer of
    /// TCP, [`drive`](Self::drive) is called directly.
    #[cold]
    #[inline(never)]
    pub(super) fn drive_sender(&mut self, id: FlowId) {
        match self.hosts.flows[id.slot()].quic {
            Some(_) => self.drive_quic(id),
            None => self.drive(id),
        }
    }

    /// Sends what the sender may send, arms its timer and notifies its application.
    #[inline(always)]
    pub(super) fn drive(&mut self, id: FlowId) {
        let slot = id.slot();
        let now = self.events.now();
        let hop = self.hosts.flows[slot].route.forward;
        let mut goes_on = true;
        while goes_on {
            let (network, mut packet) = (&mut self.network, None);
            let sender = &mut self.hosts.flows[slot].data.sender;
            goes_on = sender.transmit(now, |segment| network.put(id, hop, segment, &mut packet));
            let Some(packet) = packet else { break };
            self.network.send(packet, &mut self.events);
        }
        let flow = &mut self.hosts.flows[slot];
        if let Some(at) = flow.data.arm_sender() {
            self.events.push(at, Event::SenderTimer(id));
        }
        if flow.data.sender.is_drained() || flow.data.sender.has_failed() {
            self.on_drained(id);
        }
    }

    /// Handles a connection whose written data is all acknowledged, or that was given up: retires
    /// it if it is over and its slot is reused, otherwise reports to an application that goes on.
    #[cold]
    pub(super) fn on_drained(&mut self, id: FlowId) {
        let flow = &mut self.hosts.flows[id.slot()];
        if let Some(requests) = flow.requests.as_mut().filter(|_| flow.data.sender.is_drained())
            && let Some(response) = requests.unacknowledged.take()
        {
            self.recorder.acknowledged(response, self.events.now());
        }
        if flow.is_over() && self.workloads.groups[flow.group as usize].reuses_slots {
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

    /// Handles a delivery that the application waits for, and acknowledges the data.
    #[cold]
    #[inline(never)]
    fn on_delivered(&mut self, packet: Packet, reply: Option<cwnd_tcp::Segment>) {
        let id = packet.flow();
        if self.hosts.flows[id.slot()].requests.is_some() {
            return self.on_response(packet, reply);
        }
        self.network.free_segment(packet);
        self.reply(id, reply);
        let flow = &mut self.hosts.flows[id.slot()];
        let what = flow.notify_delivered(self.events.now()).what;
        if flow.stop > self.events.now() && self.carry_out(id, what) {
            self.drive_sender(id);
        }
    }

    /// Carries out what the application decided; returns `true` if there may be data to send.
    pub(super) fn carry_out(&mut self, id: FlowId, what: Actions) -> bool {
        if let Some(at) = what.wake {
            self.events.push(at.max(self.events.now()), Event::AppWake(id));
        }
        if what.request > 0 {
            self.send_request(id, what.request);
        }
        self.hosts.flows[id.slot()].carry_out(self.events.now(), what)
    }

    pub(super) fn on_app_wake(&mut self, id: FlowId) {
        let now = self.events.now();
        let Some(flow) = self.hosts.flow(id).filter(|flow| flow.stop > now) else { return };
        if self.workloads.groups[flow.group as usize].endpoints.is_some() {
            return self.start_endpoints(id);
        }
        let Some(what) = flow.wake(now) else { return };
        self.answer(id, what);
    }

    pub(super) fn on_app_stop(&mut self, id: FlowId) {
        let flow = &mut self.hosts.flows[id.slot()];
        flow.stop_sending(self.events.now());
        if flow.endpoints.is_none() {
            self.drive_sender(id);
        }
    }
}

impl World {
    /// Classifies a timeout of the sender, of its SYN or of data. Nothing has been sent since.
    #[cold]
    pub(super) fn classify_timeout(&mut self, id: FlowId, expired: Expired) {
        let drop_log = self.network.drop_log();
        let Some(flow) = self.hosts.flow(id) else { return };
        let half = Half { ends: &flow.data, lost: drop_log.of(id) };
        let fate = match expired {
            Expired::Syn => half.of_syn(),
            Expired::Data => half.of_data(false),
        };
        flow.data.count_fate(fate);
    }

    /// Classifies a timeout of the client, of its SYN or of a request.
    #[cold]
    pub(super) fn classify_client_timeout(&mut self, id: FlowId, expired: Expired) {
        let drop_log = self.network.drop_log();
        let Some(flow) = self.hosts.flow(id) else { return };
        let Some(Requests { half, exchange, .. }) = flow.requests.as_deref() else {
            return;
        };
        let half = Half { ends: half, lost: drop_log.of_requests(id) };
        // A lost segment of the response would have acknowledged the request, too.
        let response = || {
            drop_log.of(id).is_some_and(|lost| {
                lost.data.end().is_some_and(|end| end > exchange.response_start)
            })
        };
        let fate = match expired {
            Expired::Syn => half.of_syn(),
            Expired::Data => half.of_data(response()),
        };
        if let Some(requests) = &mut flow.requests {
            requests.half.count_fate(fate);
        }
    }

    /// Forgets losses of data that has been acknowledged since.
    #[cold]
    pub(super) fn prune_drop_log(&mut self) {
        let flows = &self.hosts.flows;
        let una = |id: FlowId| {
            let flow =
                flows.get(id.of_requests().slot()).filter(|flow| flow.id == id.of_requests())?;
            let requests = flow.requests.as_ref().filter(|_| flow.id != id);
            Some(
                requests.map_or(&flow.data.sender, |requests| &requests.half.sender).acknowledged(),
            )
        };
        self.network.drop_log_mut().prune(una);
    }
}

/// The sender and receiver of one direction, and its losses.
struct Half<'w> {
    ends: &'w HalfConnection,
    lost: Option<&'w HalfLosses>,
}

impl Half<'_> {
    /// Fate of the SYN that just timed out: each SYN sent has timed out.
    fn of_syn(&self) -> Fate {
        if self.ends.receiver.counters().syns > 0 {
            return if self.lost.is_some_and(|l| l.syn_ack) {
                Fate::AckLost
            } else {
                Fate::AckLate
            };
        }
        let sent = self.ends.sender.counters().syn_timeouts;
        if self.lost.map_or(0, |l| l.syns) < sent { Fate::UnderWay } else { Fate::Lost }
    }

    /// Fate of the first unacknowledged segment, which just timed out.
    ///
    /// `answer_lost` is `true` if lost data of the other direction acknowledged it.
    fn of_data(&self, answer_lost: bool) -> Fate {
        let first = self.ends.sender.acknowledged();
        if self.ends.delivered_bytes() > first {
            let ack_lost = answer_lost || self.lost.is_some_and(|l| l.ack > first);
            return if ack_lost { Fate::AckLost } else { Fate::AckLate };
        }
        let lost = self.lost.map_or(0, |l| l.data.of(first));
        if lost < self.ends.sender.transmissions_of_first() { Fate::UnderWay } else { Fate::Lost }
    }
}
