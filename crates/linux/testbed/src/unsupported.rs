//! Checks for keys of a scenario that real Linux cannot provide, reported by name before a run.

use cwnd_apps::Transport;
use cwnd_cc::{Backoff, ControllerParams};
use cwnd_packet::{Ability, HasContract as _};
use cwnd_quantity::{Bytes, Rate, Time};
use cwnd_router::Direction;
use cwnd_scenario::{FlowGroup, LinkRate, Record, Refusal, Scenario, requirements};
use cwnd_schema::{Params, ParamsChoice as _, Value, key};
use cwnd_tcp::Params as Endpoint;

use crate::programs::{self, FeedbackSource, Program};
use crate::world::{MOST_FLOWS_OF_GROUP, MOST_GROUPS, mtu, packet};

/// Returns everything in a scenario that Linux cannot provide; empty if it can be run.
#[must_use]
pub fn refusals(scenario: &Scenario) -> Vec<Refusal> {
    let mut found = Vec::new();
    if scenario.run.until_fair.is_some() {
        found.push(refusal(
            &["run", "until_fair"],
            "a run on Linux has its full length",
            Some("write `until_fair = \"none\"`"),
        ));
    }
    if scenario.flows.len() > MOST_GROUPS {
        let message = format!("Linux runs have addresses for {MOST_GROUPS} groups");
        found.push(refusal(&["flow"], &message, None));
    }
    for unmet in
        requirements::unsupported(&requirements::Parts::of(scenario), "Linux", &SUPPORTED_ABILITIES)
    {
        let key = requirements::key(scenario, &unmet, is_dumbbell(scenario));
        let help = Some("run it in the simulator".to_owned());
        found.push(Refusal { key, message: unmet.message, help });
    }
    topology(scenario, &mut found);
    own_queues(scenario, &mut found);
    meters(scenario, &mut found);
    middleboxes(scenario, &mut found);
    let mtu = mtu(scenario);
    for group in &scenario.flows {
        if let Some(stack) = group.stack.as_ref().filter(|_| group.quic.is_some()) {
            let message = format!("Linux has no `{}`: its programs bring it", stack.parts.base);
            let help = "take a stack of TCP, or run it in the simulator";
            found.push(of(group, &["stack"], &message, Some(help)));
            continue;
        }
        of_group(scenario, group, &mut found);
        let packet = packet(group);
        if group.connects() && packet != mtu {
            let message =
                format!("both hosts have one MTU: {} B here, {} B there", mtu.0, packet.0);
            found.push(of(group, &["endpoint", "mss"], &message, None));
        }
    }
    found
}

/// `true` for one router between two hosts, written as `[dumbbell]` or as equivalent links.
fn is_dumbbell(scenario: &Scenario) -> bool {
    matches!(&scenario.links[..], [forward, reverse]
        if forward.from == reverse.to && forward.to == reverse.from && scenario.nodes.len() == 2)
}

/// Refuses queues whose code is the user's: the router has root's rights.
fn own_queues(scenario: &Scenario, found: &mut Vec<Refusal>) {
    let dumbbell = is_dumbbell(scenario);
    for (i, link) in scenario.links.iter().enumerate().filter(|(_, link)| link.queue.is_loaded()) {
        let key: &[&str] = match i {
            0 if dumbbell => &["dumbbell", "queue"],
            _ if dumbbell => &["dumbbell", "reverse_queue"],
            _ => &["link", &link.name, "queue"],
        };
        let message = format!("Linux has no queue `{}`", link.queue.kind());
        found.push(refusal(key, &message, Some("run it in the simulator")));
    }
}

/// Refuses meters that write other than IP headers: Linux's packets have no fields for them.
fn meters(scenario: &Scenario, found: &mut Vec<Refusal>) {
    let dumbbell = is_dumbbell(scenario);
    for (i, link) in scenario.links.iter().enumerate() {
        let Some(message) = Direction::of_link(link).meter_without_effect() else { continue };
        let key: &[&str] = match i {
            0 if dumbbell => &["dumbbell", "meter"],
            _ if dumbbell => &["dumbbell", "reverse_meter"],
            _ => &["link", &link.name, "meter"],
        };
        found.push(refusal(key, &message, Some("write `\"none\"`, or run it in the simulator")));
    }
}

