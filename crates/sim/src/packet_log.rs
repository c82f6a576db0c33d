//! Log of packets: when each was sent, how it passed one link, and how it ended.

use std::collections::BTreeMap;

use cwnd_aqm::{Outcome, Packet as _, Reason, Verdict};
use cwnd_link::{LOSS, Line, Reader};
use cwnd_packet::{Echo, Ecn};
use cwnd_quantity::Time;
use cwnd_tables::{Name, PacketRow, Packets, Table};
use cwnd_tcp::{Body, Flags, Segment};

use crate::event::FlowId;
use crate::packet::Packet;
use crate::segments::Segments;

/// Log of the packets that were under way in a part of the run. It never changes the run.
#[derive(Debug)]
pub struct PacketLog {
    /// Line of the link whose arrivals, departures and marks have columns.
    line: Option<u32>,
    /// Packets that ended before the first time, or were sent after the second, are left out.
    window: [Time; 2],
    /// Number of rows from which no further packet is logged.
    limit: usize,
    /// Reader of the verdicts of each line.
    readers: Vec<Reader>,
    /// Numbers of flows, past ones included, by the bits of their identifiers.
    flows: BTreeMap<u32, u32>,
    /// Counts of CE in the newest acknowledgement of each flow, by its identifier.
    ce_counts: BTreeMap<u32, u32>,
    /// Rows of the packets under way, by the slot of their segment.
    open: Vec<Option<PacketRow>>,
    rows: Packets,
    row_count: usize,
    /// Names of reasons, by their number in the columns.
    reasons: Vec<&'static str>,
}

impl PacketLog {
    /// Creates a log of packets that are under way in the time between both ends of `window`. It
    /// stops at about `limit` rows.
    pub fn new(
        line: Option<u32>,
        lines: &mut [Line<Packet>],
        window: [Time; 2],
        limit: usize,
    ) -> Self {
        Self {
            line,
            window,
            limit,
            readers: lines.iter_mut().map(Line::reader).collect(),
            flows: BTreeMap::new(),
            ce_counts: BTreeMap::new(),
            open: Vec::new(),
            rows: Packets::default(),
            row_count: 0,
            reasons: vec![""],
        }
    }

    /// Registers a new flow, perhaps in the slot of an earlier one.
    pub fn begin_flow(&mut self, id: FlowId, number: u32) {
        self.flows.insert(id.bits(), number);
        for id in [id, id.requests()] {
            self.ce_counts.remove(&id.bits());
        }
    }

    /// Logs a segment that a host sends.
    pub fn sent(&mut self, now: Time, packet: Packet, segment: &Segment) {
        let slot = packet.slot().index() as usize;
        self.open.resize(self.open.len().max(slot + 1), None);
        let id = packet.flow();
        let number = |id: FlowId| self.flows.get(&id.bits()).copied();
        let flow_id = number(id).or_else(|| number(id.of_requests())).unwrap_or_default();
        let (kind, again) = match segment.body {
            Body::Ack { .. } | Body::QuicAck(_) => (KIND_ACK, false),
            Body::Quench { .. } => (KIND_QUENCH, false),
            Body::Data { again, .. } | Body::Quic { again, .. } => (KIND_DATA, again),
        };
        let echo = self.echoes_ce(id, segment);
        let wanted = now <= self.window[1] && self.row_count < self.limit;
        let row = wanted.then(|| PacketRow {
            flow_id,
            kind,
            wire_bytes: packet.wire_bytes(),
            again: again.into(),
            echo: echo.into(),
            sent_ns: now.0,
            ..PacketRow::default()
        });
        self.open[slot] = row;
    }

    /// Logs a message that the router of a line's queue sends.
    pub fn sent_message(&mut self, now: Time, line: u32, packet: Packet, segment: &Segment) {
        self.sent(now, packet, segment);
        if self.line == Some(line) {
            self.update(packet, |row| row.arrived_ns = Some(now.0));
        }
    }

    /// Logs the arrival of a packet at a line.
    pub fn arrived(&mut self, now: Time, line: u32, packet: Packet, segments: &Segments) {
        if self.line == Some(line) {
            self.update(packet, |row| row.arrived_ns = Some(now.0));
            self.see_ecn(now, packet, segments.get(packet.slot()));
        }
    }

