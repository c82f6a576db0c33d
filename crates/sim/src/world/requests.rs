//! Requests on connections that clients open, and connections of QUIC: their packets, timers and
//! responses.
//!
//! Connections of other kinds call only [`World::answer`] here, when their application wakes, and
//! the dispatchers for packets and timers of flows that are over.

use cwnd_apps::Actions;
use cwnd_packet::Echo;
use cwnd_tcp::{Body, Segment};

use super::World;
use crate::connection_ends::Requests;
use crate::endpoint::Side;
use crate::event::{Event, FlowId};
use crate::journey::Journey;
use crate::packet::Packet;

impl World {
    /// Delivers a packet of a stream of requests, or of QUIC. Drops a packet of a flow that is
    /// over.
    #[cold]
    #[inline(never)]
    pub(super) fn deliver_request(&mut self, packet: Packet) {
        let (now, id) = (self.events.now(), packet.flow().of_requests());
        if self.hosts.flow(id).is_some_and(|flow| flow.endpoints.is_some()) {
            return self.deliver_to_endpoint(id, packet);
        }
        let (segment, journey) = (*self.network.segment(packet), self.network.journey(packet));
        self.network.free_segment(packet);
        if packet.flow() == id {
            return;
        }
        let Some(flow) = self.hosts.flow(id) else { return };
        if flow.quic.is_some() {
            return self.deliver_quic(id, &segment, journey);
        }
        let Some(requests) = &mut flow.requests else { return };
        if segment.is_ack() {
            requests.half.sender.on_segment(now, &segment);
            return self.drive_client(id);
        }
        let (reply, handshake) = requests.on_server_segment(now, &segment);
        if let Some(handshake) = handshake {
            flow.data.sender.accept(now, handshake);
        }
        let known = flow.data.sender.acknowledged();
        if let Some(number) = requests.acknowledged_by_request(segment.seq, known) {
            let ack = flow.data.receiver.piggyback_ack(number);
            let rtt = flow.data.sender.on_segment(now, &ack);
            if let Some(rtt) = rtt.filter(|_| self.hosts.counting) {
                self.hosts.flows[id.slot()].rtt.add(rtt);
            }
            self.drive_sender(id);
        }
        self.on_request(id, segment.len > 0, reply);
    }

    /// Handles a segment of a request at the server. The acknowledgement goes alone, or with a
    /// response that is sent now.
    fn on_request(&mut self, id: FlowId, data: bool, reply: Option<Segment>) {
        let now = self.events.now();
        let Some(flow) = self.hosts.flow(id) else { return };
        let Some(requests) = &flow.requests else { return };
        let total = requests.half.delivered_bytes();
        self.hosts.data_delivered += u64::from(data);
        let flow = &mut self.hosts.flows[id.slot()];
        let request_complete = total >= flow.session.requested() && flow.session.request_is_due();
        let answered = request_complete && flow.stop > now && {
            let what = flow.session.request_delivered(now, total);
            self.answer(id, what)
        };
        let reply = reply.filter(|ack| !answered || carries_echo_or_syn(ack));
        let hop = self.hosts.flows[id.slot()].route.forward;
        if let Some(ack) = reply {
            self.network.inject_request(id, hop, ack, &mut self.events);
        }
        self.arm_server(id);
    }

    /// Carries out what the application decided; returns `true` if data was sent, which
    /// acknowledges all received requests.
    pub(super) fn answer(&mut self, id: FlowId, what: Actions) -> bool {
        let sent = self.hosts.flows[id.slot()].data.sender.counters().segments_sent;
        self.carry_out(id, what);
        self.drive_sender(id);
        let flow = &mut self.hosts.flows[id.slot()];
        let sent_data = flow.id == id && flow.data.sender.counters().segments_sent > sent;
        if let Some(requests) = flow.requests.as_mut().filter(|_| sent_data) {
            requests.half.receiver.on_piggybacked();
        }
        sent_data
    }

