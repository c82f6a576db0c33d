//! Collects the tables of a run from the counters of its components: rows of links and samples, and
//! totals of the network. Ends a run at a given fairness among its flows.

mod delays;
mod flows;

use std::collections::BTreeMap;

use cwnd_cc::{Controller as _, Phase};
use cwnd_link::{Counters, Line, ReasonTable, Summary};
use cwnd_packet::Guidance;
use cwnd_quantity::{Duration, Streams, Time};
use cwnd_scenario::{FlowGroup, Scenario};
use cwnd_tables::{
    Activity, Delays, FlowSampleRow, FlowSamples, Flows, Histogram, LinkRow, LinkSampleRow,
    LinkSamples, Links, Name, QueueDelays, Records, Requests, Table,
};
use cwnd_tcp::{ReceiverCounters, SenderCounters, quic};

use crate::endpoint::{Endpoints, Side};
use crate::flow::Flow;
use crate::network::Network;
use crate::pipe::LinkParts;
use crate::row_sampling::{RowSampling, SKETCHED};
use crate::segments::PacketCount;
use delays::GroupDelays;
use flows::UnloadedPaths;

/// Collects rows during a run.
#[derive(Debug, Default)]
pub struct Recorder {
    /// End of the warm-up.
    warmup: Time,
    flows: Flows,
    flow_samples: FlowSamples,
    link_samples: LinkSamples,
    requests: Requests,
    request_count: u64,
    /// Row sampling; `None` if every flow and request has a row.
    row_sampling: Option<Box<RowSampling>>,
    /// Delays of each group's packets, since the end of the warm-up if it is over.
    delays: Vec<GroupDelays>,
    /// Counters of each link at the end of the warm-up; empty before it and without one.
    links_at_warmup_end: Vec<Counters>,
    /// Dead packets of each link at the end of the warm-up; empty before it and without one.
    dead_at_warmup_end: Vec<PacketCount>,
    /// Delays of empty paths, for flows that record their queueing delays.
    unloaded_paths: UnloadedPaths,
    /// Duplicate segments received after the warm-up, by group and path.
    duplicates: BTreeMap<(u32, u32), u64>,
    totals: Totals,
    /// Fairness that ends the run early.
    fairness: Option<Fairness>,
    /// Groups whose endpoints are from outside, and so their controllers.
    with_endpoints: Vec<usize>,
}

/// Sums over the whole run and all flows that started, with or without a row.
#[derive(Debug, Default)]
struct Totals {
    flows: u64,
    sender: SenderCounters,
    receiver: ReceiverCounters,
    /// Counters that mechanisms name themselves.
    named_counters: Activity,
}

/// Labels of [`FlowRow::gave_up`](cwnd_tables::FlowRow::gave_up), by value.
const GAVE_UP: [&str; 3] = ["no", "syn", "data"];
/// Labels of [`FlowSampleRow::ca_state`](cwnd_tables::FlowSampleRow::ca_state), by value.
const STATES: [&str; 4] = ["Open", "Cwr", "Recovery", "Loss"];

/// Outcomes of requests, in the order of [`SKETCHED`].
const OUTCOMES: [&str; 4] = ["answered", "open", "rejected", "given-up"];

impl Recorder {
    /// A recorder of a scenario, which selects what has rows.
    pub fn new(scenario: &Scenario, streams: &Streams) -> Self {
        let (row_sampling, unloaded_paths) =
            (RowSampling::of(scenario, streams), UnloadedPaths::of(scenario));
        let fairness = scenario.run.until_fair.map(Fairness::new);
        let warmup = Time(scenario.run.warmup.0);
        let mut delays = Vec::new();
        delays.resize_with(scenario.flows.len(), GroupDelays::default);
        Self { warmup, row_sampling, delays, unloaded_paths, fairness, ..Self::default() }
    }

    /// Returns `true` once the flows share as fairly as the run waits for.
    pub fn shares_are_fair(&mut self, flows: &[Flow], groups: &[FlowGroup]) -> bool {
        let Some(fairness) = &mut self.fairness else { return false };
        fairness.reached(shares_delivered(flows, groups))
    }

    /// Reserves rows for this many flows and sources of datagrams.
    pub fn expect_flows(&mut self, more: usize) {
        self.flows.reserve(more);
    }

    /// Labels the controller of a group as one from outside.
    pub fn label_controller(&mut self, group: usize) {
        self.with_endpoints.push(group);
    }

    /// Time series so far, of flows and of links.
    pub fn series(&self, scenario: &Scenario) -> [Table; 2] {
        let names = |column: &str| labels(scenario, column);
        let (flows, links) = (self.flow_samples.clone(), self.link_samples.clone());
        [flows.into_table(names), links.into_table(names)]
    }

