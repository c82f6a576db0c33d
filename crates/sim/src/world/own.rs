//! What is not among the kinds that a scenario can name, put into its world before the run.

use core::fmt;
use std::sync::Arc;

use cwnd_apps::{AnyApplication, Application};
use cwnd_aqm::{AnyQdisc, Meter, Qdisc};
use cwnd_cc::{Other, Start};
use cwnd_link::{Messenger, Reader, Settings, Verdict};
use cwnd_tcp::{Config, Sender};
use cwnd_units::{LinkFacts, Rng};

use super::World;
use crate::network::Messages;
use crate::packet::Packet;

/// A reader of the verdicts of a link's queue.
#[derive(Debug)]
pub struct Verdicts {
    line: u32,
    reader: Reader,
}

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

    /// Gives the flows of a group a controller that no kind is, before the run; false if there is no such group. `make` is told
    /// how a connection starts.
    pub fn replace_controllers(
        &mut self,
        group: &str,
        make: impl Fn(&Start) -> Box<dyn Other> + Send + Sync + 'static,
    ) -> bool {
        let Some(g) = self.scenario.flows.iter().position(|of| of.name == group) else {
            return false;
        };
        let config = Arc::new(Config::clone(&self.groups[g].config).with_controller(make));
        for flow in self.flows.iter_mut().filter(|flow| flow.group as usize == g) {
            flow.sender = Sender::new(Arc::clone(&config));
        }
        self.groups[g].config = config;
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

    /// Has a messenger read what the queue of a link decides and tell the sources of data, before the run; false if there is no
    /// such link, or none with a rate.
    pub fn add_messenger(
        &mut self,
        link: &str,
        messenger: impl Messenger<Packet> + 'static,
    ) -> bool {
        let Some(link) = self.link_named(link) else { return false };
        self.network.add_messenger(&self.scenario, link, Box::new(messenger))
    }

    /// What became of routers' messages until now.
    #[must_use]
    pub const fn messages(&self) -> Messages {
        self.network.messages()
    }

    /// How many messages were taken by the sender of the flow, or the source of datagrams, with this number in results, if it
    /// is there and has its place. A sender takes those about data that is outstanding.
    #[must_use]
    pub fn messages_to(&self, number: u32) -> Option<u64> {
        let flows = self.flows.iter().map(|flow| (flow.number, flow.sender.counters().quenches));
        let streams = self.streams.iter().map(|stream| (stream.number, stream.messages));
        flows.chain(streams).find(|&(n, _)| n == number).map(|(_, messages)| messages)
    }

    /// One who reads what the queue of a link decides from now on, beside captures and messengers; `None` if there is no such
    /// link, or none with a rate.
    pub fn read_verdicts(&mut self, link: &str) -> Option<Verdicts> {
        let line = self.network.links()[self.link_named(link)?].line?;
        Some(Verdicts { line, reader: self.network.line_mut(line).reader() })
    }

    /// The next verdict that a reader has not read.
    pub fn next_verdict(&mut self, of: &mut Verdicts) -> Option<Verdict<Packet>> {
        self.network.line_mut(of.line).read(of.reader)
    }

    fn link_named(&self, name: &str) -> Option<usize> {
        self.scenario.links.iter().position(|link| link.name == name)
    }
}
