//! Reader of the sections `[dumbbell]` and `[link.*]`: nodes and links.

use std::collections::BTreeMap;

use cwnd_aqm::{MessengerParams, MeterParams, QueueParams};
use cwnd_quantity::{Duration, Rate};
use cwnd_schema::SectionKeys;
use cwnd_schema::file::{At, Context, Entry, Section, SectionKeys as _, Span, Table, list};

use crate::impairments::{Impairments, Tampering};
use crate::link_rate::{LinkRate, TraceFile};
use crate::model::Link;
use crate::routes::{Edge, Routes};
use crate::value_forms;

/// Nodes and links of a scenario; a link whose keys could not be read is `None`.
pub(crate) struct Topology {
    pub nodes: Vec<String>,
    pub names: Vec<String>,
    pub links: Vec<Option<DraftLink>>,
    /// Shortest paths through the graph, if the ends of all links are known.
    pub routes: Option<Routes>,
    /// Values that only a dumbbell has.
    pub dumbbell: Option<Dumbbell>,
    known: Known,
}

impl Topology {
    /// Returns the index of the node with this name.
    pub fn node_called(&self, name: &str) -> Option<usize> {
        self.known.nodes.get(name).copied()
    }

    /// Reports a `[node.*]` section whose node no link names, unless a link could not be read: that
    /// link may name it.
    pub fn unknown_node(&self, entry: &Entry, path: &str, cx: &mut Context<'_>) {
        if self.routes.is_none() {
            return;
        }
        let name = &entry.key;
        let message = format!("there is no node `{name}`: no link leaves or enters it");
        let names = self.nodes.iter().map(String::as_str);
        let help = match cx.sink.closest(name, names.clone()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are {}", list(names)),
        };
        cx.sink.error(entry.key_span, path, message).help(help);
    }

    /// Returns the index of the link with this name.
    pub fn link_called(&self, name: &str) -> Option<usize> {
        self.known.links.get(name).copied()
    }
}

/// Indices of nodes and links by name.
#[derive(Default)]
struct Known {
    nodes: BTreeMap<String, usize>,
    links: BTreeMap<String, usize>,
}

/// A link whose `bdp_rtt` may still depend on the flows through it.
pub(crate) struct DraftLink {
    pub link: Link,
    pub bdp_rtt: Option<Duration>,
    /// Position and key path of its queue and of its meter, for errors.
    pub written: [(Span, String); 2],
}

/// Values of a dumbbell in addition to its links.
pub(crate) struct Dumbbell {
    pub delay: Option<Duration>,
    pub edge_rate: Option<Option<Rate>>,
}

const LEFT: usize = 0;
const RIGHT: usize = 1;

/// Keys of a link's line and of the router before it.
#[derive(SectionKeys)]
#[section(check = one_rate)]
pub(crate) struct Line {
    /// Line rate; `"none"` is a pure delay without a queue.
    #[entry(value_forms::LINK_RATE)]
    #[required("none", unless trace)]
    rate: Option<LinkRate>,
    /// The file of a [trace](#rates) in place of `rate`, mahimahi's or of seconds and Mbit/s.
    #[entry(value_forms::TRACE_FILE)]
    #[derived("none; short for `rate = { trace = … }`", "mahimahi, mm-link")]
    trace: Option<TraceFile>,
    /// One-way propagation delay.
    #[default("0 ms", "cwnd: all of the delay is at the hosts")]
    delay: Duration,
    /// Queue before the link.
    #[entry(value_forms::QUEUE)]
    #[default("fifo", "cwnd: what a router does that was told nothing")]
    queue: QueueParams,
    /// Meter that writes into packets beside the queue: load factors, rates or marks.
    #[entry(value_forms::METER)]
    #[default("none", "cwnd: routers forward packets as they are")]
    meter: MeterParams,
    /// Messenger that notifies the sources of packets that the queue marks or drops.
    #[entry(value_forms::MESSENGER)]
    #[default("none", "RFC 6633 § 4: routers send no source quenches")]
    messenger: MessengerParams,
    /// Packets that the device below the queue discipline takes in advance, besides the one it
    /// sends. The discipline neither counts nor delays them.
    #[default(
        0,
        "cwnd: none, the line takes from the discipline; ns-3 has 1 and more, a network card many"
    )]
    #[bounds(up_to u32::MAX)]
    device_queue: u32,
    /// `true` if packets without data, such as ACKs, wait in a queue of their own, which is served
    /// before `queue`.
    #[default(false, "cwnd: all packets wait in one queue; VCP's program for ns-2: ACKs first")]
    acks_first: bool,
}

