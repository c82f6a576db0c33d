//! Mean queueing delay of a flow as its sender measured it and as it was, for flows that record it.

use std::collections::BTreeMap;

use cwnd_quantity::{Duration, Rate};
use cwnd_scenario::{FlowPath, LinkRate, Scenario};
use cwnd_tcp::Delays;

use crate::flow::Flow;

/// Delays of the paths without queueing, by group and path, for groups that record their queueing
/// delays.
#[derive(Debug, Default)]
pub struct UnloadedPaths {
    paths: BTreeMap<(u32, u32), UnloadedDelay>,
}

#[derive(Clone, Copy, Debug)]
struct UnloadedDelay {
    /// One-way propagation towards the receiver, without the hosts' pipes.
    one_way: Duration,
    round_trip: Duration,
    /// Transmission time of all lines on the path, ns per byte. Lines of varying rate count as
    /// queueing.
    ns_per_byte: f64,
}

impl UnloadedPaths {
    /// Computes the delays of a scenario's paths.
    pub fn of(scenario: &Scenario) -> Self {
        let mut paths = BTreeMap::new();
        for (g, group) in (0..).zip(&scenario.flows) {
            if group.endpoint.timing.record_delays {
                let edge = group.edge_rate.map_or(0.0, ns_per_byte);
                let of = |path| UnloadedDelay::new(scenario, path, edge);
                paths.extend((0..).zip(&group.paths).map(|(w, path)| ((g, w), of(path))));
            }
        }
        Self { paths }
    }

    /// Mean queueing delays of a flow, µs: as its sender measured it, and the true one; `None`
    /// unless recorded, and without samples.
    pub fn queueing(&self, flow: &Flow) -> (Option<f64>, Option<f64>) {
        let Some(unloaded) = self.paths.get(&(flow.group, flow.path)) else { return (None, None) };
        let measured = flow.data.sender.delays().and_then(|delays| {
            let least = delays.least?;
            Some((mean_ns(delays)? - least.0 as f64) / 1000.0)
        });
        let true_delay = flow.data.receiver.delays().and_then(|delays| {
            let edge = Duration(flow.base_rtt.0.saturating_sub(unloaded.round_trip.0)) / 2;
            let bytes = delays.wire_bytes as f64 / delays.count as f64;
            let without_queueing =
                (unloaded.one_way + edge).0 as f64 + bytes * unloaded.ns_per_byte;
            // Lines round each transmission up to a nanosecond.
            Some(((mean_ns(delays)? - without_queueing) / 1000.0).max(0.0))
        });
        (measured, true_delay)
    }
}

impl UnloadedDelay {
    fn new(scenario: &Scenario, path: &FlowPath, edge: f64) -> Self {
        let links = || path.route.iter().map(|&link| &scenario.links[link]);
        let line = |rate: &LinkRate| match rate {
            LinkRate::Steps { initial, changes, .. } if changes.is_empty() => ns_per_byte(*initial),
            LinkRate::Steps { .. } | LinkRate::Trace(_) | LinkRate::Unlimited => 0.0,
        };
        Self {
            one_way: links().fold(Duration::ZERO, |sum, link| sum + link.delay),
            round_trip: scenario.propagation(path),
            ns_per_byte: edge + links().map(|link| line(&link.rate)).sum::<f64>(),
        }
    }
}

fn ns_per_byte(rate: Rate) -> f64 {
    8e9 / rate.0 as f64
}

fn mean_ns(delays: &Delays) -> Option<f64> {
    (delays.count > 0).then(|| delays.sum.0 as f64 / delays.count as f64)
}
