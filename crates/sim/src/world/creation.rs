//! How flows come into being: with the run, or one after the other while it goes on.

use core::fmt;
use std::sync::Arc;

use cwnd_apps::{Facts, Maker, PoissonArrivals, Transport};
use cwnd_scenario::FlowGroup;
use cwnd_tcp::Config;
use cwnd_units::{Bytes, Duration, Rng, Time};

use super::World;
use crate::datagrams::Stream;
use crate::event::{Event, FlowId};
use crate::flow::{Flow, Identity};
use crate::network::{Route, base_rtt};
use crate::stack::Connection;

pub(super) struct Group {
    pub(super) config: Arc<Config>,
    /// Makes the applications of its flows.
    pub(super) make: Maker,
    /// Whether the receivers of its data open its connections.
    client_opens: bool,
    /// Whether its flows are recorded when they are over, and others come in their places.
    pub(super) gives_slots_away: bool,
    /// As in the scenario.
    pub(super) ways: Vec<GroupWay>,
    /// Flows that came to a way by turns.
    turns: u64,
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("ways", &self.ways).finish_non_exhaustive()
    }
}

/// One of the ways that flows of a group go.
#[derive(Debug)]
pub(super) struct GroupWay {
    base_rtt: Duration,
    /// The route of all its flows, unless each has its own.
    shared_route: Option<Route>,
    /// Slots of its flows that are over and were recorded.
    pub(super) free_slots: Vec<u32>,
}

#[derive(Debug)]
pub(super) struct ArrivalProcess {
    group: u32,
    /// Which of its group's processes.
    index: u32,
    gaps: PoissonArrivals,
    rng: Rng,
    arrived: u64,
}

/// How many connections of a group are there from the beginning to the end.
pub(super) fn lasting_flows(group: &FlowGroup) -> usize {
    match group.workload.facts() {
        Facts { transport: Transport::Connection, arrivals: None, .. } => group.count as usize,
        Facts { arrivals: Some(_), .. } | Facts { transport: Transport::Datagrams { .. }, .. } => 0,
    }
}

impl World {
    pub(super) fn add_group(&mut self, g: usize) {
        let scenario = Arc::clone(&self.scenario);
        let group = &scenario.flows[g];
        let own_routes = group.edge_rtt.varies() || group.edge_rate.is_some();
        let facts = group.workload.facts();
        let ways = (0..).zip(&group.ways).map(|(w, way)| GroupWay {
            base_rtt: base_rtt(&scenario, way),
            shared_route: (!own_routes)
                .then(|| self.network.add_route((g as u32, w), group, group.edge_rtt.mean())),
            free_slots: Vec::new(),
        });
        let ways = ways.collect();
        self.groups.push(Group {
            config: Arc::new(Config::new(group.endpoint.clone(), group.controller.clone())),
            make: group.workload.maker(),
            client_opens: facts.client_opens,
            gives_slots_away: facts.arrivals.is_some(),
            ways,
            turns: 0,
        });
        for i in 0..group.count {
            let name = format!("flow.{}.{i}", group.name);
            let mut rng = self.random.named(&name);
            let start = Time(group.start.sample(&mut rng).0) + group.spacing * u64::from(i);
            if let Some(gaps) = facts.arrivals {
                let process = self.arrivals.len() as u32;
                let first = start + gaps.gap(&mut rng);
                let of = ArrivalProcess { group: g as u32, index: i, gaps, rng, arrived: 0 };
                self.arrivals.push(of);
                self.events.push(first, Event::Arrival(process));
                continue;
            }
            match facts.transport {
                Transport::Connection => {
                    let id = self.add_flow(g, &name, rng);
                    self.events.push(start, Event::AppWake(id));
                    if let Some(stop) = group.stop {
                        self.events.push(stop, Event::AppStop(id));
                    }
                }
                Transport::Datagrams { header } => {
                    let index = self.add_stream(g, &name, header, rng);
                    self.events.push(start, Event::Datagram(index));
                }
            }
        }
    }

    /// The way of the next flow of a group; it is called `name`.
    fn choose_way(&mut self, g: usize, name: &str) -> usize {
        let turn = self.groups[g].turns;
        self.groups[g].turns += 1;
        let random = &self.random;
        self.scenario.flows[g].choose_way(turn, || random.named(&format!("{name}.ends")))
    }

