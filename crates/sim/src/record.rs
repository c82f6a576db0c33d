//! From what the components counted to the tables of a run.

use std::collections::BTreeMap;

use cwnd_apps::Transport;
use cwnd_cc::{Cause, Controller as _, Phase};
use cwnd_link::{Counters, Line, Summary};
use cwnd_quantity::{Duration, Guidance, Streams, Time};
use cwnd_scenario::{FlowGroup, Scenario};
use cwnd_schema::ParamsChoice as _;
use cwnd_tables::{
    Activity, FlowRow, FlowSampleRow, FlowSamples, Flows, Histogram, LinkRow, LinkSampleRow,
    LinkSamples, Links, Name, QueueDelays, Records, RequestRow, Requests,
};
use cwnd_tcp::{GaveUp, ReceiverCounters, SenderCounters};

use crate::datagrams::Stream;
use crate::delays::EmptyWays;
use crate::flow::{Before, Flow};
use crate::losses::Load;
use crate::network::Network;
use crate::place::LinkParts;
use crate::sparse::{SKETCHED, Sparse};

/// Collects rows while the run goes on.
#[derive(Debug, Default)]
pub struct Recorder {
    flows: Flows,
    flow_samples: FlowSamples,
    link_samples: LinkSamples,
    requests: Requests,
    request_count: u64,
    /// Where not everything has a row.
    sparse: Option<Box<Sparse>>,
    /// What each link had counted when the warm-up ended.
    before: Vec<Counters>,
    /// What of it was dead then.
    dead_before: Vec<Load>,
    /// The ways of flows whose delays are noted.
    empty: EmptyWays,
    /// Data that arrived for nothing, by the group and its way.
    duplicates: BTreeMap<(u32, u32), u64>,
    totals: Totals,
}

/// Sums over all flows and the whole run.
#[derive(Debug, Default)]
struct Totals {
    flows: u64,
    sender: SenderCounters,
    receiver: ReceiverCounters,
    /// What mechanisms counted of their own.
    own: Activity,
}

/// Where connections are given up, in the order of [`FlowRow::gave_up`].
const GAVE_UP: [&str; 3] = ["no", "syn", "data"];
const STATES: [&str; 4] = ["Open", "Cwr", "Recovery", "Loss"];

/// What becomes of requests, in the order of [`SKETCHED`].
const OUTCOMES: [&str; 4] = ["answered", "open", "rejected", "given-up"];

impl Recorder {
    /// Of a scenario that says what has rows.
    pub fn new(scenario: &Scenario, streams: &Streams) -> Self {
        let (sparse, empty) = (Sparse::of(scenario, streams), EmptyWays::of(scenario));
        Self { sparse, empty, ..Self::default() }
    }

    /// So many flows and sources of datagrams more will be recorded.
    pub fn expect_flows(&mut self, more: usize) {
        self.flows.reserve(more);
    }

