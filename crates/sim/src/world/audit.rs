//! Invariants of the world between any two events.

use std::collections::BTreeSet;

use cwnd_quantity::Time;
use cwnd_tcp::{Body, Segment};

use super::World;
use crate::connection_ends::{HalfConnection, QuicEnds};
use crate::endpoint::{Endpoints, Side};
use crate::event::{Event, FlowId};
use crate::flow::Flow;

impl World {
    /// Checks the invariants of the world.
    ///
    /// Each packet sent is in one place, dropped or delivered. Each timer and queue that waits has
    /// a pending event. No window of TCP is below one segment. No receiver has more than the
    /// transfer's size. No sender has more acknowledged than was delivered, unless its receiver
    /// sends optimistic ACKs.
    ///
    /// # Errors
    /// A sentence about the violated invariant.
    pub fn audit(&mut self) -> Result<(), String> {
        self.network.audit(self.events.now())?;
        let now = self.events.now();
        for flow in self.hosts.running() {
            audit_flow(flow, now).map_err(|e| format!("{}: {e} at {now}", flow.id))?;
        }
        if let [flow] = self.hosts.flows.as_slice()
            && self.hosts.streams.is_empty()
            && flow.id == FlowId::new(0, 0)
            && flow.requests.is_none()
            && flow.quic.is_none()
            && flow.endpoints.is_none()
        {
            self.audit_copies(flow).map_err(|e| format!("{e} at {}", self.events.now()))?;
        }
        self.audit_users().map_err(|e| format!("{e} at {}", self.events.now()))?;
        let mut pending: Vec<(u64, Time)> =
            self.events.pending().map(|(at, event)| (event.code(), at)).collect();
        pending.sort_unstable();
        if let Some((code, at)) = pending.iter().find(|(_, at)| *at < self.events.now()) {
            return Err(format!("event {code:x} at {at} is in the past of {}", self.events.now()));
        }
        for (at, event) in self.expected_events() {
            if at.is_none_or(|at| pending.binary_search(&(event.code(), at)).is_err()) {
                return Err(format!(
                    "at {}: nothing will make it happen: {event}",
                    self.events.now()
                ));
            }
        }
        Ok(())
    }

    /// Checks the first unacknowledged byte, if it is not delivered, in a world with one flow: its
    /// transmissions are the lost ones and those in flight.
    fn audit_copies(&self, flow: &Flow) -> Result<(), String> {
        let first = flow.data.sender.acknowledged();
        let sent = flow.data.sender.transmissions_of_first();
        let more = flow.data.delivered_bytes() > first;
        if sent == 0 || more || flow.data.receiver.conceals() {
            return Ok(());
        }
        let lost = self.network.drop_log().of(flow.id).map_or(0, |lost| lost.data.of(first));
        let has =
            |s: &Segment| matches!(s.body, Body::Data { .. }) && s.seq <= first && first < s.end();
        let copies = self.network.in_flight().filter(has).count() as u64;
        if sent == lost + copies {
            Ok(())
        } else {
            Err(format!(
                "byte {first} was sent {sent} times, lost {lost} times, and is there {copies} times"
            ))
        }
    }

    /// Checks that each waiting user has an open connection or a time for its next.
    fn audit_users(&self) -> Result<(), String> {
        let with_connection: BTreeSet<u32> = self.workloads.users.values().copied().collect();
        for (process, arrivals) in (0..).zip(&self.workloads.arrivals) {
            let group = &self.scenario.flows[arrivals.group];
            let waits = arrivals.gaps.awaits_ends() && !arrivals.gaps.is_done();
            let stopped = group.stop.is_some_and(|stop| stop <= self.events.now());
            let idle = arrivals.due == Time::NEVER && !with_connection.contains(&process);
            if waits && idle && !stopped {
                return Err(format!("`{}` waits for nothing", arrivals.name));
            }
        }
        for (&slot, process) in &self.workloads.users {
            let flow = &self.hosts.flows[slot];
            let group = self.workloads.arrivals[*process as usize].group;
            if flow.started == Time::NEVER || flow.group as usize != group {
                return Err(format!("a user waits for the end of {}, which is another's", flow.id));
            }
        }
        Ok(())
    }

    /// Events that must be pending, with their times; `None` as time if no event is scheduled.
    fn expected_events(&self) -> impl Iterator<Item = (Option<Time>, Event)> {
        let timers = self.hosts.running().flat_map(|flow| {
            let requests = flow.requests.as_ref().map(|of| timers(flow.id.requests(), &of.half));
            let quic = flow.quic.as_ref().map(|quic| quic_timers(flow.id.requests(), quic));
            let endpoints = flow.endpoints.as_ref().map(|of| endpoint_timers(flow.id, of));
            let second = requests.into_iter().flatten().chain(quic.into_iter().flatten());
            let second = second.chain(endpoints.into_iter().flatten());
            timers(flow.id, &flow.data).chain(second)
        });
        let arrivals = (0..).zip(&self.workloads.arrivals).filter(|(_, a)| a.due != Time::NEVER);
        let arrivals = arrivals.map(|(process, a)| (Some(a.due), Event::Arrival(process)));
        let attacks = self.attacks_due().map(|(at, id)| (Some(at), Event::Forged(id)));
        self.network.expected_events().chain(timers).chain(arrivals).chain(attacks)
    }
}

