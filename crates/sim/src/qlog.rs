//! Logs of senders in qlog 0.3 (draft-ietf-quic-qlog-main-schema-01, -quic-events-01), which qvis
//! and other tools read: a JSON text sequence (RFC 7464) for each connection.
//!
//! Senders know nothing of their logs. Observers keep the packets of an event; after it, each log
//! compares its sender with the state before. Runs without logs have none of this in their loop.

use std::fmt;

use cwnd_quantity::{Duration, Time};
use cwnd_scenario::Scenario;
use cwnd_tcp::{Body, Segment, Sender, quic};

use crate::capture::Output;
use crate::capture_headers::Connection;
use crate::event::{Event, FlowId};
use crate::packet::Packet;
use crate::qlog::connection::ConnectionLog;
use crate::qlog::records::Records;

mod connection;
mod metrics;
mod quic_packets;
mod records;
mod tcp_packets;

/// Opens the log of a connection, given the index of its group and its number in results. `None`
/// if it cannot be opened; the opener must keep the error itself.
pub type OpenLog = Box<dyn FnMut(usize, u32) -> Option<Output> + Send>;

/// Logs of the senders of some groups. They never change the run.
pub struct SenderLogs {
    /// Title of the logs.
    title: String,
    /// Name of each group whose senders are logged, by its index; `None` for the others.
    groups: Vec<Option<String>>,
    open: OpenLog,
    /// Connections of these groups, by the slots of their flows.
    connections: Vec<Option<Logged>>,
    /// Packets that hosts sent and received in the current event.
    packets: Vec<(FlowId, Seen)>,
}

/// A sender after an event.
#[derive(Clone, Copy)]
pub struct LoggedSender<'a> {
    /// The sender.
    pub sender: AnySender<'a>,
    /// `true` if the other end opened the connection.
    pub is_server: bool,
    /// `true` if the connection is over.
    pub is_over: bool,
}

/// A sender of TCP or QUIC.
#[derive(Clone, Copy)]
pub enum AnySender<'a> {
    /// A sender of TCP.
    Tcp(&'a Sender),
    /// A sender of QUIC, and the parameters of its connection.
    Quic(&'a quic::Sender, &'a quic::Params),
}

/// A connection that is logged.
struct Logged {
    id: FlowId,
    number: u32,
    group: usize,
    /// Its log, from its first packet on.
    log: Option<ConnectionLog>,
}

/// A packet at the host of a sender.
#[derive(Clone, Copy, Debug)]
enum Seen {
    /// Data or a SYN that the sender sends.
    Sent(Segment),
    /// An acknowledgement for the sender.
    Received(Segment),
    /// Another packet, which may acknowledge data by the way or be a source quench.
    Other,
}

/// A packet that the sender sent.
struct SentPacket {
    /// Packet number.
    number: u64,
    /// Bytes of the packet.
    bytes: u32,
    /// First stream byte, and number of stream bytes; `None` for a SYN.
    data: Option<(u64, u32)>,
}

/// An acknowledgement for the sender.
struct ReceivedAck {
    /// Closed ranges of packet numbers that it acknowledges, the largest first.
    ranges: Vec<(u64, u64)>,
    /// Bytes of the packet; `None` if data in the other direction carried it.
    bytes: Option<u32>,
    /// Delay that it reports.
    delay: Option<Duration>,
    /// Packets with CE that it reports.
    ce: Option<u64>,
    /// `true` for a SYN-ACK.
    is_syn: bool,
}

impl fmt::Debug for SenderLogs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SenderLogs").field("groups", &self.groups).finish_non_exhaustive()
    }
}

// Cold, as captures are: most runs log no senders.
impl SenderLogs {
    /// Creates the logs of the groups with these indices.
    pub fn new(scenario: &Scenario, groups: &[usize], open: OpenLog) -> Self {
        let names = scenario.flows.iter().enumerate();
        Self {
            title: format!("{}, seed {}", scenario.name, scenario.run.seed),
            groups: names
                .map(|(g, group)| groups.contains(&g).then(|| group.name.clone()))
                .collect(),
            open,
            connections: Vec::new(),
            packets: Vec::new(),
        }
    }

