//! What a run tells of timeouts that no sender knows.

use super::World;
use crate::event::FlowId;
use crate::flow::Flow;
use crate::losses::Losses;
use crate::timeouts::Fate;

impl World {
    /// The retransmission timer of a flow expired, that of its SYN or that of data. Nothing has been sent since.
    #[cold]
    pub(super) fn tell_of_timeout(&mut self, id: FlowId, syn: bool) {
        let losses = self.network.losses();
        let Some(flow) = self.flows.get_mut(id.slot()).filter(|flow| flow.id == id) else { return };
        let fate = if syn { of_syn(flow, losses) } else { of_data(flow, losses) };
        if fate != Fate::Lost {
            flow.told.get_or_insert_default().add(fate);
        }
    }

    /// What was lost and has arrived since is of no use. Timers look at every flow now and then, so that no more is kept than they leave time for.
    #[cold]
    pub(super) fn thin_out_losses(&mut self) {
        let flows = &self.flows;
        let of = |id: FlowId| flows.get(id.slot()).filter(|flow| flow.id == id);
        self.network.losses_mut().thin_out(|id| Some(of(id)?.sender.acknowledged()));
    }
}

/// Of the SYN of a flow, whose timer has just expired: each that was sent has timed out.
fn of_syn(flow: &Flow, losses: &Losses) -> Fate {
    let lost = losses.of(flow.id);
    if flow.receiver.counters().syns > 0 {
        return if lost.is_some_and(|l| l.syn_ack) { Fate::AckLost } else { Fate::AckLate };
    }
    let sent = flow.sender.counters().syn_timeouts;
    if lost.map_or(0, |l| l.syns) < sent { Fate::UnderWay } else { Fate::Lost }
}

/// Of the first segment that is not acknowledged, for which the timer of data has just expired.
fn of_data(flow: &Flow, losses: &Losses) -> Fate {
    let (lost, first) = (losses.of(flow.id), flow.sender.acknowledged());
    if flow.receiver.counters().delivered_bytes > first {
        let ack_lost = lost.is_some_and(|l| l.ack > first);
        return if ack_lost { Fate::AckLost } else { Fate::AckLate };
    }
    let lost = lost.map_or(0, |l| l.data.of(first));
    if lost < flow.sender.copies_of_first() { Fate::UnderWay } else { Fate::Lost }
}
