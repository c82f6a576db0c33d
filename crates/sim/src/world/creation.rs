//! Creation of flows, at the start of a run and by arrivals, and the reuse of their slots.

use std::sync::Arc;

use cwnd_apps::arrivals::Arrival;
use cwnd_apps::{AnyApplication, Facts, Transport};
use cwnd_quantity::{Bytes, Duration, Rng, Time};
use cwnd_scenario::{FlowGroup, Lateness, Noise, Scenario};

use super::workloads::{Group, GroupPath, Opening};
use super::{Cancelled, World};
use crate::capture_headers::Connection;
use crate::datagrams::Stream;
use crate::event::{Event, FlowId};
use crate::flow::{Flow, Identity};
use crate::network::Route;

/// Number of members of a group that are added between two calls of `go_on`.
const FLOWS_BETWEEN_CHECKS: u32 = 1024;

/// Number of connections of a group that exist from the beginning of the run to its end.
pub(super) fn lasting_flows(group: &FlowGroup) -> usize {
    match group.workload.facts() {
        Facts { transport: Transport::Connection, .. }
            if group.arriving().is_none() && group.workload.habits().is_none() =>
        {
            group.count as usize
        }
        Facts { .. } => 0,
    }
}

impl World {
    /// Creates the world of a scenario with all its flows.
    #[must_use]
    pub fn new(scenario: Arc<Scenario>) -> Self {
        let mut world = Self::unbuilt(scenario);
        let _never_cancelled = world.build(|_| true);
        world
    }

    /// Adds the flows of an unbuilt world. `go_on` receives the simulated time, 0, before each
    /// group and every 1,024 flows of it; `false` stops the building.
    ///
    /// # Errors
    /// [`Cancelled`] if `go_on` returned `false`; the world is then unusable.
    pub fn build(&mut self, mut go_on: impl FnMut(Time) -> bool) -> Result<(), Cancelled> {
        (0..self.scenario.flows.len()).try_for_each(|g| self.add_group(g, &mut go_on))
    }

    fn add_group(
        &mut self,
        g: usize,
        go_on: &mut dyn FnMut(Time) -> bool,
    ) -> Result<(), Cancelled> {
        let scenario = Arc::clone(&self.scenario);
        let group = &scenario.flows[g];
        let arriving = group.arriving();
        let paths = self.add_paths(g);
        self.workloads.groups.push(Group::new(&scenario, g, arriving.as_ref(), paths));
        for i in 0..group.count {
            if i.is_multiple_of(FLOWS_BETWEEN_CHECKS) && !go_on(self.events.now()) {
                return Err(Cancelled);
            }
            let name = format!("flow.{}.{i}", group.name);
            let mut rng = self.random.named(&name);
            let at = Time(group.start.sample(&mut rng).0) + group.spacing * u64::from(i);
            let opening = Opening { group: g, name, at, rng };
            match &arriving {
                Some(arriving) => {
                    let gaps = arriving.arriving().process();
                    self.workloads.begin_arrivals(opening, gaps, &mut self.events);
                }
                None => self.add_member(opening),
            }
        }
        Ok(())
    }

    /// Adds the paths of a group, with a route for each if its flows share routes.
    fn add_paths(&mut self, g: usize) -> Vec<GroupPath> {
        let group = &self.scenario.flows[g];
        let own_routes = self.scenario.has_own_hosts(group);
        let paths = (0..).zip(&group.paths).map(|(w, path)| GroupPath {
            base_rtt: self.scenario.propagation(path),
            shared_route: (!own_routes).then(|| {
                let edge = Some(group.edge_rtt.mean()).filter(|&edge| edge > Duration::ZERO);
                self.network.add_route((g as u32, w), group, edge)
            }),
            free_slots: Vec::new(),
        });
        paths.collect()
    }

    /// Adds a user, a connection or a source of datagrams.
    fn add_member(&mut self, opening: Opening) {
        if let Some(habits) = self.workloads.groups[opening.group].habits.clone() {
            return self.workloads.begin_user(opening, habits, &mut self.events);
        }
        let Opening { group: g, name, at, rng } = opening;
        let group = &self.scenario.flows[g];
        let stop = group.stop;
        match group.workload.facts().transport {
            Transport::Connection => {
                let id = self.add_flow(g, &name, rng, None);
                self.events.push(at, Event::AppWake(id));
                if let Some(stop) = stop {
                    self.events.push(stop, Event::AppStop(id));
                }
            }
            Transport::Datagrams { header, .. } => {
                let index = self.add_stream(g, &name, header, rng);
                self.events.push(at, Event::Datagram(index));
            }
        }
    }

