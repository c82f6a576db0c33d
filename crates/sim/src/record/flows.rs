//! Rows of flows, of sources of datagrams and of requests; mean queueing delay of a flow as its
//! sender measured it and as it was, for flows that record it.

use std::collections::BTreeMap;

use cwnd_cc::{Cause, Controller as _};
use cwnd_quantity::{Duration, Rate, Time};
use cwnd_scenario::{FlowPath, LinkRate, Scenario};
use cwnd_tables::{FlowRow, Histogram, Name, RequestRow};
use cwnd_tcp::{Delays, GaveUp, ReceiverCounters, SenderCounters};

use super::{Recorder, micros, rate, ratio};
use crate::connection_ends::FateCounts;
use crate::datagrams::Stream;
use crate::flow::Flow;

impl Recorder {
    /// Records a flow that is over, or at the end of the run.
    pub fn flow(&mut self, flow: &Flow, now: Time) {
        let mut fates = FateCounts::default();
        flow.halves()
            .filter_map(|half| half.timeout_fates.as_deref())
            .for_each(|of| fates.add_all(of));
        self.count_flow(flow, &fates);
        self.request(flow, now, false);
        self.round_trips(flow);
        let row = self.flow_row(flow, now, &fates);
        if row.duplicates > 0 {
            *self.duplicates.entry((flow.group, flow.path)).or_default() += row.duplicates;
        }
        let completed = row.fct_s.map(|_| flow.data.finished.since(flow.started));
        let sampling = self.row_sampling.as_mut();
        if sampling.is_none_or(|sampling| sampling.flow(&row, completed)) {
            self.flows.push(row);
        }
    }

    /// Adds a flow to the totals of the run.
    fn count_flow(&mut self, flow: &Flow, fates: &FateCounts) {
        let totals = &mut self.totals;
        totals.flows += 1;
        for half in flow.halves() {
            totals.sender += half.sender.counters();
            totals.receiver += half.receiver.counters();
        }
        if let Some(quic) = &flow.quic {
            let counters = quic.counters();
            totals.sender += &counters.sender;
            totals.receiver += &counters.receiver;
            totals.named_counters.add("persistent_congestion", quic.sender.persistent_congestion());
        }
        if let Some(endpoints) = &flow.endpoints {
            let counters = endpoints.counters();
            totals.sender += &counters.sender;
            totals.receiver += &counters.receiver;
        }
        let mut count = |name, count| totals.named_counters.add(name, count);
        flow.session.count(&mut count);
        flow.controller().count(&mut count);
        match flow.gave_up() {
            None => {}
            Some(GaveUp::Syn) => count("given_up_at_syn", 1),
            Some(GaveUp::Data) => count("given_up_at_data", 1),
        }
        count("forged_echoes", flow.data.sender.forged_echoes());
        count("timeouts_under_way", fates.total.under_way);
        count("timeouts_ack_late", fates.total.ack_late);
        count("timeouts_ack_lost", fates.total.ack_lost);
    }

    fn flow_row(&self, flow: &Flow, now: Time, fates: &FateCounts) -> FlowRow {
        let (total, before) = (flow.counters(), flow.counters_at_warmup_end());
        let finished = flow.data.finished != Time::NEVER;
        let ended = if finished { flow.data.finished } else { flow.stopped }.min(now);
        let (qdelay_seen_us, qdelay_true_us) = self.unloaded_paths.queueing(flow);
        let mut row = FlowRow {
            flow_id: flow.number,
            group: Name(flow.group),
            controller: Name(flow.group),
            start_s: flow.started.as_secs_f64(),
            duration_s: ended.since(flow.started.max(self.warmup)).as_secs_f64(),
            rtt_base_us: micros(flow.base_rtt),
            size_bytes: flow.session.size(),
            fct_s: finished.then(|| flow.data.finished.since(flow.started).as_secs_f64()),
            gave_up: Name(match flow.gave_up() {
                None => 0,
                Some(GaveUp::Syn) => 1,
                Some(GaveUp::Data) => 2,
            }),
            qdelay_seen_us,
            qdelay_true_us,
            min_rtt_us: flow.controller().min_rtt().map(micros),
            forged_echoes: flow.data.sender.forged_echoes(),
            ..FlowRow::default()
        };
        set_rtts(&mut row, &flow.rtt);
        set_received(&mut row, &total.receiver, &before.receiver);
        set_sent(&mut row, &total.sender, &before.sender);
        set_timeouts(&mut row, flow, (&total.sender, &before.sender));
        let fates = fates.counted();
        row.rto_under_way = fates.under_way;
        row.rto_ack_late = fates.ack_late;
        row.rto_ack_lost = fates.ack_lost;
        row
    }