    /// Sends a request of the client; the first one opens the connection.
    #[cold]
    #[inline(never)]
    pub(super) fn send_request(&mut self, id: FlowId, bytes: u64) {
        let flow = &mut self.hosts.flows[id.slot()];
        let Some(requests) = &mut flow.requests else { return };
        let exchange = requests.begin_exchange(self.events.now(), bytes, flow.session.written());
        flow.session.await_next();
        self.network.begin_exchange(id, exchange);
        self.drive_client(id);
    }

    /// Sends what the client's sender may send, and arms its timer; ends a connection that the
    /// client has given up.
    fn drive_client(&mut self, id: FlowId) {
        let now = self.events.now();
        let flow = &mut self.hosts.flows[id.slot()];
        let hop = flow.route.reverse;
        let Some(requests) = &mut flow.requests else { return };
        while let Some(segment) = requests.half.sender.poll_transmit(now) {
            self.network.inject_request(id, hop, segment, &mut self.events);
        }
        if let Some(at) = requests.half.arm_sender() {
            self.events.push(at, Event::SenderTimer(id.requests()));
        }
        if requests.half.sender.has_failed() {
            self.on_drained(id);
        }
    }

    /// Handles a segment of the response at the client. The segment may acknowledge the request and
    /// complete the response.
    pub(super) fn on_response(&mut self, packet: Packet, reply: Option<Segment>) {
        let (now, id) = (self.events.now(), packet.flow());
        let seq = self.network.segment(packet).seq;
        self.network.free_segment(packet);
        let flow = &mut self.hosts.flows[id.slot()];
        let Some(requests) = &mut flow.requests else { return };
        if let Some(number) = requests.acknowledged_by_response(seq) {
            let ack = requests.half.receiver.piggyback_ack(number);
            requests.half.sender.on_segment(now, &ack);
        }
        if flow.has_failed() {
            // The application is gone.
            return self.reply(id, reply);
        }
        let delivery = flow.notify_delivered(now);
        let Some(requests) = &mut flow.requests else { return };
        if !requests.half.sender.is_drained() {
            // The segment is a retransmission from an earlier response.
            flow.session.await_next();
        }
        if delivery.wanted || delivery.finished {
            self.recorder.response(flow, now);
        }
        self.drive_client(id);
        let flow = &mut self.hosts.flows[id.slot()];
        let sent = client_segments_sent(flow.requests.as_deref());
        if flow.stop > now && self.carry_out(id, delivery.what) {
            self.drive_sender(id);
        }
        let Some(flow) = self.hosts.flow(id) else { return };
        let carried = client_segments_sent(flow.requests.as_deref()) > sent;
        if carried {
            flow.data.receiver.on_piggybacked();
        }
        self.reply(id, reply.filter(|ack| !carried || carries_echo_or_syn(ack)));
    }

    /// Handles the timer of a client's sender of requests, or of a QUIC sender.
    #[cold]
    #[inline(never)]
    pub(super) fn on_client_timer(&mut self, id: FlowId) {
        let (now, id) = (self.events.now(), id.of_requests());
        let Some(flow) = self.hosts.flow(id) else { return };
        if flow.quic.is_some() {
            return self.on_quic_sender_timer(id);
        }
        if flow.endpoints.is_some() {
            return self.on_endpoint_timer(id, Side::Source);
        }
        let Some(requests) = &mut flow.requests else { return };
        if requests.half.take_sender_timer(now) {
            if let Some(expired) = requests.half.on_sender_timer(now) {
                self.classify_client_timeout(id, expired);
            }
            if self.network.drop_log().needs_pruning() {
                self.prune_drop_log();
            }
            self.drive_client(id);
        }
    }

    /// Handles the delayed-ACK timer of a server's receiver of requests, or of a QUIC receiver.
    #[cold]
    #[inline(never)]
    pub(super) fn on_server_timer(&mut self, id: FlowId) {
        let (now, id) = (self.events.now(), id.of_requests());
        let Some(flow) = self.hosts.flow(id) else { return };
        if flow.quic.is_some() {
            return self.on_quic_receiver_timer(id);
        }
        if flow.endpoints.is_some() {
            return self.on_endpoint_timer(id, Side::Destination);
        }
        let hop = flow.route.forward;
        let Some(requests) = &mut flow.requests else { return };
        if !requests.half.take_receiver_timer(now) {
            return;
        }
        if let Some(ack) = requests.half.receiver.on_timer(now) {
            self.network.inject_request(id, hop, ack, &mut self.events);
        }
        self.arm_server(id);
    }

