//! Merges captures into one sequence of segments in time order, and counts what was read.
//!
//! Packets from several queues of a network card, or of two concatenated captures, are out of
//! order. Each part of a file is sorted within a window, and the parts are merged.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::ops::AddAssign;

use cwnd_quantity::{Duration, Time};

use crate::capture::{Capture, CaptureError, Meter, More, unpacked};
use crate::headers::{Segment, Skip, segment};

/// Reordering window of a capture file: segments that may stand before one that was captured
/// earlier.
const WINDOW: usize = 1024;
/// Maximum number of parts of a file, each in order within the window.
pub const MOST_PARTS: usize = 16;
/// Maximum number of files that stay open until their first packet is due; of more, each is
/// reopened.
pub const MOST_OPEN: usize = 16;
/// Number of blocks of a file between calls of `go_on`.
pub const ASKED_EVERY: u64 = 1 << 14;

/// Reader of a capture, from its first byte.
pub type Bytes<'a> = Box<dyn Read + 'a>;

/// A capture file and the function that opens it.
pub struct Input<'a> {
    /// Name of the file.
    pub name: String,
    open: Box<dyn Fn() -> io::Result<Bytes<'a>> + 'a>,
}

impl std::fmt::Debug for Input<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Input").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<'a> Input<'a> {
    /// Creates an input. Each call of `open` returns a reader from the first byte: a file out of
    /// order is read several times.
    pub fn new(name: impl Into<String>, open: impl Fn() -> io::Result<Bytes<'a>> + 'a) -> Self {
        Self { name: name.into(), open: Box::new(open) }
    }

    /// Creates an input from a capture in memory, compressed or not.
    #[must_use]
    pub fn of(name: impl Into<String>, bytes: &'a [u8]) -> Self {
        Self::new(name, move || unpacked(bytes, Meter::default()).map(|bytes| bytes as Bytes<'a>))
    }

    /// Opens the capture.
    pub(crate) fn capture(&self) -> Result<Capture<'a>, CaptureError> {
        Capture::new((self.open)()?)
    }
}

/// A part of a file in time order.
pub struct Part<'a, 'i> {
    input: &'i Input<'a>,
    file: u32,
    /// First block of the part.
    from: u64,
    /// First block behind the part.
    until: u64,
    capture: Option<Capture<'a>>,
    block: u64,
    ended: bool,
    /// Sorted segments; the first is the next to be taken.
    window: VecDeque<Segment>,
    /// `true` once a segment was moved before another that stood before it.
    shuffled: bool,
    /// Capture time of the last segment taken.
    taken: Time,
    /// Capture time of the first segment.
    pub first: Option<Time>,
    counts: Counts,
}

/// Error while captures are read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file is not a capture, is damaged, or cannot be read.
    #[error("{name}: {error}")]
    Capture {
        /// Name of the file.
        name: String,
        /// Fault found.
        error: CaptureError,
    },
    /// A file has more parts out of order than can be merged.
    #[error(
        "{name}: time goes back {MOST_PARTS} times past {WINDOW} packets, last by {:.3} s: \
         sort it first, as `reordercap {name} sorted.pcapng` does",
        .back.as_secs_f64()
    )]
    Disordered {
        /// Name of the file.
        name: String,
        /// Last step back of its clock.
        back: Duration,
    },
    /// The caller requested a stop.
    #[error("stopped")]
    Cancelled,
}