    /// Records a source of datagrams at the end of the run.
    pub fn stream(&mut self, stream: &Stream, now: Time) {
        self.totals.flows += 1;
        stream.session.count(&mut |name, count| self.totals.named_counters.add(name, count));
        let (total, before) = (&stream.counters, &stream.at_warmup_end);
        // Datagrams in flight when the source stops still count.
        let ended = stream.stop.max(stream.last_arrival).min(now);
        let seconds = ended.since(stream.started.max(self.warmup)).as_secs_f64();
        let delivered = total.received_bytes - before.received_bytes;
        let wire = total.received_wire_bytes - before.received_wire_bytes;
        let sent = total.sent - before.sent;
        let waited = now.since(stream.started.max(self.warmup)) > stream.base_rtt;
        self.flows.push(FlowRow {
            flow_id: stream.number,
            group: Name(stream.group),
            controller: Name(stream.group),
            start_s: stream.started.as_secs_f64(),
            duration_s: seconds,
            goodput_bit_s: rate(delivered, seconds),
            throughput_bit_s: rate(wire, seconds),
            delivered_bytes: delivered,
            bytes_received: total.received_bytes,
            rtt_base_us: micros(stream.base_rtt),
            segments_sent: sent,
            lost_ratio: total.received.lost_ratio(&before.received, sent > 0 && waited),
            ..FlowRow::default()
        });
    }
}

fn set_rtts(row: &mut FlowRow, rtt: &Histogram) {
    row.rtt_min_us = rtt.min().map(micros);
    row.rtt_mean_us = rtt.mean().map(micros);
    row.rtt_p50_us = rtt.quantile(0.5).map(micros);
    row.rtt_p95_us = rtt.quantile(0.95).map(micros);
    row.rtt_p99_us = rtt.quantile(0.99).map(micros);
}

/// Columns of the receiver, over [`FlowRow::duration_s`].
fn set_received(row: &mut FlowRow, total: &ReceiverCounters, before: &ReceiverCounters) {
    let received = total.segments - before.segments;
    row.delivered_bytes = total.delivered_bytes - before.delivered_bytes;
    row.bytes_received = total.delivered_bytes;
    row.goodput_bit_s = rate(row.delivered_bytes, row.duration_s);
    row.throughput_bit_s = rate(total.wire_bytes - before.wire_bytes, row.duration_s);
    row.ce_received = total.ce_segments - before.ce_segments;
    row.ce_ratio = ratio(row.ce_received, received);
    row.duplicates = total.duplicates - before.duplicates;
}

/// Columns of the sender but for its timeouts.
fn set_sent(row: &mut FlowRow, total: &SenderCounters, before: &SenderCounters) {
    let reductions = |cause| total.reductions_for(cause) - before.reductions_for(cause);
    row.segments_sent = total.segments_sent - before.segments_sent;
    row.retrans = total.retransmissions - before.retransmissions;
    row.loss_ratio = ratio(row.retrans, row.segments_sent);
    row.cwnd_reductions_loss = reductions(Cause::Loss);
    row.cwnd_reductions_ecn = reductions(Cause::Ecn);
    row.cwnd_reductions_delay = reductions(Cause::Delay);
    row.cwnd_reductions_quench = total.reductions_for_quenches() - before.reductions_for_quenches();
    row.quenches = total.quenches - before.quenches;
    row.quenches_refused = total.quenches_refused - before.quenches_refused;
}

