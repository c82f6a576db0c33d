//! Captures, the log of packets and the logs of senders: their start, their end, and reports of
//! lines to all observers.

use std::io;

use cwnd_quantity::Time;
use cwnd_scenario::Scenario;
use cwnd_tables::Table;

use super::Network;
use crate::capture::{Capture, Output};
use crate::event::EventQueue;
use crate::packet::Packet;
use crate::packet_log::PacketLog;
use crate::qlog::SenderLogs;

impl Network {
    /// Starts writing the packets of these links to `to` as pcapng.
    pub fn capture(&mut self, scenario: &Scenario, links: &[usize], to: Output) -> io::Result<()> {
        let observers = self.observers.get_or_insert_default();
        let capture = observers.capture.get_or_insert_with(|| Capture::new(scenario, &self.links));
        capture.add(scenario, links, to)?;
        capture.read_lines(&mut self.lines);
        Ok(())
    }

    /// Starts the logs of senders.
    pub fn log_senders(&mut self, logs: SenderLogs) {
        self.observers.get_or_insert_default().sender_logs = Some(logs);
    }

    /// Flushes captures and logs of senders at the end of the run.
    pub fn end_files(&mut self) {
        if let Some(capture) = self.capture_mut() {
            capture.end();
        }
        if let Some(logs) = self.sender_logs_mut() {
            logs.end();
        }
    }

    /// Starts logging the packets under way in a window of time, about `limit` at most, with their
    /// passage through a link; returns `false` if the link has no queue.
    pub fn log_packets(&mut self, link: usize, window: [Time; 2], limit: usize) -> bool {
        let line = self.links[link].line;
        let log = PacketLog::new(line, &mut self.lines, window, limit);
        self.observers.get_or_insert_default().packet_log = Some(log);
        line.is_some()
    }

    /// Returns the logged packets; `None` without a log.
    pub fn take_packets(&mut self) -> Option<Table> {
        self.packet_log_mut().map(PacketLog::take)
    }

    pub(super) fn capture_mut(&mut self) -> Option<&mut Capture> {
        self.observers.as_mut()?.capture.as_mut()
    }

    pub fn sender_logs_mut(&mut self) -> Option<&mut SenderLogs> {
        self.observers.as_mut()?.sender_logs.as_mut()
    }

    pub(super) fn packet_log_mut(&mut self) -> Option<&mut PacketLog> {
        self.observers.as_mut()?.packet_log.as_mut()
    }

    /// Reports an arrival at a line, and the verdicts at it, to the observers.
    #[cold]
    #[inline(never)]
    pub(super) fn report_arrival(
        &mut self,
        now: Time,
        i: u32,
        packet: Packet,
        events: &mut EventQueue,
    ) {
        if let Some(observers) = &mut self.observers {
            observers.arrived(now, i, packet, &self.segments);
        }
        self.read_verdicts(now, i, events);
    }

    /// Reports a departure from a line, and the verdicts at it, to the observers.
    #[cold]
    #[inline(never)]
    pub(super) fn report_departure(
        &mut self,
        now: Time,
        i: u32,
        sent: Option<Packet>,
        events: &mut EventQueue,
    ) {
        self.read_verdicts(now, i, events);
        if let (Some(observers), Some(packet)) = (&mut self.observers, sent) {
            observers.left_line(now, i, packet, &self.segments);
        }
    }
}
