//! Whether each part of each path gets what it asks of the others.

use cwnd_apps::Transport;
use cwnd_packet::{Ability, Ask, Contract, Declares as _, Place};
use cwnd_schema::ParamsChoice as _;

use crate::link_rate::LinkRate;
use crate::model::{FlowGroup, Link, Scenario};

/// A part of a path that says what it needs and what it provides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its kind: "cubic", "codel".
    pub name: String,
    /// The key that it is written at, below its group's or its link's.
    pub key: &'static str,
    /// What it says.
    pub contract: Contract,
}

impl Part {
    /// A part of this kind, written at this key.
    #[must_use]
    pub fn new(name: &str, key: &'static str, contract: Contract) -> Self {
        Self { name: name.to_owned(), key, contract }
    }
}

/// All parts of a scenario; who replaces a part by one of his own replaces it here, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    /// What is at the sender, by group of flows: controller, endpoint, and who attacks it.
    pub senders: Vec<Vec<Part>>,
    /// What receives, by group of flows.
    pub receivers: Vec<Vec<Part>>,
    /// What packets pass, by link; none at a link without a rate.
    pub links: Vec<Vec<Part>>,
}

impl Parts {
    /// Those that the scenario names.
    #[must_use]
    pub fn of(scenario: &Scenario) -> Self {
        Self {
            senders: scenario.flows.iter().map(sender).collect(),
            receivers: scenario.flows.iter().map(receiver).collect(),
            links: scenario.links.iter().map(link).collect(),
        }
    }
}

fn sender(group: &FlowGroup) -> Vec<Part> {
    match group.workload.facts().transport {
        Transport::Datagrams { .. } => Vec::new(),
        Transport::Connection => {
            let attacker = Part::new(group.attacker.kind(), "attacker", group.attacker.contract());
            let endpoint = match &group.quic {
                Some(quic) => quic.contract(),
                None => group.endpoint.contract(),
            };
            let mut parts = vec![
                Part::new(group.controller.kind(), "controller", group.controller.contract()),
                Part::new("endpoint", "endpoint", endpoint),
            ];
            parts.extend(Some(attacker).filter(is_named));
            parts
        }
    }
}

fn receiver(group: &FlowGroup) -> Vec<Part> {
    match group.workload.facts().transport {
        Transport::Datagrams { .. } => Vec::new(),
        Transport::Connection => {
            let echo = match group.quic {
                // RFC 9000 § 13.4.1: each ACK frame of marked packets has ECN counts.
                Some(_) => Contract::new().provides(Ability::EchoesEce),
                None => group.endpoint.acks.echo.contract(),
            };
            vec![Part::new("echo", "endpoint", echo)]
        }
    }
}

fn link(link: &Link) -> Vec<Part> {
    match link.rate {
        LinkRate::Unlimited => Vec::new(),
        LinkRate::Steps { .. } | LinkRate::Trace(_) => {
            let queue = Part::new(link.queue.kind(), "queue", link.queue.contract());
            let meter = Part::new(link.meter.kind(), "meter", link.meter.contract());
            let messenger =
                Part::new(link.messenger.kind(), "messenger", link.messenger.contract());
            [queue, meter, messenger].into_iter().filter(is_named).collect()
        }
    }
}

fn is_named(part: &Part) -> bool {
    part.name != "none"
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker {
    /// A part of this group of flows.
    Group(usize),
    /// A part of this link.
    Link(usize),
}

/// Something that a part asks for and does not get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmet {
    /// Who asks.
    pub asker: Asker,
    /// The key that the part is written at, below its group's or its link's.
    pub key: &'static str,
    /// What it asks.
    pub ask: Ask,
    /// What is missing, where, and why it matters.
    pub message: String,
}

/// What parts ask for and do not get; what is needed stands before what is only wanted.
#[must_use]
pub fn unmet(scenario: &Scenario, parts: &Parts) -> Vec<Unmet> {
    let mut found = Vec::new();
    let paths: Vec<Path<'_>> = (0..scenario.flows.len())
        .map(|group| Path { scenario, parts, group, links: links(scenario, group) })
        .collect();
    for path in &paths {
        let asker = Asker::Group(path.group);
        for part in parts.senders[path.group].iter().chain(&parts.receivers[path.group]) {
            for ask in part.contract.asks.iter().filter(|ask| !path.hears_otherwise(ask)) {
                found.extend(
                    path.lacks(ask.ability).map(|lack| Unmet::new(asker, part, ask, &lack)),
                );
            }
        }
    }
    for (i, here) in parts.links.iter().enumerate() {
        for part in here {
            for ask in &part.contract.asks {
                let crossing = paths.iter().filter(|path| path.links.contains(&i));
                let mut connections = crossing.filter(|path| !parts.senders[path.group].is_empty());
                let Some(first) = connections.next() else { continue };
                // Others may share the link: it has what it asks for if one of them provides it.
                if let Some(lack) = first.lacks(ask.ability)
                    && connections.all(|path| path.lacks(ask.ability).is_some())
                {
                    found.push(Unmet::new(Asker::Link(i), part, ask, &lack));
                }
            }
        }
    }
    found.sort_by_key(|unmet| !unmet.ask.needed);
    // What comes to the same is told once: a sender without ECT has no echo to obey either.
    found.dedup_by(|next, first| {
        (next.asker, next.key, next.ask.why) == (first.asker, first.key, first.ask.why)
    });
    found
}

