//! Plans and runs as data: the cells of a plan, and the scenario of each with every default filled
//! in, from which a simulated network is built.

use std::collections::BTreeMap;

use cwnd_apps::{ArrivalParams, AttackerParams, Transport, WorkloadParams};
use cwnd_aqm::{MessengerParams, MeterParams, QueueParams};
use cwnd_cc::ControllerParams;
use cwnd_quantity::{Duration, DurationDist, Rate, Rng, Streams, Time};
use cwnd_schema::file::Diagnostics;
use cwnd_schema::{Choice, ParamsChoice as _, SectionKeys, Share};

use crate::impairments::{Impairments, Tampering};
use crate::link_rate::LinkRate;
use crate::routes::{Edge, Routes};
use crate::run::{Noise, Run};
use crate::stack::StackParts;

/// MTU of Ethernet, bytes.
const FULL_PACKET_BYTES: u64 = 1500;

/// Fully resolved scenario of one cell: all defaults filled in, no sweep, one seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Version of the file format that selected its defaults.
    pub schema: u64,
    /// Short name, used for the output directory.
    pub name: String,
    /// Question that the scenario answers.
    pub description: String,
    /// Length, warm-up, seed and sampling.
    pub run: Run,
    /// Selection of requests and connections that get rows in the results.
    pub record: Record,
    /// Names of the nodes; links and flows refer to them by index.
    pub nodes: Vec<String>,
    /// Drawing position of each node, by node index; `None` if the file gives none.
    pub node_positions: Vec<Option<NodePosition>>,
    /// Directed links.
    pub links: Vec<Link>,
    /// Groups of flows.
    pub flows: Vec<FlowGroup>,
}

/// Position of a node in drawings.
#[derive(Clone, Copy, Debug, PartialEq, SectionKeys)]
pub struct NodePosition {
    /// Horizontal position, rightwards; a longitude in degrees, or any other unit.
    #[required("none")]
    pub x: f64,
    /// Vertical position, upwards; a latitude in degrees, or any other unit.
    #[required("none")]
    pub y: f64,
}

impl Scenario {
    /// Iterates over the groups whose flows are connections.
    pub fn connections(&self) -> impl Iterator<Item = &FlowGroup> {
        self.flows.iter().filter(|group| group.connects())
    }

    /// Returns the shortest paths between the nodes.
    #[must_use]
    pub fn routes(&self) -> Routes {
        Routes::new(self.links.iter().map(Edge::of).collect(), self.nodes.len())
    }

    /// Sum over all links that data crosses, bit/s: of the highest rate, or of the datagrams sent
    /// if that is more, as the hosts handle those that the link drops, too. Each datagram counts as
    /// at least a full packet. `None` if all links are unlimited.
    #[must_use]
    pub fn routed_bit_s(&self) -> Option<f64> {
        let mut crossed: BTreeMap<usize, f64> = BTreeMap::new();
        for group in &self.flows {
            let offered = match group.workload.facts().transport {
                Transport::Connection => 0.0,
                Transport::Datagrams { rate, size, .. } => {
                    let datagrams_s = f64::from(group.count) * rate.0 as f64 / size.0 as f64;
                    datagrams_s * size.0.max(FULL_PACKET_BYTES) as f64
                }
            };
            for &link in group.paths.iter().flat_map(|path| &path.route) {
                *crossed.entry(link).or_default() += offered;
            }
        }
        let rate = |link: usize| self.links[link].rate.highest_bit_s().unwrap_or(0.0);
        let sum: f64 = crossed.into_iter().map(|(link, offered)| rate(link).max(offered)).sum();
        (sum > 0.0).then_some(sum)
    }

    /// Propagation delay of one round trip over a path: the sum over its forward and reverse links.
    #[must_use]
    pub fn propagation(&self, path: &FlowPath) -> Duration {
        path.links().fold(Duration::ZERO, |sum, i| sum + self.links[i].delay)
    }

    /// `true` if each flow of the group needs its own hosts, because of its delay or access rate.
    #[must_use]
    pub fn has_own_hosts(&self, group: &FlowGroup) -> bool {
        self.has_own_delays(group) || group.edge_rate.is_some()
    }

    /// `true` if the edge delay is drawn for each flow of the group.
    #[must_use]
    pub fn has_own_delays(&self, group: &FlowGroup) -> bool {
        group.edge_rtt.varies() || group.rtt_step > Duration::ZERO || self.run.noise != Noise::None
    }