/// Refuses tampering with TCP options: the router forwards bytes behind the IP header unchanged.
fn middleboxes(scenario: &Scenario, found: &mut Vec<Refusal>) {
    let dumbbell = is_dumbbell(scenario);
    // Keys of a dumbbell apply to both of its links; they are reported once.
    let said = if dumbbell { &scenario.links[..1] } else { &scenario.links[..] };
    for link in said {
        let of = link.tampering;
        for (key, p) in [("option_loss", of.option_loss), ("option_damage", of.option_damage)] {
            if p > 0.0 {
                let at: &[&str] =
                    if dumbbell { &["dumbbell", key] } else { &["link", &link.name, key] };
                let message = "the router leaves TCP options alone on Linux";
                found.push(refusal(at, message, Some("leave it out, or run it in the simulator")));
            }
        }
    }
}

/// Refuses other topologies than a dumbbell, line rates of hosts, rates that are too high, and
/// settings of `[record]`.
fn topology(scenario: &Scenario, found: &mut Vec<Refusal>) {
    if scenario.record != Record::default() {
        let message = "on Linux every flow has a row";
        found.push(refusal(&["record"], message, Some("leave it out, or run it in the simulator")));
    }
    let dumbbell = is_dumbbell(scenario);
    if !dumbbell {
        let message = "on Linux there is one router between two hosts: a dumbbell";
        found.push(refusal(
            &["link"],
            message,
            Some("write [dumbbell], or run it in the simulator"),
        ));
    }
    if let Some(group) = scenario.flows.iter().find(|g| g.edge_rate.is_some()) {
        let key: &[&str] =
            if dumbbell { &["dumbbell", "edge_rate"] } else { &["flow", &group.name, "edge_rate"] };
        found.push(refusal(
            key,
            "the hosts have no line rate of their own on Linux",
            Some("write `edge_rate = \"unlimited\"`"),
        ));
    }
    for link in &scenario.links {
        if let LinkRate::Steps { .. } = &link.rate
            && let Some(highest) = link.rate.highest_bit_s()
            && highest > MAX_BIT_S as f64
        {
            let highest = Rate(highest as u64);
            let message = format!("no router in user space forwards {highest}");
            found.push(refusal(&["dumbbell", "rate"], &message, None));
        }
    }
}

/// Refuses workloads, arrivals, attackers, controllers and endpoints of a group that Linux lacks,
/// groups with flows in both directions, and too many flows.
fn of_group(scenario: &Scenario, group: &FlowGroup, found: &mut Vec<Refusal>) {
    if group.workload.is_loaded() {
        let message = format!("Linux has no workload `{}`", group.workload.kind());
        found.push(of(group, &["workload"], &message, Some("run it in the simulator")));
        return;
    }
    if group.workload.facts().client_opens {
        let message = "on Linux who sends the data opens the connection: nobody asks for it yet";
        found.push(of(group, &["workload"], message, Some("run it in the simulator")));
        return;
    }
    if group.arrivals.arriving().waits() {
        let message = "on Linux no connection waits for the end of another yet";
        found.push(of(group, &["arrivals"], message, Some("run it in the simulator")));
    }
    if group.arrivals.arriving().rows().iter().any(|row| row.size.is_some()) {
        let message = "recorded sizes are not transferred on Linux yet";
        found.push(of(
            group,
            &["arrivals", "rows"],
            message,
            Some("leave out the column `size_bytes`"),
        ));
    }
    for (key, nodes) in [("from", &group.from), ("to", &group.to)] {
        if nodes.len() > 1 {
            let message =
                "on Linux a group has its senders on one side and its receivers on the other";
            let help = "write a group for each direction, or run it in the simulator";
            found.push(of(group, &[key], message, Some(help)));
        }
    }
    if group.count as usize > MOST_FLOWS_OF_GROUP {
        let message = format!("a group has ports for {MOST_FLOWS_OF_GROUP} flows on Linux");
        found.push(of(group, &["count"], &message, None));
    }
    if let Transport::Datagrams { size, .. } = group.workload.facts().transport {
        return datagrams(group, size, mtu(scenario), found);
    }
    if group.attacker.build(Time::ZERO).is_some() {
        let message = "on Linux nobody forges packets";
        let help = "write `\"none\"`, or run it in the simulator";
        found.push(of(group, &["attacker"], message, Some(help)));
    }
    controller(group, found);
    endpoint(scenario, group, found);
}

