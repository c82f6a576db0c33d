//! Collects the tables of a run from the counters of its components.

use std::collections::BTreeMap;

use cwnd_apps::Transport;
use cwnd_link::Counters;
use cwnd_quantity::{Duration, Streams, Time};
use cwnd_scenario::{FlowGroup, Scenario};
use cwnd_schema::ParamsChoice as _;
use cwnd_tables::{Activity, FlowSamples, Flows, LinkSamples, Records, Requests};
use cwnd_tcp::{ReceiverCounters, SenderCounters};

use crate::delays::UnloadedPaths;
use crate::drop_log::PacketCount;
use crate::fairness::{Fairness, shares_delivered};
use crate::flow::Flow;
use crate::network::Network;
use crate::row_sampling::{RowSampling, SKETCHED};

mod flows;
mod links;
mod requests;
mod series;

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
    /// Counters of each link at the end of the warm-up; empty before it and without one.
    links_at_warmup_end: Vec<Counters>,
    /// Dead packets of each link at the end of the warm-up; empty before it and without one.
    dead_at_warmup_end: Vec<PacketCount>,
    /// Delays of empty paths, for flows that record their queueing delays.
    unloaded_paths: UnloadedPaths,
    /// Duplicate segments received, by group and path.
    duplicates: BTreeMap<(u32, u32), u64>,
    totals: Totals,
    /// Fairness that ends the run early.
    fairness: Option<Fairness>,
}

/// Sums over all flows that started, with or without a row, and the whole run.
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
        Self { warmup, row_sampling, unloaded_paths, fairness, ..Self::default() }
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

    /// The finished tables. The caller fills in events and delivered packets.
    pub fn finish(mut self, end: Time, scenario: &Scenario, network: &mut Network) -> Records {
        let links = self.links(end, scenario, network);
        self.count_network(network);
        let names = |column: &str| labels(scenario, column);
        let (sketches, unrecorded) =
            self.row_sampling.map(|sampling| sampling.finish()).unwrap_or_default();
        Records {
            flows: self.flows.into_table(names),
            links: links.rows.into_table(names),
            reasons: links.reasons.into_table(names("link")),
            flow_series: self.flow_samples.into_table(names),
            link_series: self.link_samples.into_table(names),
            qdelay: links.qdelay.into_table(names),
            requests: self.requests.into_table(names),
            sketches: sketches.into_table(names),
            unrecorded: unrecorded.into_table(names),
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
        "controller" => scenario.flows.iter().map(controller_label).collect(),
        "link" => scenario.links.iter().map(|l| l.name.clone()).collect(),
        "gave_up" => GAVE_UP.map(str::to_owned).to_vec(),
        "what" => SKETCHED.map(str::to_owned).to_vec(),
        "outcome" => OUTCOMES.map(str::to_owned).to_vec(),
        "ca_state" => STATES.map(str::to_owned).to_vec(),
        _ => Vec::new(),
    }
}

/// The name of a group's controller; `none` for datagrams.
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

/// Bits per second of `bytes` over `seconds`; 0 over no time.
fn rate(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 }
}
