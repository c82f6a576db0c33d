//! Custom parts: components outside the registries, put into a world that is built, before its run.

use core::fmt;
use std::sync::Arc;

use cwnd_apps::{AnyApplication, Application};
use cwnd_aqm::{AnyQdisc, Messenger, Meter, Qdisc, Verdict};
use cwnd_cc::{DynController, Start};
use cwnd_link::{Reader, Settings};
use cwnd_packet::HasContract;
use cwnd_quantity::{LinkProperties, Rng};
use cwnd_scenario::Scenario;
use cwnd_scenario::requirements::{Part, Parts, UnmetRequirement, unmet};
use cwnd_tcp::{Config, DynEcho, quic};

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
    /// Replaces the applications of a group's flows before the run; returns `false` without such a
    /// group.
    ///
    /// The group's transport and arrivals remain those of its workload. So does the application of
    /// an arrival whose size is recorded, if the workload has one for a size.
    pub fn replace_applications(
        &mut self,
        group: &str,
        make: impl Fn() -> Box<dyn Application> + Send + 'static,
    ) -> bool {
        let Some(g) = self.group_named(group) else { return false };
        let own = || AnyApplication::Boxed(make());
        for flow in self.hosts.flows.iter_mut().filter(|flow| flow.group as usize == g) {
            flow.session.replace(own());
        }
        for stream in self.hosts.streams.iter_mut().filter(|stream| stream.group as usize == g) {
            stream.session.replace(own());
        }
        self.workloads.groups[g].make = Box::new(move || AnyApplication::Boxed(make()));
        true
    }

    /// Replaces the controllers of a group's connections, those of requests too, before the run;
    /// returns `false` without such a group.
    ///
    /// Their contract counts in [`World::unmet`].
    pub fn replace_controllers<C: DynController + HasContract + 'static>(
        &mut self,
        group: &str,
        make: impl Fn(&Start) -> C + Send + Sync + 'static,
    ) -> bool {
        let Some(g) = self.group_named(group) else { return false };
        let of_group = &mut self.workloads.groups[g];
        of_group.quic = of_group.quic.take().map(|of| of.with_controller(|s| Box::new(make(s))));
        let quic_start = of_group.quic.as_ref().map(quic::Config::start);
        let start = quic_start.unwrap_or_else(|| of_group.config.start());
        let senders = &mut self.parts().senders[g];
        senders.retain(|part| part.key != "controller");
        senders.insert(0, Part::new("own", "controller", make(&start).contract()));
        self.configure(g, |config| config.with_controller(move |start| Box::new(make(start))));
        true
    }

    /// Replaces the echo policy of a group's receivers before the run; returns `false` without such
    /// a group.
    ///
    /// Each receiver starts with a copy of `echo`.
    pub fn replace_echo<E: DynEcho + HasContract + 'static>(
        &mut self,
        group: &str,
        echo: E,
    ) -> bool {
        let Some(g) = self.group_named(group) else { return false };
        self.parts().receivers[g] = vec![Part::new("own", "endpoint", echo.contract())];
        self.configure(g, |config| config.with_echo(Box::new(echo)));
        true
    }

    /// Replaces the queue of a link before the run, which removes the meters at it; returns `false`
    /// without such a link, or if it has no rate.
    ///
    /// `make` receives the facts and the random stream that the replaced queue received.
    pub fn replace_queue<Q>(
        &mut self,
        link: &str,
        make: impl FnOnce(&LinkProperties, Rng) -> Q,
    ) -> bool
    where
        Q: Qdisc<Packet> + HasContract + fmt::Debug + Send + 'static,
    {
        let Some(i) = self.link_named(link) else { return false };
        let settings = Settings::from(&self.scenario.links[i]);
        let facts = settings.facts(&self.random);
        let (Some((facts, rng)), Some(line)) = (facts, self.network.links()[i].line) else {
            return false;
        };
        let queue = make(&facts, rng);
        let part = Part::new("own", "queue", queue.contract());
        let queue = settings.with_acks_first(AnyQdisc::boxed(queue));
        self.parts().links[i].retain(|part| part.key != "queue");
        self.parts().links[i].insert(0, part);
        self.network.rebuild_line(line, |line| line.with_queue(queue), &mut self.events);
        true
    }

    /// Adds a meter at the queue of a link before the run; returns `false` without such a link, or
    /// if it has no rate.
    ///
    /// Of several meters, the last one added sees arrivals first and departures last.
    pub fn add_meter(
        &mut self,
        link: &str,
        meter: impl Meter<Packet> + HasContract + 'static,
    ) -> bool {
        let Some(i) = self.link_named(link) else { return false };
        let Some(line) = self.network.links()[i].line else { return false };
        self.parts().links[i].push(Part::new("own", "meter", meter.contract()));
        let meter = Box::new(meter);
        self.network.rebuild_line(line, |line| line.with_meter(meter), &mut self.events);
        true
    }

    /// Adds a messenger before the run, which reads the verdicts of a link's queue and notifies
    /// sources of data; returns `false` without such a link, or if it has no rate.
    pub fn add_messenger(
        &mut self,
        link: &str,
        messenger: impl Messenger<Packet> + HasContract + 'static,
    ) -> bool {
        let Some(link) = self.link_named(link) else { return false };
        let part = Part::new("own", "messenger", messenger.contract());
        let added = self.network.add_messenger(&self.scenario, link, Box::new(messenger));
        if added {
            self.parts().links[link].push(part);
        }
        added
    }

    /// Counts of routers' messages until now.
    #[must_use]
    pub const fn messages(&self) -> Messages {
        self.network.messages()
    }

    /// Number of messages accepted by the flow or source of datagrams with this number in results;
    /// `None` without one, or if another has taken its slot.
    ///
    /// A sender that validates messages accepts only those about outstanding data, others accept
    /// all. A source of datagrams accepts all.
    #[must_use]
    pub fn messages_to(&self, number: u32) -> Option<u64> {
        let flows =
            self.hosts.flows.iter().map(|flow| (flow.number, flow.data.sender.counters().quenches));
        let streams = self.hosts.streams.iter().map(|stream| (stream.number, stream.messages));
        flows.chain(streams).find(|&(n, _)| n == number).map(|(_, messages)| messages)
    }

    /// Adds a reader of the verdicts of a link's queue from now on; `None` without such a link, or
    /// if it has no rate. Captures and messengers have readers of their own.
    pub fn read_verdicts(&mut self, link: &str) -> Option<Verdicts> {
        let line = self.network.links()[self.link_named(link)?].line?;
        Some(Verdicts { line, reader: self.network.line_mut(line).reader() })
    }

    /// Returns the next verdict that this reader has not read; `None` if it has read all.
    pub fn next_verdict(&mut self, of: &mut Verdicts) -> Option<Verdict<Packet>> {
        self.network.line_mut(of.line).read(of.reader)
    }

    /// The scenario that the world was built from.
    #[must_use]
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// Requirements between parts that are not met, custom parts included. With unmet ones, a run
    /// shows little.
    #[must_use]
    pub fn unmet(&self) -> Vec<UnmetRequirement> {
        match &self.custom_parts {
            Some(parts) => unmet(&self.scenario, parts),
            None => unmet(&self.scenario, &Parts::of(&self.scenario)),
        }
    }

    pub(super) fn parts(&mut self) -> &mut Parts {
        self.custom_parts.get_or_insert_with(|| Box::new(Parts::of(&self.scenario)))
    }

    /// Replaces the configuration of a group, and the ends of its present connections.
    fn configure(&mut self, g: usize, change: impl FnOnce(Config) -> Config) {
        let config = Arc::new(change(Config::clone(&self.workloads.groups[g].config)));
        for flow in self.hosts.flows.iter_mut().filter(|flow| flow.group as usize == g) {
            flow.configure(&config, self.workloads.groups[g].quic.as_ref());
        }
        self.workloads.groups[g].config = config;
    }

    fn link_named(&self, name: &str) -> Option<usize> {
        self.scenario.links.iter().position(|link| link.name == name)
    }

    pub(super) fn group_named(&self, name: &str) -> Option<usize> {
        self.scenario.flows.iter().position(|of| of.name == name)
    }
}