/// Keys of `[dumbbell]`.
#[derive(SectionKeys)]
pub(crate) struct DumbbellKeys {
    #[flatten(
        rate = (
            "Rate of the bottleneck, from left to right.",
            "none: the bottleneck is what a scenario is about",
        ),
        delay = (
            "One-way propagation delay of the bottleneck itself, the same in each direction.",
            "cwnd: all of the delay is at the hosts, so that each group has its own RTT",
        ),
        queue = (
            "What waits before the bottleneck.",
            "cwnd: what a router does that was told nothing",
        ),
        acks_first = (
            "`true` if packets without data, such as ACKs, wait in a queue of their own, which is \
             served before `queue` and `reverse_queue`.",
            "cwnd: all packets wait in one queue; VCP's program for ns-2: ACKs first",
        ),
    )]
    line: Line,
    /// Rate of the reverse link.
    #[entry(value_forms::LINK_RATE)]
    #[derived("as `rate`", "cwnd: a symmetric line")]
    reverse_rate: Option<LinkRate>,
    /// Queue before the reverse link.
    #[entry(value_forms::QUEUE)]
    #[default(
        { kind = "fifo", limit = "1000 packets" },
        "Linux: the usual device queue (txqueuelen) is 1000 packets"
    )]
    reverse_queue: QueueParams,
    /// Meter that writes into packets beside the queue of the reverse link.
    #[entry(value_forms::METER)]
    #[default("none", "cwnd: routers forward packets as they are")]
    reverse_meter: MeterParams,
    /// Messenger that notifies the sources of packets that the queue of the reverse link marks or
    /// drops.
    #[entry(value_forms::MESSENGER)]
    #[default("none", "RFC 6633 § 4: routers send no source quenches")]
    reverse_messenger: MessengerParams,
    /// Rate of each host's own interface.
    #[default("none", "cwnd: the bottleneck is the only one")]
    edge_rate: Option<Rate>,
    /// Round-trip time that sizes in BDP refer to.
    #[derived(
        "the largest mean base RTT of the groups",
        "cwnd: the bandwidth-delay product of the longest path"
    )]
    bdp_rtt: Option<Duration>,
    #[flatten]
    impairments: Impairments,
    #[flatten]
    tampering: Tampering,
}

/// Keys of `[link.NAME]`.
#[derive(SectionKeys)]
pub(crate) struct LinkKeys {
    /// Node that the link leaves.
    #[required("none")]
    from: String,
    /// Node that the link enters.
    #[required("none")]
    to: String,
    #[flatten]
    line: Line,
    /// Adds a second link back, called `NAME.reverse`, with the same settings.
    #[default(false, "cwnd: links are directed")]
    duplex: bool,
    /// Round-trip time that sizes in BDP refer to.
    #[derived(
        "the largest mean base RTT of the groups through the link",
        "cwnd: the bandwidth-delay product of the longest path"
    )]
    bdp_rtt: Option<Duration>,
    #[flatten]
    impairments: Impairments,
    #[flatten]
    tampering: Tampering,
}

impl Line {
    fn of(link: &Link) -> Self {
        Self {
            rate: Some(link.rate.clone()),
            trace: None,
            delay: link.delay,
            queue: link.queue.clone(),
            meter: link.meter.clone(),
            messenger: link.messenger.clone(),
            device_queue: link.device_queue,
            acks_first: link.acks_first,
        }
    }
}

impl DumbbellKeys {
    /// Returns the keys that describe a dumbbell's links.
    pub fn of(forward: &Link, reverse: &Link, edge_rate: Option<Rate>) -> Self {
        Self {
            line: Line::of(forward),
            reverse_rate: Some(reverse.rate.clone()),
            reverse_queue: reverse.queue.clone(),
            reverse_meter: reverse.meter.clone(),
            reverse_messenger: reverse.messenger.clone(),
            edge_rate,
            bdp_rtt: Some(forward.bdp_rtt),
            impairments: forward.impairments.clone(),
            tampering: forward.tampering,
        }
    }
}

