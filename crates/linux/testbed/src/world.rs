//! Addresses and ports of the flows, and the counts of both sides together.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cwnd_quantity::{Bytes, Duration, Time};
use cwnd_scenario::{FlowGroup, Scenario};

use crate::plan::FlowPlan;

/// The two sides of the dumbbell, in the order of its nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Where flows with `direction = "forward"` begin.
    Left,
    /// Where they end.
    Right,
}

impl Side {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::Left, Self::Right];

    /// The side of a node of the scenario.
    pub const fn of_node(node: usize) -> Self {
        if node == 0 { Self::Left } else { Self::Right }
    }

    /// The address that a group has here: RFC 2544 § C.2.2 sets 198.18.0.0/15 aside for test benches.
    pub const fn address(self, group: usize) -> Ipv4Addr {
        let host = match self {
            Self::Left => 1,
            Self::Right => 2,
        };
        Ipv4Addr::new(198, 18 + (group >> 8) as u8, (group & 0xff) as u8, host)
    }
}

/// Groups that have addresses.
pub const MOST_GROUPS: usize = 512;
/// Flows of a group that have ports.
pub const MOST_FLOWS_OF_GROUP: usize = 50_000;
/// Where receivers listen.
pub const PORT: u16 = 5001;
/// The port of a group's first flow.
const FIRST_PORT: u16 = 10_000;

/// The flows of a run, and what their receivers have.
#[derive(Debug)]
pub struct World {
    /// What is run.
    pub scenario: Scenario,
    /// The flows, by number.
    pub flows: Vec<FlowPlan>,
    /// The kernel's name of each group's controller.
    pub controllers: Vec<String>,
    ports: Vec<u16>,
    by_sender: BTreeMap<SocketAddrV4, usize>,
    delivered: Vec<AtomicU64>,
    /// When the last byte of a transfer came, ns; 0 before.
    finished: Vec<AtomicU64>,
    stop: AtomicBool,
}

impl World {
    /// The largest packet of the run, headers included; both hosts have it for their MTU.
    pub fn packet(&self) -> Bytes {
        let packet = |group: &FlowGroup| {
            Bytes(group.endpoint.packets.mss.0 + group.endpoint.packets.header.0)
        };
        self.scenario.flows.iter().map(packet).max().unwrap_or(Bytes(1500))
    }

    /// The world of a scenario, with the kernel's name of each group's controller.
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

    /// Where a flow's sender is.
    pub fn sender_side(&self, flow: usize) -> Side {
        Side::of_node(self.scenario.flows[self.flows[flow].group].ways[0].from)
    }

    /// A flow's own end: sender's address and port.
    pub fn sender(&self, flow: usize) -> SocketAddrV4 {
        let side = self.sender_side(flow);
        SocketAddrV4::new(side.address(self.flows[flow].group), self.ports[flow])
    }

    /// Where it sends to.
    pub fn receiver(&self, flow: usize) -> SocketAddrV4 {
        let side = match self.sender_side(flow) {
            Side::Left => Side::Right,
            Side::Right => Side::Left,
        };
        SocketAddrV4::new(side.address(self.flows[flow].group), PORT)
    }

    /// The flow whose sender is there.
    pub fn flow_of(&self, sender: SocketAddrV4) -> Option<usize> {
        self.by_sender.get(&sender).copied()
    }

    /// Counts what an application received.
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

    /// Payload that the receiving application has.
    pub fn delivered(&self, flow: usize) -> u64 {
        self.delivered[flow].load(Ordering::Relaxed)
    }

    /// When its transfer was complete.
    pub fn finished(&self, flow: usize) -> Option<Time> {
        let at = self.finished[flow].load(Ordering::Relaxed);
        (at > 0).then_some(Time(at))
    }

    /// Asks both sides to end.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether they were asked to.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// How often sockets are looked at: every sample, and at least every 10 ms.
    pub fn interval(&self) -> Duration {
        self.scenario.run.sample.map_or(LONGEST_INTERVAL, |sample| sample.min(LONGEST_INTERVAL))
    }
}

/// Sockets are looked at no less often than this.
const LONGEST_INTERVAL: Duration = Duration::from_millis(10);
