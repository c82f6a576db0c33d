//! Audit of the network: conservation of packets and pending events.

use cwnd_link::Line;
use cwnd_quantity::Time;

use super::Network;
use crate::event::Event;
use crate::packet::Packet;

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
    /// The two counts that differ.
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
