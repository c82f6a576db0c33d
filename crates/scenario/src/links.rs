//! The sections `[dumbbell]` and `[link.*]`: nodes and links.

use std::collections::BTreeMap;

use cwnd_aqm::{MessengerParams, MeterParams, QueueParams};
use cwnd_quantity::{Duration, DurationDist, Rate, Time};

use crate::diagnostics::Span;
use crate::idle;
use crate::link_rate::LinkRate;
use crate::model::{BurstLoss, Impairments, Link, Tampering};
use crate::rates::{link_rate, trace_file};
use crate::reader::{At, Context, OptionalRate, Section, choice};
use crate::routes::{Edge, Routes};
use crate::sections::{BURST_LOSS, DUMBBELL, FAULTS, LINK, SCHEMAS};
use crate::steps::delay_steps;
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
    let section = Section::new(table, &[DUMBBELL, FAULTS], "dumbbell", at, cx);
    let rate = rate_or_trace(&section, cx);
    let delay = section.plain::<Duration>("delay", cx);
    let device_queue = section.plain::<u32>("device_queue", cx);
    let there = router(&section, THERE, cx);
    let reverse_rate = section.optional("reverse_rate", cx, link_rate);
    let back = router(&section, BACK, cx);
    let edge_rate = section.plain::<OptionalRate>("edge_rate", cx).map(|r| r.0);
    let impairments = impairments(&section, cx);
    let bdp_rtt = section.optional("bdp_rtt", cx, |at, cx| at.plain::<Duration>(cx));
    // A middlebox meets both ways: data has options, and so have ACKs.
    let tampering = tampering(&section, cx);

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
        let section = Section::new(table, &[LINK, FAULTS], path, entry.key_span, cx);
        let from = self.node("from", &section, cx);
        let to = self.node("to", &section, cx);
        let rate = rate_or_trace(&section, cx);
        let delay = section.plain::<Duration>("delay", cx);
        let router = router(&section, THERE, cx);
        let device_queue = section.plain::<u32>("device_queue", cx);
        let duplex = section.plain::<bool>("duplex", cx);
        let impairments = impairments(&section, cx);
        let tampering = tampering(&section, cx);
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

fn impairments(section: &Section<'_>, cx: &mut Context<'_>) -> Option<Impairments> {
    let loss = section.plain::<f64>("loss", cx);
    let loss_every = section.plain::<Option<u32>>("loss_every", cx);
    let burst_loss = section.read("burst_loss", cx, burst_loss);
    let jitter = section.plain::<DurationDist>("jitter", cx);
    let jitter_correlation = section.plain::<Duration>("jitter_correlation", cx);
    let reorder = section.plain::<f64>("reorder", cx);
    let reorder_delay = section.plain::<Duration>("reorder_delay", cx);
    let delay_steps = section.read("delay_steps", cx, delay_steps);
    let delay_steps_period = section.plain::<Option<Duration>>("delay_steps_period", cx);
    if jitter_correlation.is_some_and(|time| time > Duration::ZERO)
        && jitter.as_ref().is_some_and(|of| of.0.at_deviate(0.0).is_none())
    {
        let message = "a choice between distributions can't hang together";
        let (span, path) = (section.span_of("jitter"), section.path_of("jitter"));
        let problem = cx.sink.error(span, path, message);
        problem.help("give its points, as in `cdf(file.csv)`, or leave out `jitter_correlation`");
    }
    if let (Some(steps), Some(Some(period))) = (&delay_steps, delay_steps_period)
        && let Some((last, _)) = steps.last().filter(|(at, _)| at.since(Time::ZERO) >= period)
    {
        let message = format!("the last step is at {}, which never comes", last.since(Time::ZERO));
        let (span, path) =
            (section.span_of("delay_steps_period"), section.path_of("delay_steps_period"));
        cx.sink.error(span, path, message).help("make `delay_steps_period` longer than that");
    }
    if reorder.is_some_and(|p| p > 0.0) && reorder_delay == Some(Duration::ZERO) {
        let message = "packets that are held back for no time are not reordered";
        let problem =
            cx.sink.error(section.span_of("reorder"), section.path_of("reorder"), message);
        problem.help("set `reorder_delay`");
    }
    if reorder.is_some_and(|p| p > 0.0) && delay_steps.as_ref().is_some_and(|s| !s.is_empty()) {
        let message = "what is held back by `reorder` would go the old way";
        let (span, path) = (section.span_of("delay_steps"), section.path_of("delay_steps"));
        cx.sink.error(span, path, message).help("keep `reorder` or `delay_steps`");
    }
    let mut impairments = Impairments {
        loss: loss?,
        loss_every: loss_every?,
        burst_loss: burst_loss?,
        jitter: jitter?,
        jitter_correlation: jitter_correlation?,
        reorder: reorder?,
        reorder_delay: reorder_delay?,
        delay_steps: delay_steps?,
        delay_steps_period: delay_steps_period?,
    };
    without_effect(&mut impairments, section, cx);
    Some(impairments)
}

/// Notes the times of impairments that are not there, and takes them out.
fn without_effect(found: &mut Impairments, section: &Section<'_>, cx: &mut Context<'_>) {
    let resets = cx.schema > SCHEMAS[0];
    let mut note = |key: &str, why: &str| {
        let entry = section.entry(key).into_iter();
        cx.idle.extend(entry.map(|entry| idle::of_section(entry, section.path_of(key), why)));
    };
    if found.jitter == DurationDist::default() && found.jitter_correlation > Duration::ZERO {
        note("jitter_correlation", "without `jitter`");
        found.jitter_correlation = if resets { Duration::ZERO } else { found.jitter_correlation };
    }
    if found.reorder == 0.0 && found.reorder_delay > Duration::ZERO {
        note("reorder_delay", "without `reorder`");
        found.reorder_delay = if resets { Duration::ZERO } else { found.reorder_delay };
    }
    if found.delay_steps.is_empty() && found.delay_steps_period.is_some() {
        note("delay_steps_period", "without `delay_steps`");
        found.delay_steps_period = found.delay_steps_period.filter(|_| !resets);
    }
}

/// Probabilities of burst loss, or `"none"`.
fn burst_loss(at: At<'_>, cx: &mut Context<'_>) -> Option<Option<BurstLoss>> {
    if at.node.text() == Some("none") {
        return Some(None);
    }
    let Some(table) = at.node.table() else {
        at.wrong_kind("a table such as { p = 0.01, r = 0.25 }, or \"none\"", cx);
        return None;
    };
    let section = Section::new(table, &[BURST_LOSS], at.path, at.node.span, cx);
    let [p, r, h, k] = ["p", "r", "h", "k"].map(|key| section.plain::<f64>(key, cx));
    Some(Some(BurstLoss { p: p?, r: r?, h: h?, k: k? }))
}

fn tampering(section: &Section<'_>, cx: &mut Context<'_>) -> Option<Tampering> {
    let option_loss = section.plain::<f64>("option_loss", cx);
    let option_damage = section.plain::<f64>("option_damage", cx);
    Some(Tampering { option_loss: option_loss?, option_damage: option_damage? })
}