    /// The finished tables. The caller fills in events and delivered packets.
    pub fn finish(mut self, end: Time, scenario: &Scenario, network: &mut Network) -> Records {
        let links = self.links(end, scenario, network);
        self.count_network(network);
        let with_endpoints = core::mem::take(&mut self.with_endpoints);
        let names = |column: &str| match column {
            "controller" => controller_labels(scenario, &with_endpoints),
            _ => labels(scenario, column),
        };
        let (sketches, unrecorded) =
            self.row_sampling.map(|sampling| sampling.finish()).unwrap_or_default();
        Records {
            flows: self.flows.into_table(names),
            links: links.rows.into_table(names),
            reasons: links.reasons.into_table(names("link")),
            flow_series: self.flow_samples.into_table(names),
            link_series: self.link_samples.into_table(names),
            qdelay: links.qdelay.into_table(names),
            delays: delays::table(&self.delays).into_table(|column| match column {
                "what" => Delays::KINDS.map(str::to_owned).to_vec(),
                _ => names(column),
            }),
            requests: self.requests.into_table(names),
            sketches: sketches.into_table(names),
            unrecorded: unrecorded.into_table(names),
            end,
            request_count: self.request_count,
            activity: self.totals.activity(links.drops, links.marks),
            events: 0,
            delivered_data_packets: 0,
        }
    }
}

impl Totals {
    /// All counters by name: flows, queues, then the transport, then mechanisms that name theirs.
    fn activity(&self, drops: u64, marks: u64) -> Activity {
        let mut activity = Activity::default();
        activity.add("flows", self.flows);
        activity.add("queue_drops", drops);
        activity.add("queue_marks", marks);
        self.receiver.count(&mut |name, count| activity.add(name, count));
        self.sender.count(&mut |name, count| activity.add(name, count));
        activity.extend_with(&self.named_counters);
        activity
    }
}

/// The labels of a name column; empty for an unknown column.
fn labels(scenario: &Scenario, column: &str) -> Vec<String> {
    match column {
        "group" => scenario.flows.iter().map(|g| g.name.clone()).collect(),
        "link" => scenario.links.iter().map(|l| l.name.clone()).collect(),
        "gave_up" => GAVE_UP.map(str::to_owned).to_vec(),
        "what" => SKETCHED.map(str::to_owned).to_vec(),
        "outcome" => OUTCOMES.map(str::to_owned).to_vec(),
        "ca_state" => STATES.map(str::to_owned).to_vec(),
        _ => Vec::new(),
    }
}

/// The names of the groups' controllers; `own` for endpoints from outside.
fn controller_labels(scenario: &Scenario, with_endpoints: &[usize]) -> Vec<String> {
    let label = |(g, group): (_, &FlowGroup)| match with_endpoints.contains(&g) {
        true => "own".to_owned(),
        false => group.controller_label(),
    };
    scenario.flows.iter().enumerate().map(label).collect()
}

fn micros(d: Duration) -> f64 {
    d.0 as f64 / 1000.0
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Bits per second of `bytes` over `seconds`; 0 over no time.
fn rate(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 }
}

/// Jain's index of the bytes that long-lived flows delivered since the last of them started (ABE §
/// IV-C).
#[derive(Clone, Debug)]
pub struct Fairness {
    threshold: f64,
    /// Bytes that each flow had delivered when counting began; `None` before.
    before: Option<Vec<u64>>,
}

impl Fairness {
    /// Interval between two checks, which is the accuracy of the result.
    pub const INTERVAL: Duration = Duration::from_millis(10);

    /// Creates a check for an index of at least `threshold`.
    pub const fn new(threshold: f64) -> Self {
        Self { threshold, before: None }
    }

    /// Returns `true` once Jain's index of the bytes delivered reaches the threshold. `delivered`
    /// has the bytes of each flow since its start, `None` for a flow that has not started.
    ///
    /// Bytes count from the first call that finds all flows started.
    pub fn reached(&mut self, delivered: impl Iterator<Item = Option<u64>>) -> bool {
        let Some(now) = delivered.collect::<Option<Vec<u64>>>() else { return false };
        let Some(before) = &self.before else {
            self.before = Some(now);
            return false;
        };
        let shares = now.iter().zip(before).map(|(now, before)| (now - before) as f64);
        now.len() > 1 && jain(shares).is_some_and(|index| index >= self.threshold)
    }
}

