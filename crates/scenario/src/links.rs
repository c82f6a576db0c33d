//! The sections `[dumbbell]` and `[link.*]`: nodes and links.

use std::collections::BTreeMap;

use cwnd_aqm::{MessengerParams, MeterParams, QueueParams};
use cwnd_quantity::{Duration, Rate};

use crate::diagnostics::Span;
use crate::impairments::{Impairments, Tampering};
use crate::link_rate::LinkRate;
use crate::model::Link;
use crate::rates::{link_rate, trace_file};
use crate::reader::{At, Context, OptionalRate, Section, choice};
use crate::routes::{Edge, Routes};
use crate::section::SectionKeys as _;
use crate::sections::{DUMBBELL, LINK};
use crate::suggest::list;
use crate::tree::{Entry, Table};

/// A scenario's nodes and links; what could not be read is `None`.
pub(crate) struct Topology {
    pub nodes: Vec<String>,
    pub names: Vec<String>,
    pub links: Vec<Option<DraftLink>>,
    /// The ways through the graph, if the ends of all links are known.
    pub routes: Option<Routes>,
    /// What only a dumbbell has.
    pub dumbbell: Option<Dumbbell>,
    known: Known,
}

impl Topology {
    /// The node of this name.
    pub fn node_called(&self, name: &str) -> Option<usize> {
        self.known.nodes.get(name).copied()
    }

    /// Tells of a section of a node that no link names; one that could not be read may be the one that does.
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

    /// The link of this name.
    pub fn link_called(&self, name: &str) -> Option<usize> {
        self.known.links.get(name).copied()
    }
}

/// What names stand for, while a graph is read.
#[derive(Default)]
struct Known {
    nodes: BTreeMap<String, usize>,
    links: BTreeMap<String, usize>,
}

/// A link whose BDP may still depend on the flows through it.
pub(crate) struct DraftLink {
    pub link: Link,
    pub bdp_rtt: Option<Duration>,
    /// Where its queue and its meter are written, and the paths of these keys.
    pub written: [(Span, String); 2],
}

/// What a dumbbell says besides its links.
pub(crate) struct Dumbbell {
    pub delay: Option<Duration>,
    pub edge_rate: Option<Option<Rate>>,
}

const LEFT: usize = 0;
const RIGHT: usize = 1;

