//! Requirements between the parts of a path: each part's needs against what the others provide.

use cwnd_apps::Transport;
use cwnd_cc::ControllerParams;
use cwnd_packet::{Ability, Contract, HasContract as _, Place, Requirement};
use cwnd_schema::ParamsChoice as _;
use cwnd_tcp::EchoKind;

use crate::link_rate::LinkRate;
use crate::model::{FlowGroup, Link, Scenario};

/// A part of a path with its contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Kind of the part, such as "cubic" or "codel".
    pub name: String,
    /// Key of the part, relative to its group or link.
    pub key: &'static str,
    /// Abilities that it provides and requires.
    pub contract: Contract,
}

impl Part {
    /// Creates a part of kind `name` that the scenario has at `key`.
    #[must_use]
    pub fn new(name: &str, key: &'static str, contract: Contract) -> Self {
        Self { name: name.to_owned(), key, contract }
    }
}

/// All parts of a scenario. A caller that substitutes a part of its own replaces it here, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    /// Senders' parts by flow group: controller, endpoint and attacker; empty for datagrams.
    pub senders: Vec<Vec<Part>>,
    /// Receivers' parts by flow group: the echo of congestion signals; empty for datagrams.
    pub receivers: Vec<Vec<Part>>,
    /// Parts by link: queue, meter and messenger; empty for a link without a rate.
    pub links: Vec<Vec<Part>>,
}

impl Parts {
    /// Returns the parts that the scenario names.
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

/// Owner of the part that has an unmet requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requirer {
    /// A part of this group of flows.
    Group(usize),
    /// A part of this link.
    Link(usize),
}

/// A requirement of a part that its path does not meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnmetRequirement {
    /// Owner of the part.
    pub requirer: Requirer,
    /// Key of the part with this requirement, relative to its group or link.
    pub key: &'static str,
    /// The unmet requirement.
    pub requirement: Requirement,
    /// Message: the consequence, and the missing ability.
    pub message: String,
}

/// Returns the unmet requirements; strict ones come before those that are only recommended.
#[must_use]
pub fn unmet(scenario: &Scenario, parts: &Parts) -> Vec<UnmetRequirement> {
    let mut found = Vec::new();
    let paths: Vec<Path<'_>> = (0..scenario.flows.len())
        .map(|group| Path { scenario, parts, group, links: links(scenario, group) })
        .collect();
    for path in &paths {
        let requirer = Requirer::Group(path.group);
        for part in parts.senders[path.group].iter().chain(&parts.receivers[path.group]) {
            for requirement in part
                .contract
                .requirements
                .iter()
                .filter(|requirement| !path.has_other_echo(requirement))
            {
                found.extend(
                    path.lacks(requirement.ability)
                        .map(|lack| UnmetRequirement::new(requirer, part, requirement, &lack)),
                );
            }
        }
    }
    for (i, here) in parts.links.iter().enumerate() {
        for part in here {
            for requirement in &part.contract.requirements {
                let crossing = paths.iter().filter(|path| path.links.contains(&i));
                let mut connections = crossing.filter(|path| !parts.senders[path.group].is_empty());
                let Some(first) = connections.next() else { continue };
                // Flows share a link: one group that provides the ability is enough.
                if let Some(lack) = first.lacks(requirement.ability)
                    && connections.all(|path| path.lacks(requirement.ability).is_some())
                {
                    found.push(UnmetRequirement::new(Requirer::Link(i), part, requirement, &lack));
                }
            }
        }
    }
    found.sort_by_key(|unmet| !unmet.requirement.required);
    // Requirements with one reason are reported once: a sender without ECT has no echo to obey
    // either.
    found.dedup_by(|next, first| {
        (next.requirer, next.key, next.requirement.why)
            == (first.requirer, first.key, first.requirement.why)
    });
    found
}

/// Returns the links that a group's data crosses on any of its paths, each once.
fn links(scenario: &Scenario, group: usize) -> Vec<usize> {
    let mut seen = vec![false; scenario.links.len()];
    let crossed = scenario.flows[group].paths.iter().flat_map(|path| &path.route).copied();
    crossed.filter(|&link| !core::mem::replace(&mut seen[link], true)).collect()
}

/// The parts that the packets of one group meet.
struct Path<'a> {
    scenario: &'a Scenario,
    parts: &'a Parts,
    group: usize,
    links: Vec<usize>,
}

