//! Parameters of an endpoint that Linux takes from a setting or from a program of `cwnd-kernel`,
//! for studies of behaviour that Linux lacks.

use cwnd_quantity::Duration;
use cwnd_scenario::{FlowGroup, Scenario};
use cwnd_schema::key;
use cwnd_tcp::{Params, RttFrom, TsoParams, TsoSizing};

use crate::programs;

/// Returns those of the parameters for laboratories (RTT source, timestamps of cheating receivers,
/// TSO) that Linux can provide as this group's endpoint gives them.
pub fn settable(scenario: &Scenario, group: &FlowGroup) -> Vec<&'static str> {
    let endpoint = &group.endpoint;
    let mut settable = Vec::new();
    let uses_rtt = programs::required(&group.controller).any(|program| program.uses_rtt);
    match (endpoint.timing.rtt_from, endpoint.rtt.rtt_from_notes) {
        // The kernel passes this RTT to controllers.
        (RttFrom::Sack, true) => settable.push(key!(Params: timing.rtt_from)),
        (RttFrom::Oldest, true) if uses_rtt => settable.push(key!(Params: timing.rtt_from)),
        (RttFrom::Timer, _) if uses_rtt => settable.push(key!(Params: rtt.rtt_from_notes)),
        _ => {}
    }
    if subtracted_ms(endpoint).is_some() {
        settable.push(key!(Params: cheat.cheat_timestamps));
    }
    // TSO settings apply to a whole host.
    let tso = &endpoint.tso;
    if scenario.flows.iter().all(|other| other.endpoint.tso == *tso) {
        settable.push(key!(Params: tso.tso_win_divisor));
        match (tso.tso, tso.tso_sizing, tso.tso_defer) {
            (Some(_), TsoSizing::Full, Some(TSO_DEFER_LIMIT))
                if min_segments(endpoint).is_some() =>
            {
                settable.extend([key!(Params: tso.tso), key!(Params: tso.tso_defer)]);
            }
            // This is the kernel's own behaviour.
            (Some(_), TsoSizing::Unpaced, None) => {
                settable.extend([key!(Params: tso.tso), key!(Params: tso.tso_sizing)])
            }
            _ => {}
        }
    }
    settable
}

/// Returns additional arguments of `cwnd-kernel` for a controller with another RTT than the
/// kernel's.
pub fn rtt_arguments(endpoint: &Params) -> Vec<String> {
    let from = match (endpoint.timing.rtt_from, endpoint.rtt.rtt_from_notes) {
        (RttFrom::Oldest, _) => Some("oldest"),
        // Only the controller's RTT comes from timestamps: Linux's timer keeps its send times.
        (RttFrom::Timer, false) => Some("timestamps"),
        _ => None,
    };
    from.into_iter().flat_map(|word| ["--rtt-from", word]).map(str::to_owned).collect()
}

/// Returns the arguments of `cwnd-kernel` for misbehaving receivers; `None` for honest ones.
pub fn misbehaviour_arguments(endpoint: &Params) -> Option<Vec<String>> {
    let ms = subtracted_ms(endpoint)?.to_string();
    Some(["hold", "cheat_stamps", "--subtract", &ms].map(str::to_owned).to_vec())
}

/// Returns the hosts' sysctls for TSO that differ from the kernel's defaults.
pub fn tso_sysctls(scenario: &Scenario) -> Vec<(&'static str, String)> {
    let Some(group) = scenario.flows.first() else { return Vec::new() };
    let tso = &group.endpoint.tso;
    let mut settings = Vec::new();
    if tso.tso_win_divisor != TsoParams::default().tso_win_divisor {
        settings.push(("net.ipv4.tcp_tso_win_divisor", tso.tso_win_divisor.to_string()));
    }
    if let Some(segments) = min_segments(&group.endpoint) {
        settings.push(("net.ipv4.tcp_min_tso_segs", segments.to_string()));
    }
    settings
}

/// Returns how much receivers subtract from timestamps, which count milliseconds in Linux; `None`
/// for zero or a part of a millisecond.
fn subtracted_ms(endpoint: &Params) -> Option<u64> {
    let ns = endpoint.cheat.cheat_timestamps.0;
    (ns > 0 && ns.is_multiple_of(NS_PER_MS)).then_some(ns / NS_PER_MS)
}

/// Returns the least segments of a TSO packet, if it is to be as large as `tso` allows and Linux's
/// setting can have the number.
fn min_segments(endpoint: &Params) -> Option<u64> {
    let tso = endpoint.tso.tso.filter(|_| endpoint.tso.tso_sizing == TsoSizing::Full)?;
    let segments = tso.0 / endpoint.packets.mss.0;
    (2..=MAX_MIN_SEGMENTS).contains(&segments).then_some(segments)
}

const NS_PER_MS: u64 = 1_000_000;
/// Limit in `tcp_tso_should_defer` of the time since the last segment, and until an ACK is due.
const TSO_DEFER_LIMIT: Duration = Duration::from_millis(1);
/// Largest value of `tcp_min_tso_segs`, a byte.
const MAX_MIN_SEGMENTS: u64 = 255;
