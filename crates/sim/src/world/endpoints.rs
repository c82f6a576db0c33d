//! Flows whose ends are endpoints from outside: their start, packets and timers.
//!
//! Their packets and timers have the identifier of a stream of requests, as those of QUIC.

use cwnd_apps::Transport;
use cwnd_quantity::Time;

use super::World;
use crate::capture_headers::Connection;
use crate::endpoint::{Datagram, Endpoint, EndpointStart, Endpoints, Side};
use crate::event::{Event, FlowId};
use crate::packet::Packet;

impl World {
    /// Replaces the ends of a group's connections before the run; returns `false` without such a
    /// group, or if it has sources of datagrams.
    ///
    /// `make` creates a flow's endpoints at its start: the source of the data that results are
    /// about, and its destination. Start, arrivals, size and path are those of the group. The
    /// endpoints decide all else; contracts of the replaced ends count no more in [`World::unmet`].
    /// Times are since the start of the run. Paths have no MTU.
    pub fn replace_endpoints(
        &mut self,
        group: &str,
        make: impl FnMut(EndpointStart) -> [Box<dyn Endpoint>; 2] + Send + 'static,
    ) -> bool {
        let Some(g) = self.group_named(group) else { return false };
        let facts = self.scenario.flows[g].workload.facts();
        if matches!(facts.transport, Transport::Datagrams { .. }) {
            return false;
        }
        let parts = self.parts();
        parts.senders[g].clear();
        parts.receivers[g].clear();
        self.recorder.label_controller(g);
        self.workloads.groups[g].endpoints = Some((0, Box::new(make)));
        true
    }

    /// Creates the endpoints of a flow that starts now, and sends what they send.
    #[cold]
    #[inline(never)]
    pub(super) fn start_endpoints(&mut self, id: FlowId) {
        let now = self.events.now();
        let flow = &mut self.hosts.flows[id.slot()];
        let group = &mut self.workloads.groups[flow.group as usize];
        let Some((created, make)) = group.endpoints.as_mut().filter(|_| flow.started > now) else {
            return;
        };
        let name = &self.scenario.flows[flow.group as usize].name;
        let rng = self.random.named(&format!("flow.{name}.endpoints.{created}"));
        *created += 1;
        flow.started = now;
        let _unused = flow.session.start(now);
        let stop = Some(flow.stop).filter(|&stop| stop != Time::NEVER);
        let start = EndpointStart { number: flow.number, size: flow.session.size(), stop, rng };
        flow.endpoints = Some(Box::new(Endpoints::new(make(start))));
        (flow.quic, flow.requests) = (None, None);
        let of = Connection::new(flow.number, flow.group, flow.path);
        self.network.begin_flow(id, of.with_endpoints());
        self.drive_endpoint(id, Side::Destination);
        self.drive_endpoint(id, Side::Source);
    }

    /// Delivers a datagram to the endpoint at the other end of its path.
    pub(super) fn deliver_to_endpoint(&mut self, id: FlowId, packet: Packet) {
        let (now, counting) = (self.events.now(), self.hosts.counting);
        let (ecn, journey) = (self.network.segment(packet).ecn, self.network.journey(packet));
        let datagram = Datagram { payload: self.network.take_payload(packet), ecn };
        self.network.free_segment(packet);
        let flow = &mut self.hosts.flows[id.slot()];
        let Some(endpoints) = &mut flow.endpoints else { return };
        let side = if packet.is_of_request() { Side::Source } else { Side::Destination };
        endpoints.receive(now, side, datagram);
        if side == Side::Destination {
            self.recorder.packet(flow.group, journey);
        }
        self.hosts.data_delivered += 1;
        self.drive_endpoint(id, side);
        let Some(flow) = self.hosts.flow(id).filter(|_| counting && side == Side::Source) else {
            return;
        };
        if let Some(rtt) = flow.endpoints.as_ref().and_then(|ends| ends.report(side).rtt) {
            flow.rtt.add(rtt);
        }
    }

    /// Handles the timer of an endpoint.
    pub(super) fn on_endpoint_timer(&mut self, id: FlowId, side: Side) {
        let now = self.events.now();
        let Some(endpoints) = &mut self.hosts.flows[id.slot()].endpoints else { return };
        if endpoints.on_timer(now, side) {
            self.drive_endpoint(id, side);
        }
    }

    /// Sends what an endpoint sends now, arms its timer, and records what it completed.
    fn drive_endpoint(&mut self, id: FlowId, side: Side) {
        let now = self.events.now();
        let flow = &mut self.hosts.flows[id.slot()];
        let Some(endpoints) = &mut flow.endpoints else { return };
        while let Some((segment, payload)) = endpoints.transmit(now, side) {
            let (hop, back) = match side {
                Side::Source => (flow.route.forward, false),
                Side::Destination => (flow.route.reverse, true),
            };
            self.network.inject_payload((id, hop, back), segment, payload, &mut self.events);
        }
        if let Some(at) = endpoints.settle(now, side) {
            self.events.push(at, side.timer_event(id.requests()));
        }
        if endpoints.report(Side::Destination).finished {
            flow.data.finished = flow.data.finished.min(now);
        }
        if endpoints.report(Side::Source).finished && flow.stop <= now {
            flow.stopped = flow.stopped.min(now);
        }
        if flow.is_over() && self.workloads.groups[flow.group as usize].reuses_slots {
            self.retire(id);
        }
    }
}

impl Side {
    /// Event of the timer of a flow's endpoint.
    pub(super) const fn timer_event(self, id: FlowId) -> Event {
        match self {
            Self::Source => Event::SenderTimer(id),
            Self::Destination => Event::ReceiverTimer(id),
        }
    }
}