/// The links that the data of a group crosses on any of its ways, each once.
fn links(scenario: &Scenario, group: usize) -> Vec<usize> {
    let mut seen = vec![false; scenario.links.len()];
    let crossed = scenario.flows[group].ways.iter().flat_map(|way| &way.route).copied();
    crossed.filter(|&link| !core::mem::replace(&mut seen[link], true)).collect()
}

/// What the packets of a group meet.
struct Path<'a> {
    scenario: &'a Scenario,
    parts: &'a Parts,
    group: usize,
    links: Vec<usize>,
}

impl Path<'_> {
    /// Whether another echo is needed and there: ACKs have one, and what is only wanted gives way.
    fn hears_otherwise(&self, ask: &Ask) -> bool {
        let is_echo = |ask: &Ask| ask.ability.place() == Place::Receiver;
        let mut asks = self.parts.senders[self.group].iter().flat_map(|p| &p.contract.asks);
        !ask.needed
            && is_echo(ask)
            && asks.any(|a| a.needed && is_echo(a) && self.lacks(a.ability).is_none())
    }

    /// What is missing of this, in words; `None` if it is there.
    fn lacks(&self, ability: Ability) -> Option<String> {
        let provide = |parts: &[Part]| parts.iter().any(|p| p.contract.provides.contains(&ability));
        let of_links = || self.links.iter().filter(|&&i| !self.parts.links[i].is_empty());
        let said = ability.said();
        match ability.place() {
            Place::Sender => (!provide(&self.parts.senders[self.group])).then(|| said.to_owned()),
            Place::Receiver => {
                (!provide(&self.parts.receivers[self.group])).then(|| said.to_owned())
            }
            Place::SomeLink => (!of_links().any(|&i| provide(&self.parts.links[i]))).then(|| {
                let there: Vec<&str> = of_links().flat_map(|&i| self.kinds(i)).collect();
                let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
                format!("no queue on the way of the data {said} ({there})")
            }),
            Place::EveryLink => of_links().find(|&&i| !provide(&self.parts.links[i])).map(|&i| {
                let there: Vec<&str> = self.kinds(i).collect();
                let name = &self.scenario.links[i].name;
                format!("link `{name}` does not {said} ({})", there.join(", "))
            }),
        }
    }

    fn kinds(&self, link: usize) -> impl Iterator<Item = &str> {
        self.parts.links[link].iter().map(|part| part.name.as_str())
    }
}

impl Unmet {
    fn new(asker: Asker, part: &Part, ask: &Ask, lack: &str) -> Self {
        let (name, why) = (&part.name, ask.why);
        let message =
            if ask.needed { format!("`{name}` {why}: {lack}") } else { format!("{why}: {lack}") };
        Self { asker, key: part.key, ask: *ask, message }
    }

    /// A remedy. Ends of QUIC have no keys for the feedback that TCP can give.
    #[must_use]
    pub fn fix(&self, scenario: &Scenario) -> &'static str {
        let ability = self.ask.ability;
        let of_quic = |g: usize| scenario.flows[g].quic.is_some();
        match (self.asker, ability.place()) {
            (Asker::Group(g), Place::Sender | Place::Receiver) if of_quic(g) => match ability {
                Ability::Ect | Ability::ObeysEce => "set `ecn = true` in the group's `endpoint`",
                Ability::PromptRtt => "set `ack_eliciting_threshold = 0` in the group's `endpoint`",
                _ => "take another controller, or a stack of TCP",
            },
            _ => ability.fix(),
        }
    }
}

/// What parts need that a world can't give, whoever would provide it in the simulator.
#[must_use]
pub fn beyond(parts: &Parts, world: &str, can: &[Ability]) -> Vec<Unmet> {
    let groups = parts.senders.iter().zip(&parts.receivers).enumerate();
    let of_groups = groups.flat_map(|(i, (senders, receivers))| {
        senders.iter().chain(receivers).map(move |part| (Asker::Group(i), part))
    });
    let links = parts.links.iter().enumerate();
    let of_links = links.flat_map(|(i, here)| here.iter().map(move |part| (Asker::Link(i), part)));
    let mut found = Vec::new();
    for (asker, part) in of_groups.chain(of_links) {
        let cannot = |ask: &&Ask| ask.needed && !can.contains(&ask.ability);
        if let Some(ask) = part.contract.asks.iter().find(cannot) {
            found.push(Unmet::new(asker, part, ask, &format!("{world} has nothing like it")));
        }
    }
    found
}

/// Where what asked is written, part by part.
#[must_use]
pub fn key(scenario: &Scenario, unmet: &Unmet, dumbbell: bool) -> Vec<String> {
    let reverse = format!("reverse_{}", unmet.key);
    let path: &[&str] = match unmet.asker {
        Asker::Group(i) => &["flow", &scenario.flows[i].name, unmet.key],
        // A dumbbell's links are the bottleneck and the way back.
        Asker::Link(0) if dumbbell => &["dumbbell", unmet.key],
        Asker::Link(_) if dumbbell => &["dumbbell", &reverse],
        Asker::Link(i) => &["link", &scenario.links[i].name, unmet.key],
    };
    path.iter().map(|&part| part.to_owned()).collect()
}
