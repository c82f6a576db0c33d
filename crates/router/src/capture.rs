//! Packets written to a capture file as they pass.
//!
//! On the line a packet is captured when its last byte leaves it, as in the simulator: what was queued is behind it, propagation
//! is before it; why a packet was marked or dropped is its comment. At a side it is captured when it comes in there or
//! goes out, as the host there sees it.

use std::fmt;
use std::io::{self, Write};

use cwnd_aqm::Reason;
use cwnd_scenario::LinkRate;
use cwnd_units::Time;
use cwnd_wire::{Headers, Interface, Writer};

use crate::config::{Direction, Side};

/// Where a capture goes.
pub type Output = Box<dyn Write + Send>;

/// Where packets are seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Point {
    /// As they leave the lines.
    #[default]
    Line,
    /// As the host at a side sends and receives them.
    At(Side),
}

/// A capture of both directions.
pub struct Capture {
    point: Point,
    /// `None` after the output failed.
    writer: Option<Writer<Output>>,
    interfaces: [u32; 2],
    failure: Option<io::Error>,
    /// Where the router's time begins in that of the file.
    epoch: Time,
    /// Whether that is the time of day, which is known when the router begins.
    of_day: bool,
    packet: Headers,
}

impl fmt::Debug for Capture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Capture").field("failure", &self.failure).finish_non_exhaustive()
    }
}

impl Capture {
    /// Begins a file about a router with these directions, as they look from `point`.
    ///
    /// # Errors
    /// Those of the output.
    pub fn new(
        to: Output,
        about: &str,
        directions: &[Direction; 2],
        point: Point,
    ) -> io::Result<Self> {
        let application = concat!("cwnd ", env!("CARGO_PKG_VERSION"));
        let mut writer = Writer::new(to, application, about)?;
        let mut interfaces = [0; 2];
        for (number, of) in interfaces.iter_mut().zip(directions) {
            *number = writer.interface(&Interface {
                name: &of.name,
                description: match point {
                    Point::Line => "emulated link",
                    Point::At(_) => "an end of an emulated link",
                },
                bit_s: match &of.rate {
                    LinkRate::Steps { initial, changes } if changes.is_empty() => Some(initial.0),
                    _ => None,
                },
            })?;
        }
        let packet = Headers { bytes: Vec::new(), total: 0 };
        Ok(Self {
            point,
            writer: Some(writer),
            interfaces,
            failure: None,
            epoch: Time::ZERO,
            of_day: false,
            packet,
        })
    }

    /// The same capture; its file has the time of day where a router runs in real time, not the time since that began.
    #[must_use]
    pub fn with_time_of_day(self) -> Self {
        Self { of_day: true, ..self }
    }

    /// The router's time begins now.
    #[cfg(target_os = "linux")]
    pub(crate) fn begins(&mut self, time_of_day: impl FnOnce() -> Time) {
        if self.of_day {
            self.epoch = time_of_day();
        }
    }

    /// Where it sees packets.
    pub(crate) const fn point(&self) -> Point {
        self.point
    }

    pub(crate) fn passed(&mut self, lane: usize, at: Time, bytes: &[u8], marked: Option<Reason>) {
        match marked {
            None => self.write(lane, at, bytes, ""),
            Some(reason) => self.write(lane, at, bytes, &format!("marked: {}", reason.name())),
        }
    }

    #[cold]
    pub(crate) fn dropped(&mut self, lane: usize, at: Time, bytes: &[u8], reason: Reason) {
        self.write(lane, at, bytes, &format!("dropped: {}", reason.name()));
    }

    fn write(&mut self, lane: usize, at: Time, bytes: &[u8], comment: &str) {
        let Some(writer) = &mut self.writer else { return };
        self.packet.bytes.clear();
        self.packet.bytes.extend_from_slice(bytes);
        self.packet.total = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
        let at = Time(self.epoch.0.saturating_add(at.0));
        if let Err(error) = writer.packet(self.interfaces[lane], at, &self.packet, comment) {
            self.failure = Some(error);
            self.writer = None;
        }
    }

    /// Ends the file.
    ///
    /// # Errors
    /// The first that the output had.
    pub fn finish(self) -> io::Result<()> {
        match (self.failure, self.writer) {
            (Some(error), _) => Err(error),
            (None, Some(mut writer)) => writer.flush(),
            (None, None) => Ok(()),
        }
    }
}