    fn add_stream(&mut self, g: usize, name: &str, header: Bytes, mut rng: Rng) -> u32 {
        let scenario = Arc::clone(&self.scenario);
        let group = &scenario.flows[g];
        let index = self.streams.len() as u32;
        let way = self.choose_way(g, name);
        let edge = group.edge_rtt.sample(&mut rng);
        let shared = self.groups[g].ways[way].shared_route;
        let route =
            shared.unwrap_or_else(|| self.network.add_route((g as u32, way as u32), group, edge));
        let identity = Identity {
            id: FlowId::datagrams(index),
            number: self.flows_created,
            group: g as u32,
            way: way as u32,
            route,
            base_rtt: self.groups[g].ways[way].base_rtt + edge,
            client_opens: false,
            stop: group.stop.unwrap_or(Time::NEVER),
        };
        self.flows_created += 1;
        let app = (self.groups[g].make)();
        self.streams.push(Stream::new(identity, header, app, rng));
        index
    }

    fn add_flow(&mut self, g: usize, name: &str, mut rng: Rng) -> FlowId {
        let scenario = Arc::clone(&self.scenario);
        let group = &scenario.flows[g];
        let way = self.choose_way(g, name);
        let edge = group.edge_rtt.sample(&mut rng);
        let number = self.flows_created;
        self.flows_created += 1;
        let reused = self.take_free_slot(g, way).map(|slot| {
            let old = &self.flows[slot as usize];
            (slot, old.id.generation().wrapping_add(1), old.route)
        });
        let (slot, generation) = reused.map_or((self.flows.len() as u32, 0), |r| (r.0, r.1));
        let route = match (self.groups[g].ways[way].shared_route, reused) {
            (Some(shared), _) => shared,
            (None, Some((_, _, own))) => {
                self.network.set_edge(own, edge);
                own
            }
            (None, None) => self.network.add_route((g as u32, way as u32), group, edge),
        };
        let id = FlowId::new(slot, generation);
        let identity = Identity {
            id,
            number,
            group: g as u32,
            way: way as u32,
            route,
            base_rtt: self.groups[g].ways[way].base_rtt + edge,
            client_opens: self.groups[g].client_opens,
            stop: group.stop.unwrap_or(Time::NEVER),
        };
        let app = (self.groups[g].make)();
        let flow = Flow::new(identity, &self.groups[g].config, app, rng);
        match self.flows.get_mut(slot as usize) {
            Some(place) => *place = flow,
            None => {
                cwnd_memory::make_room(&mut self.flows);
                self.flows.push(flow);
            }
        }
        self.network.begin_flow(id, Connection::new(number, g as u32, way as u32));
        id
    }

    /// The slot of a flow that went this way and is over. If its route is its own, not while packets are still on their way
    /// to its hosts: they would hold up those of the next.
    fn take_free_slot(&mut self, g: usize, way: usize) -> Option<u32> {
        let way = &mut self.groups[g].ways[way];
        let slot = *way.free_slots.last()?;
        let free = way.shared_route.is_some()
            || self.network.edge_is_empty(self.flows[slot as usize].route);
        free.then(|| way.free_slots.pop()).flatten()
    }

    pub(super) fn on_arrival(&mut self, process: u32) {
        let scenario = Arc::clone(&self.scenario);
        let arrivals = &mut self.arrivals[process as usize];
        let g = arrivals.group as usize;
        let group = &scenario.flows[g];
        if group.stop.is_some_and(|stop| stop <= self.now) {
            return;
        }
        let gap = arrivals.gaps.gap(&mut arrivals.rng);
        let name = format!("flow.{}.{}.{}", group.name, arrivals.index, arrivals.arrived);
        arrivals.arrived += 1;
        self.events.push(self.now + gap, Event::Arrival(process));
        let id = self.add_flow(g, &name, self.random.named(&name));
        self.on_app_wake(id);
    }
}

#[cfg(test)]
mod tests {
    use cwnd_scenario::Document;

    use super::*;

    #[test]
    fn connections_that_arrive_take_the_places_of_those_that_are_over() {
        for rtt in ["50 ms", "uniform(40 ms, 60 ms)"] {
            let text = format!(
                "[run]\nduration = \"20 s\"\n[dumbbell]\nrate = \"100 Mbit/s\"\n[flow.web]\nrtt = \"{rtt}\"\n\
                 workload = {{ kind = \"poisson\", size = \"10 kB\", interval = \"10 ms\" }}\n"
            );
            let document = Document::parse("test", &text, &|_: &str| Err(String::new())).unwrap();
            let plan = document.plan().unwrap();
            let mut world = World::new(Arc::new(plan.cells[0].scenario.clone()));
            while world.step() {}
            // 2,000 arrive; each stays for some four round trips, so twenty are there at a time.
            assert!(world.flows_created > 1800, "{rtt}: {}", world.flows_created);
            assert!(world.flows.len() < 60, "{rtt}: {} places", world.flows.len());
        }
    }
}
