//! A run on Linux: its clock (CLOCK_MONOTONIC), addresses and ports of its flows, and progress
//! shared by both sides. Flows are drawn from the same random streams as in the simulator: both
//! have the same starts, sizes and round-trip times.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cwnd_apps::Session;
use cwnd_quantity::{Bytes, Duration, Rng, Streams, Time};
use cwnd_scenario::{FlowGroup, Scenario};
use rustix::time::{ClockId, clock_gettime};

/// Sides of the dumbbell, in the order of its nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Side at which flows with `direction = "forward"` begin.
    Left,
    /// Side at which they end.
    Right,
}

impl Side {
    /// Both sides.
    pub const BOTH: [Self; 2] = [Self::Left, Self::Right];

    /// Returns the side of a node of the scenario.
    pub const fn of_node(node: usize) -> Self {
        if node == 0 { Self::Left } else { Self::Right }
    }

    /// Returns a group's address on this side, in 198.18.0.0/15, which is reserved for benchmarks
    /// (RFC 2544 § C.2.2).
    pub const fn address(self, group: usize) -> Ipv4Addr {
        let host = match self {
            Self::Left => 1,
            Self::Right => 2,
        };
        Ipv4Addr::new(198, 18 + (group >> 8) as u8, (group & 0xff) as u8, host)
    }
}

/// Maximum number of groups, which have an address each.
pub const MOST_GROUPS: usize = 512;
/// Maximum number of flows of a group, which have a port each.
pub const MOST_FLOWS_OF_GROUP: usize = 50_000;
/// Port of receivers.
pub const PORT: u16 = 5001;
/// Port of the sender of a group's first flow.
const FIRST_PORT: u16 = 10_000;

/// Flows of a run, and the data that their receivers have.
#[derive(Debug)]
pub struct World {
    /// Scenario of the run.
    pub scenario: Scenario,
    /// Flows by number.
    pub flows: Vec<FlowPlan>,
    /// Kernel's name of each group's controller.
    pub controllers: Vec<String>,
    ports: Vec<u16>,
    by_sender: BTreeMap<SocketAddrV4, usize>,
    delivered: Vec<AtomicU64>,
    /// Time at which the receiving application had read a transfer's last byte, ns; 0 before.
    finished: Vec<AtomicU64>,
    stop: AtomicBool,
}

impl World {
    /// Creates the world of a scenario, with the kernel's name of each group's controller.
    pub fn new(scenario: Scenario, flows: Vec<FlowPlan>, controllers: Vec<String>) -> Self {
        let mut next = vec![FIRST_PORT; scenario.flows.len()];
        let ports = flows
            .iter()
            .map(|flow| {
                let port = next[flow.group];
                next[flow.group] = port.wrapping_add(1);
                port
            })
            .collect();
        let zeros = || flows.iter().map(|_| AtomicU64::new(0)).collect();
        let mut world = Self {
            ports,
            by_sender: BTreeMap::new(),
            delivered: zeros(),
            finished: zeros(),
            scenario,
            flows,
            controllers,
            stop: AtomicBool::new(false),
        };
        world.by_sender = (0..world.flows.len()).map(|flow| (world.sender(flow), flow)).collect();
        world
    }

    /// Returns the side of a flow's sender.
    pub fn sender_side(&self, flow: usize) -> Side {
        Side::of_node(self.scenario.flows[self.flows[flow].group].paths[0].from)
    }

    /// Returns the address and port of a flow's sender.
    pub fn sender(&self, flow: usize) -> SocketAddrV4 {
        let side = self.sender_side(flow);
        SocketAddrV4::new(side.address(self.flows[flow].group), self.ports[flow])
    }

    /// Returns the address and port of a flow's receiver.
    pub fn receiver(&self, flow: usize) -> SocketAddrV4 {
        let side = match self.sender_side(flow) {
            Side::Left => Side::Right,
            Side::Right => Side::Left,
        };
        SocketAddrV4::new(side.address(self.flows[flow].group), PORT)
    }

    /// Returns the flow with this sender.
    pub fn flow_of(&self, sender: SocketAddrV4) -> Option<usize> {
        self.by_sender.get(&sender).copied()
    }

    /// Counts bytes that a receiving application read.
    pub fn deliver(&self, flow: usize, bytes: u64, now: Time) {
        let delivered = self.delivered[flow].fetch_add(bytes, Ordering::Relaxed) + bytes;
        if self.flows[flow].size.is_some_and(|size| delivered >= size) {
            let _ = self.finished[flow].compare_exchange(
                0,
                now.0.max(1),
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
        }
    }

    /// Returns the payload that the receiving application has read, bytes.
    pub fn delivered(&self, flow: usize) -> u64 {
        self.delivered[flow].load(Ordering::Relaxed)
    }

    /// Returns the time at which a flow's only transfer was complete.
    pub fn finished(&self, flow: usize) -> Option<Time> {
        let at = self.finished[flow].load(Ordering::Relaxed);
        (at > 0).then_some(Time(at))
    }

    /// Requests both sides to end.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// `true` if they were requested to end.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Returns the interval between readings of sockets: that of samples, at most 10 ms.
    pub fn interval(&self) -> Duration {
        self.scenario.run.sample.map_or(LONGEST_INTERVAL, |sample| sample.min(LONGEST_INTERVAL))
    }
}

/// Returns the MTU of both hosts, the size of the connections' full packets.
pub fn mtu(scenario: &Scenario) -> Bytes {
    scenario.connections().find(|group| group.quic.is_none()).map_or(DEFAULT_MTU, packet)
}

/// Returns the size of a group's full packets of TCP.
pub fn packet(group: &FlowGroup) -> Bytes {
    Bytes(group.endpoint.packets.mss.0 + group.endpoint.packets.header.0)
}

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

/// Time since the start of a run.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start_ns: u64,
}

/// Returns CLOCK_MONOTONIC in nanoseconds.
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

impl Clock {
    /// Creates the clock of a run that starts at this instant.
    pub const fn starting_at(start_ns: u64) -> Self {
        Self { start_ns }
    }

    /// Returns the time since the start; zero before it.
    pub fn now(&self) -> Time {
        Time(monotonic_ns().saturating_sub(self.start_ns))
    }
}

/// Sleeps until an instant of CLOCK_MONOTONIC.
pub fn sleep_until(instant_ns: u64) {
    let left = instant_ns.saturating_sub(monotonic_ns());
    std::thread::sleep(core::time::Duration::from_nanos(left));
}

/// MTU of both hosts without a connection.
const DEFAULT_MTU: Bytes = Bytes(1500);
/// Longest interval between readings of sockets.
const LONGEST_INTERVAL: Duration = Duration::from_millis(10);

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
            [flow.call]
            count = 2
            rtt = "uniform(10 ms, 50 ms)"
            start = "uniform(0 s, 1 s)"
            workload = { kind = "udp", rate = "80 kbit/s", size = "200 B" }
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