impl LinkKeys {
    /// Returns the keys that describe a link; `nodes` has the names of the nodes.
    pub fn of(link: &Link, nodes: &[String]) -> Self {
        Self {
            from: nodes[link.from].clone(),
            to: nodes[link.to].clone(),
            line: Line::of(link),
            // A duplex link was split into two when the file was read.
            duplex: false,
            bdp_rtt: Some(link.bdp_rtt),
            impairments: link.impairments.clone(),
            tampering: link.tampering,
        }
    }
}

/// Reports a link that gives both `rate` and `trace`.
fn one_rate(_: &PartialLine, section: &Section<'_>, cx: &mut Context<'_>) {
    if let (Some(_), Some(trace)) = (section.entry("rate"), section.entry("trace")) {
        let message = "`rate` and `trace` both say how fast the link is: keep one";
        cx.sink.error(trace.key_span, section.path_of("trace"), message);
    }
}

/// Reads `[dumbbell]`: two nodes, the bottleneck and the reverse link.
pub(crate) fn dumbbell(table: &Table, at: Span, cx: &mut Context<'_>) -> Topology {
    let section = Section::new(table, &[DumbbellKeys::KEYS], "dumbbell", at, cx);
    let PartialDumbbellKeys {
        line,
        reverse_rate,
        reverse_queue,
        reverse_meter,
        reverse_messenger,
        edge_rate,
        bdp_rtt,
        impairments,
        tampering,
    } = DumbbellKeys::read_keys(&section, cx);
    let delay = line.delay;
    let impairments = Impairments::complete_and_reset(impairments, &section, cx);
    // The middlebox sits on both links: data has options, and so have ACKs.
    let tampering = Tampering::complete_and_reset(tampering, &section, cx);
    let back = PartialLine {
        rate: reverse_rate.and_then(|rate| rate.or_else(|| line.rate())).map(Some),
        trace: Some(None),
        delay,
        queue: reverse_queue,
        meter: reverse_meter,
        messenger: reverse_messenger,
        device_queue: Some(0),
        acks_first: line.acks_first,
    };
    let forward = draft(
        link(Ends { name: "bottleneck", from: LEFT, to: RIGHT }, &line, impairments, tampering),
        bdp_rtt,
        written(&section, ["queue", "meter"]),
    );
    let none = Some(Impairments::default());
    let reverse = draft(
        link(Ends { name: "reverse", from: RIGHT, to: LEFT }, &back, none, tampering),
        bdp_rtt,
        written(&section, ["reverse_queue", "reverse_meter"]),
    );
    let edge = |name: &str, from, to| Edge {
        name: name.to_owned(),
        from,
        to,
        delay: delay.unwrap_or_default(),
    };
    Topology {
        nodes: vec!["left".to_owned(), "right".to_owned()],
        names: vec!["bottleneck".to_owned(), "reverse".to_owned()],
        known: Known {
            nodes: BTreeMap::from([("left".to_owned(), LEFT), ("right".to_owned(), RIGHT)]),
            links: BTreeMap::new(),
        },
        links: vec![forward, reverse],
        routes: Some(Routes::new(
            vec![edge("bottleneck", LEFT, RIGHT), edge("reverse", RIGHT, LEFT)],
            2,
        )),
        dumbbell: Some(Dumbbell { delay, edge_rate }),
    }
}

/// Reads `[link.*]`, any directed graph.
pub(crate) fn graph(table: &Table, cx: &mut Context<'_>) -> Topology {
    let mut topology = Topology {
        nodes: Vec::new(),
        names: Vec::new(),
        known: Known::default(),
        links: Vec::new(),
        routes: None,
        dumbbell: None,
    };
    let mut edges = Some(Vec::new());
    for entry in &table.entries {
        let path = format!("link.{}", entry.key);
        match entry.node.table() {
            Some(link) => topology.add(link, entry, path, &mut edges, cx),
            None => {
                At { node: &entry.node, path: &path }
                    .wrong_kind("a table with `from`, `to` and `rate`", cx);
                edges = None;
            }
        }
    }
    topology.routes = edges.map(|edges| Routes::new(edges, topology.nodes.len()));
    topology
}