/// Bytes delivered by each flow that counts for fairness; `None` for a flow that has not started.
pub fn shares_delivered(flows: &[Flow], groups: &[FlowGroup]) -> impl Iterator<Item = Option<u64>> {
    let shares: Vec<bool> = groups.iter().map(|group| group.workload.facts().shares).collect();
    flows
        .iter()
        .filter(move |flow| shares[flow.group as usize])
        .map(|flow| (flow.started != Time::NEVER).then(|| flow.delivered_bytes()))
}

/// Jain's index, (Σx)² / (n Σx²) (Jain, Chiu & Hawe 1984); `None` while all shares are zero.
fn jain(shares: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut n, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for share in shares {
        n += 1.0;
        sum += share;
        squares += share * share;
    }
    (squares > 0.0).then(|| sum * sum / (n * squares))
}

/// The tables of links, with their drops and marks over the whole run.
#[derive(Debug, Default)]
struct LinkTables {
    rows: Links,
    reasons: ReasonTable,
    qdelay: QueueDelays,
    drops: u64,
    marks: u64,
}

impl Recorder {
    /// Starts counting at the end of the warm-up.
    pub fn end_warmup(&mut self, now: Time, network: &mut Network) {
        self.dead_at_warmup_end = network.dead();
        self.delays.fill_with(GroupDelays::default);
        for link in 0..network.links().len() {
            let parts = network.links()[link];
            self.links_at_warmup_end.push(link_counters(parts, now, network));
            if let Some(line) = parts.line {
                network.line_mut(line).begin_counting();
            }
        }
    }

    /// Records all links at the end of the run.
    fn links(&mut self, end: Time, scenario: &Scenario, network: &mut Network) -> LinkTables {
        let mut tables = LinkTables::default();
        let no_delays = Histogram::default();
        let dead = network.dead();
        let duplicates = self.duplicates_by_link(scenario);
        let counters = &mut self.totals.named_counters;
        network.count_messengers(&mut |name, count| counters.add(name, count));
        for (i, link) in scenario.links.iter().enumerate() {
            let parts = network.links()[i];
            let total = link_counters(parts, end, network);
            tables.drops += total.drops.total();
            tables.marks += total.marks.total();
            let before = self.links_at_warmup_end.get(i).cloned().unwrap_or_default();
            let quenches = parts.line.map_or(0, |line| network.messages_of(line));
            let line = parts.line.map(|l| &*network.line_mut(l));
            if let Some(line) = line {
                line.count(&mut |name, count| counters.add(name, count));
            }
            let summary = Summary {
                id: i as u32,
                rate: &link.rate,
                from: self.warmup,
                to: end,
                before: &before,
                total: &total,
                qdelay: line.map_or(&no_delays, Line::qdelay),
                queued: line.map_or(0, Line::held),
            };
            let died = dead[i].since(self.dead_at_warmup_end.get(i).copied().unwrap_or_default());
            tables.rows.push(LinkRow {
                dead_pkts: died.packets,
                dead_bytes: died.bytes,
                duplicate_pkts: duplicates[i],
                quenches_total_pkts: quenches,
                ..summary.row()
            });
            counters.add("dead_packets", dead[i].packets);
            tables.reasons.add(&summary);
            summary.qdelay_rows().for_each(|row| tables.qdelay.push(row));
        }
        tables
    }

    /// Adds the counters of middleboxes and of routers' messages to the totals.
    fn count_network(&mut self, network: &Network) {
        let counters = &mut self.totals.named_counters;
        let tampered = network.middlebox_counters();
        counters.add("options_removed", tampered.removed);
        counters.add("options_damaged", tampered.damaged);
        let messages = network.messages();
        counters.add("quenches_sent", messages.sent);
        counters.add("quenches_delivered", messages.delivered);
        counters.add("quenches_lost", messages.lost);
        counters.add("quenches_forged", messages.forged);
    }

    /// Duplicates of each link: a duplicate crossed every link of its path.
    fn duplicates_by_link(&self, scenario: &Scenario) -> Vec<u64> {
        let mut links = vec![0; scenario.links.len()];
        for (&(group, path), count) in &self.duplicates {
            let path = &scenario.flows[group as usize].paths[path as usize];
            path.route.iter().for_each(|&link| links[link] += count);
        }
        links
    }
}

/// Counters of a link's queue, line and pipe together.
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