    /// Registers a new flow, perhaps in the slot of an earlier one.
    pub fn begin_flow(&mut self, id: FlowId, of: &Connection) {
        let logs = !of.has_endpoints() && self.groups[of.group()].is_some();
        let (slot, number, group) = (id.slot(), of.number(), of.group());
        if logs {
            let room = self.connections.len().max(slot + 1);
            self.connections.resize_with(room, || None);
            self.connections[slot] = Some(Logged { id, number, group, log: None });
        } else if let Some(place) = self.connections.get_mut(slot) {
            *place = None;
        }
    }

    /// Notes a segment that a host sends.
    #[cold]
    pub fn sent_by_host(&mut self, packet: Packet, segment: &Segment) {
        if !packet.is_of_request() && matches!(segment.body, Body::Data { .. } | Body::Quic { .. })
        {
            self.note(packet.flow(), Seen::Sent(*segment));
        }
    }

    /// Notes a segment that a host receives.
    #[cold]
    pub fn received_by_host(&mut self, packet: Packet, segment: &Segment) {
        let of_request = packet.is_of_request();
        let seen = match segment.body {
            Body::Ack { .. } | Body::QuicAck(_) if !of_request => Seen::Received(*segment),
            Body::Data { .. } if of_request => Seen::Other,
            _ => return,
        };
        self.note(packet.flow(), seen);
    }

    /// Notes a router's message that reached the source of the packet that it is about.
    #[cold]
    pub fn received_message(&mut self, packet: Packet) {
        self.note(packet.flow(), Seen::Other);
    }

    fn note(&mut self, id: FlowId, seen: Seen) {
        let id = id.of_requests();
        if self.connections.get(id.slot()).is_some_and(|at| at.as_ref().is_some_and(|c| c.id == id))
        {
            self.packets.push((id, seen));
        }
    }

    /// Logs an event that was handled: each sender whose host saw a packet, or whose timer expired.
    /// `sender` returns the sender of a flow.
    pub fn log<'f>(
        &mut self,
        now: Time,
        event: Event,
        sender: impl Fn(FlowId) -> LoggedSender<'f>,
    ) {
        if let Event::SenderTimer(id) | Event::Forged(id) = event {
            self.note(id, Seen::Other);
        }
        let packets = core::mem::take(&mut self.packets);
        for (i, &(id, _)) in packets.iter().enumerate() {
            // The packets of a connection are logged at its first one.
            if packets[..i].iter().all(|&(other, _)| other != id) {
                let seen = packets[i..].iter().filter(|(of, _)| *of == id).map(|(_, seen)| seen);
                self.log_connection(now, id, seen, sender(id));
            }
        }
        self.packets = packets;
        self.packets.clear();
    }

    fn log_connection<'a>(
        &mut self,
        now: Time,
        id: FlowId,
        seen: impl Iterator<Item = &'a Seen> + Clone,
        of_flow: LoggedSender<'_>,
    ) {
        let Some(Some(of)) = self.connections.get_mut(id.slot()) else { return };
        if of.log.is_none() && seen.clone().all(|seen| matches!(seen, Seen::Other)) {
            return;
        }
        let (title, name) = (&self.title, self.groups[of.group].as_deref().unwrap_or_default());
        let log = of.log.get_or_insert_with(|| {
            let records = (self.open)(of.group, of.number).map(Records::new);
            ConnectionLog::new(records, &format!("{title}: {name} {}", of.number), of_flow)
        });
        log.log(now, seen, of_flow.sender);
        if of_flow.is_over {
            log.end();
            self.connections[id.slot()] = None;
        }
    }

    /// Flushes the logs at the end of the run.
    pub fn end(&mut self) {
        let logs = self.connections.iter_mut().flatten().filter_map(|of| of.log.as_mut());
        logs.for_each(ConnectionLog::end);
    }
}