    /// Chooses the path of the next flow of a group; `name` names its random stream.
    fn choose_path(&mut self, g: usize, name: &str) -> usize {
        let nth = self.workloads.groups[g].flows_assigned;
        self.workloads.groups[g].flows_assigned += 1;
        let random = &self.random;
        self.scenario.flows[g].choose_path(nth, || random.named(&format!("{name}.ends")))
    }

    /// Adds a route for one flow alone; the next flow in its slot reuses it.
    fn add_own_route(&mut self, (g, path): (usize, usize), edge: Duration) -> Route {
        let group = &self.scenario.flows[g];
        let has_delay = edge > Duration::ZERO || self.scenario.has_own_delays(group);
        self.network.add_route((g as u32, path as u32), group, has_delay.then_some(edge))
    }

    /// Sets the random delays of a flow's hosts, from streams named after the flow.
    fn set_lateness(&mut self, route: Route, name: &str) {
        if self.scenario.run.noise == Noise::None {
            return;
        }
        let ends = ["data", "acks"].map(|end| self.random.named(&format!("{name}.late.{end}")));
        self.network.set_lateness(route, ends.map(Lateness::new));
    }

    fn add_stream(&mut self, g: usize, name: &str, header: Bytes, mut rng: Rng) -> u32 {
        let scenario = Arc::clone(&self.scenario);
        let group = &scenario.flows[g];
        let index = self.hosts.streams.len() as u32;
        let path = self.choose_path(g, name);
        let links = self.workloads.groups[g].paths[path].base_rtt;
        let edge = scenario.draw_edge_rtt(group, links, name, (&mut rng, &self.random));
        let shared = self.workloads.groups[g].paths[path].shared_route;
        let route = shared.unwrap_or_else(|| self.add_own_route((g, path), edge));
        self.set_lateness(route, name);
        let identity = Identity {
            id: FlowId::datagrams(index),
            number: self.workloads.flows_created,
            group: g as u32,
            path: path as u32,
            route,
            base_rtt: links + edge,
            client_opens: false,
            stop: group.stop.unwrap_or(Time::NEVER),
        };
        self.workloads.flows_created += 1;
        let app = (self.workloads.groups[g].make)();
        self.hosts.streams.push(Stream::new(identity, header, app, rng));
        index
    }

    /// Adds a connection; `listed` is its arrival, with size and hosts of a recorded one.
    fn add_flow(&mut self, g: usize, name: &str, mut rng: Rng, listed: Option<&Arrival>) -> FlowId {
        let scenario = Arc::clone(&self.scenario);
        let group = &scenario.flows[g];
        let row = listed.and_then(|next| next.row);
        let known =
            row.and_then(|row| self.workloads.groups[g].recorded_paths.get(row).copied().flatten());
        let path = known.unwrap_or_else(|| self.choose_path(g, name));
        let links = self.workloads.groups[g].paths[path].base_rtt;
        let edge = scenario.draw_edge_rtt(group, links, name, (&mut rng, &self.random));
        let number = self.workloads.flows_created;
        self.workloads.flows_created += 1;
        let reused = self.take_free_slot(g, path).map(|slot| {
            let old = &self.hosts.flows[slot as usize];
            (slot, old.id.generation().wrapping_add(1), old.route)
        });
        let (slot, generation) = reused.map_or((self.hosts.flows.len() as u32, 0), |r| (r.0, r.1));
        let route = match (self.workloads.groups[g].paths[path].shared_route, reused) {
            (Some(shared), _) => shared,
            (None, Some((_, _, own))) => {
                self.network.set_edge(own, edge);
                own
            }
            (None, None) => self.add_own_route((g, path), edge),
        };
        self.set_lateness(route, name);
        let id = FlowId::new(slot, generation);
        let identity = Identity {
            id,
            number,
            group: g as u32,
            path: path as u32,
            route,
            base_rtt: links + edge,
            client_opens: self.workloads.groups[g].client_opens,
            // Flows that arrive complete their transfers: `stop` ends arrivals only.
            stop: group
                .stop
                .filter(|_| !self.workloads.groups[g].reuses_slots)
                .unwrap_or(Time::NEVER),
        };
        let app = self.application(g, listed.and_then(|next| next.size));
        let of_group = &self.workloads.groups[g];
        let flow = Flow::new(identity, (&of_group.config, of_group.quic.as_ref()), app, rng);
        match self.hosts.flows.get_mut(slot as usize) {
            Some(place) => *place = flow,
            None => {
                cwnd_memory::reserve_one(&mut self.hosts.flows);
                self.hosts.flows.push(flow);
            }
        }
        self.network.begin_flow(id, Connection::new(number, g as u32, path as u32));
        self.begin_attack(g, id, name);
        id
    }