/// Refuses datagrams without room for headers, send time and number, and those that need
/// fragments.
fn datagrams(group: &FlowGroup, size: Bytes, mtu: Bytes, found: &mut Vec<Refusal>) {
    let least = UDP_HEADERS.0 + STAMP_BYTES as u64;
    let message = if size.0 < least {
        format!("datagrams on Linux have headers of {UDP_HEADERS} and carry send time and number")
    } else if size > mtu {
        format!("datagrams of {} B exceed the MTU of both hosts, {} B", size.0, mtu.0)
    } else {
        return;
    };
    let help = format!("write a size from {least} B to {} B", mtu.0);
    found.push(of(group, &["workload", "size"], &message, Some(&help)));
}

/// Refuses controllers that Linux lacks, that differ from the preset `linux` apart from mechanisms
/// of `cwnd-kernel`, or that use several of these mechanisms.
fn controller(group: &FlowGroup, found: &mut Vec<Refusal>) {
    if matches!(group.controller, ControllerParams::C(_)) {
        return;
    }
    let programs = || programs::of_kind(&group.controller);
    let settable: Vec<&str> = programs().flat_map(Program::parameters).collect();
    let given = group.controller.params();
    let had = group.controller.info().linux_name().is_some() || programs().next().is_some();
    let kernels = ControllerParams::of_kind(group.controller.kind()).filter(|_| had);
    let kernels = kernels
        .and_then(|mut kernels| kernels.params_mut().apply_preset(PRESET).then_some(kernels));
    let Some(kernels) = kernels else {
        let message = format!("Linux has no controller `{}`", group.controller.kind());
        found.push(of(group, &["controller"], &message, None));
        return;
    };
    let preserved_settings = preserved_settings((given, kernels.params()), &settable);
    let names: Vec<&str> = programs::required(&group.controller).map(|p| p.mechanism).collect();
    if let [first, second, ..] = names.as_slice() {
        let message = format!("no controller of `cwnd-kernel` does both: {first} and {second}");
        found.push(of(group, &["controller"], &message, Some("ask for one of them")));
        return;
    }
    let besides = match names.as_slice() {
        _ if preserved_settings.is_empty() => String::new(),
        [] => " as it is asked for".to_owned(),
        names => format!(" with the {} that is asked for", names.join(" and ")),
    };
    let kind = group.controller.kind();
    let what = format!("Linux's {kind}");
    let all = format!("kind = \"{kind}\", preset = \"{PRESET}\"{preserved_settings}");
    let help = format!("`controller = {{ {all} }}` is {what}{besides}, in both worlds");
    differ(group, "controller", (given, kernels.params()), &settable, (&what, &help), found);
}

/// Refuses parameters of a group's endpoint that Linux can neither have nor be set to.
fn endpoint(scenario: &Scenario, group: &FlowGroup, found: &mut Vec<Refusal>) {
    // Parameters that a route or the MTU sets.
    let mut settable = vec![
        key!(Endpoint: packets.mss),
        key!(Endpoint: ecn.ecn),
        key!(Endpoint: windows.initial_window),
        key!(Endpoint: rto.rto_min),
    ];
    if let Some(timeouts) = Timeouts::of(&group.endpoint) {
        settable.extend([
            key!(Endpoint: rto.rto_backoff),
            key!(Endpoint: rto.rto_backoff_after),
            key!(Endpoint: rto.syn_backoff_after),
        ]);
        found.extend(timeouts.refusals(group));
    } else if group.endpoint.rto.rto_backoff_after == 0 {
        // TCP*(0) is standard TCP.
        settable.extend([key!(Endpoint: rto.rto_backoff), key!(Endpoint: rto.rto_backoff_after)]);
    } else {
        settable.push(key!(Endpoint: rto.rto_backoff_after));
    }
    if group.endpoint.acks.ack_every == 1 {
        settable.push(key!(Endpoint: acks.ack_every));
    }
    settable.extend(programs::settable(scenario, group));
    // On Linux, the controller receives source quenches, not the endpoint.
    let feedback =
        group.controller.contract().requirements.iter().any(|a| a.ability == Ability::ObeysQuench);
    let obeys = group.endpoint.contract().provides.contains(&Ability::ObeysQuench);
    if feedback {
        settable.push(key!(Endpoint: quench.obey_quench));
    }
    if feedback && !obeys {
        let message = "on Linux a controller that hears source quenches obeys them";
        found.push(of(
            group,
            &["endpoint", key!(Endpoint: quench.obey_quench)],
            message,
            Some("set `obey_quench = true`"),
        ));
    }
    // A controller that reads marks at the receiver has a program that echoes them.
    if programs::echoes_by_code(group)
        || programs::required(&group.controller)
            .any(|program| program.feedback == FeedbackSource::Receiver)
    {
        settable.push(key!(Endpoint: acks.echo));
    }
    let mut kernels = Endpoint::default();
    kernels.apply_preset(PRESET);
    let help = remedy(group, &kernels, &settable);
    differ(
        group,
        "endpoint",
        (&group.endpoint, &kernels),
        &settable,
        ("Linux's TCP", &help),
        found,
    );
    if group.endpoint.packets.mss < MIN_MSS {
        let message = format!("segments on Linux have at least {MIN_MSS} of payload");
        found.push(of(group, &["endpoint", key!(Endpoint: packets.mss)], &message, None));
    }
}

