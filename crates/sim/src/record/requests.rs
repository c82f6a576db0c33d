//! Rows of requests.

use cwnd_quantity::Time;
use cwnd_tables::{Name, RequestRow};
use cwnd_tcp::GaveUp;

use super::Recorder;
use crate::flow::Flow;

impl Recorder {
    /// Records the request of a flow whose response is complete.
    pub fn response(&mut self, flow: &mut Flow, now: Time) {
        let row = self.requests.len();
        self.request(flow, now, true);
        if let Some(requests) = &mut flow.requests {
            requests.awaiting_response = false;
            requests.unacknowledged =
                (self.requests.len() > row).then_some((row, requests.written_at));
        }
    }

    /// Notes that the server has the acknowledgement of a whole response.
    pub fn acknowledged(&mut self, (row, written_at): (usize, Time), now: Time) {
        self.requests.acknowledged(row, now.since(written_at).as_secs_f64());
    }

    /// Records the open request of a flow, if there is one and it was sent after the warm-up.
    pub(super) fn request(&mut self, flow: &Flow, now: Time, answered: bool) {
        let Some(requests) = flow.requests.as_ref().filter(|r| r.awaiting_response) else { return };
        let outcome = match (answered, flow.gave_up()) {
            (true, _) => 0,
            (false, None) => 1,
            (false, Some(GaveUp::Syn)) => 2,
            (false, Some(GaveUp::Data)) => 3,
        };
        let (exchange, written_at) = (requests.exchange, requests.written_at);
        if written_at < self.warmup {
            return;
        }
        let took = now.since(written_at);
        self.request_count += 1;
        let sampling = self.row_sampling.as_mut();
        if !sampling.is_none_or(|sampling| sampling.request(flow.group, outcome, took)) {
            return;
        }
        let counters = requests.half.sender.counters();
        self.requests.push(RequestRow {
            flow_id: flow.number,
            group: Name(flow.group),
            request: exchange.number,
            start_s: written_at.as_secs_f64(),
            request_bytes: exchange.request_end - exchange.request_start,
            response_bytes: flow.data.delivered_bytes() - exchange.response_start,
            response_s: answered.then(|| took.as_secs_f64()),
            acked_s: None,
            syn_timeouts: if exchange.number == 1 { counters.syn_timeouts } else { 0 },
            request_timeouts: counters.data_timeouts(),
            outcome: Name(outcome),
        });
    }
}
