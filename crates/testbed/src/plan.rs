//! Which flows there will be: drawn from the same streams as in the simulator, so that both worlds have the same starts,
//! sizes and round-trip times.

use cwnd_scenario::{FlowGroup, Scenario, Workload};
use cwnd_units::{Duration, Rng, Streams, Time};

/// A flow that will start.
#[derive(Clone, Debug)]
pub struct FlowPlan {
    /// Index of its group.
    pub group: usize,
    /// When it starts.
    pub start: Time,
    /// What it adds to the round-trip time of the links.
    pub edge_rtt: Duration,
    /// Bytes of its transfer; `None` when without end, or of several transfers.
    pub size: Option<u64>,
    /// Draws of its further sizes and pauses.
    pub rng: Rng,
}

/// The flows of a run in the order of their numbers.
pub fn flows(scenario: &Scenario) -> Vec<FlowPlan> {
    let random = Streams::new(scenario.run.seed);
    let end = Time(scenario.run.duration.0);
    let mut flows = Vec::new();
    let mut arrivals = Vec::new();
    for (g, group) in scenario.flows.iter().enumerate() {
        for i in 0..group.count {
            let mut rng = random.named(&format!("flow.{}.{i}", group.name));
            let start = Time(group.start.sample(&mut rng).0) + group.spacing * u64::from(i);
            match &group.workload {
                Workload::Poisson { interval, .. } => {
                    let mut at = start;
                    for arrived in 0_u64.. {
                        at = at + Duration::from_secs_f64(rng.exponential(interval.as_secs_f64()));
                        if at >= end {
                            break;
                        }
                        let name = format!("flow.{}.{i}.{arrived}", group.name);
                        arrivals.push(flow(g, group, at, random.named(&name)));
                    }
                }
                _ if start < end => flows.push(flow(g, group, start, rng)),
                _ => {}
            }
        }
    }
    // Those that arrive are numbered as they do.
    arrivals.sort_by_key(|flow| flow.start);
    flows.extend(arrivals);
    flows
}

fn flow(group: usize, of: &FlowGroup, start: Time, mut rng: Rng) -> FlowPlan {
    let edge_rtt = of.edge_rtt.sample(&mut rng);
    let size = match &of.workload {
        Workload::Bytes { size } | Workload::Poisson { size, .. } => Some(size.sample(&mut rng).0),
        _ => None,
    };
    FlowPlan { group, start, edge_rtt, size, rng }
}
