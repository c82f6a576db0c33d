//! Routers' messages: their routes to the sources, and their counts. Passage of packets through
//! middleboxes that tamper with options.

use cwnd_aqm::Messenger;
use cwnd_link::{Middlebox, MiddleboxCounters};
use cwnd_quantity::{Duration, Streams, Time};
use cwnd_scenario::{FlowPath, Link, Routes, Scenario, Tampering};
use cwnd_tcp::Body;

use super::{Hop, Network};
use crate::event::{Event, EventQueue};
use crate::observers::MessengerTap;
use crate::packet::Packet;
use crate::pipe::Pipe;

/// Counts of routers' messages by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Messages {
    /// Messages that routers sent.
    pub sent: u64,
    /// Sent messages that reached the source of the packet that they are about.
    pub delivered: u64,
    /// Sent messages that a queue dropped or a link lost.
    pub lost: u64,
    /// Forged messages that reached an open connection; they are not among `sent`.
    pub forged: u64,
}

impl Network {
    /// Adds a messenger for the verdicts of a link's queue; returns `false` if the link has no
    /// queue.
    pub fn add_messenger(
        &mut self,
        scenario: &Scenario,
        link: usize,
        messenger: Box<dyn Messenger<Packet>>,
    ) -> bool {
        let Some(line) = self.links[link].line else { return false };
        let router = scenario.links[link].from;
        // A pipe without delay delivers messages after the events pending at the same instant. So a
        // source never receives a message while it sends the packet.
        let start = Hop::Pipe(self.add_pipe(Pipe::new(Duration::ZERO)));
        let routes = scenario.routes();
        let mut hops = std::collections::BTreeMap::new();
        for (g, group) in (0..).zip(&scenario.flows) {
            for (w, path) in (0..).zip(&group.paths) {
                if let Some(links) = path_to_source(scenario, &routes, path, router) {
                    hops.insert((g, w), self.add_route_to_source(start, &links));
                }
            }
        }
        let reader = self.lines[line as usize].reader();
        let tap = MessengerTap { line, reader, router: router as u32, messenger, hops, sent: 0 };
        self.observers.get_or_insert_default().add(tap);
        true
    }

    fn add_route_to_source(&mut self, start: Hop, links: &[usize]) -> u32 {
        let hop = self.add_hops(None, Some(start), links, None);
        if let Some(last) = self.hops.last_mut() {
            *last = Hop::SOURCE;
        }
        self.route_starts.push((hop, None));
        hop
    }

    /// Lets captures and messengers read the new verdicts of a line's queue, and sends the
    /// resulting messages.
    #[cold]
    #[inline(never)]
    pub(super) fn read_verdicts(&mut self, now: Time, i: u32, events: &mut EventQueue) {
        // Most packets meet no congestion. The check is here so that runs without readers do not
        // have its code.
        if !self.lines[i as usize].has_unread() {
            return;
        }
        let Some(observers) = &mut self.observers else { return };
        let route_starts = &self.route_starts;
        let path_at = |hop: u32| {
            let at = route_starts.partition_point(|&(start, _)| start <= hop);
            route_starts[..at].last().and_then(|&(_, path)| path)
        };
        let outgoing = observers.read(i, &mut self.lines[i as usize], &self.segments, path_at);
        for message in &outgoing {
            self.messages.sent += 1;
            self.injected += 1;
            let slot = self.segments.put(message.segment);
            let packet = Packet::new(message.flow, message.hop, slot, &message.segment);
            if let Some(log) = self.packet_log_mut() {
                log.sent_message(now, i, packet, &message.segment);
            }
            let (hop, packet) = packet.next_hop();
            if let Hop::Pipe(start) = self.hops[hop as usize]
                && let Some(at) = self.pipes[start as usize].start(now, packet)
            {
                events.push(at, Event::PipeHead(start));
            }
        }
        if let Some(observers) = &mut self.observers {
            observers.recycle(outgoing);
        }
    }

