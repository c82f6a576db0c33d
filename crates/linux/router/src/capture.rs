//! Packets written to a capture file as they pass.
//!
//! On the line a packet is captured when its last byte leaves it, as in the simulator: what was queued is behind it, propagation
//! is before it; why a packet was marked or dropped is its comment. At a side it is captured when it comes in there or
//! goes out, as the host there sees it.

use std::fmt;
use std::io::{self, Write};

use cwnd_aqm::Reason;
use cwnd_packet::{Headers, Interface, Writer};
use cwnd_quantity::Time;
use cwnd_scenario::LinkRate;

use crate::config::{Direction, Side};
use crate::packet::headers_length;

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

/// A capture: one file with both directions, or several files with some of them.
#[derive(Debug)]
pub struct Capture {
    point: Point,
    /// How much of a packet is kept.
    keeps: Keeps,
    files: Vec<File>,
    /// Where the router's time begins in that of the files.
    epoch: Time,
    /// Whether that is the time of day, which is known when the router begins.
    of_day: bool,
    packet: Headers,
}

/// How much of a packet a capture keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keeps {
    All,
    Headers,
}

/// A capture file.
struct File {
    /// `None` after the output failed.
    writer: Option<Writer<Output>>,
    /// By direction: the number of its interface, where the file has it.
    interfaces: [Option<u32>; 2],
    failure: Option<io::Error>,
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("File");
        shown.field("interfaces", &self.interfaces).field("failure", &self.failure);
        shown.finish_non_exhaustive()
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
        let what = match point {
            Point::Line => "emulated link",
            Point::At(_) => "an end of an emulated link",
        };
        let mut capture = Self::empty(point, Keeps::All);
        capture.add(to, about, [0, 1].map(|lane| (lane, &directions[lane], what)))?;
        Ok(capture)
    }

    /// A capture of what leaves the lines, without a file yet; of packets it keeps the headers only.
    #[must_use]
    pub const fn of_headers() -> Self {
        Self::empty(Point::Line, Keeps::Headers)
    }

    const fn empty(point: Point, keeps: Keeps) -> Self {
        Self {
            point,
            keeps,
            files: Vec::new(),
            epoch: Time::ZERO,
            of_day: false,
            packet: Headers { bytes: Vec::new(), total: 0 },
        }
    }

    /// Adds a file with these directions: their places in the router (0 from A to B, 1 from B to A), and what they are for people.
    ///
    /// # Errors
    /// Those of the output.
    pub fn add<'a>(
        &mut self,
        to: Output,
        about: &str,
        directions: impl IntoIterator<Item = (usize, &'a Direction, &'a str)>,
    ) -> io::Result<()> {
        let application = concat!("cwnd ", env!("CARGO_PKG_VERSION"));
        let mut writer = Writer::new(to, application, about)?;
        let mut interfaces = [None; 2];
        for (lane, of, description) in directions {
            interfaces[lane] = Some(writer.interface(&Interface {
                name: &of.name,
                description,
                bit_s: match &of.rate {
                    LinkRate::Steps { initial, changes, .. } if changes.is_empty() => {
                        Some(initial.0)
                    }
                    _ => None,
                },
            })?);
        }
        self.files.push(File { writer: Some(writer), interfaces, failure: None });
        Ok(())
    }

    /// The same capture; its files have the time of day where a router runs in real time, not the time since that began.
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

    /// A packet was dropped, maybe after it was marked.
    #[cold]
    pub(crate) fn dropped(
        &mut self,
        lane: usize,
        at: Time,
        bytes: &[u8],
        marked: Option<Reason>,
        reason: Reason,
    ) {
        let before = marked.map(|by| format!("marked: {}, ", by.name())).unwrap_or_default();
        self.write(lane, at, bytes, &format!("{before}dropped: {}", reason.name()));
    }

    fn write(&mut self, lane: usize, at: Time, bytes: &[u8], comment: &str) {
        let kept = match self.keeps {
            Keeps::All => bytes.len(),
            Keeps::Headers => headers_length(bytes),
        };
        self.packet.bytes.clear();
        self.packet.bytes.extend_from_slice(&bytes[..kept]);
        self.packet.total = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
        let at = Time(self.epoch.0.saturating_add(at.0));
        for file in &mut self.files {
            file.write(lane, at, &self.packet, comment);
        }
    }

    /// Ends the files.
    ///
    /// # Errors
    /// The first that an output had.
    pub fn finish(self) -> io::Result<()> {
        // All are ended, whatever one of them says.
        let ended: Vec<io::Result<()>> = self.files.into_iter().map(File::finish).collect();
        ended.into_iter().collect()
    }
}

impl File {
    fn write(&mut self, lane: usize, at: Time, packet: &Headers, comment: &str) {
        let (Some(writer), Some(interface)) = (&mut self.writer, self.interfaces[lane]) else {
            return;
        };
        if let Err(error) = writer.packet(interface, at, packet, comment) {
            self.failure = Some(error);
            self.writer = None;
        }
    }

    fn finish(self) -> io::Result<()> {
        match (self.failure, self.writer) {
            (Some(error), _) => Err(error),
            (None, Some(mut writer)) => writer.flush(),
            (None, None) => Ok(()),
        }
    }
}