/// Reason to stop reading.
pub enum Stop {
    Failed(Error),
    /// Another part of the file begins at this block: its segment stands behind more later ones
    /// than the window holds.
    Part {
        file: u32,
        block: u64,
        back: Duration,
    },
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl<'a, 'i> Part<'a, 'i> {
    /// Returns the parts of an input that begin at its first block and at `splits`.
    pub fn of(
        input: &'i Input<'a>,
        file: u32,
        splits: &[u64],
        keep_open: bool,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Vec<Self>, Stop> {
        let begins = std::iter::once(0).chain(splits.iter().copied());
        let ends = splits.iter().copied().chain(std::iter::once(u64::MAX));
        let mut parts: Vec<Self> = Vec::with_capacity(splits.len() + 1);
        for (from, until) in begins.zip(ends) {
            let mut part = Self::new(input, file, from, until);
            part.fill(go_on)?;
            part.first = part.next();
            if !keep_open {
                part.close();
            }
            parts.push(part);
        }
        Ok(parts)
    }

    fn new(input: &'i Input<'a>, file: u32, from: u64, until: u64) -> Self {
        Self {
            input,
            file,
            from,
            until,
            capture: None,
            block: 0,
            ended: false,
            window: VecDeque::new(),
            shuffled: false,
            taken: Time::ZERO,
            first: None,
            counts: Counts::default(),
        }
    }

    /// Returns the blocks at which further parts begin after the part that begins at `from`, each
    /// with the step back of the clock. It returns at most one more than can be merged.
    pub fn splits(
        input: &'i Input<'a>,
        from: u64,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Vec<(u64, Duration)>, Error> {
        let mut part = Self::new(input, 0, from, u64::MAX);
        let mut splits = Vec::new();
        while splits.len() < MOST_PARTS {
            match part.fill(go_on) {
                Ok(()) => match part.window.pop_front() {
                    Some(segment) => part.taken = segment.at,
                    None => break,
                },
                Err(Stop::Part { block, back, .. }) => splits.push((block, back)),
                Err(Stop::Failed(error)) => return Err(error),
            }
        }
        Ok(splits)
    }

    /// Closes the file, which is read again from its beginning.
    fn close(&mut self) {
        (self.capture, self.block, self.counts) = (None, 0, Counts::default());
        (self.window, self.ended, self.shuffled) = (VecDeque::new(), false, false);
    }

    /// Fills the window. The start of another part is an error; if called again, `self` goes on
    /// with that part.
    fn fill(&mut self, go_on: &mut dyn FnMut() -> bool) -> Result<(), Stop> {
        let name = &self.input.name;
        let failed = |error| Stop::Failed(Error::Capture { name: name.clone(), error });
        while !self.ended && self.window.len() <= WINDOW {
            if self.block == self.until {
                self.ended = true;
                break;
            }
            let capture = match &mut self.capture {
                Some(capture) => capture,
                None => self.capture.insert(self.input.capture().map_err(failed)?),
            };
            let here = self.block >= self.from;
            let mut found = None;
            let more = capture.next(|frame| found = here.then(|| segment(&frame)));
            let more = more.map_err(failed)?;
            self.ended = matches!(more, More::CutOff | More::End);
            if here {
                self.counts.block(more, found.as_ref());
            }
            let (file, block) = (self.file, self.block);
            self.block += 1;
            if let Some(Ok(segment)) = found {
                let segment = Segment { file, ..segment };
                if segment.at < self.taken {
                    let back = self.taken.since(segment.at);
                    (self.taken, self.shuffled) = (Time::ZERO, false);
                    self.window = VecDeque::from([segment]);
                    return Err(Stop::Part { file, block, back });
                }
                self.insert(segment);
            }
            if self.block.is_multiple_of(ASKED_EVERY) && !go_on() {
                return Err(Error::Cancelled.into());
            }
        }
        Ok(())
    }

    /// Inserts a segment by its time.
    #[inline]
    fn insert(&mut self, segment: Segment) {
        let place = match self.window.back() {
            Some(last) if segment.at <= last.at => self.place_of(&segment),
            _ => self.window.len(),
        };
        if place == self.window.len() {
            self.window.push_back(segment);
        } else {
            self.counts.add(Count::Reordered, 1);
            self.shuffled = true;
            self.window.insert(place, segment);
        }
    }

    /// Returns the index for a segment that is not later than all others.
    fn place_of(&self, segment: &Segment) -> usize {
        let from = self.window.partition_point(|other| other.at < segment.at);
        let mut others = self.window.range(from..);
        others
            .position(|other| segment.precedes(other, self.shuffled))
            .map_or(self.window.len(), |behind| from + behind)
    }

    /// Returns the time of the next segment.
    fn next(&self) -> Option<Time> {
        self.window.front().map(|segment| segment.at)
    }

    /// Takes the first segment and refills the window.
    #[inline]
    fn take(&mut self, go_on: &mut dyn FnMut() -> bool) -> Result<Option<Segment>, Stop> {
        let Some(segment) = self.window.pop_front() else { return Ok(None) };
        self.taken = segment.at;
        self.fill(go_on)?;
        Ok(Some(segment))
    }
}

/// Processor of the segments of a capture, in time order.
pub trait Consumer {
    /// Processes a segment, and returns `true` if it is only a duplicate of the packet seen `since`
    /// ago, which is not processed.
    fn on_segment(&mut self, segment: &Segment, since: Option<Duration>) -> bool;
}

/// Passes the segments of all parts to `each` in time order, and returns the counts.
pub fn merged(
    mut parts: Vec<Part<'_, '_>>,
    go_on: &mut dyn FnMut() -> bool,
    mut each: impl FnMut(&Segment),
) -> Result<Counts, Stop> {
    // Parts are taken from the end: the earliest is the last.
    parts.sort_by_key(|part| std::cmp::Reverse(part.first));
    let mut counts = Counts::default();
    let mut open: Vec<Part<'_, '_>> = Vec::new();
    loop {
        loop {
            let now = open.iter().filter_map(Part::next).min();
            let due = |part: &mut Part<'_, '_>| now.is_none_or(|now| part.first <= Some(now));
            let Some(mut part) = parts.pop_if(due) else { break };
            part.fill(go_on)?;
            open.push(part);
        }
        for part in open.extract_if(.., |part| part.window.is_empty()) {
            counts += part.counts;
        }
        let precedes = |a: usize, b: usize| {
            let head = |place: usize| open[place].window.front();
            head(a).zip(head(b)).is_some_and(|(a, b)| a.precedes(b, true))
        };
        let least = (0..open.len()).reduce(|a, b| if precedes(b, a) { b } else { a });
        let Some(place) = least else { break };
        let others = open.iter().enumerate().filter(|&(other, _)| other != place);
        let waiting = parts.last().and_then(|part| part.first);
        let until = others.filter_map(|(_, part)| part.next()).chain(waiting).min();
        let part = &mut open[place];
        while let Some(segment) = part.take(go_on)? {
            each(&segment);
            if until.is_some_and(|until| part.next().is_none_or(|next| next >= until)) {
                break;
            }
        }
    }
    Ok(counts)
}

/// Kind of counted block, packet or event of reading.
#[derive(Clone, Copy, Debug)]
pub enum Count {
    Frames,
    Segments,
    Link,
    Other,
    Fragments,
    Short,
    Malformed,
    Untimed,
    Dropped,
    CutOff,
    Duplicates,
    Reordered,
    StepsBack,
}

impl Count {
    /// Names of the counts in the result, in the order of the variants.
    pub const NAMES: [&'static str; 13] = [
        "frames",
        "tcp_segments",
        "unknown_link_type",
        "not_tcp",
        "ip_fragments",
        "headers_cut_off",
        "malformed",
        "without_time",
        "dropped_on_link",
        "files_cut_off",
        "duplicates",
        "reordered",
        "steps_back",
    ];
}

/// Value of each [`Count`], in the order of the variants.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts(pub [u64; Count::NAMES.len()]);

impl Counts {
    /// Adds `more` to a count.
    pub const fn add(&mut self, count: Count, more: u64) {
        self.0[count as usize] += more;
    }

    /// Counts a block, and the frame that it holds, if any.
    pub fn block(&mut self, block: More, frame: Option<&Result<Segment, Skip>>) {
        if let Some(frame) = frame {
            self.add(Count::Frames, 1);
            let read = match frame {
                Ok(_) => Count::Segments,
                Err(Skip::Link) => Count::Link,
                Err(Skip::Other) => Count::Other,
                Err(Skip::Fragment) => Count::Fragments,
                Err(Skip::Short) => Count::Short,
                Err(Skip::Malformed) => Count::Malformed,
            };
            self.add(read, 1);
        }
        match block {
            More::Untimed => self.add(Count::Untimed, 1),
            More::Dropped => self.add(Count::Dropped, 1),
            More::CutOff => self.add(Count::CutOff, 1),
            More::Frame | More::Other | More::End => {}
        }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, more: Self) {
        self.0.iter_mut().zip(more.0).for_each(|(count, more)| *count += more);
    }
}