impl Path<'_> {
    /// `true` if the requirement is a recommended echo, and another echo is required and provided.
    /// ACKs carry one echo, so the recommended one gives way. Code in C may read that of marks.
    fn has_other_echo(&self, requirement: &Requirement) -> bool {
        let is_echo = |requirement: &Requirement| requirement.ability.place() == Place::Receiver;
        let mut requirements =
            self.parts.senders[self.group].iter().flat_map(|p| &p.contract.requirements);
        let group = &self.scenario.flows[self.group];
        let is_read_by_code = matches!(group.controller, ControllerParams::C(_))
            && group.endpoint.acks.echo == EchoKind::Changes;
        let mut is_other_provided =
            || requirements.any(|a| a.required && is_echo(a) && self.lacks(a.ability).is_none());
        !requirement.required && is_echo(requirement) && (is_read_by_code || is_other_provided())
    }

    /// Describes the missing ability; `None` if the path provides it.
    fn lacks(&self, ability: Ability) -> Option<String> {
        let provide = |parts: &[Part]| parts.iter().any(|p| p.contract.provides.contains(&ability));
        let of_links = || self.links.iter().filter(|&&i| !self.parts.links[i].is_empty());
        let said = ability.phrase();
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

impl UnmetRequirement {
    fn new(requirer: Requirer, part: &Part, requirement: &Requirement, lack: &str) -> Self {
        let (name, why) = (&part.name, requirement.why);
        let message = if requirement.required {
            format!("`{name}` {why}: {lack}")
        } else {
            format!("{why}: {lack}")
        };
        Self { requirer, key: part.key, requirement: *requirement, message }
    }

    /// Returns a remedy. Endpoints of QUIC have no keys for the feedback that only TCP has.
    #[must_use]
    pub fn fix(&self, scenario: &Scenario) -> &'static str {
        let ability = self.requirement.ability;
        let of_quic = |g: usize| scenario.flows[g].quic.is_some();
        match (self.requirer, ability.place()) {
            (Requirer::Group(g), Place::Sender | Place::Receiver) if of_quic(g) => match ability {
                Ability::Ect | Ability::ObeysEce => "set `ecn = true` in the group's `endpoint`",
                Ability::PromptRtt => "set `ack_eliciting_threshold = 0` in the group's `endpoint`",
                _ => "take another controller, or a stack of TCP",
            },
            _ => ability.remedy(),
        }
    }
}

/// Returns each part's first strict requirement that `world` cannot meet, as it has only the
/// abilities `can`.
#[must_use]
pub fn unsupported(parts: &Parts, world: &str, can: &[Ability]) -> Vec<UnmetRequirement> {
    let groups = parts.senders.iter().zip(&parts.receivers).enumerate();
    let of_groups = groups.flat_map(|(i, (senders, receivers))| {
        senders.iter().chain(receivers).map(move |part| (Requirer::Group(i), part))
    });
    let links = parts.links.iter().enumerate();
    let of_links =
        links.flat_map(|(i, here)| here.iter().map(move |part| (Requirer::Link(i), part)));
    let mut found = Vec::new();
    for (requirer, part) in of_groups.chain(of_links) {
        let cannot = |requirement: &&Requirement| {
            requirement.required && !can.contains(&requirement.ability)
        };
        if let Some(requirement) = part.contract.requirements.iter().find(cannot) {
            found.push(UnmetRequirement::new(
                requirer,
                part,
                requirement,
                &format!("{world} has nothing like it"),
            ));
        }
    }
    found
}

/// Returns the key path of the part with an unmet requirement.
#[must_use]
pub fn key(scenario: &Scenario, unmet: &UnmetRequirement, dumbbell: bool) -> Vec<String> {
    let reverse = format!("reverse_{}", unmet.key);
    let path: &[&str] = match unmet.requirer {
        Requirer::Group(i) => &["flow", &scenario.flows[i].name, unmet.key],
        // Link 0 of a dumbbell is the bottleneck, link 1 the reverse link.
        Requirer::Link(0) if dumbbell => &["dumbbell", unmet.key],
        Requirer::Link(_) if dumbbell => &["dumbbell", &reverse],
        Requirer::Link(i) => &["link", &scenario.links[i].name, unmet.key],
    };
    path.iter().map(|&part| part.to_owned()).collect()
}