/// Returns the setting that gives Linux's TCP, with this group's values of settable parameters:
/// parts of the stack, and keys of the endpoint.
fn remedy(group: &FlowGroup, kernels: &Endpoint, settable: &[&str]) -> String {
    let part = |key: &&str| Endpoint::FIELDS.iter().find(|f| f.name == *key).and_then(|f| f.part);
    let (of_parts, keys): (Vec<&str>, Vec<&str>) =
        settable.iter().partition(|key| part(key).is_some());
    let given = &group.endpoint;
    let preserved_settings = preserved_settings((given, kernels), &keys);
    let endpoint = format!("`endpoint = {{ preset = \"{PRESET}\"{preserved_settings} }}`");
    let lacks: Vec<String> = of_parts
        .iter()
        .filter(|key| given.get(key) != kernels.get(key))
        .filter_map(|key| Some(format!("\"{}\"", part(key)?)))
        .collect();
    let is_whole = group.stack.as_ref().is_none_or(|stack| stack.parts.is_base());
    match lacks.is_empty() {
        true if is_whole => format!("{endpoint} is TCP as Linux has it"),
        true => format!("`stack = \"{PRESET}\"` with {endpoint} is TCP as Linux has it"),
        false => {
            let parts = format!("base = \"{PRESET}\", without = [{}]", lacks.join(", "));
            format!("`stack = {{ {parts} }}` with {endpoint} is TCP as Linux can have it")
        }
    }
}

/// Reports parameters whose given value differs from the kernel's, one by one, or in one message if
/// there are many.
fn differ(
    group: &FlowGroup,
    key: &str,
    (given, kernels): (&dyn Params, &dyn Params),
    settable: &[&str],
    (what, help): (&str, &str),
    found: &mut Vec<Refusal>,
) {
    // For example `ecn_at_one` without `ecn`, which has no effect in the simulator either.
    let without_effect: Vec<&str> = given.idle().iter().map(|idle| idle.key).collect();
    let different: Vec<(&str, Value, Value)> = given
        .fields()
        .iter()
        .filter(|field| !settable.contains(&field.name) && !without_effect.contains(&field.name))
        .filter_map(|field| Some((field.name, given.get(field.name)?, kernels.get(field.name)?)))
        .filter(|(_, given, kernels)| given != kernels)
        .collect();
    if different.len() > MAX_NAMED {
        let names: Vec<&str> = different.iter().map(|(name, ..)| *name).collect();
        let message = format!("{what} has other values of {}", names.join(", "));
        found.push(of(group, &[key], &message, Some(help)));
        return;
    }
    for (name, given, kernels) in different {
        let (given, kernels) = (shown(&given), shown(&kernels));
        let message = format!("{what} has `{name} = {kernels}`, not {given}");
        found.push(of(group, &[key, name], &message, Some(help)));
    }
}

/// Returns this group's values of parameters that Linux leaves to the scenario. A remedy repeats
/// them, as following it would change them otherwise.
fn preserved_settings((given, kernels): (&dyn Params, &dyn Params), settable: &[&str]) -> String {
    settable
        .iter()
        .filter_map(|&name| Some((name, given.get(name)?, kernels.get(name)?)))
        .filter(|(_, given, kernels)| given != kernels)
        .map(|(name, given, _)| format!(", {name} = {}", shown(&given)))
        .collect()
}