impl Topology {
    fn add(
        &mut self,
        table: &Table,
        entry: &Entry,
        path: String,
        edges: &mut Option<Vec<Edge>>,
        cx: &mut Context<'_>,
    ) {
        let section = Section::new(table, &[LinkKeys::KEYS], path, entry.key_span, cx);
        let PartialLinkKeys { from, to, line, duplex, bdp_rtt, impairments, tampering } =
            LinkKeys::read_keys(&section, cx);
        let from = self.node("from", from, &section, cx);
        let to = self.node("to", to, &section, cx);
        let impairments = Impairments::complete_and_reset(impairments, &section, cx);
        let tampering = Tampering::complete_and_reset(tampering, &section, cx);
        if from.is_some() && from == to {
            let message = "a link must not lead from a node to itself";
            cx.sink.error(section.span_of("to"), section.path_of("to"), message);
        }
        let mut directions = vec![(entry.key.clone(), from, to)];
        if duplex == Some(true) {
            directions.push((format!("{}.reverse", entry.key), to, from));
        }
        for (name, from, to) in directions {
            if self.known.links.insert(name.clone(), self.names.len()).is_some() {
                let message = format!("there is already a link called `{name}`");
                cx.sink.error(entry.key_span, &section.path, message);
            }
            let (Some(from), Some(to)) = (from, to) else {
                *edges = None;
                self.links.push(None);
                self.names.push(name);
                continue;
            };
            if let Some(edges) = edges {
                let delay = line.delay.unwrap_or_default();
                edges.push(Edge { name: name.clone(), from, to, delay });
            }
            let ends = Ends { name: &name, from, to };
            self.links.push(draft(
                link(ends, &line, impairments.clone(), tampering),
                bdp_rtt,
                written(&section, ["queue", "meter"]),
            ));
            self.names.push(name);
        }
    }

    /// Returns the node at one end of a link, and creates it if no earlier link names it.
    fn node(
        &mut self,
        key: &str,
        name: Option<String>,
        section: &Section<'_>,
        cx: &mut Context<'_>,
    ) -> Option<usize> {
        let name = name?;
        if name.is_empty() {
            cx.sink.error(section.span_of(key), section.path_of(key), "a node needs a name");
            return None;
        }
        let next = self.nodes.len();
        let place = *self.known.nodes.entry(name.clone()).or_insert(next);
        if place == next {
            self.nodes.push(name);
        }
        Some(place)
    }
}

struct Ends<'a> {
    name: &'a str,
    from: usize,
    to: usize,
}

impl PartialLine {
    /// Returns the rate given by either key.
    fn rate(&self) -> Option<LinkRate> {
        match &self.trace {
            Some(Some(trace)) => Some(trace.rate.clone()),
            Some(None) => self.rate.clone().flatten(),
            None => None,
        }
    }
}

/// Returns the link, if all of its settings could be read.
fn link(
    ends: Ends<'_>,
    line: &PartialLine,
    impairments: Option<Impairments>,
    tampering: Option<Tampering>,
) -> Option<Link> {
    Some(Link {
        name: ends.name.to_owned(),
        from: ends.from,
        to: ends.to,
        rate: line.rate()?,
        delay: line.delay?,
        queue: line.queue.clone()?,
        meter: line.meter.clone()?,
        messenger: line.messenger.clone()?,
        device_queue: line.device_queue?,
        acks_first: line.acks_first?,
        bdp_rtt: Duration::ZERO,
        impairments: impairments?,
        tampering: tampering?,
    })
}

fn draft(
    link: Option<Link>,
    bdp_rtt: Option<Option<Duration>>,
    written: [(Span, String); 2],
) -> Option<DraftLink> {
    Some(DraftLink { link: link?, bdp_rtt: bdp_rtt?, written })
}

fn written(section: &Section<'_>, keys: [&str; 2]) -> [(Span, String); 2] {
    keys.map(|key| (section.span_of(key), section.path_of(key)))
}