    /// Records a flow that is over, or at the end of the run.
    pub fn flow(&mut self, flow: &Flow, now: Time, warmup: Time) {
        let (sender, receiver) = (flow.sender.counters(), flow.receiver.counters());
        let totals = &mut self.totals;
        totals.flows += 1;
        totals.sender += sender;
        totals.receiver += receiver;
        if let Some(requests) = &flow.requests {
            totals.sender += requests.sender.counters();
            totals.receiver += requests.receiver.counters();
        }
        let mut own = |name, count| totals.own.add(name, count);
        flow.session.count(&mut own);
        flow.sender.controller().count(&mut own);
        let gave_up = flow.gave_up();
        match gave_up {
            None => {}
            Some(GaveUp::Syn) => own("given_up_at_syn", 1),
            Some(GaveUp::Data) => own("given_up_at_data", 1),
        }
        let told = flow.told.as_deref().copied().unwrap_or_default();
        own("forged_echoes", flow.sender.forged_echoes());
        own("timeouts_under_way", told.total.under_way);
        own("timeouts_ack_late", told.total.ack_late);
        own("timeouts_ack_lost", told.total.ack_lost);
        self.request(flow, now, false, warmup);
        let Before { sender: s0, receiver: r0, client: c0 } =
            flow.before.as_deref().copied().unwrap_or_default();
        let client = flow.requests.as_ref().map(|requests| requests.sender.counters());
        let client = client.copied().unwrap_or_default();
        let finished = flow.finished != Time::NEVER;
        let ended = if finished { flow.finished } else { flow.stopped }.min(now);
        let seconds = ended.since(flow.started.max(warmup)).as_secs_f64();
        let rate = |bytes: u64| if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 };
        let delivered = receiver.delivered_bytes - r0.delivered_bytes;
        let segments_sent = sender.segments_sent - s0.segments_sent;
        let retrans = sender.retransmissions - s0.retransmissions;
        let ce_received = receiver.ce_segments - r0.ce_segments;
        let received = receiver.segments - r0.segments;
        let rto = |rank: usize| sender.timeouts[rank] - s0.timeouts[rank];
        let rto_count = (0..sender.timeouts.len()).map(rto).sum();
        let fates = told.counted();
        let duplicates = receiver.duplicates - r0.duplicates;
        if duplicates > 0 {
            *self.duplicates.entry((flow.group, flow.way)).or_default() += duplicates;
        }
        let (qdelay_seen_us, qdelay_true_us) = self.empty.queueing(flow);
        let row = FlowRow {
            flow_id: flow.number,
            group: Name(flow.group),
            controller: Name(flow.group),
            start_s: flow.started.as_secs_f64(),
            duration_s: seconds,
            goodput_bit_s: rate(delivered),
            throughput_bit_s: rate(receiver.wire_bytes - r0.wire_bytes),
            delivered_bytes: delivered,
            bytes_received: receiver.delivered_bytes,
            rtt_base_us: micros(flow.base_rtt),
            rtt_min_us: flow.rtt.min().map(micros),
            rtt_mean_us: flow.rtt.mean().map(micros),
            rtt_p50_us: flow.rtt.quantile(0.5).map(micros),
            rtt_p95_us: flow.rtt.quantile(0.95).map(micros),
            rtt_p99_us: flow.rtt.quantile(0.99).map(micros),
            segments_sent,
            retrans,
            loss_ratio: ratio(retrans, segments_sent),
            ce_ratio: ratio(ce_received, received),
            ce_received,
            rto_count,
            rto_nth_1: rto(0),
            rto_nth_2: rto(1),
            rto_nth_3: rto(2),
            rto_nth_4: rto(3),
            rto_nth_5_plus: rto(4),
            cwnd_reductions_loss: sender.reductions_for(Cause::Loss)
                - s0.reductions_for(Cause::Loss),
            cwnd_reductions_ecn: sender.reductions_for(Cause::Ecn) - s0.reductions_for(Cause::Ecn),
            cwnd_reductions_rto: rto_count,
            size_bytes: flow.session.size(),
            fct_s: finished.then(|| flow.finished.since(flow.started).as_secs_f64()),
            rto_syn: sender.syn_timeouts - s0.syn_timeouts + client.syn_timeouts - c0.syn_timeouts,
            rto_request: client.data_timeouts() - c0.data_timeouts(),
            rto_under_way: fates.under_way,
            rto_ack_late: fates.ack_late,
            rto_ack_lost: fates.ack_lost,
            duplicates,
            gave_up: Name(match gave_up {
                None => 0,
                Some(GaveUp::Syn) => 1,
                Some(GaveUp::Data) => 2,
            }),
            quenches: sender.quenches - s0.quenches,
            quenches_refused: sender.quenches_refused - s0.quenches_refused,
            cwnd_reductions_quench: sender.reductions_for_quenches() - s0.reductions_for_quenches(),
            qdelay_seen_us,
            qdelay_true_us,
            cwnd_reductions_delay: sender.reductions_for(Cause::Delay)
                - s0.reductions_for(Cause::Delay),
            min_rtt_us: flow.sender.controller().min_rtt().map(micros),
            forged_echoes: flow.sender.forged_echoes(),
        };
        let completed = finished.then(|| flow.finished.since(flow.started));
        let sparse = self.sparse.as_mut();
        if sparse.is_none_or(|sparse| sparse.flow(&row, completed)) {
            self.flows.push(row);
        }
    }

    /// Records the request of a flow whose response is whole now.
    pub fn response(&mut self, flow: &mut Flow, now: Time, warmup: Time) {
        let row = self.requests.len();
        self.request(flow, now, true, warmup);
        if let Some(requests) = &mut flow.requests {
            requests.open = false;
            requests.unacknowledged = (self.requests.len() > row).then_some((row, requests.asked));
        }
    }

    /// The server knows that all of a response arrived.
    pub fn acknowledged(&mut self, (row, asked): (usize, Time), now: Time) {
        self.requests.acknowledged(row, now.since(asked).as_secs_f64());
    }

    fn request(&mut self, flow: &Flow, now: Time, answered: bool, warmup: Time) {
        let Some(requests) = flow.requests.as_ref().filter(|r| r.open) else { return };
        let outcome = match (answered, flow.gave_up()) {
            (true, _) => 0,
            (false, None) => 1,
            (false, Some(GaveUp::Syn)) => 2,
            (false, Some(GaveUp::Data)) => 3,
        };
        let (turn, asked) = (requests.turn, requests.asked);
        if asked < warmup {
            return;
        }
        let took = now.since(asked);
        self.request_count += 1;
        let sparse = self.sparse.as_mut();
        if !sparse.is_none_or(|sparse| sparse.request(flow.group, outcome, took)) {
            return;
        }
        let counters = requests.sender.counters();
        self.requests.push(RequestRow {
            flow_id: flow.number,
            group: Name(flow.group),
            request: turn.number,
            start_s: asked.as_secs_f64(),
            request_bytes: turn.request_end - turn.request_start,
            response_bytes: flow.receiver.counters().delivered_bytes - turn.response_start,
            response_s: answered.then(|| took.as_secs_f64()),
            acked_s: None,
            syn_timeouts: if turn.number == 1 { counters.syn_timeouts } else { 0 },
            request_timeouts: counters.data_timeouts(),
            outcome: Name(outcome),
        });
    }

    /// Records a source of datagrams at the end of the run.
    pub fn stream(&mut self, stream: &Stream, now: Time, warmup: Time) {
        self.totals.flows += 1;
        stream.session.count(&mut |name, count| self.totals.own.add(name, count));
        let (total, before) = (&stream.counters, &stream.before);
        // What was under way when it stopped still counts.
        let ended = stream.stop.max(stream.last_arrival).min(now);
        let seconds = ended.since(stream.started.max(warmup)).as_secs_f64();
        let rate = |bytes: u64| if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 };
        let delivered = total.received_bytes - before.received_bytes;
        self.flows.push(FlowRow {
            flow_id: stream.number,
            group: Name(stream.group),
            controller: Name(stream.group),
            start_s: stream.started.as_secs_f64(),
            duration_s: seconds,
            goodput_bit_s: rate(delivered),
            throughput_bit_s: rate(total.received_wire_bytes - before.received_wire_bytes),
            delivered_bytes: delivered,
            bytes_received: total.received_bytes,
            rtt_base_us: micros(stream.base_rtt),
            segments_sent: total.sent - before.sent,
            ..FlowRow::default()
        });
    }

    /// Records all running flows and all links at one instant.
    pub fn sample(&mut self, now: Time, flows: &[Flow], network: &mut Network) {
        let time_s = now.as_secs_f64();
        for flow in flows.iter().filter(|f| f.started != Time::NEVER) {
            let sender = &flow.sender;
            let window = sender.window();
            let estimate = sender.rtt_estimate();
            let mss = sender.mss() as f64;
            let guidance = sender.controller().guidance();
            self.flow_samples.push(FlowSampleRow {
                time_s,
                flow_id: flow.number,
                group: Name(flow.group),
                snd_cwnd_pkts: window.cwnd as f64 / mss,
                snd_ssthresh_pkts: (window.ssthresh != u64::MAX)
                    .then_some(window.ssthresh as f64 / mss),
                bytes_in_flight: sender.in_flight(),
                srtt_us: estimate.map(|(srtt, _)| micros(srtt)),
                rttvar_us: estimate.map(|(_, rttvar)| micros(rttvar)),
                rto_us: micros(sender.current_rto()),
                delivered: flow.receiver.counters().delivered_bytes,
                retrans: sender.counters().retransmissions,
                ca_state: Name(match sender.phase() {
                    Phase::Open => 0,
                    Phase::Cwr => 1,
                    Phase::Recovery => 2,
                    Phase::Loss => 3,
                }),
                quenches: sender.counters().quenches,
                quenches_refused: sender.counters().quenches_refused,
                rtt_seen_us: sender.delays().and_then(|_| sender.rtt_seen()).map(micros),
                min_rtt_us: sender.controller().min_rtt().map(micros),
                load_factor_seen: match guidance {
                    Some(Guidance::Load(factor)) => Some(factor),
                    _ => None,
                },
                offered_bit_s: match guidance {
                    Some(Guidance::Rate(rate)) => Some(rate.0 as f64),
                    _ => None,
                },
                feedback_bytes: match guidance {
                    Some(Guidance::Window(bytes)) => Some(f64::from(bytes)),
                    _ => None,
                },
            });
        }
        for link in 0..network.links().len() {
            let parts = network.links()[link];
            let counters = link_counters(parts, now, network);
            let quenches = parts.line.map_or(0, |line| network.messages_of(line));
            let line = parts.line.map(|i| &*network.line_mut(i));
            let sample = cwnd_link::sample(link as u32, now, &counters, line);
            self.link_samples.push(LinkSampleRow { quenches, ..sample });
        }
    }

    /// Counting begins.
    pub fn end_warmup(&mut self, now: Time, network: &mut Network) {
        self.dead_before = network.dead();
        for link in 0..network.links().len() {
            let parts = network.links()[link];
            self.before.push(link_counters(parts, now, network));
            if let Some(line) = parts.line {
                network.line_mut(line).begin_counting();
            }
        }
    }

    /// The finished tables. Events and delivered packets are for the caller to fill in.
    pub fn finish(mut self, end: Time, scenario: &Scenario, network: &mut Network) -> Records {
        let mut links = Links::default();
        let mut qdelay = QueueDelays::default();
        let no_delays = Histogram::default();
        let warmup = Time(scenario.run.warmup.0);
        let (mut drops, mut marks) = (0, 0);
        let dead = network.dead();
        let duplicates = self.duplicates_by_link(scenario);
        let own = &mut self.totals.own;
        network.count_messengers(&mut |name, count| own.add(name, count));
        for (i, link) in scenario.links.iter().enumerate() {
            let parts = network.links()[i];
            let total = link_counters(parts, end, network);
            drops += total.drops.total();
            marks += total.marks.total();
            let before = self.before.get(i).cloned().unwrap_or_default();
            let quenches = parts.line.map_or(0, |line| network.messages_of(line));
            let line = parts.line.map(|l| &*network.line_mut(l));
            if let Some(line) = line {
                line.count(&mut |name, count| own.add(name, count));
            }
            let summary = Summary {
                id: i as u32,
                rate: &link.rate,
                from: warmup,
                to: end,
                before: &before,
                total: &total,
                qdelay: line.map_or(&no_delays, Line::qdelay),
                queued: line.map_or(0, Line::held),
            };
            let died = dead[i].since(self.dead_before.get(i).copied().unwrap_or_default());
            links.push(LinkRow {
                dead_pkts: died.packets,
                dead_bytes: died.bytes,
                duplicate_pkts: duplicates[i],
                quenches_total_pkts: quenches,
                ..summary.row()
            });
            own.add("dead_packets", dead[i].packets);
            summary.beyond_columns().for_each(|(name, count)| own.add(name, count));
            summary.qdelay_rows().for_each(|row| qdelay.push(row));
        }
        let names = |column: &str| labels(scenario, column);
        let (sketches, unrecorded) = self.sparse.map(|sparse| sparse.finish()).unwrap_or_default();
        let tampered = network.tampered();
        own.add("options_removed", tampered.removed);
        own.add("options_damaged", tampered.damaged);
        let messages = network.messages();
        own.add("quenches_sent", messages.sent);
        own.add("quenches_delivered", messages.delivered);
        own.add("quenches_lost", messages.lost);
        own.add("quenches_forged", messages.forged);
        Records {
            flows: self.flows.into_table(names),
            links: links.into_table(names),
            flow_series: self.flow_samples.into_table(names),
            link_series: self.link_samples.into_table(names),
            qdelay: qdelay.into_table(names),
            requests: self.requests.into_table(names),
            sketches: sketches.into_table(names),
            unrecorded: unrecorded.into_table(names),
            request_count: self.request_count,
            activity: self.totals.activity(drops, marks),
            events: 0,
            delivered_data_packets: 0,
        }
    }
}

