//! What of a scenario real Linux can't provide: told by name before anything starts.

use cwnd_cc::{Backoff, ControllerParams};
use cwnd_scenario::{FlowGroup, LinkRate, Refusal, Scenario, Workload};
use cwnd_units::{Bytes, Params, ParamsChoice as _, Value};

use crate::world::{MOST_FLOWS_OF_GROUP, MOST_GROUPS};

/// All that Linux can't provide of a scenario; empty if it can be run.
#[must_use]
pub fn refusals(scenario: &Scenario) -> Vec<Refusal> {
    let mut found = Vec::new();
    if scenario.run.until_fair.is_some() {
        found.push(refusal(&["run", "until_fair"], "a run on Linux has its full length", Some("write `until_fair = \"none\"`")));
    }
    if scenario.flows.len() > MOST_GROUPS {
        let message = format!("Linux runs have addresses for {MOST_GROUPS} groups");
        found.push(refusal(&["flow"], &message, None));
    }
    topology(scenario, &mut found);
    let mut mtus = Vec::new();
    for group in &scenario.flows {
        of_group(group, &mut found);
        let packet = group.endpoint.mss.0 + group.endpoint.header.0;
        mtus.push(packet);
        if packet != mtus[0] {
            let message = format!("both hosts have one MTU: {} B here, {packet} B there", mtus[0]);
            found.push(of(group, &["endpoint", "mss"], &message, None));
        }
    }
    found
}

fn topology(scenario: &Scenario, found: &mut Vec<Refusal>) {
    let dumbbell = matches!(&scenario.links[..], [forward, reverse]
        if forward.from == reverse.to && forward.to == reverse.from && scenario.nodes.len() == 2);
    if !dumbbell {
        let message = "on Linux there is one router between two hosts: a dumbbell";
        found.push(refusal(&["link"], message, Some("write [dumbbell], or run it in the simulator")));
    }
    for group in scenario.flows.iter().filter(|g| g.edge_rate.is_some()) {
        let key: &[&str] = if dumbbell {
            &["dumbbell", "edge_rate"]
        } else {
            &["flow", &group.name, "edge_rate"]
        };
        found.push(refusal(key, "the hosts have no line rate of their own on Linux", Some("write `edge_rate = \"unlimited\"`")));
        break;
    }
    for link in &scenario.links {
        // 78 hours, as for captures; a trace without an end is fine.
        if let LinkRate::Steps { initial, .. } = &link.rate
            && initial.0 > MOST_BIT_S
        {
            let message = format!("no router in user space forwards {initial}");
            found.push(refusal(&["dumbbell", "rate"], &message, None));
        }
    }
}

fn of_group(group: &FlowGroup, found: &mut Vec<Refusal>) {
    if let Workload::Udp(_) = group.workload {
        let message = "datagrams are not sent on Linux yet";
        found.push(of(group, &["workload"], message, Some("run it in the simulator")));
        return;
    }
    if group.count as usize > MOST_FLOWS_OF_GROUP {
        let message = format!("a group has ports for {MOST_FLOWS_OF_GROUP} flows on Linux");
        found.push(of(group, &["count"], &message, None));
    }
    controller(group, found);
    endpoint(group, found);
}

/// The kernel's controllers do what the preset `linux` says; ABE's factor is that of `cwnd-kernel`.
fn controller(group: &FlowGroup, found: &mut Vec<Refusal>) {
    let free = ["beta_ecn", "ecn_in_slow_start"];
    let given = group.controller.params();
    let Some(mut kernels) = ControllerParams::of_kind(group.controller.kind()) else { return };
    if !kernels.params_mut().apply_preset(PRESET) {
        let message = format!("Linux has no controller `{}`", group.controller.kind());
        found.push(of(group, &["controller"], &message, None));
        return;
    }
    differences(given, kernels.params(), &free, &mut |name, value, kernels| {
        let kind = group.controller.kind();
        let message = format!("Linux's {kind} has `{name} = {kernels}`, not {value}");
        let help = format!("`preset = \"{PRESET}\"` gives the controller all that Linux has");
        found.push(of(group, &["controller", name], &message, Some(&help)));
    });
}

fn endpoint(group: &FlowGroup, found: &mut Vec<Refusal>) {
    // What a route, a sysctl or the MTU sets.
    let free = ["mss", "ecn", "initial_window", "rto_min"];
    let mut kernels = cwnd_tcp::Params::default();
    kernels.apply_preset(PRESET);
    differences(&group.endpoint, &kernels, &free, &mut |name, value, kernels| {
        let message = format!("Linux's TCP has `{name} = {kernels}`, not {value}");
        let help = format!("`endpoint = \"{PRESET}\"` is TCP as Linux has it");
        found.push(of(group, &["endpoint", name], &message, Some(&help)));
    });
    if group.endpoint.mss < LEAST_MSS {
        let message = format!("segments on Linux have at least {LEAST_MSS} of payload");
        found.push(of(group, &["endpoint", "mss"], &message, None));
    }
    if group.endpoint.rto_backoff != Backoff::Exponential {
        let message = "Linux doubles the timeout each time";
        found.push(of(group, &["endpoint", "rto_backoff"], message, None));
    }
}

/// Tells of each parameter in which two sets differ: its name, the one value and the other.
fn differences(
    given: &dyn Params,
    kernels: &dyn Params,
    free: &[&str],
    tell: &mut dyn FnMut(&str, &str, &str),
) {
    for field in given.fields().iter().filter(|f| !free.contains(&f.name)) {
        if let (Some(a), Some(b)) = (given.get(field.name), kernels.get(field.name))
            && a != b
        {
            tell(field.name, &shown(&a), &shown(&b));
        }
    }
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

/// The presets of controllers and endpoints that say what Linux does.
pub const PRESET: &str = "linux";
/// `TCP_MIN_MSS` and the room that timestamps take.
const LEAST_MSS: Bytes = Bytes(88);
/// Beyond it no packet could be looked at in user space, bit/s.
const MOST_BIT_S: u64 = 10_000_000_000;