    /// Draws the round-trip propagation between a flow's hosts and the graph. The group's
    /// distribution draws from `rng`, the noise from a stream named after the flow. `links` is the
    /// round-trip propagation of the flow's path. `name` is `flow.GROUP.INDEX`, perhaps with more.
    #[must_use]
    pub fn draw_edge_rtt(
        &self,
        group: &FlowGroup,
        links: Duration,
        name: &str,
        (rng, random): (&mut Rng, &Streams),
    ) -> Duration {
        let edge = group.edge_rtt.sample(rng) + group.rtt_step_of(name);
        self.run.noise.draw(edge, links, || random.named(&format!("{name}.noise")))
    }
}

impl Edge {
    fn of(link: &Link) -> Self {
        Self { name: link.name.clone(), from: link.from, to: link.to, delay: link.delay }
    }
}

/// Parts of requests and connections that have a row each in the results.
#[derive(Clone, Copy, Debug, PartialEq, SectionKeys)]
#[section(default)]
pub struct Record {
    /// Share of the clients' requests that have rows in the table `requests`, drawn at random.
    #[default("all", "cwnd: all that a run gives is there unless less is asked for")]
    #[bounds(
        from 0.0, up_to 1.0;
        "it is a part of them: write \"all\", \"none\" or a share such as 0.01"
    )]
    pub requests: Share,
    /// Share of the arriving connections that have rows in the table `flows`, drawn at random.
    /// Flows that exist from the start always have a row.
    #[default("all", "cwnd: all that a run gives is there unless less is asked for")]
    #[bounds(
        from 0.0, up_to 1.0;
        "it is a part of them: write \"all\", \"none\" or a share such as 0.01"
    )]
    pub flows: Share,
}

/// A directed link: queue, then line rate, then propagation.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Name of the link, unique.
    pub name: String,
    /// Node it leaves.
    pub from: usize,
    /// Node it enters.
    pub to: usize,
    /// Line rate.
    pub rate: LinkRate,
    /// One-way propagation delay.
    pub delay: Duration,
    /// Queue discipline before it; without effect if the rate is unlimited.
    pub queue: QueueParams,
    /// Meter that writes into its packets beside the queue; without effect if the rate is
    /// unlimited.
    pub meter: MeterParams,
    /// Messenger that reports the queue's decisions to the sources; without effect if the rate is
    /// unlimited.
    pub messenger: MessengerParams,
    /// Packets that the device below the queue holds besides the one it sends.
    pub device_queue: u32,
    /// `true` if packets without data are served before those in the queue.
    pub acks_first: bool,
    /// Round-trip time that sizes in BDP refer to.
    pub bdp_rtt: Duration,
    /// Loss, reordering, jitter and other impairments of the link.
    pub impairments: Impairments,
    /// Changes that a middlebox behind it makes to packets.
    pub tampering: Tampering,
}

/// Flows that are alike.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowGroup {
    /// Name of the group, unique.
    pub name: String,
    /// Number of flows; for arriving flows, number of independent arrival processes.
    pub count: u32,
    /// Nodes of the senders.
    pub from: Vec<usize>,
    /// Nodes of the receivers.
    pub to: Vec<usize>,
    /// Relative frequencies of the pairs of nodes, if the group gives pairs or peers.
    pub shares: Option<Shares>,
    /// Rule by which a flow chooses among several paths.
    pub ends: Ends,
    /// Paths between them, never empty. Pairs keep their order; otherwise all senders' paths to the
    /// first receiver come first, then those to the second. Paths from a node to itself are left
    /// out.
    pub paths: Vec<FlowPath>,
    /// Round-trip propagation between the hosts and the graph, drawn per flow. Half of it lies
    /// before the receiver, half after it.
    pub edge_rtt: DurationDist,
    /// Rate of each host's own interface; `None` if unlimited.
    pub edge_rate: Option<Rate>,
    /// Start time of a flow or arrival process, drawn for each; `spacing` comes on top.
    pub start: DurationDist,
    /// Start offset per flow index, from 0: flow i starts later by i times this.
    pub spacing: Duration,
    /// RTT added per flow index, from 0: that of flow i is longer by i times this.
    pub rtt_step: Duration,
    /// Stop time of bulk flows, datagrams, web sessions without end and arrivals; `None` is the end
    /// of the run.
    pub stop: Option<Time>,
    /// Workload: the data that the flows send.
    pub workload: WorkloadParams,
    /// Arrival process, unless the workload has its own.
    pub arrivals: ArrivalParams,
    /// Attacker of each of their connections.
    pub attacker: AttackerParams,
    /// Stack of controller and endpoint with its presets; `None` for datagrams, and in schema 1 if
    /// the file names none.
    pub stack: Option<Stack>,
    /// Congestion controller; without effect on datagrams.
    pub controller: ControllerParams,
    /// The other TCP parameters; without effect on datagrams and if `quic` is set.
    pub endpoint: cwnd_tcp::Params,
    /// QUIC parameters, if the flows use QUIC instead of TCP.
    pub quic: Option<cwnd_tcp::quic::Params>,
}