    /// The application of a new flow; with a recorded `size` it transfers so many bytes, if its
    /// workload has an application for a size.
    fn application(&self, g: usize, size: Option<Bytes>) -> AnyApplication {
        let sized = size.and_then(|size| self.scenario.flows[g].workload.of_size(size));
        sized.unwrap_or_else(|| (self.workloads.groups[g].make)())
    }

    /// Takes the slot of a finished flow on the same path.
    ///
    /// Only the slot freed last is considered. If it has a route of its own, it is not free while
    /// packets are in the pipes of its hosts: they would delay packets of the next flow.
    fn take_free_slot(&mut self, g: usize, path: usize) -> Option<u32> {
        let path = &mut self.workloads.groups[g].paths[path];
        let slot = *path.free_slots.last()?;
        let free = path.shared_route.is_some()
            || self.network.edge_is_empty(self.hosts.flows[slot as usize].route);
        free.then(|| path.free_slots.pop()).flatten()
    }

    pub(super) fn on_arrival(&mut self, process: u32) {
        let scenario = Arc::clone(&self.scenario);
        let arrivals = &mut self.workloads.arrivals[process as usize];
        arrivals.due = Time::NEVER;
        let g = arrivals.group;
        if scenario.flows[g].stop.is_some_and(|stop| stop <= self.events.now()) {
            return;
        }
        let next = arrivals.gaps.next(&mut arrivals.rng);
        let name = format!("{}.{}", arrivals.name, arrivals.arrived);
        let is_user = arrivals.is_user;
        arrivals.arrived += 1;
        let now = match next {
            None => arrivals.next.clone(),
            Some(next) => {
                arrivals.due = self.events.now() + next.gap;
                self.events.push(arrivals.due, Event::Arrival(process));
                core::mem::replace(&mut arrivals.next, next)
            }
        };
        let rng = self.random.named(&name);
        if !is_user && let Some(habits) = self.workloads.groups[g].habits.clone() {
            let opening = Opening { group: g, name, at: self.events.now(), rng };
            return self.workloads.begin_user(opening, habits, &mut self.events);
        }
        let id = self.add_flow(g, &name, rng, Some(&now));
        if self.workloads.groups[g].waits {
            self.workloads.users.insert(id.slot(), process);
        }
        self.on_app_wake(id);
    }

    /// Records a finished flow of an arrival process or user, and frees its slot.
    pub(super) fn retire(&mut self, id: FlowId) {
        let flow = &mut self.hosts.flows[id.slot()];
        if !self.hosts.counting {
            // The flow ended during the warm-up: nothing of it counts.
            flow.end_warmup();
        }
        self.recorder.flow(flow, self.events.now());
        // Pending events and packets of this flow no longer find it.
        flow.id = FlowId::new(id.slot() as u32, id.generation().wrapping_add(1));
        flow.started = Time::NEVER;
        let path = flow.path as usize;
        let group = &mut self.workloads.groups[flow.group as usize];
        group.paths[path].free_slots.push(id.slot() as u32);
        if group.waits {
            self.workloads.on_over(id.slot(), &mut self.events);
        }
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
                "[run]\nduration = \"20 s\"\n[dumbbell]\nrate = \"100 Mbit/s\"\n[flow.web]\n\
                 rtt = \"{rtt}\"\n\
                 workload = {{ kind = \"poisson\", size = \"10 kB\", interval = \"10 ms\" }}\n"
            );
            let document = Document::parse("test", &text, &|_: &str| Err(String::new())).unwrap();
            let plan = document.plan().unwrap();
            let mut world = World::new(Arc::new(plan.cells[0].scenario.clone()));
            while world.step() {}
            // 2,000 flows arrive. Each lasts about four round trips, so about twenty exist at a
            // time.
            assert!(
                world.workloads.flows_created > 1800,
                "{rtt}: {}",
                world.workloads.flows_created
            );
            assert!(world.hosts.flows.len() < 60, "{rtt}: {} places", world.hosts.flows.len());
        }
    }
}
