//! Log of one connection: after each event, what its sender's host saw and what changed.

use std::io;

use cwnd_quantity::Time;

use crate::qlog::metrics::{CongestionState, Metrics};
use crate::qlog::quic_packets::QuicPackets;
use crate::qlog::records::{Header, Ms, Object, Records, Text};
use crate::qlog::tcp_packets::TcpPackets;
use crate::qlog::{AnySender, LoggedSender, ReceivedAck, Seen, SentPacket};

/// Log of a connection.
pub struct ConnectionLog {
    /// `None` if it could not be opened or written.
    records: Option<Records>,
    packets: Packets,
    /// Number of the next packet that the sender receives.
    received: u64,
    metrics: Metrics,
    state: CongestionState,
}

/// Numbers of packets, and what is known of those in flight.
enum Packets {
    Tcp(TcpPackets),
    Quic(QuicPackets),
}

impl ConnectionLog {
    /// Starts the log of a connection.
    pub fn new(mut records: Option<Records>, title: &str, of: LoggedSender<'_>) -> Self {
        let (packets, protocol) = match of.sender {
            AnySender::Quic(_, params) => (Packets::Quic(QuicPackets::new(params)), "QUIC"),
            AnySender::Tcp(_) => (Packets::Tcp(TcpPackets::default()), "TCP"),
        };
        let role = if of.is_server { "server" } else { "client" };
        write(&mut records, |records| records.header(&Header { title, protocol, role }));
        Self {
            records,
            packets,
            received: 0,
            metrics: Metrics::default(),
            state: CongestionState::default(),
        }
    }

    /// Logs an event: packets received, packets lost, the new state, packets sent, new metrics.
    pub fn log<'a>(
        &mut self,
        now: Time,
        seen: impl Iterator<Item = &'a Seen> + Clone,
        sender: AnySender<'_>,
    ) {
        for seen in seen.clone() {
            if let Some(ack) = self.packets.on_received(seen, sender) {
                self.received(now, &ack);
            }
        }
        for (number, trigger) in self.packets.take_lost(seen.clone(), sender) {
            self.event(now, "recovery:packet_lost", |data| {
                header(data, false, number);
                data.field("trigger", Text(trigger));
            });
        }
        self.update_state(now, sender);
        for seen in seen {
            if let Some(packet) = self.packets.on_sent(seen) {
                self.sent(now, &packet);
            }
        }
        self.update_metrics(now, sender);
    }

    /// Flushes the log.
    pub fn end(&mut self) {
        write(&mut self.records, Records::flush);
    }

    fn sent(&mut self, now: Time, packet: &SentPacket) {
        self.event(now, "transport:packet_sent", |data| {
            header(data, packet.data.is_none(), packet.number);
            data.object("raw", |raw| {
                raw.field("length", packet.bytes);
                raw.field("payload_length", packet.data.map_or(0, |(_, len)| len));
            });
            if let Some((offset, len)) = packet.data {
                data.list_of_one("frames", |frame| {
                    frame.field("frame_type", Text("stream"));
                    frame.field("stream_id", 0);
                    frame.field("offset", offset);
                    frame.field("length", len);
                });
            }
        });
    }

    fn received(&mut self, now: Time, ack: &ReceivedAck) {
        let number = self.received;
        self.received += 1;
        self.event(now, "transport:packet_received", |data| {
            header(data, ack.is_syn, number);
            if let Some(bytes) = ack.bytes {
                data.object("raw", |raw| raw.field("length", bytes));
            }
            data.list_of_one("frames", |frame| {
                frame.field("frame_type", Text("ack"));
                if let Some(delay) = ack.delay {
                    frame.field("ack_delay", Ms::from(delay));
                }
                if !ack.ranges.is_empty() {
                    frame.ranges("acked_ranges", ack.ranges.iter().copied());
                }
                if let Some(ce) = ack.ce {
                    frame.field("ce", ce);
                }
            });
        });
    }

    fn update_state(&mut self, now: Time, sender: AnySender<'_>) {
        let state = match sender {
            AnySender::Quic(sender, _) => CongestionState::of_quic(sender),
            AnySender::Tcp(sender) => CongestionState::of_tcp(sender),
        };
        let before = core::mem::replace(&mut self.state, state);
        let trigger = state.trigger(&before);
        if state.name == before.name && trigger.is_none() {
            return;
        }
        self.event(now, "recovery:congestion_state_updated", |data| {
            if !before.name.is_empty() {
                data.field("old", Text(before.name));
            }
            data.field("new", Text(state.name));
            if let Some(trigger) = trigger {
                data.field("trigger", Text(trigger));
            }
        });
    }

    fn update_metrics(&mut self, now: Time, sender: AnySender<'_>) {
        let metrics = match sender {
            AnySender::Quic(sender, _) => Metrics::of_quic(sender, &self.metrics),
            AnySender::Tcp(sender) => Metrics::of_tcp(now, sender),
        };
        let before = core::mem::replace(&mut self.metrics, metrics);
        if metrics != before {
            self.event(now, "recovery:metrics_updated", |data| {
                metrics.write_changes(&before, data)
            });
        }
    }

    fn event(&mut self, now: Time, name: &str, data: impl FnOnce(&mut Object<'_>)) {
        write(&mut self.records, |records| records.event(now, name, data));
    }
}

impl Packets {
    fn on_received(&mut self, seen: &Seen, sender: AnySender<'_>) -> Option<ReceivedAck> {
        match (self, seen, sender) {
            (Self::Quic(packets), Seen::Received(segment), _) => packets.on_ack(segment),
            (Self::Tcp(packets), Seen::Received(segment), _) => Some(packets.on_ack(segment)),
            (Self::Tcp(packets), Seen::Other, AnySender::Tcp(sender)) => {
                packets.on_carried_ack(sender.acknowledged())
            }
            _ => None,
        }
    }

    fn on_sent(&mut self, seen: &Seen) -> Option<SentPacket> {
        match (self, seen) {
            (Self::Quic(packets), Seen::Sent(segment)) => packets.on_sent(segment),
            (Self::Tcp(packets), Seen::Sent(segment)) => Some(packets.on_sent(segment)),
            _ => None,
        }
    }

    /// Takes the numbers of the packets that the sender has declared lost, each with its trigger.
    fn take_lost<'a>(
        &mut self,
        seen: impl Iterator<Item = &'a Seen>,
        sender: AnySender<'_>,
    ) -> Vec<(u64, &'static str)> {
        match (self, sender) {
            (Self::Quic(packets), AnySender::Quic(sender, _)) => packets.take_lost(sender),
            (Self::Tcp(packets), AnySender::Tcp(sender)) => packets.take_lost(seen, sender),
            _ => Vec::new(),
        }
    }
}

/// Adds the header of a packet; that of a SYN is in the first of QUIC's packet number spaces.
fn header(data: &mut Object<'_>, is_syn: bool, number: u64) {
    data.object("header", |header| {
        header.field("packet_type", Text(if is_syn { "initial" } else { "1RTT" }));
        header.field("packet_number", number);
    });
}

/// Writes to a log; one that fails gets no more records.
fn write(records: &mut Option<Records>, what: impl FnOnce(&mut Records) -> io::Result<()>) {
    if records.as_mut().is_some_and(|records| what(records).is_err()) {
        *records = None;
    }
}