impl Recorder {
    /// Records all running flows and all links at one instant.
    pub fn sample(&mut self, now: Time, flows: &[Flow], network: &mut Network) {
        for flow in flows.iter().filter(|f| f.started != Time::NEVER) {
            self.flow_samples.push(flow_sample(now, flow));
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
}

fn flow_sample(now: Time, flow: &Flow) -> FlowSampleRow {
    if let Some(quic) = &flow.quic {
        return quic_sample(now, flow, &quic.sender);
    }
    if let Some(endpoints) = &flow.endpoints {
        return endpoint_sample(now, flow, endpoints);
    }
    let sender = &flow.data.sender;
    let window = sender.window();
    let estimate = sender.rtt_estimate();
    let mss = sender.mss() as f64;
    let guidance = sender.controller().guidance();
    FlowSampleRow {
        time_s: now.as_secs_f64(),
        flow_id: flow.number,
        group: Name(flow.group),
        snd_cwnd_pkts: window.cwnd as f64 / mss,
        snd_ssthresh_pkts: (window.ssthresh != u64::MAX).then_some(window.ssthresh as f64 / mss),
        bytes_in_flight: sender.in_flight(),
        srtt_us: estimate.map(|(srtt, _)| micros(srtt)),
        rttvar_us: estimate.map(|(_, rttvar)| micros(rttvar)),
        rto_us: micros(sender.current_rto()),
        delivered: flow.data.delivered_bytes(),
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
    }
}

/// A sample of a sender of QUIC, whose window and packets are counted with their headers.
fn quic_sample(now: Time, flow: &Flow, sender: &quic::Sender) -> FlowSampleRow {
    let (recovery, counters) = (sender.recovery(), sender.counters());
    let (congestion, estimate) = (recovery.congestion(), recovery.rtt_estimate());
    let full = sender.max_datagram_size() as f64;
    let ssthresh = congestion.controller().window().ssthresh;
    FlowSampleRow {
        time_s: now.as_secs_f64(),
        flow_id: flow.number,
        group: Name(flow.group),
        snd_cwnd_pkts: sender.window() as f64 / full,
        snd_ssthresh_pkts: (ssthresh != u64::MAX).then_some(ssthresh as f64 / full),
        bytes_in_flight: recovery.bytes_in_flight(),
        srtt_us: estimate.map(|(srtt, _)| micros(srtt)),
        rttvar_us: estimate.map(|(_, rttvar)| micros(rttvar)),
        rto_us: micros(recovery.probe_timeout()),
        delivered: flow.delivered_bytes(),
        retrans: counters.retransmissions,
        ca_state: Name(if congestion.is_recovering() { 2 } else { 0 }),
        min_rtt_us: congestion.controller().min_rtt().map(micros),
        ..FlowSampleRow::default()
    }
}

/// A sample of an endpoint from outside, as far as it reports.
fn endpoint_sample(now: Time, flow: &Flow, endpoints: &Endpoints) -> FlowSampleRow {
    let report = endpoints.report(Side::Source);
    let full = endpoints.largest_payload(Side::Source).max(1) as f64;
    FlowSampleRow {
        time_s: now.as_secs_f64(),
        flow_id: flow.number,
        group: Name(flow.group),
        snd_cwnd_pkts: report.cwnd.map_or(0.0, |cwnd| cwnd as f64 / full),
        srtt_us: report.rtt.map(micros),
        delivered: endpoints.delivered_bytes(),
        retrans: report.lost,
        ..FlowSampleRow::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting_begins_when_the_last_flow_has_started() {
        let mut fairness = Fairness::new(0.95);
        assert!(!fairness.reached([Some(1000), None].into_iter()));
        assert!(!fairness.reached([Some(5000), Some(0)].into_iter()), "from here on");
        assert!(fairness.reached([Some(5700), Some(500)].into_iter()), "700 and 500");
    }

    #[test]
    fn two_flows_reach_095_when_the_lesser_has_386_thousandths() {
        // (Σx)²/(2 Σx²) = 0.95 for x = (1 − s, s) at s = (1 − √(1/0.95 − 1)) / 2 = 0.3853.
        for (lesser, reached) in [(3852, false), (3854, true)] {
            let mut fairness = Fairness::new(0.95);
            assert!(!fairness.reached([Some(0), Some(0)].into_iter()));
            let shares = [Some(10_000 - lesser), Some(lesser)];
            assert_eq!(fairness.reached(shares.into_iter()), reached, "{lesser}");
        }
    }

    #[test]
    fn a_flow_alone_and_flows_without_a_byte_share_nothing() {
        let mut alone = Fairness::new(0.5);
        assert!(!alone.reached([Some(0)].into_iter()));
        assert!(!alone.reached([Some(1000)].into_iter()));
        let mut idle = Fairness::new(0.5);
        assert!(!idle.reached([Some(0), Some(0)].into_iter()));
        assert!(!idle.reached([Some(0), Some(0)].into_iter()));
    }
}
