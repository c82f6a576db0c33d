//! What is not among the kinds that a scenario can name, put into its world before the run.

use core::fmt;

use cwnd_apps::{AnyApplication, Application};
use cwnd_aqm::{AnyQdisc, Meter, Qdisc};
use cwnd_link::Settings;
use cwnd_units::{LinkFacts, Rng};

use super::World;
use crate::packet::Packet;

impl World {
    /// Gives the flows of a group applications that no kind of workload has, before the run; false if there is no such
    /// group. What its workload states of itself stays: what carries the flows, and how they come.
    pub fn replace_applications(
        &mut self,
        group: &str,
        make: impl Fn() -> Box<dyn Application> + Send + 'static,
    ) -> bool {
        let Some(g) = self.scenario.flows.iter().position(|of| of.name == group) else {
            return false;
        };
        let own = || AnyApplication::Own(make());
        for flow in self.flows.iter_mut().filter(|flow| flow.group as usize == g) {
            flow.session.replace(own());
        }
        for stream in self.streams.iter_mut().filter(|stream| stream.group as usize == g) {
            stream.session.replace(own());
        }
        self.groups[g].make = Box::new(move || AnyApplication::Own(make()));
        true
    }

    /// Gives a link a queue that no kind is, before the run and before it gets meters; false if there is no such link, or none
    /// with a rate. `make` is told what every queue is told, with the random stream of the link's queue.
    pub fn replace_queue<Q>(&mut self, link: &str, make: impl FnOnce(&LinkFacts, Rng) -> Q) -> bool
    where
        Q: Qdisc<Packet> + fmt::Debug + Send + 'static,
    {
        let Some(i) = self.link_named(link) else { return false };
        let facts = Settings::from(&self.scenario.links[i]).facts(&self.random);
        let (Some((facts, rng)), Some(line)) = (facts, self.network.links()[i].line) else {
            return false;
        };
        let queue = AnyQdisc::own(make(&facts, rng));
        self.network.rebuild_line(line, |line| line.with_queue(queue), &mut self.events);
        true
    }

    /// Puts a meter beside the queue of a link, before the run; false if there is no such link, or none with a rate. With
    /// several, the last arrives first and leaves last.
    pub fn add_meter(&mut self, link: &str, meter: impl Meter<Packet> + 'static) -> bool {
        let line = self.link_named(link).and_then(|i| self.network.links()[i].line);
        let Some(line) = line else { return false };
        let meter = Box::new(meter);
        self.network.rebuild_line(line, |line| line.with_meter(meter), &mut self.events);
        true
    }

    fn link_named(&self, name: &str) -> Option<usize> {
        self.scenario.links.iter().position(|link| link.name == name)
    }
}
