//! Mean queueing delay of a flow as its sender measured it and as it was, for flows that record it.

use std::collections::BTreeMap;

use cwnd_quantity::{Duration, Rate};
use cwnd_scenario::{LinkRate, Scenario, Way};
use cwnd_tcp::Delays;

use crate::flow::Flow;

/// Delays of the paths without queueing, by group and path, for groups that record their queueing
/// delays.
#[derive(Debug, Default)]
pub struct EmptyWays {
    ways: BTreeMap<(u32, u32), Empty>,
}

#[derive(Clone, Copy, Debug)]
struct Empty {
    /// One-way propagation towards the receiver, without the hosts' pipes.
    there: Duration,
    both: Duration,
    /// Transmission time of all lines on the path, ns per byte. Lines of varying rate count as
    /// queueing.
    ns_per_byte: f64,
}

impl EmptyWays {
    /// Computes the delays of a scenario's paths.
    pub fn of(scenario: &Scenario) -> Self {
        let mut ways = BTreeMap::new();
        for (g, group) in (0..).zip(&scenario.flows) {
            if group.endpoint.timing.note_delays {
                let edge = group.edge_rate.map_or(0.0, ns_per_byte);
                let of = |way| Empty::new(scenario, way, edge);
                ways.extend((0..).zip(&group.ways).map(|(w, way)| ((g, w), of(way))));
            }
        }
        Self { ways }
    }

    /// Mean queueing delays of a flow, µs: as its sender measured it, and the true one; `None`
    /// unless recorded.
    pub fn queueing(&self, flow: &Flow) -> (Option<f64>, Option<f64>) {
        let Some(empty) = self.ways.get(&(flow.group, flow.way)) else { return (None, None) };
        let seen = flow.data.sender.delays().and_then(|delays| {
            let least = delays.least?;
            Some((mean_ns(delays)? - least.0 as f64) / 1000.0)
        });
        let true_delay = flow.data.receiver.delays().and_then(|delays| {
            let edge = Duration(flow.base_rtt.0.saturating_sub(empty.both.0)) / 2;
            let bytes = delays.wire_bytes as f64 / delays.count as f64;
            let alone = (empty.there + edge).0 as f64 + bytes * empty.ns_per_byte;
            // Lines round each transmission up to a nanosecond.
            Some(((mean_ns(delays)? - alone) / 1000.0).max(0.0))
        });
        (seen, true_delay)
    }
}

impl Empty {
    fn new(scenario: &Scenario, way: &Way, edge: f64) -> Self {
        let links = || way.route.iter().map(|&link| &scenario.links[link]);
        let line = |rate: &LinkRate| match rate {
            LinkRate::Steps { initial, changes, .. } if changes.is_empty() => ns_per_byte(*initial),
            LinkRate::Steps { .. } | LinkRate::Trace(_) | LinkRate::Unlimited => 0.0,
        };
        Self {
            there: links().fold(Duration::ZERO, |sum, link| sum + link.delay),
            both: scenario.propagation(way),
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
