//! Parameters of an endpoint that Linux takes from a setting or from a program of `cwnd-kernel`,
//! for studies of behaviour that Linux lacks.

use cwnd_quantity::Duration;
use cwnd_scenario::{FlowGroup, Scenario};
use cwnd_schema::key;
use cwnd_tcp::{Params, RttFrom, TsoParams, TsoSizing};

use crate::programs;

/// Returns the parameters of this group's endpoint that Linux can provide as given.
pub fn free(scenario: &Scenario, group: &FlowGroup) -> Vec<&'static str> {
    let endpoint = &group.endpoint;
    let mut free = Vec::new();
    let told = programs::asked_for(&group.controller).any(|program| program.by_rtt);
    match (endpoint.timing.rtt_from, endpoint.rtt.rtt_from_notes) {
        // The kernel passes this RTT to controllers.
        (RttFrom::Sack, true) => free.push(key!(Params: timing.rtt_from)),
        (RttFrom::Oldest, true) if told => free.push(key!(Params: timing.rtt_from)),
        (RttFrom::Timer, _) if told => free.push(key!(Params: rtt.rtt_from_notes)),
        _ => {}
    }
    if subtracted_ms(endpoint).is_some() {
        free.push(key!(Params: cheat.cheat_timestamps));
    }
    // TSO settings apply to a whole host.
    let tso = &endpoint.tso;
    if scenario.flows.iter().all(|other| other.endpoint.tso == *tso) {
        free.push(key!(Params: tso.tso_win_divisor));
        match (tso.tso, tso.tso_sizing, tso.tso_defer) {
            (Some(_), TsoSizing::Full, Some(DEFERS)) if least_segments(endpoint).is_some() => {
                free.extend([key!(Params: tso.tso), key!(Params: tso.tso_defer)]);
            }
            // This is the kernel's own behaviour.
            (Some(_), TsoSizing::Unpaced, None) => {
                free.extend([key!(Params: tso.tso), key!(Params: tso.tso_sizing)])
            }
            _ => {}
        }
    }
    free
}

/// Returns additional arguments of `cwnd-kernel` for a controller with another RTT than the
/// kernel's.
pub fn seen(endpoint: &Params) -> Vec<String> {
    let from = match (endpoint.timing.rtt_from, endpoint.rtt.rtt_from_notes) {
        (RttFrom::Oldest, _) => Some("oldest"),
        // Only the controller's RTT comes from timestamps: Linux's timer keeps its send times.
        (RttFrom::Timer, false) => Some("timestamps"),
        _ => None,
    };
    from.into_iter().flat_map(|word| ["--rtt-from", word]).map(str::to_owned).collect()
}

/// Returns the arguments of `cwnd-kernel` for misbehaving receivers; `None` for honest ones.
pub fn cheats(endpoint: &Params) -> Option<Vec<String>> {
    let ms = subtracted_ms(endpoint)?.to_string();
    Some(["hold", "cheat_stamps", "--subtract", &ms].map(str::to_owned).to_vec())
}

/// Returns the hosts' sysctls for TSO that differ from the kernel's defaults.
pub fn chunks(scenario: &Scenario) -> Vec<(&'static str, String)> {
    let Some(group) = scenario.flows.first() else { return Vec::new() };
    let tso = &group.endpoint.tso;
    let mut settings = Vec::new();
    if tso.tso_win_divisor != TsoParams::default().tso_win_divisor {
        settings.push(("net.ipv4.tcp_tso_win_divisor", tso.tso_win_divisor.to_string()));
    }
    if let Some(segments) = least_segments(&group.endpoint) {
        settings.push(("net.ipv4.tcp_min_tso_segs", segments.to_string()));
    }
    settings
}

/// Returns how much receivers subtract from timestamps, which count milliseconds in Linux.
fn subtracted_ms(endpoint: &Params) -> Option<u64> {
    let ns = endpoint.cheat.cheat_timestamps.0;
    (ns > 0 && ns.is_multiple_of(NS_PER_MS)).then_some(ns / NS_PER_MS)
}

/// Returns the least segments of a TSO packet, if it is to be as large as `tso` allows.
fn least_segments(endpoint: &Params) -> Option<u64> {
    let tso = endpoint.tso.tso.filter(|_| endpoint.tso.tso_sizing == TsoSizing::Full)?;
    let segments = tso.0 / endpoint.packets.mss.0;
    (2..=MOST_LEAST_SEGMENTS).contains(&segments).then_some(segments)
}

const NS_PER_MS: u64 = 1_000_000;
/// Limit in `tcp_tso_should_defer` of the time since the last segment, and until an ACK is due.
const DEFERS: Duration = Duration::from_millis(1);
/// Largest value of `tcp_min_tso_segs`, a byte.
const MOST_LEAST_SEGMENTS: u64 = 255;
