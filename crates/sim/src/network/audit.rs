//! Accounts of the network: conservation of packets, pending events, and dead packets, which one
//! link transmitted and a later one lost (Mondal & Kuzmanovic 2008, § 5).

use cwnd_link::Line;
use cwnd_quantity::Time;

use super::{Hop, Network};
use crate::event::Event;
use crate::packet::Packet;
use crate::segments::PacketCount;

impl Network {
    /// Events that must be pending, with their times: of lines and pipes with packets, of queue
    /// timers and of messages at their sources.
    pub fn expected_events(&self) -> impl Iterator<Item = (Option<Time>, Event)> {
        let held = |l: &&Line<Packet>| l.held() > 0;
        let lines = (0..).zip(&self.lines).filter(move |(_, l)| held(l));
        let pipes = (0..).zip(&self.pipes).filter(|(_, p)| p.held() > 0);
        let clocks = (0..).zip(&self.lines).filter_map(|(i, line)| Some((i, line.next_timer()?)));
        lines
            .map(|(i, line)| (line.next_free(), Event::LineFree(i)))
            .chain(pipes.map(|(i, pipe)| (pipe.next_exit(), Event::PipeHead(i))))
            .chain(clocks.map(|(i, at)| (Some(at), Event::QueueTimer(i))))
            .chain(self.delivered_messages.iter().map(|&(at, _)| (Some(at), Event::Message)))
    }

    /// Checks that each packet sent is in one place, dropped or delivered.
    ///
    /// # Errors
    /// A sentence with the counts that contradict each other.
    pub fn audit(&mut self, now: Time) -> Result<(), String> {
        let mut accounted = self.arrived;
        let (mut under_way, mut lost) = (0, 0);
        for line in &mut self.lines {
            let counters = line.counters(now);
            let dropped: u64 = counters.drops.total();
            if counters.arrived != counters.delivered + dropped + line.held() {
                return Err(format!(
                    "a line: arrived {} ≠ delivered {} + dropped {dropped} + held {}",
                    counters.arrived,
                    counters.delivered,
                    line.held()
                ));
            }
            accounted += dropped + line.held();
            lost += dropped;
            under_way += line.held();
        }
        for pipe in &self.pipes {
            accounted += pipe.counters().lost.packets + pipe.held();
            lost += pipe.counters().lost.packets;
            under_way += pipe.held();
        }
        if accounted != self.injected {
            let sent = self.injected;
            return Err(format!(
                "{sent} packets were sent, {accounted} are accounted for at {now}"
            ));
        }
        let logged = self.drop_log().total().packets;
        if logged != lost {
            return Err(format!("{lost} packets were lost, {logged} of them at a hop, at {now}"));
        }
        let messages = self.messages();
        if messages.sent < messages.delivered + messages.lost {
            return Err(format!("more messages arrived or were lost than were sent: {messages:?}"));
        }
        under_way += self.delivered_messages.len() as u64;
        if self.segments.held() != under_way {
            let held = self.segments.held();
            return Err(format!("{under_way} packets are under way with {held} segments at {now}"));
        }
        Ok(())
    }
}

impl Network {
    /// Dead packets of each link until now, in the scenario's order: those that left it and were
    /// lost at a later link.
    pub fn dead(&self) -> Vec<PacketCount> {
        let mut dead = vec![PacketCount::default(); self.links.len()];
        if self.drop_log().total().packets == 0 {
            return dead;
        }
        let (lines, pipes) = self.links_by_part();
        let link_of = |hop: &Hop| match *hop {
            Hop::Line(i) => lines.get(i as usize).copied().flatten(),
            Hop::Pipe(i) => pipes.get(i as usize).copied().flatten(),
            // Neither of these loses packets.
            Hop::Middlebox(_) | Hop::Host => None,
        };
        let starts = self.route_starts.iter().map(|&(start, _)| start);
        let ends = starts.clone().skip(1).chain([self.hops.len() as u32]);
        for (start, end) in starts.zip(ends) {
            // From the end of the route to its start. A link is a line, a pipe, or a line followed
            // by a pipe.
            let (mut later, mut here, mut current) =
                (PacketCount::default(), PacketCount::default(), None);
            for hop in (start..end).rev() {
                let link = link_of(&self.hops[hop as usize]);
                if link != current {
                    later = later.plus(core::mem::take(&mut here));
                    current = link;
                    if let Some(link) = link {
                        dead[link] = dead[link].plus(later);
                    }
                }
                here = here.plus(self.drop_log().at(hop));
            }
        }
        dead
    }

    /// Link of each line and of each pipe; `None` for those of hosts.
    fn links_by_part(&self) -> (Vec<Option<usize>>, Vec<Option<usize>>) {
        let mut lines = vec![None; self.lines.len()];
        let mut pipes = vec![None; self.pipes.len()];
        for (link, parts) in self.links.iter().enumerate() {
            parts.line.into_iter().for_each(|i| lines[i as usize] = Some(link));
            parts.pipe.into_iter().for_each(|i| pipes[i as usize] = Some(link));
        }
        (lines, pipes)
    }
}
