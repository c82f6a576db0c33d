//! Keys of `[flow.NAME]`.

use cwnd_apps::{ArrivalParams, AttackerParams, Transport, WorkloadParams};
use cwnd_quantity::dist::Shape;
use cwnd_quantity::{Duration, DurationDist, Rate};
use cwnd_schema::file::{Context, Section};
use cwnd_schema::{Choice, ParamsChoice as _, SectionKeys};

use crate::model::{Ends, FlowGroup, Scenario};
use crate::pairs::Pairs;
use crate::stack::{self, StackParts};
use crate::value_forms::{self, MAX_FLOWS, Raw};

/// Keys of `[flow.NAME]` in every topology.
#[derive(SectionKeys)]
#[section(check = check)]
pub(crate) struct FlowKeys {
    /// Number of flows; of those that arrive, number of independent arrival processes.
    #[default(1, "cwnd: one flow shows the mechanism")]
    #[bounds(
        from 1, up_to MAX_FLOWS as u32;
        "a group of no flows does nothing, more can't be simulated"
    )]
    pub count: u32,
    /// Implementation of TCP, or QUIC: picks the presets of endpoint and controller, unless they
    /// name others.
    #[entry(value_forms::STACK)]
    #[by_schema(
        "rfc6675",
        "linux",
        "cwnd: what most senders run; schema 1 has RFC 6675 and RFC 6298"
    )]
    pub stack: StackParts,
    /// Congestion controller: a kind, or a table with `kind`, `preset` and its parameters.
    #[entry(value_forms::CONTROLLER)]
    #[default("newreno", "RFC 5681: the standard's own controller")]
    pub controller: Raw,
    /// The rest of TCP or QUIC: the name of a preset, or a table with `preset` and parameters.
    #[entry(value_forms::ENDPOINT)]
    #[derived("the preset of the `stack`", "cwnd: one name for both parts of a stack")]
    pub endpoint: Option<Raw>,
    /// Start of a flow or arrival process, drawn for each; `spacing` comes on top.
    #[default("0 s", "cwnd: at once")]
    pub start: DurationDist,
    /// Added to the start of flow i, counted from 0: i times this.
    #[default("0 s", "cwnd: all together")]
    pub spacing: Duration,
    /// Added to the round-trip time of flow i, counted from 0: i times this. Connections of an
    /// arrival process have the index of the process.
    #[default("0 ms", "cwnd: no steps, so that each RTT is a draw")]
    pub rtt_step: Duration,
    /// Stop time of bulk flows, of datagrams and of web sessions without end, after which no more
    /// connections arrive, either; `"none"` is the end of the run.
    #[default("none", "cwnd: never")]
    pub stop: Option<Duration>,
    /// Workload of the flows: a kind, or a table with `kind` and its keys.
    #[entry(value_forms::WORKLOAD)]
    #[default("bulk", "cwnd: a long-lived flow is the worst case for a queue (ABE § IV-B)")]
    pub workload: WorkloadParams,
    /// Arrivals of connections while the run goes on: a kind, or a table with `kind` and its keys.
    #[entry(value_forms::ARRIVALS)]
    #[default("none", "cwnd: the flows are there from the beginning")]
    pub arrivals: ArrivalParams,
    /// Sender of forged messages to each of the connections: a kind, or a table with `kind` and its
    /// keys.
    #[entry(value_forms::ATTACKER)]
    #[default("none", "cwnd: nobody")]
    pub attacker: AttackerParams,
}

/// Keys of `[flow.NAME]` in a dumbbell.
#[derive(SectionKeys)]
pub(crate) struct DumbbellFlowKeys {
    /// Base round-trip time of the whole path, drawn for each flow.
    #[required("none: the RTT is what a scenario is about")]
    pub rtt: DurationDist,
    /// Direction of data: from left to right, or back.
    #[default("forward", "cwnd: through the bottleneck's queue")]
    pub direction: Direction,
}

/// Direction of data through a dumbbell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Direction {
    /// From left to right.
    #[name("forward")]
    Forward,
    /// From right to left.
    #[name("reverse")]
    Reverse,
}

/// Keys of `[flow.NAME]` in a graph.
#[derive(SectionKeys)]
pub(crate) struct GraphFlowKeys {
    /// Node where the senders are, or a list of nodes.
    #[entry(value_forms::NODES)]
    #[derived("required, unless there are `pairs`", "none")]
    pub from: Option<Raw>,
    /// Node where the receivers are, or a list of nodes.
    #[entry(value_forms::NODES)]
    #[derived("required, unless there are `pairs`", "none")]
    pub to: Option<Raw>,
    /// Pairs of nodes between which the flows go, instead of `from` and `to`: a traffic matrix.
    #[entry(value_forms::PAIRS)]
    #[derived("each of `from` with each of `to`", "none")]
    pub pairs: Option<Pairs>,
    /// Number of peers of each node in `to`: senders drawn from the other nodes in `from` by the
    /// run's `seed`, the same for all repeats. Without a `count` there is one flow from each.
    #[default(
        "none",
        "none; Mondal & Kuzmanovic 2008, § 5.3: 5, for clients that download from each other"
    )]
    #[bounds(from 1, up_to u32::MAX; "peers that are none send nothing")]
    pub peers: Option<u32>,
    /// Choice of each flow's pair of nodes, if there are several.
    #[default("random", "cwnd: flows of many hosts know nothing of each other")]
    pub ends: Ends,
    /// Links that data crosses, in order; only between two nodes.
    #[entry(value_forms::ROUTE)]
    #[derived(
        "the shortest path",
        "cwnd: least delay, then fewest links, then the links that come first in the file"
    )]
    pub route: Option<Raw>,
    /// Links that ACKs cross, in order; only between two nodes.
    #[entry(value_forms::ROUTE)]
    #[derived(
        "the shortest path back",
        "cwnd: least delay, then fewest links, then the links that come first in the file"
    )]
    pub reverse_route: Option<Raw>,
    /// Round-trip propagation between the hosts and the graph, drawn for each flow.
    #[default("0 ms", "cwnd: the graph has all the delay")]
    pub edge_rtt: DurationDist,
    /// Rate of each host's own interface.
    #[default("none", "cwnd: the links are the only bottlenecks")]
    pub edge_rate: Option<Rate>,
}

