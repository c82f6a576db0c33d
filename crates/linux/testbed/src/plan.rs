//! Flows of a run, drawn from the same random streams as in the simulator: both have the same
//! starts, sizes and round-trip times.

use cwnd_apps::Session;
use cwnd_quantity::{Duration, Rng, Streams, Time};
use cwnd_scenario::Scenario;

/// A flow that will start.
#[derive(Clone, Debug)]
pub struct FlowPlan {
    /// Index of its group in the scenario.
    pub group: usize,
    /// Start of the flow.
    pub start: Time,
    /// Round-trip time in addition to that of the links.
    pub edge_rtt: Duration,
    /// Size of its only transfer, bytes; `None` if it is endless or has several transfers.
    pub size: Option<u64>,
    /// Random stream of its application.
    pub rng: Rng,
}

/// Returns the flows of a run in the order of their numbers.
pub fn flows(scenario: &Scenario) -> Vec<FlowPlan> {
    let random = Streams::new(scenario.run.seed);
    let end = Time(scenario.run.duration.0);
    let mut flows = Vec::new();
    let mut arrivals = Vec::new();
    for (g, group) in scenario.flows.iter().enumerate() {
        for i in 0..group.count {
            let name = format!("flow.{}.{i}", group.name);
            let mut rng = random.named(&name);
            let start = Time(group.start.sample(&mut rng).0) + group.spacing * u64::from(i);
            let Some(arriving) = group.arriving() else {
                if start < end {
                    flows.push(flow(scenario, g, start, &name, (rng, &random)));
                }
                continue;
            };
            let mut at = start;
            let mut process = arriving.arriving().process();
            for arrived in 0_u64.. {
                let Some(next) = process.next(&mut rng) else { break };
                at += next.gap;
                if at >= end {
                    break;
                }
                let name = format!("{name}.{arrived}");
                arrivals.push(flow(scenario, g, at, &name, (random.named(&name), &random)));
            }
        }
    }
    // Arriving flows are numbered in the order of arrival.
    arrivals.sort_by_key(|flow| flow.start);
    flows.extend(arrivals);
    flows
}

fn flow(
    scenario: &Scenario,
    group: usize,
    start: Time,
    name: &str,
    (mut rng, random): (Rng, &Streams),
) -> FlowPlan {
    let of = &scenario.flows[group];
    // Runs on Linux have one path.
    let links = scenario.propagation(&of.paths[0]);
    let edge_rtt = scenario.draw_edge_rtt(of, links, name, (&mut rng, random));
    // Another application with the same random draws shows the size of the transfer.
    let mut session = Session::new(of.workload.maker()(), rng.clone());
    let _ = session.start(start);
    FlowPlan { group, start, edge_rtt, size: session.size(), rng }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cwnd_scenario::Document;
    use cwnd_tables::ColumnData;

    use super::*;

    /// Returns starts, round-trip times and sizes of flows in a run of the simulator.
    fn simulated(scenario: &Scenario) -> (Vec<f64>, Vec<f64>, Vec<Option<u64>>) {
        let records = cwnd_sim::World::new(Arc::new(scenario.clone())).run(|_| true).unwrap();
        let numbers = |name: &str| match records.flows.column(name) {
            Some(ColumnData::F64(v)) => v.clone(),
            _ => Vec::new(),
        };
        let Some(ColumnData::U32(ids)) = records.flows.column("flow_id") else { panic!("ids") };
        let Some(ColumnData::OptionalU64(sizes)) = records.flows.column("size_bytes") else {
            panic!("sizes")
        };
        // Rows are in the order in which flows ended.
        let mut order: Vec<usize> = (0..ids.len()).collect();
        order.sort_by_key(|&row| ids[row]);
        let by_number = |v: Vec<f64>| order.iter().map(|&row| v[row]).collect();
        let sizes = order.iter().map(|&row| sizes.get(row)).collect();
        (by_number(numbers("start_s")), by_number(numbers("rtt_base_us")), sizes)
    }

    #[test]
    fn flows_start_where_they_start_in_the_simulator_with_the_same_sizes_and_round_trips() {
        let text = r#"
            [run]
            duration = "5 s"
            seed = 7
            [dumbbell]
            rate = "50 Mbit/s"
            delay = "1 ms"
            [flow.bulk]
            count = 3
            rtt = "uniform(20 ms, 90 ms)"
            start = "uniform(0 s, 1 s)"
            spacing = "100 ms"
            [flow.web]
            count = 2
            rtt = "uniform(10 ms, 50 ms)"
            workload = { kind = "poisson", interval = "100 ms", size = "pareto(1.5, 20 kB)" }
            [flow.one]
            rtt = "40 ms"
            workload = { kind = "bytes", size = "exponential(50 kB)" }
        "#;
        for noise in ["none", "path"] {
            let noisy = text.replace("seed = 7", &format!("seed = 7\nnoise = \"{noise}\""));
            agree(&noisy);
        }
    }

    fn agree(text: &str) {
        let document = Document::parse("t", text, &|_: &str| Err(String::new())).unwrap();
        let scenario = document.plan().unwrap().cells[0].scenario.clone();
        let planned = flows(&scenario);
        let (starts, rtts_us, sizes) = simulated(&scenario);
        assert!(planned.len() > 60, "{} flows", planned.len());
        assert_eq!(planned.iter().map(|f| f.start.as_secs_f64()).collect::<Vec<_>>(), starts);
        assert_eq!(planned.iter().map(|f| f.size).collect::<Vec<_>>(), sizes);
        let links = Duration::from_millis(2);
        let ours: Vec<f64> =
            planned.iter().map(|f| (f.edge_rtt + links).0 as f64 / 1000.0).collect();
        assert_eq!(ours, rtts_us);
    }
}
