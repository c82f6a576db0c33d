//! Addresses and ports of the flows, and progress shared by both sides.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cwnd_quantity::{Bytes, Duration, Time};
use cwnd_scenario::{FlowGroup, Scenario};

use crate::plan::FlowPlan;

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
    /// Returns the size of the run's largest packet including headers, the MTU of both hosts.
    pub fn packet(&self) -> Bytes {
        let packet = |group: &FlowGroup| {
            Bytes(group.endpoint.packets.mss.0 + group.endpoint.packets.header.0)
        };
        self.scenario.flows.iter().map(packet).max().unwrap_or(Bytes(1500))
    }

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

/// Longest interval between readings of sockets.
const LONGEST_INTERVAL: Duration = Duration::from_millis(10);
