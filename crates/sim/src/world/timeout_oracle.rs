//! Timeout oracle: the fate of each timed-out segment, which no sender knows.

use super::World;
use crate::drop_log::OfFlow;
use crate::event::FlowId;
use crate::half_connection::{Expired, HalfConnection};
use crate::requests::Requests;
use crate::timeouts::Fate;

impl World {
    /// Classifies a timeout of the sender, of its SYN or of data. Nothing has been sent since.
    #[cold]
    pub(super) fn tell_of_timeout(&mut self, id: FlowId, expired: Expired) {
        let losses = self.network.losses();
        let Some(flow) = self.hosts.flow(id) else { return };
        let half = Half { ends: &flow.data, lost: losses.of(id) };
        let fate = match expired {
            Expired::Syn => half.of_syn(),
            Expired::Data => half.of_data(false),
        };
        flow.data.tell(fate);
    }

    /// Classifies a timeout of the client, of its SYN or of a request.
    #[cold]
    pub(super) fn tell_of_client_timeout(&mut self, id: FlowId, expired: Expired) {
        let losses = self.network.losses();
        let Some(flow) = self.hosts.flow(id) else { return };
        let Some(Requests { half, turn, .. }) = flow.requests.as_deref() else {
            return;
        };
        let half = Half { ends: half, lost: losses.of_requests(id) };
        // A lost segment of the response would have acknowledged the request, too.
        let response = || {
            losses
                .of(id)
                .is_some_and(|lost| lost.data.end().is_some_and(|end| end > turn.response_start))
        };
        let fate = match expired {
            Expired::Syn => half.of_syn(),
            Expired::Data => half.of_data(response()),
        };
        if let Some(requests) = &mut flow.requests {
            requests.half.tell(fate);
        }
    }

    /// Forgets losses of data that has been acknowledged since.
    #[cold]
    pub(super) fn thin_out_losses(&mut self) {
        let flows = &self.hosts.flows;
        let una = |id: FlowId| {
            let flow =
                flows.get(id.of_requests().slot()).filter(|flow| flow.id == id.of_requests())?;
            let requests = flow.requests.as_ref().filter(|_| flow.id != id);
            Some(
                requests.map_or(&flow.data.sender, |requests| &requests.half.sender).acknowledged(),
            )
        };
        self.network.losses_mut().thin_out(una);
    }
}

/// The sender and receiver of one direction, and its losses.
struct Half<'w> {
    ends: &'w HalfConnection,
    lost: Option<&'w OfFlow>,
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
        if lost < self.ends.sender.copies_of_first() { Fate::UnderWay } else { Fate::Lost }
    }
}