fn shown(value: &Value) -> String {
    match value {
        Value::Text(text) => format!("\"{text}\""),
        Value::Bool(b) => b.to_string(),
        Value::Integer(i) => i.to_string(),
        Value::Float(x) => format!("{x:?}"),
    }
}

fn of(group: &FlowGroup, key: &[&str], message: &str, help: Option<&str>) -> Refusal {
    let path: Vec<&str> = ["flow", &group.name].into_iter().chain(key.iter().copied()).collect();
    refusal(&path, message, help)
}

fn refusal(key: &[&str], message: &str, help: Option<&str>) -> Refusal {
    Refusal {
        key: key.iter().map(|&part| part.to_owned()).collect(),
        message: message.to_owned(),
        help: help.map(str::to_owned),
    }
}

/// Timeouts of a group that differ from the kernel's: a program of `cwnd-kernel` bounds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Consecutive timeouts before the RTO doubles, the n of TCP*(n).
    pub after: u32,
    /// Consecutive timeouts of SYNs before the RTO doubles.
    pub syn_after: u32,
    /// `true` for TCP*(n) itself, `false` for the bounds that the kernel allows a program to set.
    pub exactly: bool,
}

impl Timeouts {
    /// Returns the timeouts of an endpoint; `None` if each timeout doubles the RTO.
    pub fn of(endpoint: &cwnd_tcp::Params) -> Option<Self> {
        let exactly = match endpoint.rto.rto_backoff {
            Backoff::After => true,
            Backoff::Bounded => false,
            Backoff::Off => return Some(Self { after: MOST, syn_after: MOST, exactly: true }),
            Backoff::Exponential => return None,
        };
        let after = endpoint.rto.rto_backoff_after;
        let syn_after = endpoint.rto.syn_backoff_after.unwrap_or(after);
        (after > 0).then_some(Self { after, syn_after, exactly })
    }

    /// Returns refusals of values that the kernel does not allow.
    fn refusals(self, group: &FlowGroup) -> Vec<Refusal> {
        let mut found = Vec::new();
        if self.after > MOST {
            let message = format!("on Linux n is {MOST} at most");
            let help = Some("write `rto_backoff = \"off\"`");
            found.push(of(group, &["endpoint", "rto_backoff_after"], &message, help));
        }
        if self.syn_after < LINEAR_SYNS || self.syn_after > MOST {
            let message = format!(
                "Linux repeats SYNs {LINEAR_SYNS} times without backoff by itself \
                 (tcp_syn_linear_timeouts): n of SYNs is {LINEAR_SYNS} to {MOST}"
            );
            let help = format!("write `syn_backoff_after = {}`", self.after.max(LINEAR_SYNS));
            found.push(of(group, &["endpoint", "syn_backoff_after"], &message, Some(&help)));
        }
        found
    }
}

/// Abilities of Linux's TCP, and of our router between its hosts.
const SUPPORTED_ABILITIES: [Ability; 12] = [
    Ability::Ect,
    Ability::ObeysEce,
    Ability::Timestamps,
    Ability::Pacing,
    Ability::EchoesEce,
    Ability::Marks,
    Ability::Quenches,
    Ability::ObeysQuench,
    Ability::WritesLoad,
    Ability::WritesBounds,
    Ability::SendsId,
    Ability::EchoesEstimate,
];
/// Name of the presets of controllers and endpoints that describe Linux.
pub const PRESET: &str = "linux";
/// Maximum number of parameters reported one by one.
const MAX_NAMED: usize = 3;
/// Headers of UDP over IPv4.
pub const UDP_HEADERS: Bytes = Bytes(28);
/// Bytes of send time and number at the start of each datagram's payload.
pub const STAMP_BYTES: usize = 16;
/// Least MSS: Linux's `TCP_MIN_MSS`.
const MIN_MSS: Bytes = Bytes(88);
/// Highest rate that the router in user space is allowed, bit/s.
const MAX_BIT_S: u64 = 10_000_000_000;
/// Maximum n in `cwnd-kernel`, which also stands for `rto_backoff = "off"`.
const MOST: u32 = 255;
/// Kernel's default of `net.ipv4.tcp_syn_linear_timeouts`.
const LINEAR_SYNS: u32 = 4;

#[cfg(test)]
mod tests;