/// `[dumbbell]`: two nodes, the bottleneck and the way back.
pub(crate) fn dumbbell(table: &Table, at: Span, cx: &mut Context<'_>) -> Topology {
    let section =
        Section::new(table, &[DUMBBELL, Impairments::KEYS, Tampering::KEYS], "dumbbell", at, cx);
    let rate = rate_or_trace(&section, cx);
    let delay = section.plain::<Duration>("delay", cx);
    let device_queue = section.plain::<u32>("device_queue", cx);
    let there = router(&section, THERE, cx);
    let reverse_rate = section.optional("reverse_rate", cx, link_rate);
    let back = router(&section, BACK, cx);
    let edge_rate = section.plain::<OptionalRate>("edge_rate", cx).map(|r| r.0);
    let impairments = Impairments::read(&section, cx);
    let bdp_rtt = section.optional("bdp_rtt", cx, |at, cx| at.plain::<Duration>(cx));
    // A middlebox meets both ways: data has options, and so have ACKs.
    let tampering = Tampering::read(&section, cx);

    let forward = draft(
        Ends { name: "bottleneck", from: LEFT, to: RIGHT },
        (rate.clone(), delay, there, device_queue, impairments, tampering),
        bdp_rtt,
        written(&section, THERE),
    );
    let reverse = draft(
        Ends { name: "reverse", from: RIGHT, to: LEFT },
        (
            reverse_rate.and_then(|r| r.or(rate)),
            delay,
            back,
            Some(0),
            Some(Impairments::default()),
            tampering,
        ),
        bdp_rtt,
        written(&section, BACK),
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

/// `[link.*]`: any directed graph.
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
        let section = Section::new(
            table,
            &[LINK, Impairments::KEYS, Tampering::KEYS],
            path,
            entry.key_span,
            cx,
        );
        let from = self.node("from", &section, cx);
        let to = self.node("to", &section, cx);
        let rate = rate_or_trace(&section, cx);
        let delay = section.plain::<Duration>("delay", cx);
        let router = router(&section, THERE, cx);
        let device_queue = section.plain::<u32>("device_queue", cx);
        let duplex = section.plain::<bool>("duplex", cx);
        let impairments = Impairments::read(&section, cx);
        let tampering = Tampering::read(&section, cx);
        let bdp_rtt = section.optional("bdp_rtt", cx, |at, cx| at.plain::<Duration>(cx));
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
                let delay = delay.unwrap_or_default();
                edges.push(Edge { name: name.clone(), from, to, delay });
            }
            self.links.push(draft(
                Ends { name: &name, from, to },
                (rate.clone(), delay, router.clone(), device_queue, impairments.clone(), tampering),
                bdp_rtt,
                written(&section, THERE),
            ));
            self.names.push(name);
        }
    }

    /// The node that a link's end names; nodes come into being with the links that name them.
    fn node(&mut self, key: &str, section: &Section<'_>, cx: &mut Context<'_>) -> Option<usize> {
        let name = section.plain::<String>(key, cx)?;
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

/// What the router before a link has for it.
#[derive(Clone)]
struct Router {
    queue: QueueParams,
    meter: MeterParams,
    messenger: MessengerParams,
}

/// The keys of a router's parts, in the order in which [`Router`] has them.
type Keys = [&'static str; 3];

const THERE: Keys = ["queue", "meter", "messenger"];
const BACK: Keys = ["reverse_queue", "reverse_meter", "reverse_messenger"];

type Settings = (
    Option<LinkRate>,
    Option<Duration>,
    Option<Router>,
    Option<u32>,
    Option<Impairments>,
    Option<Tampering>,
);

/// A link, if all of its settings could be read.
fn draft(
    ends: Ends<'_>,
    (rate, delay, router, device_queue, impairments, tampering): Settings,
    bdp_rtt: Option<Option<Duration>>,
    written: [(Span, String); 2],
) -> Option<DraftLink> {
    let Router { queue, meter, messenger } = router?;
    let link = Link {
        name: ends.name.to_owned(),
        from: ends.from,
        to: ends.to,
        rate: rate?,
        delay: delay?,
        queue,
        meter,
        messenger,
        device_queue: device_queue?,
        bdp_rtt: Duration::ZERO,
        impairments: impairments?,
        tampering: tampering?,
    };
    Some(DraftLink { link, bdp_rtt: bdp_rtt?, written })
}

fn router(
    section: &Section<'_>,
    [queue, meter, messenger]: Keys,
    cx: &mut Context<'_>,
) -> Option<Router> {
    let queue = section.read(queue, cx, |at, cx| choice(at, "queue", cx));
    let meter = section.read(meter, cx, |at, cx| choice(at, "meter", cx));
    let messenger = section.read(messenger, cx, |at, cx| choice(at, "messenger", cx));
    Some(Router { queue: queue?, meter: meter?, messenger: messenger? })
}

fn written(section: &Section<'_>, [queue, meter, _]: Keys) -> [(Span, String); 2] {
    [queue, meter].map(|key| (section.span_of(key), section.path_of(key)))
}

fn rate_or_trace(section: &Section<'_>, cx: &mut Context<'_>) -> Option<LinkRate> {
    match (section.entry("rate"), section.entry("trace")) {
        (Some(_), Some(trace)) => {
            let message = "`rate` and `trace` both say how fast the link is: keep one";
            cx.sink.error(trace.key_span, section.path_of("trace"), message);
            None
        }
        (None, Some(_)) => section.read("trace", cx, trace_file),
        (_, None) => section.read("rate", cx, link_rate),
    }
}