/// Stack of a group, and the presets in force for its two halves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// Name of the stack, which is an endpoint preset, and the parts added to it or removed.
    pub parts: StackParts,
    /// Preset of the endpoint: the stack's, unless the file names another one.
    pub endpoint: &'static str,
    /// Preset of the controller: the stack's, unless the file names another one; `None` for the
    /// defaults of its kind.
    pub controller: Option<&'static str>,
}

/// Path of a flow: its end nodes and its links in both directions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowPath {
    /// Node of the sender, where the path starts.
    pub from: usize,
    /// Node of the receiver, where the path ends.
    pub to: usize,
    /// Links that data crosses, in order.
    pub route: Vec<usize>,
    /// Links that ACKs cross, in order.
    pub reverse: Vec<usize>,
}

impl FlowPath {
    /// Iterates over the links of the round trip: data links, then ACK links.
    pub fn links(&self) -> impl Iterator<Item = usize> + Clone + use<'_> {
        self.route.iter().chain(&self.reverse).copied()
    }
}

/// Relative frequencies at which pairs of nodes are drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Shares {
    /// Weight of each pair, above zero, dimensionless.
    each: Vec<f64>,
    /// Cumulative sums of the weights.
    sums: Vec<f64>,
}

impl Shares {
    /// Creates shares from weights that are all finite and above zero.
    #[must_use]
    pub fn new(each: Vec<f64>) -> Self {
        let sums = each.iter().scan(0.0, |sum, share| {
            *sum += share;
            Some(*sum)
        });
        let sums = sums.collect();
        Self { each, sums }
    }

    /// Returns the weights, by pair.
    #[must_use]
    pub fn each(&self) -> &[f64] {
        &self.each
    }

    /// Draws the index of a pair in proportion to its weight.
    fn draw(&self, rng: &mut Rng) -> usize {
        let last = self.sums.len() - 1;
        let at = rng.unit() * self.sums[last];
        // The product may round up to the last sum, which no entry exceeds.
        self.sums.partition_point(|&sum| sum <= at).min(last)
    }
}

impl FlowGroup {
    /// RTT that `rtt_step` adds to the flow with this name, `flow.GROUP.INDEX`, perhaps with more.
    fn rtt_step_of(&self, name: &str) -> Duration {
        if self.rtt_step == Duration::ZERO {
            return Duration::ZERO;
        }
        let rest = name.strip_prefix("flow.").and_then(|name| name.strip_prefix(&self.name));
        let index = rest.and_then(|rest| rest.split('.').nth(1));
        self.rtt_step * index.and_then(|index| index.parse().ok()).unwrap_or(0)
    }

    /// Returns the name of the controller in results: its kind, with the class or file of code;
    /// `none` for datagrams.
    #[must_use]
    pub fn controller_label(&self) -> String {
        if !self.connects() {
            return "none".to_owned();
        }
        let kind = self.controller.kind();
        match &self.controller {
            ControllerParams::Python(params) => format!("{kind}:{}", params.class.class),
            ControllerParams::C(params) => {
                format!("{kind}:{}", params.name.as_ref().unwrap_or(&params.path.name))
            }
            _ => kind.to_owned(),
        }
    }

    /// Payload of a full-sized packet in bytes.
    #[must_use]
    pub fn full_payload(&self) -> u64 {
        self.quic.as_ref().map_or(self.endpoint.packets.mss.0, |quic| quic.sizes().payload.into())
    }

    /// Header bytes of a full-sized packet on the wire.
    pub(crate) fn headers(&self) -> u64 {
        self.quic.as_ref().map_or(self.endpoint.packets.header.0, |quic| {
            quic.header.0 + u64::from(quic.sizes().overhead)
        })
    }

    /// Bytes of a SYN towards the receiver of the data, 0 without a handshake. Connections of QUIC
    /// are open from the start.
    pub(crate) fn opening(&self) -> u64 {
        let opens = self.quic.is_none() && self.endpoint.connection.handshake;
        if opens { self.endpoint.packets.ack_size.0 } else { 0 }
    }

    /// Returns the arrival process of the flows, the workload's or the group's; `None` if they
    /// exist from the start.
    #[must_use]
    pub fn arriving(&self) -> Option<ArrivalParams> {
        if self.arrivals.arriving().is_none() {
            return self.workload.facts().arrivals.map(ArrivalParams::from);
        }
        Some(self.arrivals.clone())
    }

