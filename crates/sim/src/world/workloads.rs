//! Arrivals of connections: groups of flows, arrival processes and users.

use core::fmt;
use std::collections::BTreeMap;
use std::sync::Arc;

use cwnd_apps::arrivals::{Arrival, Process};
use cwnd_apps::users::{Habits, User};
use cwnd_apps::{ArrivalParams, Maker, RecordedArrival};
use cwnd_quantity::{Duration, Rng, Time};
use cwnd_scenario::Scenario;
use cwnd_tcp::{Config, quic};

use super::off_path_attack::Attack;
use crate::endpoint::MakeEndpoints;
use crate::event::{Event, EventQueue};
use crate::network::Route;

/// Groups of flows, arrivals and users that open connections, and attacks on connections.
#[derive(Debug, Default)]
pub(super) struct Workloads {
    /// Groups of flows, in the scenario's order.
    pub(super) groups: Vec<Group>,
    pub(super) arrivals: Vec<ArrivalProcess>,
    /// Users, as indices of `arrivals`, that wait for the end of a connection, by the slot of that
    /// connection.
    pub(super) users: BTreeMap<usize, u32>,
    /// Attacks, by the slot of the attacked connection.
    pub(super) attacks: BTreeMap<usize, Attack>,
    /// Free list of `arrivals`: users that are done.
    pub(super) free_processes: Vec<u32>,
    pub(super) flows_created: u32,
}

pub(super) struct Group {
    pub(super) config: Arc<Config>,
    /// Configuration of its connections if they are QUIC connections.
    pub(super) quic: Option<quic::Config>,
    /// Creates the applications of its flows.
    pub(super) make: Maker,
    /// Number of flows with endpoints from outside, and their maker; `None` if the ends are cwnd's.
    pub(super) endpoints: Option<(u64, MakeEndpoints)>,
    /// `true` if the receivers of its data open its connections.
    pub(super) client_opens: bool,
    /// `true` if a flow is recorded at its end and its slot is reused.
    pub(super) reuses_slots: bool,
    /// `true` if its arrivals depend on the end of connections.
    pub(super) waits: bool,
    /// Habits of its users, if users arrive.
    pub(super) habits: Option<Arc<Habits>>,
    /// Paths of the group, in the scenario's order.
    pub(super) paths: Vec<GroupPath>,
    /// Number of flows that have chosen a path, for choice in turn.
    pub(super) flows_assigned: u64,
    /// Path of each recorded arrival for which the record names a host; `None` for the others.
    /// Empty if no row names one.
    pub(super) recorded_paths: Vec<Option<usize>>,
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("paths", &self.paths).finish_non_exhaustive()
    }
}

/// One of the paths of a group.
#[derive(Debug)]
pub(super) struct GroupPath {
    pub(super) base_rtt: Duration,
    /// The route of all its flows, unless each has its own.
    pub(super) shared_route: Option<Route>,
    /// Free list of the slots of its flows.
    pub(super) free_slots: Vec<u32>,
}

#[derive(Debug)]
pub(super) struct ArrivalProcess {
    pub(super) group: usize,
    /// Prefix of the names of its flows; these name their random streams.
    pub(super) name: String,
    pub(super) gaps: Box<dyn Process>,
    /// `true` for the connections of one user.
    pub(super) is_user: bool,
    /// Gap, size and record of the next arrival.
    pub(super) next: Arrival,
    /// Time of the next arrival; `Time::NEVER` if it is unknown or there is none.
    pub(super) due: Time,
    pub(super) rng: Rng,
    pub(super) arrived: u64,
}

/// The start of a member of a group: a connection, a source of datagrams, a user, or arrivals.
pub(super) struct Opening {
    pub(super) group: usize,
    pub(super) name: String,
    pub(super) at: Time,
    pub(super) rng: Rng,
}