/// Retransmission timeouts of the sender, or its PTOs, and those of its client.
fn set_timeouts(row: &mut FlowRow, flow: &Flow, (sender, s0): (&SenderCounters, &SenderCounters)) {
    let requests = flow.requests.as_ref().map(|requests| &requests.half);
    let client = requests.map(|half| *half.sender.counters()).unwrap_or_default();
    let c0 = requests.and_then(|half| half.at_warmup_end.as_deref()).map(|before| before.sender);
    let c0 = c0.unwrap_or_default();
    let rto = |rank: usize| sender.timeouts[rank] - s0.timeouts[rank];
    row.rto_count = (0..sender.timeouts.len()).map(rto).sum();
    row.rto_nth_1 = rto(0);
    row.rto_nth_2 = rto(1);
    row.rto_nth_3 = rto(2);
    row.rto_nth_4 = rto(3);
    row.rto_nth_5_plus = rto(4);
    row.cwnd_reductions_rto = match &flow.quic {
        // RFC 9002 § 6.2, § 7.6: a PTO reduces no window, persistent congestion does.
        Some(quic) => {
            quic.sender.persistent_congestion() - quic.at_warmup_end.persistent_congestion
        }
        None => row.rto_count,
    };
    row.rto_syn = sender.syn_timeouts - s0.syn_timeouts + client.syn_timeouts - c0.syn_timeouts;
    row.rto_request = client.data_timeouts() - c0.data_timeouts();
}

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

/// Delays of the paths without queueing, by group and path, for groups that record their queueing
/// delays.
#[derive(Debug, Default)]
pub struct UnloadedPaths {
    paths: BTreeMap<(u32, u32), UnloadedDelay>,
}

#[derive(Clone, Copy, Debug)]
struct UnloadedDelay {
    /// One-way propagation towards the receiver, without the hosts' pipes.
    one_way: Duration,
    round_trip: Duration,
    /// Transmission time of all lines on the path, ns per byte, without lines of varying rate.
    ns_per_byte: f64,
}

impl UnloadedPaths {
    /// Computes the delays of a scenario's paths.
    pub fn of(scenario: &Scenario) -> Self {
        let mut paths = BTreeMap::new();
        for (g, group) in (0..).zip(&scenario.flows) {
            if group.endpoint.timing.record_delays {
                let edge = group.edge_rate.map_or(0.0, ns_per_byte);
                let of = |path| UnloadedDelay::new(scenario, path, edge);
                paths.extend((0..).zip(&group.paths).map(|(w, path)| ((g, w), of(path))));
            }
        }
        Self { paths }
    }

    /// Mean queueing delays of a flow, µs: as its sender measured it, and the true one; `None`
    /// unless recorded, and without samples.
    pub fn queueing(&self, flow: &Flow) -> (Option<f64>, Option<f64>) {
        let Some(unloaded) = self.paths.get(&(flow.group, flow.path)) else { return (None, None) };
        let measured = flow.data.sender.delays().and_then(|delays| {
            let least = delays.least?;
            Some((mean_ns(delays)? - least.0 as f64) / 1000.0)
        });
        let true_delay = flow.data.receiver.delays().and_then(|delays| {
            let edge = Duration(flow.base_rtt.0.saturating_sub(unloaded.round_trip.0)) / 2;
            let bytes = delays.wire_bytes as f64 / delays.count as f64;
            let without_queueing =
                (unloaded.one_way + edge).0 as f64 + bytes * unloaded.ns_per_byte;
            // Lines round transmission times down to a nanosecond.
            Some(((mean_ns(delays)? - without_queueing) / 1000.0).max(0.0))
        });
        (measured, true_delay)
    }
}

impl UnloadedDelay {
    fn new(scenario: &Scenario, path: &FlowPath, edge: f64) -> Self {
        let links = || path.route.iter().map(|&link| &scenario.links[link]);
        let line = |rate: &LinkRate| match rate {
            LinkRate::Steps { initial, changes, .. } if changes.is_empty() => ns_per_byte(*initial),
            LinkRate::Steps { .. } | LinkRate::Trace(_) | LinkRate::Unlimited => 0.0,
        };
        Self {
            one_way: links().fold(Duration::ZERO, |sum, link| sum + link.delay),
            round_trip: scenario.propagation(path),
            ns_per_byte: edge + links().map(|link| line(&link.rate)).sum::<f64>(),
        }
    }
}

fn ns_per_byte(rate: Rate) -> f64 {
    8e9 / rate.0 as f64
}

fn mean_ns(delays: &Delays) -> Option<f64> {
    (delays.count > 0).then(|| delays.sum.0 as f64 / delays.count as f64)
}