/// Reports a `stop` before the start or without effect, and keys of a connection on datagrams.
fn check(found: &PartialFlowKeys, section: &Section<'_>, cx: &mut Context<'_>) {
    let mut report = |message: &str| {
        cx.sink.error(section.span_of("stop"), section.path_of("stop"), message);
    };
    if let (Some(Some(stop)), Some(start)) = (found.stop, &found.start)
        && stop <= earliest(start)
    {
        report(&format!("the flows stop at {stop}, before they start"));
    }
    let Some(workload) = &found.workload else { return };
    let facts = workload.facts();
    let arrive = found.arrivals.as_ref().is_some_and(|of| !of.arriving().is_none());
    let ends = !(facts.can_be_stopped || facts.arrivals.is_some() || arrive);
    if matches!(found.stop, Some(Some(_))) && ends {
        report(
            "only bulk flows, datagrams and arrivals can be stopped: the others end with their \
            transfers",
        );
    }
    if facts.transport == Transport::Connection {
        return;
    }
    for key in ["stack", "controller", "endpoint", "attacker"] {
        let Some(entry) = section.entry(key) else { continue };
        let message = format!("datagrams have no {key}: nothing answers them");
        let problem = cx.sink.error(entry.key_span, section.path_of(key), message);
        let kind = workload.kind();
        problem.help(format!("remove `{key}`, or take another workload than `{kind}`"));
    }
}

/// Lower bound of a draw.
pub(crate) fn earliest(dist: &DurationDist) -> Duration {
    match dist.0 {
        Shape::Constant(v) | Shape::Uniform(v, _) => Duration(v),
        _ => Duration::ZERO,
    }
}

impl FlowKeys {
    /// Returns the keys that describe a group.
    pub fn of(group: &FlowGroup) -> Self {
        let default = || StackParts::unchanged(stack::first());
        Self {
            count: group.count,
            stack: group.stack.as_ref().map_or_else(default, |stack| stack.parts.clone()),
            controller: Raw::name(group.controller.kind()),
            endpoint: None,
            start: group.start.clone(),
            spacing: group.spacing,
            rtt_step: group.rtt_step,
            stop: group.stop.map(|t| Duration(t.0)),
            workload: group.workload.clone(),
            arrivals: group.arrivals.clone(),
            attacker: group.attacker.clone(),
        }
    }
}

impl DumbbellFlowKeys {
    /// Returns the dumbbell keys that describe a group.
    pub fn of(group: &FlowGroup, scenario: &Scenario) -> Self {
        let is_forward = group.from == [0];
        Self {
            rtt: longer(&group.edge_rtt, scenario.links[0].delay * 2),
            direction: if is_forward { Direction::Forward } else { Direction::Reverse },
        }
    }
}

/// Adds the links' delay to the edge RTT: the RTT of the whole path, as a dumbbell states it.
fn longer(edge: &DurationDist, by: Duration) -> DurationDist {
    DurationDist(match edge.0 {
        Shape::Constant(v) => Shape::Constant(v + by.0),
        Shape::Uniform(low, high) => Shape::Uniform(low + by.0, high + by.0),
        // The reader accepts other shapes only if the links have no delay.
        _ => edge.0.clone(),
    })
}

impl GraphFlowKeys {
    /// Returns the graph keys that describe a group of the scenario.
    pub fn of(group: &FlowGroup, scenario: &Scenario) -> Self {
        let node = |&node: &usize| scenario.nodes[node].as_str();
        let ends = |nodes: &[usize]| match nodes {
            [one] => Raw::name(node(one)),
            several => Raw::names(several.iter().map(node)),
        };
        let pairs = group.shares.as_ref().map(|shares| Pairs::of(group, shares, scenario));
        let links = |route: &[usize]| {
            Raw::names(route.iter().map(|&link| scenario.links[link].name.as_str()))
        };
        // Paths between several nodes are always the shortest; reading the file finds them again.
        let path = group.paths.first().filter(|_| group.has_route());
        Self {
            from: pairs.is_none().then(|| ends(&group.from)),
            to: pairs.is_none().then(|| ends(&group.to)),
            pairs,
            peers: None,
            ends: group.ends,
            route: path.map(|path| links(&path.route)),
            reverse_route: path.map(|path| links(&path.reverse)),
            edge_rtt: group.edge_rtt.clone(),
            edge_rate: group.edge_rate,
        }
    }
}
