//! Packets and timers of QUIC connections.
//!
//! Connections of other kinds call nothing here.

use cwnd_tcp::Segment;

use super::World;
use crate::event::{Event, FlowId};

impl World {
    /// Delivers a packet of QUIC, an ACK to the sender or data to the receiver.
    pub(super) fn deliver_quic(&mut self, id: FlowId, segment: &Segment) {
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
        self.hosts.data_delivered += u64::from(segment.len > 0);
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