impl Group {
    /// Creates the state of group `g` of the scenario.
    pub(super) fn new(
        scenario: &Scenario,
        g: usize,
        arriving: Option<&ArrivalParams>,
        paths: Vec<GroupPath>,
    ) -> Self {
        let group = &scenario.flows[g];
        let habits = group.workload.habits().map(Arc::new);
        Self {
            config: Arc::new(Config::new(group.endpoint.clone(), group.controller.clone())),
            quic: group.quic.clone().map(|quic| quic::Config::new(quic, &group.controller)),
            make: group.workload.maker(),
            endpoints: None,
            client_opens: group.workload.facts().client_opens,
            reuses_slots: arriving.is_some() || habits.is_some(),
            waits: habits.is_some() || arriving.is_some_and(|of| of.arriving().waits()),
            habits,
            paths,
            flows_assigned: 0,
            recorded_paths: recorded_paths(scenario, g),
        }
    }
}

impl Workloads {
    /// Adds an arrival process, unless nothing arrives.
    pub(super) fn begin_arrivals(
        &mut self,
        opening: Opening,
        mut gaps: Box<dyn Process>,
        events: &mut EventQueue,
    ) {
        let Opening { group, name, at, mut rng } = opening;
        let Some(next) = gaps.next(&mut rng) else { return };
        let due = at + next.gap;
        let (is_user, arrived) = (false, 0);
        let of = ArrivalProcess { group, name, gaps, is_user, next, due, rng, arrived };
        self.begin_process(of, events);
    }

    /// Adds a user, whose first connection opens at the start.
    #[cold]
    pub(super) fn begin_user(
        &mut self,
        opening: Opening,
        habits: Arc<Habits>,
        events: &mut EventQueue,
    ) {
        let Opening { group, name, at: due, rng } = opening;
        let gaps = Box::new(User::new(habits));
        let next = Arrival::after(Duration::ZERO);
        let (is_user, arrived) = (true, 0);
        let of = ArrivalProcess { group, name, gaps, is_user, next, due, rng, arrived };
        self.begin_process(of, events);
    }

    // Cold like `begin_user`: inlining them costs 3 % more instructions per packet.
    #[cold]
    fn begin_process(&mut self, of: ArrivalProcess, events: &mut EventQueue) {
        let due = of.due;
        let process = match self.free_processes.pop() {
            Some(place) => {
                self.arrivals[place as usize] = of;
                place
            }
            None => {
                self.arrivals.push(of);
                (self.arrivals.len() - 1) as u32
            }
        };
        events.push(due, Event::Arrival(process));
    }

    /// Reports the end of a connection to the user that waits for it.
    pub(super) fn on_over(&mut self, slot: usize, events: &mut EventQueue) {
        let Some(process) = self.users.remove(&slot) else { return };
        let arrivals = &mut self.arrivals[process as usize];
        if let Some(next) = arrivals.gaps.on_end(&mut arrivals.rng) {
            arrivals.due = events.now() + next.gap;
            events.push(arrivals.due, Event::Arrival(process));
            arrivals.next = next;
        } else if arrivals.gaps.is_done() {
            self.free_processes.push(process);
        }
    }
}

/// Path of each recorded arrival for which the record names a host; empty if no row names one.
fn recorded_paths(scenario: &Scenario, g: usize) -> Vec<Option<usize>> {
    let group = &scenario.flows[g];
    let rows = group.arrivals.arriving().rows();
    if rows.iter().all(|row| row.server.is_none() && row.client.is_none()) {
        return Vec::new();
    }
    let nodes: BTreeMap<&str, usize> =
        scenario.nodes.iter().enumerate().map(|(i, name)| (name.as_str(), i)).collect();
    // Rows with the same hosts share one search.
    let mut known = BTreeMap::new();
    let mut path = |row: &RecordedArrival| {
        let node =
            |name: &Option<String>| name.as_deref().and_then(|name| nodes.get(name).copied());
        let ends = (node(&row.server), node(&row.client));
        match ends {
            (None, None) => None,
            (from, to) => *known.entry(ends).or_insert_with(|| group.path_between(from, to)),
        }
    };
    rows.iter().map(&mut path).collect()
}