impl Recorder {
    /// What arrived for nothing went over every link of its way.
    fn duplicates_by_link(&self, scenario: &Scenario) -> Vec<u64> {
        let mut links = vec![0; scenario.links.len()];
        for (&(group, way), count) in &self.duplicates {
            let way = &scenario.flows[group as usize].ways[way as usize];
            way.route.iter().for_each(|&link| links[link] += count);
        }
        links
    }
}

impl Totals {
    /// What all of them tell by name.
    fn activity(&self, drops: u64, marks: u64) -> Activity {
        let mut activity = Activity::default();
        activity.add("flows", self.flows);
        activity.add("queue_drops", drops);
        activity.add("queue_marks", marks);
        self.receiver.count(&mut |name, count| activity.add(name, count));
        self.sender.count(&mut |name, count| activity.add(name, count));
        activity.extend_with(&self.own);
        activity
    }
}

/// What a link's queue, line and pipe counted, together.
fn link_counters(parts: LinkParts, now: Time, network: &mut Network) -> Counters {
    let pipe = parts.pipe.map(|i| network.pipe(i).counters()).unwrap_or_default();
    let counters = match parts.line {
        Some(line) => network.line_mut(line).counters(now),
        None => Counters {
            arrived: pipe.entered,
            delivered: pipe.entered,
            delivered_data: pipe.entered_data,
            ..Counters::default()
        },
    };
    counters.without(pipe.lost)
}

/// The names behind a name column.
fn labels(scenario: &Scenario, column: &str) -> Vec<String> {
    match column {
        "group" => scenario.flows.iter().map(|g| g.name.clone()).collect(),
        "controller" => scenario.flows.iter().map(controller_label).collect(),
        "link" => scenario.links.iter().map(|l| l.name.clone()).collect(),
        "gave_up" => GAVE_UP.map(str::to_owned).to_vec(),
        "what" => SKETCHED.map(str::to_owned).to_vec(),
        "outcome" => OUTCOMES.map(str::to_owned).to_vec(),
        "ca_state" => STATES.map(str::to_owned).to_vec(),
        _ => Vec::new(),
    }
}

/// The name of a group's controller.
fn controller_label(group: &FlowGroup) -> String {
    match group.workload.facts().transport {
        Transport::Datagrams { .. } => "none".to_owned(),
        Transport::Connection => group.controller.kind().to_owned(),
    }
}

fn micros(d: Duration) -> f64 {
    d.0 as f64 / 1000.0
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