    fn arm_server(&mut self, id: FlowId) {
        let Some(requests) = &mut self.hosts.flows[id.slot()].requests else { return };
        if let Some(at) = requests.half.arm_receiver() {
            self.events.push(at, Event::ReceiverTimer(id.requests()));
        }
    }
}

/// Number of segments that a client has sent.
fn client_segments_sent(requests: Option<&Requests>) -> u64 {
    requests.map_or(0, |requests| requests.half.sender.counters().segments_sent)
}

/// `true` if an ACK carries what data does not: an echo, or the SYN flag.
const fn carries_echo_or_syn(ack: &Segment) -> bool {
    let echoes = matches!(ack.body, Body::Ack { echo, .. } if !matches!(echo, Echo::None));
    echoes || ack.flags.has(cwnd_tcp::Flags::SYN)
}

impl World {
    /// Delivers a packet of QUIC, an ACK to the sender or data to the receiver.
    pub(super) fn deliver_quic(&mut self, id: FlowId, segment: &Segment, journey: Journey) {
        let (now, counting) = (self.events.now(), self.hosts.counting);
        let flow = &mut self.hosts.flows[id.slot()];
        let Some(quic) = &mut flow.quic else { return };
        if segment.is_ack() {
            if let Some(rtt) = quic.on_ack(now, segment).filter(|_| counting) {
                flow.rtt.add(rtt);
            }
            return self.drive_quic(id);
        }
        let reply = quic.on_data(now, segment);
        if segment.len > 0 {
            self.hosts.data_delivered += 1;
            self.recorder.packet(flow.group, journey);
        }
        self.reply_quic(id, reply);
        let flow = &mut self.hosts.flows[id.slot()];
        if flow.session.reaches_threshold(flow.delivered_bytes()) {
            let what = flow.notify_delivered(now).what;
            if flow.stop > now && self.carry_out(id, what) {
                self.drive_quic(id);
            }
        }
    }

    /// Sends what the QUIC sender may send, arms its timer and notifies its application.
    pub(super) fn drive_quic(&mut self, id: FlowId) {
        let now = self.events.now();
        let flow = &mut self.hosts.flows[id.slot()];
        let hop = flow.route.forward;
        let Some(quic) = &mut flow.quic else { return };
        while let Some(segment) = quic.transmit(now) {
            self.network.inject(id.requests(), hop, segment, &mut self.events);
        }
        if let Some(at) = quic.arm_sender(now) {
            self.events.push(at, Event::SenderTimer(id.requests()));
        }
        if quic.sender.is_drained() {
            self.on_drained(id);
        }
    }

    /// Handles a QUIC sender's timer: loss by age, PTO or pacing.
    pub(super) fn on_quic_sender_timer(&mut self, id: FlowId) {
        let now = self.events.now();
        let Some(quic) = &mut self.hosts.flows[id.slot()].quic else { return };
        if quic.take_sender_timer(now) {
            quic.sender.on_timer(now);
            self.drive_quic(id);
        }
    }

    /// Handles a QUIC receiver's delayed-ACK timer.
    pub(super) fn on_quic_receiver_timer(&mut self, id: FlowId) {
        let now = self.events.now();
        let Some(quic) = &mut self.hosts.flows[id.slot()].quic else { return };
        if quic.take_receiver_timer(now) {
            let reply = quic.acknowledge(now);
            self.reply_quic(id, reply);
        }
    }

    /// Sends the ACK that a QUIC receiver returned, and arms its timer.
    fn reply_quic(&mut self, id: FlowId, reply: Option<Segment>) {
        let flow = &mut self.hosts.flows[id.slot()];
        let hop = flow.route.reverse;
        let Some(quic) = &mut flow.quic else { return };
        if let Some(ack) = reply {
            self.network.inject(id.requests(), hop, ack, &mut self.events);
        }
        if let Some(at) = quic.arm_receiver() {
            self.events.push(at, Event::ReceiverTimer(id.requests()));
        }
    }
}
