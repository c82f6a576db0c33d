//! Capture files of the packets that pass a router.
//!
//! On the line, a packet is captured when its last byte leaves it, as in the simulator: after
//! queueing and before propagation. A dropped packet is captured when it is dropped, a message of
//! the router when it is written. A comment gives the reason of a mark or drop. At a side, a packet
//! is captured when it enters or leaves the router there, as the host at that side sees it.

use std::fmt;
use std::io::{self, Write};

use cwnd_aqm::Reason;
use cwnd_packet::{Headers, Interface, Writer};
use cwnd_quantity::Time;
use cwnd_scenario::LinkRate;

use crate::config::{Direction, Side};
use crate::packet::headers_length;

/// Destination of a capture file.
pub type Output = Box<dyn Write + Send>;

/// Point at which packets are captured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Point {
    /// Exit of the lines; drops are captured where they occur.
    #[default]
    Line,
    /// A side of the router, where its host sends and receives.
    At(Side),
}

/// A capture: one file with both directions, or several files with some of them.
#[derive(Debug)]
pub struct Capture {
    point: Point,
    /// Part of each packet that is written.
    keeps: Keeps,
    files: Vec<File>,
    /// Start of the router's time in the time of the files.
    epoch: Time,
    /// `true` if that is the time of day, read when the router starts.
    #[cfg_attr(
        not(target_os = "linux"),
        expect(dead_code, reason = "routers start on Linux alone")
    )]
    of_day: bool,
    packet: Headers,
}

/// Part of a packet that a capture writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keeps {
    All,
    Headers,
}

/// State of a capture file.
struct File {
    /// Writer of the file; `None` after it failed.
    writer: Option<Writer<Output>>,
    /// Number of each direction's interface in the file; `None` if the file lacks the direction.
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
    /// Creates a capture with one file that has both directions, seen from `point`.
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
        capture.add(
            to,
            about,
            [0, 1].map(|direction| (direction, &directions[direction], what)),
        )?;
        Ok(capture)
    }

    /// Creates a capture at the exit of the lines, with the headers of packets only and without a
    /// file yet.
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

    /// Adds a file with these directions. Each has its index in the router (0 from A to B, 1 from B
    /// to A), and a description that is written into the file.
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
        for (direction, of, description) in directions {
            interfaces[direction] = Some(writer.interface(&Interface {
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

    /// Uses the time of day in the files of a router in real time, in place of the time since its
    /// start.
    #[must_use]
    pub fn with_time_of_day(self) -> Self {
        Self { of_day: true, ..self }
    }

    /// Sets the time of day at which the router's time begins, if the files have it.
    #[cfg(target_os = "linux")]
    pub(crate) const fn begins(&mut self, time_of_day: Time) {
        if self.of_day {
            self.epoch = time_of_day;
        }
    }

    /// Returns the point at which packets are captured.
    pub(crate) const fn point(&self) -> Point {
        self.point
    }

    pub(crate) fn passed(
        &mut self,
        direction: usize,
        at: Time,
        bytes: &[u8],
        marked: Option<Reason>,
    ) {
        match marked {
            None => self.write(direction, at, bytes, ""),
            Some(reason) => self.write(direction, at, bytes, &format!("marked: {}", reason.name())),
        }
    }

    /// Writes a packet that was dropped, possibly after it was marked.
    #[cold]
    pub(crate) fn dropped(
        &mut self,
        direction: usize,
        at: Time,
        bytes: &[u8],
        marked: Option<Reason>,
        reason: Reason,
    ) {
        let before = marked.map(|by| format!("marked: {}, ", by.name())).unwrap_or_default();
        self.write(direction, at, bytes, &format!("{before}dropped: {}", reason.name()));
    }

    fn write(&mut self, direction: usize, at: Time, bytes: &[u8], comment: &str) {
        let kept = match self.keeps {
            Keeps::All => bytes.len(),
            Keeps::Headers => headers_length(bytes),
        };
        self.packet.bytes.clear();
        self.packet.bytes.extend_from_slice(&bytes[..kept]);
        self.packet.total = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
        let at = Time(self.epoch.0.saturating_add(at.0));
        for file in &mut self.files {
            file.write(direction, at, &self.packet, comment);
        }
    }

    /// Flushes and closes all files.
    ///
    /// # Errors
    /// The first error of any file.
    pub fn finish(self) -> io::Result<()> {
        // All files are closed, even if one of them fails.
        let ended: Vec<io::Result<()>> = self.files.into_iter().map(File::finish).collect();
        ended.into_iter().collect()
    }
}

impl File {
    fn write(&mut self, direction: usize, at: Time, packet: &Headers, comment: &str) {
        let (Some(writer), Some(interface)) = (&mut self.writer, self.interfaces[direction]) else {
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