    /// Stores a message that has reached the source of the packet that it is about.
    #[cold]
    #[inline(never)]
    pub(super) fn deliver_message(&mut self, now: Time, packet: Packet, events: &mut EventQueue) {
        self.arrived += 1;
        self.messages.delivered += 1;
        if let Some(log) = self.packet_log_mut() {
            log.ended(now, packet);
        }
        self.delivered_messages.push_back((now, packet));
        events.push(now, Event::Message);
    }

    /// Handles [`Event::Message`]: returns the message that reached its source first. The caller
    /// frees its segment.
    pub fn take_message(&mut self) -> Option<Packet> {
        let (_, packet) = self.delivered_messages.pop_front()?;
        if let Some(logs) = self.sender_logs_mut() {
            logs.received_message(packet);
        }
        Some(packet)
    }

    /// Passes each named counter of the messengers to `each`.
    pub fn count_messengers(&self, each: &mut dyn FnMut(&'static str, u64)) {
        if let Some(observers) = &self.observers {
            observers.count(each);
        }
    }

    /// Number of messages sent about packets of this line's queue.
    pub fn messages_of(&self, line: u32) -> u64 {
        self.observers.as_ref().map_or(0, |observers| observers.sent_about(line))
    }

    /// Counts a forged message that reaches an open connection.
    pub const fn count_forged(&mut self) {
        self.messages.forged += 1;
    }

    /// Counts of all messages until now.
    pub const fn messages(&self) -> Messages {
        Messages { lost: self.segments.drop_log().messages(), ..self.messages }
    }
}

/// Links from a router to the source of data on this path.
///
/// These are the links of the acknowledgements from the point where they pass the router, otherwise
/// the shortest route. `None` if no links lead to the source, which cannot occur for a router on
/// the path of the data: at worst its messages go by the receiver.
fn path_to_source(
    scenario: &Scenario,
    routes: &Routes,
    path: &FlowPath,
    router: usize,
) -> Option<Vec<usize>> {
    if router == path.from {
        return Some(Vec::new());
    }
    let passes = path.reverse.iter().position(|&link| scenario.links[link].from == router);
    match passes {
        Some(at) => Some(path.reverse[at..].to_vec()),
        None => routes.shortest(router, path.from),
    }
}

impl Network {
    /// Adds the middlebox of a link; `None` if the link does not tamper with options.
    pub(super) fn add_middlebox(&mut self, link: &Link, random: &Streams) -> Option<u32> {
        if link.tampering == Tampering::default() {
            return None;
        }
        let rng = random.named(&format!("link.{}.options", link.name));
        self.middleboxes.push(Middlebox::new(link.tampering, rng));
        Some(self.middleboxes.len() as u32 - 1)
    }

    /// Passes a packet through a middlebox and on; returns it if its next hop is a host.
    // Cold: most networks have no middlebox, and the code of the other hops stays compact.
    #[cold]
    #[inline(never)]
    pub(super) fn pass_middlebox(
        &mut self,
        now: Time,
        i: u32,
        packet: Packet,
        events: &mut EventQueue,
    ) -> Option<Packet> {
        let middlebox = &mut self.middleboxes[i as usize];
        match &mut self.segments.get_mut(packet.slot()).body {
            Body::Data { header, .. } => middlebox.tamper_with_header(header),
            Body::Ack { echo, .. } => middlebox.tamper_with_echo(echo),
            Body::Quench { .. } | Body::Quic { .. } | Body::QuicAck(_) => {}
        }
        self.forward(now, packet, events)
    }

    /// Numbers of options that all middleboxes removed and damaged.
    pub fn middlebox_counters(&self) -> MiddleboxCounters {
        self.middleboxes.iter().map(Middlebox::counters).fold(
            MiddleboxCounters::default(),
            |sum, of| MiddleboxCounters {
                removed: sum.removed + of.removed,
                damaged: sum.damaged + of.damaged,
            },
        )
    }
}
