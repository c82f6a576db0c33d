//! Timeout oracle: the fate of each timed-out segment, which no sender knows.

use super::World;
use crate::drop_log::HalfLosses;
use crate::event::FlowId;
use crate::half_connection::{Expired, HalfConnection};
use crate::requests::Requests;
use crate::timeouts::Fate;

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
