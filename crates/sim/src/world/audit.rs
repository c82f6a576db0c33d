//! What must hold between any two events.

use std::collections::BTreeSet;

use cwnd_quantity::Time;
use cwnd_tcp::{Body, Receiver, Segment, Sender};

use super::World;
use crate::event::{Event, FlowId};
use crate::flow::Flow;

impl World {
    /// Checks the books: every packet that was sent is somewhere, once; whatever waits has an event that will move it; no
    /// window is below one segment; nobody has, or had acknowledged, more than was sent.
    ///
    /// # Errors
    /// With a sentence about what does not hold.
    pub fn audit(&mut self) -> Result<(), String> {
        self.network.audit(self.events.now())?;
        for flow in self.hosts.running() {
            audit_flow(flow).map_err(|e| format!("{}: {e} at {}", flow.id, self.events.now()))?;
        }
        if let [flow] = self.hosts.flows.as_slice()
            && self.hosts.streams.is_empty()
            && flow.id == FlowId::new(0, 0)
            && flow.requests.is_none()
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
        for (at, event) in self.awaited() {
            if at.is_none_or(|at| pending.binary_search(&(event.code(), at)).is_err()) {
                return Err(format!(
                    "at {}: nothing will make it happen: {event}",
                    self.events.now()
                ));
            }
        }
        Ok(())
    }

    /// Of the first byte that did not arrive, where no other flow is: what was sent and not lost is there, once each.
    fn audit_copies(&self, flow: &Flow) -> Result<(), String> {
        let first = flow.sender.acknowledged();
        let sent = flow.sender.copies_of_first();
        let more = flow.receiver.counters().delivered_bytes > first;
        if sent == 0 || more || flow.receiver.conceals() {
            return Ok(());
        }
        let lost = self.network.losses().of(flow.id).map_or(0, |lost| lost.data.of(first));
        let has =
            |s: &Segment| matches!(s.body, Body::Data { .. }) && s.seq <= first && first < s.end();
        let there = self.network.under_way().filter(has).count() as u64;
        if sent == lost + there {
            Ok(())
        } else {
            Err(format!(
                "byte {first} was sent {sent} times, lost {lost} times, and is there {there} times"
            ))
        }
    }

    /// Checks that each waiting user has an open connection or a time for its next.
    fn audit_users(&self) -> Result<(), String> {
        let at_work: BTreeSet<u32> = self.workloads.users.values().copied().collect();
        for (process, arrivals) in (0..).zip(&self.workloads.arrivals) {
            let group = &self.scenario.flows[arrivals.group];
            let waits = arrivals.gaps.hears() && !arrivals.gaps.is_done();
            let stopped = group.stop.is_some_and(|stop| stop <= self.events.now());
            let idle = arrivals.due == Time::NEVER && !at_work.contains(&process);
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

    /// The events that something waits for, with the time for which they must be pending.
    fn awaited(&self) -> impl Iterator<Item = (Option<Time>, Event)> {
        let running = || self.hosts.running();
        let armed = |at: Time| (at != Time::NEVER).then_some(at);
        let senders = running()
            .filter(|f| f.sender.next_timer() != Time::NEVER)
            .map(move |f| (armed(f.sender_timer), Event::SenderTimer(f.id)));
        let receivers = running()
            .filter(|f| f.receiver.next_timer() != Time::NEVER)
            .map(move |f| (armed(f.receiver_timer), Event::ReceiverTimer(f.id)));
        let arrivals = (0..).zip(&self.workloads.arrivals).filter(|(_, a)| a.due != Time::NEVER);
        let arrivals = arrivals.map(|(process, a)| (Some(a.due), Event::Arrival(process)));
        let flows = senders.chain(receivers).chain(clients(&self.hosts.flows));
        let attacks = self.attacks_due().map(|(at, id)| (Some(at), Event::Forged(id)));
        self.network.busy().chain(flows).chain(arrivals).chain(attacks)
    }
}

/// The timers of the streams of requests that are running, with those whom they wait for.
fn clients(flows: &[Flow]) -> impl Iterator<Item = (Option<Time>, Event)> {
    let armed = |at: Time| (at != Time::NEVER).then_some(at);
    let running = flows.iter().filter(|f| f.started != Time::NEVER);
    running.filter_map(|f| Some((f.id.requests(), f.requests.as_deref()?))).flat_map(
        move |(id, r)| {
            let sender = (r.sender.next_timer() != Time::NEVER)
                .then(|| (armed(r.sender_timer), Event::SenderTimer(id)));
            let receiver = (r.receiver.next_timer() != Time::NEVER)
                .then(|| (armed(r.receiver_timer), Event::ReceiverTimer(id)));
            sender.into_iter().chain(receiver)
        },
    )
}

fn audit_flow(flow: &Flow) -> Result<(), String> {
    let size = flow.session.size().unwrap_or(u64::MAX);
    let timers = (flow.sender_timer, flow.receiver_timer);
    // An application that writes before its client has asked for anything waits for the client to open the connection.
    if flow.requests.as_ref().is_some_and(|requests| requests.turn.number == 0) {
        return Ok(());
    }
    let delivered = audit_ends(&flow.sender, &flow.receiver, timers, size)?;
    if flow.finished != Time::NEVER && delivered != size {
        return Err(format!("it finished with {delivered} of {size} B"));
    }
    if let Some(r) = &flow.requests {
        let timers = (r.sender_timer, r.receiver_timer);
        let delivered = audit_ends(&r.sender, &r.receiver, timers, flow.session.requested())
            .map_err(|e| format!("requests: {e}"))?;
        let of_turn = r.turn.request_start <= delivered && delivered <= r.turn.request_end;
        if !of_turn {
            return Err(format!("{delivered} B of requests were delivered in {:?}", r.turn));
        }
    }
    Ok(())
}

/// Checks the two ends of a direction; how much was delivered.
fn audit_ends(
    sender: &Sender,
    receiver: &Receiver,
    (sender_timer, receiver_timer): (Time, Time),
    size: u64,
) -> Result<u64, String> {
    let (cwnd, mss) = (sender.window().cwnd, sender.mss());
    let (acked, delivered) = (sender.acknowledged(), receiver.counters().delivered_bytes);
    let timer = sender.next_timer();
    // What is written is on its way, or will be: the windows always have room for one segment.
    let idle = sender.is_drained() || sender.has_failed();
    if cwnd < mss {
        Err(format!("the window is {cwnd} B, a segment {mss} B"))
    } else if acked > delivered && !receiver.conceals() {
        Err(format!("{acked} B are acknowledged, {delivered} B were delivered"))
    } else if delivered > size {
        Err(format!("{delivered} B were delivered of a transfer of {size} B"))
    } else if !idle && timer == Time::NEVER {
        Err(format!("there is data to send beyond {acked} B, and no timer"))
    } else if sender_timer > timer || receiver_timer > receiver.next_timer() {
        Err("a timer is later than its owner wants it".to_owned())
    } else {
        Ok(delivered)
    }
}
