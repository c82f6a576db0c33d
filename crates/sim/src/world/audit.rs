//! What must hold between any two events.

use cwnd_tcp::{Body, Segment};
use cwnd_units::Time;

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
        self.network.audit(self.now)?;
        for flow in self.flows.iter().filter(|f| f.started != Time::NEVER) {
            audit_flow(flow).map_err(|e| format!("{}: {e} at {}", flow.id, self.now))?;
        }
        if let [flow] = self.flows.as_slice()
            && self.streams.is_empty()
            && flow.id == FlowId::new(0, 0)
        {
            self.audit_copies(flow).map_err(|e| format!("{e} at {}", self.now))?;
        }
        let mut pending: Vec<(u64, Time)> =
            self.events.pending().map(|(at, event)| (event.code(), at)).collect();
        pending.sort_unstable();
        if let Some((code, at)) = pending.iter().find(|(_, at)| *at < self.now) {
            return Err(format!("event {code:x} at {at} is in the past of {}", self.now));
        }
        for (at, event) in self.awaited() {
            if at.is_none_or(|at| pending.binary_search(&(event.code(), at)).is_err()) {
                return Err(format!("at {}: nothing will make it happen: {event}", self.now));
            }
        }
        Ok(())
    }

    /// Of the first byte that did not arrive, where no other flow is: what was sent and not lost is there, once each.
    fn audit_copies(&self, flow: &Flow) -> Result<(), String> {
        let first = flow.sender.acknowledged();
        let sent = flow.sender.copies_of_first();
        if sent == 0 || flow.receiver.counters().delivered_bytes > first {
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

    /// The events that something waits for, with the time for which they must be pending.
    fn awaited(&self) -> impl Iterator<Item = (Option<Time>, Event)> {
        let running = || self.flows.iter().filter(|f| f.started != Time::NEVER);
        let armed = |at: Time| (at != Time::NEVER).then_some(at);
        let senders = running()
            .filter(|f| f.sender.next_timer() != Time::NEVER)
            .map(move |f| (armed(f.sender_timer), Event::SenderTimer(f.id)));
        let receivers = running()
            .filter(|f| f.receiver.next_timer() != Time::NEVER)
            .map(move |f| (armed(f.receiver_timer), Event::ReceiverTimer(f.id)));
        self.network.busy().chain(senders).chain(receivers)
    }
}

fn audit_flow(flow: &Flow) -> Result<(), String> {
    let (sender, receiver) = (&flow.sender, &flow.receiver);
    let (cwnd, mss) = (sender.window().cwnd, sender.mss());
    let (acked, delivered) = (sender.acknowledged(), receiver.counters().delivered_bytes);
    let timer = sender.next_timer();
    let size = flow.session.size().unwrap_or(u64::MAX);
    // What is written is on its way, or will be: the windows always have room for one segment.
    let idle = sender.is_drained() || sender.has_failed();
    if cwnd < mss {
        Err(format!("the window is {cwnd} B, a segment {mss} B"))
    } else if acked > delivered {
        Err(format!("{acked} B are acknowledged, {delivered} B were delivered"))
    } else if delivered > size {
        Err(format!("{delivered} B were delivered of a transfer of {size} B"))
    } else if flow.finished != Time::NEVER && delivered != size {
        Err(format!("it finished with {delivered} of {size} B"))
    } else if !idle && timer == Time::NEVER {
        Err(format!("there is data to send beyond {acked} B, and no timer"))
    } else if flow.sender_timer > timer || flow.receiver_timer > receiver.next_timer() {
        Err("a timer is later than its owner wants it".to_owned())
    } else {
        Ok(())
    }
}