/// Running timers of both ends of a direction, with the times of their events.
fn timers(id: FlowId, half: &HalfConnection) -> impl Iterator<Item = (Option<Time>, Event)> {
    timer_events([
        (half.sender.next_timer(), half.sender_timer, Event::SenderTimer(id)),
        (half.receiver.next_timer(), half.receiver_timer, Event::ReceiverTimer(id)),
    ])
}

/// Running timers of both ends of a QUIC connection, with the times of their events.
fn quic_timers(id: FlowId, ends: &QuicEnds) -> impl Iterator<Item = (Option<Time>, Event)> {
    timer_events([
        (ends.sender.next_timer(), ends.sender_timer, Event::SenderTimer(id)),
        (ends.receiver.next_timer(), ends.receiver_timer, Event::ReceiverTimer(id)),
    ])
}

/// Running timers of both endpoints from outside, with the times of their events.
fn endpoint_timers(
    id: FlowId,
    endpoints: &Endpoints,
) -> impl Iterator<Item = (Option<Time>, Event)> {
    timer_events([Side::Source, Side::Destination].map(|side| {
        let (timeout, timer) = endpoints.timer(side);
        (timeout, timer, side.timer_event(id.requests()))
    }))
}

/// Events of the running timers among two ends, given as due time, time of the event and event.
fn timer_events(ends: [(Time, Time, Event); 2]) -> impl Iterator<Item = (Option<Time>, Event)> {
    let waits = ends.into_iter().filter(|(next, ..)| *next != Time::NEVER);
    waits.map(|(_, pending, event)| ((pending != Time::NEVER).then_some(pending), event))
}

fn audit_flow(flow: &Flow, now: Time) -> Result<(), String> {
    let size = flow.session.size().unwrap_or(u64::MAX);
    // An application that writes before its client's first request waits for the client to open the
    // connection.
    if flow.requests.as_ref().is_some_and(|requests| requests.exchange.number == 0) {
        return Ok(());
    }
    if let Some(endpoints) = &flow.endpoints {
        return endpoints.audit();
    }
    let delivered = match &flow.quic {
        Some(quic) => audit_quic(quic, size, now)?,
        None => audit_half(&flow.data, size)?,
    };
    if flow.data.finished != Time::NEVER && delivered != size {
        return Err(format!("it finished with {delivered} of {size} B"));
    }
    if let Some(r) = &flow.requests {
        let delivered =
            audit_half(&r.half, flow.session.requested()).map_err(|e| format!("requests: {e}"))?;
        let of_exchange =
            r.exchange.request_start <= delivered && delivered <= r.exchange.request_end;
        if !of_exchange {
            return Err(format!("{delivered} B of requests were delivered in {:?}", r.exchange));
        }
    }
    Ok(())
}

/// Checks the two ends of a QUIC connection; returns the bytes delivered.
fn audit_quic(ends: &QuicEnds, size: u64, now: Time) -> Result<u64, String> {
    let QuicEnds { sender, receiver, .. } = ends;
    let (acked, delivered) = (sender.acknowledged(), receiver.delivered());
    let timer = sender.next_timer();
    if acked > delivered {
        Err(format!("{acked} B are acknowledged, {delivered} B were delivered"))
    } else if delivered > size {
        Err(format!("{delivered} B were delivered of a transfer of {size} B"))
    } else if !sender.is_drained() && timer == Time::NEVER {
        Err(format!("there is data to send beyond {acked} B, and no timer"))
    } else if ends.sender_timer > timer.max(now) || ends.receiver_timer > receiver.next_timer() {
        Err("a timer is later than its owner wants it".to_owned())
    } else {
        Ok(delivered)
    }
}

/// Checks the two ends of a direction; returns the bytes delivered.
fn audit_half(half: &HalfConnection, size: u64) -> Result<u64, String> {
    let HalfConnection { sender, receiver, .. } = half;
    let (cwnd, mss) = (sender.window().cwnd, sender.mss());
    let (acked, delivered) = (sender.acknowledged(), half.delivered_bytes());
    let timer = sender.next_timer();
    // Written data is in flight or will be: the windows always have room for one segment.
    let idle = sender.is_drained() || sender.has_failed();
    if cwnd < mss {
        Err(format!("the window is {cwnd} B, a segment {mss} B"))
    } else if acked > delivered && !receiver.conceals() {
        Err(format!("{acked} B are acknowledged, {delivered} B were delivered"))
    } else if delivered > size {
        Err(format!("{delivered} B were delivered of a transfer of {size} B"))
    } else if !idle && timer == Time::NEVER {
        Err(format!("there is data to send beyond {acked} B, and no timer"))
    } else if half.sender_timer > timer || half.receiver_timer > receiver.next_timer() {
        Err("a timer is later than its owner wants it".to_owned())
    } else {
        Ok(delivered)
    }
}
