//! Collects the tables of a run from the counters of its components, and ends a run at a given
//! fairness among its flows.

use std::collections::BTreeMap;

use cwnd_apps::Transport;
use cwnd_link::Counters;
use cwnd_quantity::{Duration, Streams, Time};
use cwnd_scenario::{FlowGroup, Scenario};
use cwnd_schema::ParamsChoice as _;
use cwnd_tables::{Activity, FlowSamples, Flows, LinkSamples, Records, Requests};
use cwnd_tcp::{ReceiverCounters, SenderCounters};

use crate::flow::Flow;
use crate::network::Network;
use crate::row_sampling::{RowSampling, SKETCHED};
use crate::segments::PacketCount;

mod flows;
mod links;

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

/// Jain's index of the bytes that long-lived flows delivered since the last of them started (ABE §
/// IV-C).
#[derive(Clone, Debug)]
pub struct Fairness {
    threshold: f64,
    /// Bytes that each flow had delivered when counting began; `None` before.
    before: Option<Vec<u64>>,
}

impl Fairness {
    /// Interval between two checks: about a thousandth of the convergence time on most paths. It is
    /// the accuracy of the result.
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