    /// Logs the new verdicts of a line's queue.
    pub fn verdicts(&mut self, i: u32, line: &mut Line<Packet>, segments: &Segments) {
        let Some(&reader) = self.readers.get(i as usize) else { return };
        while let Some(Verdict { at, packet, what, reason }) = line.read(reader) {
            match what {
                Outcome::Marked { .. } if self.line == Some(i) => {
                    let reason = self.reason(reason);
                    self.update(packet, |row| {
                        // A meter may report a mark of the queue again.
                        if row.marked.0 == 0 {
                            row.marked = reason;
                        }
                    });
                    self.see_ecn(at, packet, segments.get(packet.slot()));
                }
                Outcome::Marked { .. } => {}
                Outcome::Dropped => self.lose(at, packet, reason),
            }
        }
    }

    /// Logs the departure of a packet from a line.
    pub fn left_line(&mut self, now: Time, line: u32, packet: Packet) {
        if self.line == Some(line) {
            self.update(packet, |row| row.left_ns = Some(now.0));
        }
    }

    /// Logs the loss of a packet at the entry of a pipe.
    pub fn lost_in_pipe(&mut self, now: Time, packet: Packet) {
        self.lose(now, packet, LOSS);
    }

    /// Logs the arrival of a packet at its host.
    pub fn received(&mut self, now: Time, packet: Packet, segment: &Segment) {
        self.see_ecn(now, packet, segment);
        self.ended(now, packet);
    }

    /// Takes the rows at the end of the run; packets still under way have no end.
    pub fn take(&mut self) -> Table {
        let open = core::mem::take(&mut self.open);
        open.into_iter().flatten().for_each(|row| self.rows.push(row));
        let reasons = self.reasons.clone();
        core::mem::take(&mut self.rows).into_table(|column| match column {
            "kind" => KINDS.map(str::to_owned).to_vec(),
            _ => reasons.iter().copied().map(str::to_owned).collect(),
        })
    }

    /// `true` if an acknowledgement reports CE to the sender of the data.
    fn echoes_ce(&mut self, id: FlowId, segment: &Segment) -> bool {
        let count = match segment.body {
            Body::Ack { echo: Echo::Ce { packets }, .. } => packets,
            Body::QuicAck(ack) => ack.ce_count(),
            // Values of two bits are code points.
            Body::Ack { echo: Echo::Load { value, bits: 2, .. }, .. } => {
                return value == Ecn::Ce as u16;
            }
            _ => return segment.flags.has(Flags::ECE),
        };
        self.ce_counts.insert(id.bits(), count).unwrap_or_default() != count
    }

    fn lose(&mut self, now: Time, packet: Packet, reason: Reason) {
        let reason = self.reason(reason);
        self.update(packet, |row| row.lost = reason);
        self.ended(now, packet);
    }

    /// Logs the end of a packet's way.
    pub fn ended(&mut self, now: Time, packet: Packet) {
        let row = self.open.get_mut(packet.slot().index() as usize).and_then(Option::take);
        if let Some(row) = row.filter(|_| now >= self.window[0]) {
            self.rows.push(PacketRow { ended_ns: Some(now.0), ..row });
            self.row_count += 1;
        }
    }

    /// Logs that a packet has CE, if it is the first time.
    fn see_ecn(&mut self, now: Time, packet: Packet, segment: &Segment) {
        if segment.ecn == Ecn::Ce {
            self.update(packet, |row| row.ce_ns = row.ce_ns.or(Some(now.0)));
        }
    }

    fn update(&mut self, packet: Packet, change: impl FnOnce(&mut PacketRow)) {
        if let Some(Some(row)) = self.open.get_mut(packet.slot().index() as usize) {
            change(row);
        }
    }

    fn reason(&mut self, reason: Reason) -> Name {
        let at = self.reasons.iter().position(|&known| known == reason.name());
        let at = at.unwrap_or_else(|| {
            self.reasons.push(reason.name());
            self.reasons.len() - 1
        });
        Name(at as u32)
    }
}

/// Labels of [`PacketRow::kind`], by value.
const KINDS: [&str; 3] = ["data", "ack", "quench"];
const KIND_DATA: Name = Name(0);
const KIND_ACK: Name = Name(1);
const KIND_QUENCH: Name = Name(2);
