//! Observers of packets and verdicts: captures, logs of packets and of senders, and the messengers
//! of routers.

use core::fmt;
use std::collections::BTreeMap;

use cwnd_aqm::{Messenger, Outcome};
use cwnd_link::{Line, Reader};
use cwnd_quantity::Time;
use cwnd_tcp::Segment;

use crate::capture::Capture;
use crate::event::FlowId;
use crate::packet::{Packet, take_note};
use crate::packet_log::PacketLog;
use crate::qlog::SenderLogs;
use crate::segments::Segments;

/// Captures, logs and messengers of a run. Most runs have none.
#[derive(Debug, Default)]
pub struct Observers {
    /// Capture files.
    pub capture: Option<Capture>,
    /// Log of packets.
    pub packet_log: Option<PacketLog>,
    /// Logs of senders.
    pub sender_logs: Option<SenderLogs>,
    taps: Vec<MessengerTap>,
    /// Buffer for the messages to send now.
    outgoing: Vec<OutgoingMessage>,
}

/// Group of a flow and path in the group, which identify the path of its data.
pub type PathId = (u32, u32);

/// A router's messenger at the queue of one of its links.
pub struct MessengerTap {
    /// Index of the line with the queue.
    pub line: u32,
    /// Reader of the queue's verdicts.
    pub reader: Reader,
    /// Index of the router's node.
    pub router: u32,
    /// Messenger, which decides on messages.
    pub messenger: Box<dyn Messenger<Packet>>,
    /// First hop of messages to the sources of data, by the data's path; contains each path over
    /// the link.
    pub hops: BTreeMap<PathId, u32>,
    /// Number of messages sent.
    pub sent: u64,
}

impl fmt::Debug for MessengerTap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessengerTap").field("line", &self.line).finish_non_exhaustive()
    }
}

/// A message to be sent.
#[derive(Clone, Copy, Debug)]
pub struct OutgoingMessage {
    /// Flow of the packet that the message is about.
    pub flow: FlowId,
    /// First hop of the message.
    pub hop: u32,
    /// Segment with the message.
    pub segment: Segment,
}

impl Observers {
    /// Adds a messenger.
    pub fn add(&mut self, tap: MessengerTap) {
        self.taps.push(tap);
    }

    /// Passes each named counter of the messengers to `each`.
    pub fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        for tap in &self.taps {
            tap.messenger.count(each);
        }
    }

    /// Number of messages sent about packets of a line's queue.
    pub fn sent_about(&self, line: u32) -> u64 {
        self.taps.iter().filter(|tap| tap.line == line).map(|tap| tap.sent).sum()
    }

    /// Passes the new verdicts of a line's queue to captures, and those about data to messengers;
    /// returns the resulting messages. `path_at` gives the path of the data at a hop.
    #[cold]
    pub fn read(
        &mut self,
        i: u32,
        line: &mut Line<Packet>,
        segments: &Segments,
        path_at: impl Fn(u32) -> Option<PathId>,
    ) -> Vec<OutgoingMessage> {
        if let Some(capture) = &mut self.capture {
            capture.verdicts(i, line, segments);
        }
        if let Some(log) = &mut self.packet_log {
            log.verdicts(i, line, segments);
        }
        let capturing = self.capture.is_some();
        let outgoing = &mut self.outgoing;
        for tap in self.taps.iter_mut().filter(|tap| tap.line == i) {
            while let Some(verdict) = line.read(tap.reader) {
                let queued = line.backlog();
                let packet = verdict.packet;
                // RFC 1122 § 3.2.2: no message is about a message. An ACK has no sender that could
                // slow down.
                let path = path_at(packet.next_hop().0);
                let Some(&hop) = path.and_then(|path| tap.hops.get(&path)) else { continue };
                let mut about = *segments.get(packet.slot());
                if about.is_ack() {
                    // An acknowledgement of a request, which travels on a path of data.
                    continue;
                }
                let Some(level) = tap.messenger.on_verdict(&verdict, queued, segments) else {
                    continue;
                };
                if capturing {
                    take_note(&mut about);
                }
                let marked = matches!(verdict.what, Outcome::Marked { .. });
                tap.sent += 1;
                let segment = about.quench(marked, level, tap.router);
                outgoing.push(OutgoingMessage { flow: packet.flow(), hop, segment });
            }
        }
        core::mem::take(outgoing)
    }

    /// Returns the buffer of messages for reuse.
    pub fn recycle(&mut self, mut outgoing: Vec<OutgoingMessage>) {
        outgoing.clear();
        self.outgoing = outgoing;
    }

    /// Reports that a host sends a segment.
    #[cold]
    pub fn sent_by_host(&mut self, now: Time, packet: Packet, segment: &mut Segment) {
        if let Some(log) = &mut self.packet_log {
            log.sent(now, packet, segment);
        }
        if let Some(logs) = &mut self.sender_logs {
            logs.sent_by_host(packet, segment);
        }
        if let Some(capture) = &mut self.capture {
            capture.sent_by_host(now, packet, segment);
        }
    }

    /// Reports that a host receives a segment.
    #[cold]
    pub fn received_by_host(&mut self, now: Time, packet: Packet, segment: &mut Segment) {
        if let Some(log) = &mut self.packet_log {
            log.received(now, packet, segment);
        }
        if let Some(capture) = &mut self.capture {
            capture.received_by_host(packet, segment);
        }
        if let Some(logs) = &mut self.sender_logs {
            logs.received_by_host(packet, segment);
        }
    }

    /// Reports that a packet arrived at a line.
    #[cold]
    pub fn arrived(&mut self, now: Time, line: u32, packet: Packet, segments: &Segments) {
        if let Some(log) = &mut self.packet_log {
            log.arrived(now, line, packet, segments);
        }
    }

    /// Reports that a packet entered a pipe or was lost there.
    #[cold]
    pub fn entered_pipe(
        &mut self,
        now: Time,
        pipe: u32,
        packet: Packet,
        segments: &Segments,
        lost: bool,
    ) {
        if let Some(capture) = &mut self.capture {
            capture.entered_pipe(now, pipe, packet, segments, lost);
        }
        if let Some(log) = self.packet_log.as_mut().filter(|_| lost) {
            log.lost_in_pipe(now, packet);
        }
    }

    /// Reports that a packet left a line.
    #[cold]
    pub fn left_line(&mut self, now: Time, line: u32, packet: Packet, segments: &Segments) {
        if let Some(capture) = &mut self.capture {
            capture.left_line(now, line, packet, segments);
        }
        if let Some(log) = &mut self.packet_log {
            log.left_line(now, line, packet);
        }
    }
}
