//! One run, with nothing left to decide: what a world is built from.

use cwnd_apps::{ArrivalParams, AttackerParams, WorkloadParams};
use cwnd_aqm::{MessengerParams, MeterParams, QueueParams};
use cwnd_cc::ControllerParams;
use cwnd_quantity::{Duration, DurationDist, Rate, Rng, Streams, Time};
use cwnd_schema::{SectionKeys, Share};

use crate::ends::Ends;
use crate::impairments::{Impairments, Tampering};
use crate::link_rate::LinkRate;
use crate::noise::Noise;
use crate::routes::{Edge, Routes};
use crate::run::Run;
use crate::stack::StackParts;

/// One cell of a scenario: all defaults filled in, no sweep, one seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Version of the file format that its defaults came from.
    pub schema: u64,
    /// Short name, used for the output directory.
    pub name: String,
    /// What question it answers.
    pub description: String,
    /// Length, warm-up, seed and sampling.
    pub run: Run,
    /// What has a row in the results.
    pub record: Record,
    /// Names of the nodes; links and flows refer to them by index.
    pub nodes: Vec<String>,
    /// By node: where it is drawn, if the file says so.
    pub places: Vec<Option<Place>>,
    /// Directed links.
    pub links: Vec<Link>,
    /// Groups of flows.
    pub flows: Vec<FlowGroup>,
}

/// Position of a node in pictures.
#[derive(Clone, Copy, Debug, PartialEq, SectionKeys)]
pub struct Place {
    /// Horizontal position, rightwards; a longitude in degrees, or any other unit.
    #[required("none")]
    pub x: f64,
    /// Vertical position, upwards; a latitude in degrees, or any other unit.
    #[required("none")]
    pub y: f64,
}

impl Scenario {
    /// The best ways between its nodes.
    #[must_use]
    pub fn routes(&self) -> Routes {
        Routes::new(self.links.iter().map(Edge::of).collect(), self.nodes.len())
    }

    /// The propagation delay of all links of a round.
    #[must_use]
    pub fn propagation(&self, way: &Way) -> Duration {
        way.links().fold(Duration::ZERO, |sum, i| sum + self.links[i].delay)
    }

    /// `true` if each flow of the group has hosts of its own: another delay or a rate.
    #[must_use]
    pub fn has_own_hosts(&self, group: &FlowGroup) -> bool {
        self.has_own_delays(group) || group.edge_rate.is_some()
    }

    /// `true` if the delay at the hosts is drawn for each flow of the group.
    #[must_use]
    pub fn has_own_delays(&self, group: &FlowGroup) -> bool {
        group.edge_rtt.varies() || self.run.noise != Noise::None
    }

    /// Draws the round-trip propagation between a flow's hosts and the graph: the group's own from
    /// `rng`, the noise from a stream named after the flow. `links` is that of the flow's path.
    #[must_use]
    pub fn draw_edge_rtt(
        &self,
        group: &FlowGroup,
        links: Duration,
        name: &str,
        (rng, random): (&mut Rng, &Streams),
    ) -> Duration {
        let edge = group.edge_rtt.sample(rng);
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
    /// Share of the clients' requests that have a row each in the table `requests`, drawn at
    /// random.
    #[default("all", "cwnd: all that a run gives is there unless less is asked for")]
    #[bounds(
        from 0.0, up_to 1.0;
        "it is a part of them: write \"all\", \"none\" or a share such as 0.01"
    )]
    pub requests: Share,
    /// The same of connections that arrive, in the table `flows`; those that are there from the
    /// beginning have a row each.
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
    /// Name, unique.
    pub name: String,
    /// Node it leaves.
    pub from: usize,
    /// Node it enters.
    pub to: usize,
    /// How fast it sends.
    pub rate: LinkRate,
    /// One-way propagation delay.
    pub delay: Duration,
    /// What waits before it; of no effect where the rate is unlimited.
    pub queue: QueueParams,
    /// What writes into its packets beside the queue; of no effect where the rate is unlimited.
    pub meter: MeterParams,
    /// What tells sources of what the queue decides; of no effect where the rate is unlimited.
    pub messenger: MessengerParams,
    /// Packets that the device below the queue holds besides the one it sends.
    pub device_queue: u32,
    /// The round-trip time that sizes in BDP refer to.
    pub bdp_rtt: Duration,
    /// What goes wrong on it.
    pub impairments: Impairments,
    /// What a middlebox does behind it.
    pub tampering: Tampering,
}

/// Flows that are alike.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowGroup {
    /// Name, unique.
    pub name: String,
    /// How many flows (for Poisson arrivals: how many independent arrival processes).
    pub count: u32,
    /// Nodes where the senders are.
    pub from: Vec<usize>,
    /// Nodes where the receivers are.
    pub to: Vec<usize>,
    /// The shares of the pairs of nodes, if the group gives pairs.
    pub shares: Option<Shares>,
    /// How a flow comes to its way, where there are several.
    pub ends: Ends,
    /// The ways between them, never none: those of the pairs in their order, or to the first receiver from each sender, to the
    /// second, and so on; without those that end where they begin.
    pub ways: Vec<Way>,
    /// Round-trip propagation between the hosts and the graph, drawn per flow; half before the receiver, half after it.
    pub edge_rtt: DurationDist,
    /// Rate of each host's own interface; `None` is unlimited.
    pub edge_rate: Option<Rate>,
    /// When the first flow starts (drawn per flow).
    pub start: DurationDist,
    /// Added to the start of flow i: i times this.
    pub spacing: Duration,
    /// When bulk flows and datagrams stop; `None` is the end of the run.
    pub stop: Option<Time>,
    /// What they send.
    pub workload: WorkloadParams,
    /// How they arrive, where the workload does not say so.
    pub arrivals: ArrivalParams,
    /// Who attacks each of their connections.
    pub attacker: AttackerParams,
    /// The stack of controller and endpoint and their presets, if the scenario names it.
    pub stack: Option<Stack>,
    /// Their congestion controller; of no effect on datagrams.
    pub controller: ControllerParams,
    /// The rest of their TCP; of no effect on datagrams and beside `quic`.
    pub endpoint: cwnd_tcp::Params,
    /// QUIC in place of TCP.
    pub quic: Option<cwnd_tcp::quic::Params>,
}

