//! How flows come into being: with the run, or one after the other while it goes on.

use std::sync::Arc;

use cwnd_scenario::{FlowGroup, Workload};
use cwnd_tcp::Config;
use cwnd_units::{Duration, Rng, Time};

use super::World;
use crate::datagrams::Stream;
use crate::event::{Event, FlowId};
use crate::flow::{Flow, Identity};
use crate::network::{Route, base_rtt};

#[derive(Debug)]
pub(super) struct Group {
    config: Arc<Config>,
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
    rng: Rng,
    arrived: u64,
}

/// How many connections of a group are there from the beginning to the end.
pub(super) const fn lasting_flows(group: &FlowGroup) -> usize {
    match group.workload {
        Workload::Poisson { .. } | Workload::Udp(_) => 0,
        _ => group.count as usize,
    }
}

impl World {
    pub(super) fn add_group(&mut self, g: usize) {
        let scenario = Arc::clone(&self.scenario);
        let group = &scenario.flows[g];
        let own_routes = group.edge_rtt.varies() || group.edge_rate.is_some();
        self.groups.push(Group {
            config: Arc::new(Config::new(group.endpoint.clone(), group.controller.clone())),
            base_rtt: base_rtt(&scenario, group),
            shared_route: (!own_routes)
                .then(|| self.network.add_route(group, group.edge_rtt.mean())),
            free_slots: Vec::new(),
        });
        for i in 0..group.count {
            let mut rng = self.random.named(&format!("flow.{}.{i}", group.name));
            let start = Time(group.start.sample(&mut rng).0) + group.spacing * u64::from(i);
            if let Workload::Poisson { interval, .. } = &group.workload {
                let process = self.arrivals.len() as u32;
                let first =
                    start + Duration::from_secs_f64(rng.exponential(interval.as_secs_f64()));
                self.arrivals.push(ArrivalProcess { group: g as u32, index: i, rng, arrived: 0 });
                self.events.push(first, Event::Arrival(process));
            } else if let Workload::Udp(what) = &group.workload {
                let index = self.streams.len() as u32;
                let edge = group.edge_rtt.sample(&mut rng);
                let shared = self.groups[g].shared_route;
                let route = shared.unwrap_or_else(|| self.network.add_route(group, edge));
                let identity = Identity {
                    id: FlowId::datagrams(index),
                    number: self.flows_created,
                    group: g as u32,
                    route,
                    base_rtt: self.groups[g].base_rtt + edge,
                };
                let mut stream = Stream::new(identity, what, rng);
                stream.stop = group.stop.unwrap_or(Time::NEVER);
                self.flows_created += 1;
                self.streams.push(stream);
                self.events.push(start, Event::Datagram(index));
            } else {
                let id = self.add_flow(g, rng);
                self.events.push(start, Event::AppWake(id));
                if let Some(stop) = group.stop {
                    self.events.push(stop, Event::AppStop(id));
                }
            }
        }
    }

    fn add_flow(&mut self, g: usize, mut rng: Rng) -> FlowId {
        let scenario = Arc::clone(&self.scenario);
        let group = &scenario.flows[g];
        let edge = group.edge_rtt.sample(&mut rng);
        let number = self.flows_created;
        self.flows_created += 1;
        let reused = self.take_free_slot(g).map(|slot| {
            let old = &self.flows[slot as usize];
            (slot, old.id.generation().wrapping_add(1), old.route)
        });
        let (slot, generation) = reused.map_or((self.flows.len() as u32, 0), |r| (r.0, r.1));
        let route = match (self.groups[g].shared_route, reused) {
            (Some(shared), _) => shared,
            (None, Some((_, _, own))) => {
                self.network.set_edge(own, edge);
                own
            }
            (None, None) => self.network.add_route(group, edge),
        };
        let id = FlowId::new(slot, generation);
        let base_rtt = self.groups[g].base_rtt + edge;
        let identity = Identity { id, number, group: g as u32, route, base_rtt };
        let flow = Flow::new(identity, &self.groups[g].config, rng);
        match self.flows.get_mut(slot as usize) {
            Some(place) => *place = flow,
            None => {
                cwnd_memory::make_room(&mut self.flows);
                self.flows.push(flow);
            }
        }
        self.network.begin_flow(id, number, g as u32);
        id
    }

    /// The slot of a flow of this group that is over. If its route is its own, not while packets are still on their way to
    /// its hosts: they would hold up those of the next.
    fn take_free_slot(&mut self, g: usize) -> Option<u32> {
        let group = &mut self.groups[g];
        let slot = *group.free_slots.last()?;
        let free = group.shared_route.is_some()
            || self.network.edge_is_empty(self.flows[slot as usize].route);
        free.then(|| group.free_slots.pop()).flatten()
    }

    pub(super) fn on_arrival(&mut self, process: u32) {
        let scenario = Arc::clone(&self.scenario);
        let arrivals = &mut self.arrivals[process as usize];
        let g = arrivals.group as usize;
        let group = &scenario.flows[g];
        let Workload::Poisson { interval, .. } = &group.workload else { return };
        if group.stop.is_some_and(|stop| stop <= self.now) {
            return;
        }
        let gap = arrivals.rng.exponential(interval.as_secs_f64());
        let name = format!("flow.{}.{}.{}", group.name, arrivals.index, arrivals.arrived);
        arrivals.arrived += 1;
        self.events.push(self.now + Duration::from_secs_f64(gap), Event::Arrival(process));
        let id = self.add_flow(g, self.random.named(&name));
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