    /// `true` if its flows are connections, of TCP or QUIC; `false` for datagrams.
    #[must_use]
    pub fn connects(&self) -> bool {
        self.workload.facts().transport == Transport::Connection
    }

    /// `true` if all flows share one path between two nodes, for which a file may give `route`.
    pub(crate) fn has_route(&self) -> bool {
        self.shares.is_none() && self.paths.len() == 1 && self.from.len() + self.to.len() == 2
    }

    /// Iterates over the paths with the long-run share of the flows that take each.
    pub fn path_shares(&self) -> impl Iterator<Item = (&FlowPath, f64)> {
        let each = self.shares.as_ref().filter(|_| self.ends == Ends::Random).map(Shares::each);
        let sum = each.map_or(self.paths.len() as f64, |each| each.iter().sum());
        let share = move |i: usize| each.map_or(1.0, |each| each[i]) / sum;
        self.paths.iter().enumerate().map(move |(i, path)| (path, share(i)))
    }

    /// Returns the index of the first path between two nodes; `None` for a node matches any.
    #[must_use]
    pub fn path_between(&self, from: Option<usize>, to: Option<usize>) -> Option<usize> {
        let fits = |node: usize, asked: Option<usize>| asked.is_none_or(|asked| asked == node);
        self.paths.iter().position(|path| fits(path.from, from) && fits(path.to, to))
    }

    /// Returns the index of the path that flow `nth` takes, counted from 0. `stream` opens the
    /// flow's own random stream, and is not called if there is one path or no random choice.
    pub fn choose_path(&self, nth: u64, stream: impl FnOnce() -> Rng) -> usize {
        let paths = self.paths.len() as u64;
        let path = match self.ends {
            _ if paths == 1 => 0,
            Ends::Random => match &self.shares {
                Some(shares) => shares.draw(&mut stream()) as u64,
                None => stream().below(paths),
            },
            Ends::RoundRobin => nth % paths,
        };
        path as usize
    }
}

/// All runs of a document, with every cell built.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Short name of the scenario.
    pub name: String,
    /// Question that the scenario answers.
    pub description: String,
    /// Names of the sweep's axes, in order.
    pub axes: Vec<String>,
    /// One for each combination of the axes' values and each seed.
    pub cells: Vec<Cell>,
    /// Warnings: settings that are valid but probably not intended.
    pub warnings: Diagnostics,
}

/// One run of a plan.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Position in the plan.
    pub index: usize,
    /// Its value on each axis.
    pub axes: Vec<AxisValue>,
    /// Seed of its random streams.
    pub seed: u64,
    /// Fully resolved scenario of the run.
    pub scenario: Scenario,
    /// The scenario as a file with its defaults written out; it reads back to an equal `scenario`.
    pub resolved_toml: String,
    /// Hash of `resolved_toml` with the former names of renamed keys, 32 hexadecimal digits.
    pub id: String,
}

/// The value of a cell on one axis.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisValue {
    /// Name of the axis that the value is on.
    pub axis: String,
    /// Label of the value, for display.
    pub label: String,
    /// The value in SI base units, if all values of the axis are quantities of one unit.
    pub value: Option<f64>,
    /// The unit of `value`: `s`, `bit/s`, `B`, `packets`, `BDP`, or none for a plain number.
    pub unit: Option<&'static str>,
}

/// An axis of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Name of the axis, as in `[sweep.axis.NAME]`.
    pub name: String,
    /// Labels of its values, for display.
    pub labels: Vec<String>,
    /// Its values in SI base units, if all of them are quantities of one unit.
    pub values: Option<Vec<f64>>,
    /// The unit of `values`: `s`, `bit/s`, `B`, `packets`, `BDP`, or none for plain numbers.
    pub unit: Option<&'static str>,
    /// Baselines of the axis: a label, and the labels over which its gain is computed.
    pub over: Vec<(String, Vec<String>)>,
}

/// A key that asks for something that a world (simulator or Linux) does not support.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Path of the key, part by part: `["flow", "main", "endpoint", "prr"]`.
    pub key: Vec<String>,
    /// Message that names the unsupported setting.
    pub message: String,
    /// Remedy, such as a supported value.
    pub help: Option<String>,
}

/// Choice of its path by each flow of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Ends {
    /// Each flow draws a path: by the shares of `pairs`, otherwise all equally likely.
    #[name("random")]
    Random,
    /// Flows take the paths in turn, in their order.
    #[name("round-robin")]
    RoundRobin,
}