/// The stack of a group, and the presets that are in force beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// Its name, that of an endpoint preset, and the parts in which it differs.
    pub parts: StackParts,
    /// Preset of the endpoint: the stack's own, unless another one is written.
    pub endpoint: &'static str,
    /// Preset of the controller, in the same way; `None` for the defaults of its kind.
    pub controller: Option<&'static str>,
}

/// Where a flow's packets go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// Node where the sender is.
    pub from: usize,
    /// Node where the receiver is.
    pub to: usize,
    /// Links that data crosses, in order.
    pub route: Vec<usize>,
    /// Links that ACKs cross, in order.
    pub reverse: Vec<usize>,
}

impl Way {
    /// All links of the round, in order.
    pub fn links(&self) -> impl Iterator<Item = usize> + Clone + use<'_> {
        self.route.iter().chain(&self.reverse).copied()
    }
}

/// How often each of some pairs is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Shares {
    /// Each above zero; of no unit.
    each: Vec<f64>,
    /// Each with all before it.
    sums: Vec<f64>,
}

impl Shares {
    /// These, all above zero and finite.
    #[must_use]
    pub fn new(each: Vec<f64>) -> Self {
        let sums = each.iter().scan(0.0, |sum, share| {
            *sum += share;
            Some(*sum)
        });
        let sums = sums.collect();
        Self { each, sums }
    }

    /// By pair.
    #[must_use]
    pub fn each(&self) -> &[f64] {
        &self.each
    }

    /// A pair, in proportion to its share.
    fn draw(&self, rng: &mut Rng) -> usize {
        let last = self.sums.len() - 1;
        let at = rng.unit() * self.sums[last];
        self.sums.partition_point(|&sum| sum <= at).min(last)
    }
}

impl FlowGroup {
    /// Payload of a full packet.
    #[must_use]
    pub fn full_payload(&self) -> u64 {
        self.quic.as_ref().map_or(self.endpoint.packets.mss.0, |quic| quic.sizes().payload.into())
    }

    /// Headers of a full packet, on the wire.
    pub(crate) fn headers(&self) -> u64 {
        self.quic.as_ref().map_or(self.endpoint.packets.header.0, |quic| {
            quic.header.0 + u64::from(quic.sizes().overhead)
        })
    }

    /// Bytes that open a connection, towards its data's receiver: a SYN. QUIC's connections are
    /// open from the beginning.
    pub(crate) fn opening(&self) -> u64 {
        let opens = self.quic.is_none() && self.endpoint.connection.handshake;
        if opens { self.endpoint.packets.ack_size.0 } else { 0 }
    }

    /// How its flows arrive while the run goes on; `None` if they are there from the beginning.
    #[must_use]
    pub fn arriving(&self) -> Option<ArrivalParams> {
        if self.arrivals.arriving().is_none() {
            return self.workload.facts().arrivals.map(ArrivalParams::from);
        }
        Some(self.arrivals.clone())
    }

    /// `true` if all its flows go one way between two nodes, which a route may lead.
    pub(crate) fn has_route(&self) -> bool {
        self.shares.is_none() && self.ways.len() == 1 && self.from.len() + self.to.len() == 2
    }

    /// The part of its flows that go each of its ways, in the long run.
    pub fn parts(&self) -> impl Iterator<Item = (&Way, f64)> {
        let each = self.shares.as_ref().filter(|_| self.ends == Ends::Random).map(Shares::each);
        let sum = each.map_or(self.ways.len() as f64, |each| each.iter().sum());
        let part = move |i: usize| each.map_or(1.0, |each| each[i]) / sum;
        self.ways.iter().enumerate().map(move |(i, way)| (way, part(i)))
    }

    /// The first of its ways between two nodes; of one that is not given, any.
    #[must_use]
    pub fn way_between(&self, from: Option<usize>, to: Option<usize>) -> Option<usize> {
        let fits = |node: usize, asked: Option<usize>| asked.is_none_or(|asked| asked == node);
        self.ways.iter().position(|way| fits(way.from, from) && fits(way.to, to))
    }

    /// The way of one of its flows, the `nth` of them; `stream` gives the random stream of that flow's own for it. Where
    /// there is one way nothing is drawn.
    pub fn choose_way(&self, nth: u64, stream: impl FnOnce() -> Rng) -> usize {
        let ways = self.ways.len() as u64;
        let way = match self.ends {
            _ if ways == 1 => 0,
            Ends::Random => match &self.shares {
                Some(shares) => shares.draw(&mut stream()) as u64,
                None => stream().below(ways),
            },
            Ends::RoundRobin => nth % ways,
        };
        way as usize
    }
}
