//! Timeouts of servers and whether they back off, from captures made at their clients (TCP*(n), § 2.4).
//!
//! ```text
//! bytes ──unpacked──▶ Capture ──Frame──▶ segment ──Segment──▶ Watch ──▶ Connection ──▶ Half ──Event──▶ rto::fit ──▶ tables
//! ```
//! A [`half`] is what one end sends as the other sees it: a silence of it becomes an [`event::Event`], whose kind and evidence say
//! what it was. What bounds memory is in [`Limits`]; what was left out is counted.

pub mod capture;
pub mod clock;
pub mod connection;
pub mod event;
pub mod half;
pub mod headers;
mod identification;
mod ranges;
mod remembered;
mod rows;
pub mod rto;
mod source;
mod watch;

use std::collections::BTreeMap;
use std::io::Read;
use std::net::IpAddr;

use cwnd_trace::{Activity, Table};

pub use capture::CaptureError;
use capture::{Capture, More};
use connection::{End, Summary};
use headers::{Skip, segment};
use rows::{Connections, Labels, Silences};
use rto::Scores;
pub use source::{Meter, unpacked};
pub use watch::Limits;
use watch::Watch;

/// What was found in captures.
#[derive(Debug)]
pub struct Found {
    /// A row for each connection.
    pub connections: Table,
    /// A row for each silence of a server.
    pub silences: Table,
    /// What was read, left out and given up.
    pub counts: Activity,
}

/// What was read of captures, file after file.
#[derive(Debug, Default)]
pub struct Inference {
    limits: Limits,
    files: Vec<String>,
    summaries: Vec<(u32, Summary)>,
    counts: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    frames: u64,
    segments: u64,
    link: u64,
    other: u64,
    fragments: u64,
    short: u64,
    malformed: u64,
    untimed: u64,
    dropped: u64,
    cut_off: u64,
}

/// Whether to go on, asked every so many blocks.
const ASKED_EVERY: u64 = 1 << 14;

/// Why a file was not read to its end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is none, or damaged.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// It was told to stop.
    #[error("stopped")]
    Cancelled,
}

impl Inference {
    /// Nothing was read yet.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Reads a file; connections end with it. `go_on` is asked now and then whether to go on.
    ///
    /// # Errors
    /// When the file is no capture, is damaged or cannot be read, or `go_on` said no.
    pub fn read(
        &mut self,
        name: &str,
        bytes: impl Read,
        mut go_on: impl FnMut() -> bool,
    ) -> Result<(), Error> {
        let file = self.files.len() as u32;
        self.files.push(name.to_owned());
        let mut capture = Capture::new(bytes)?;
        let (summaries, counts) = (&mut self.summaries, &mut self.counts);
        let mut watch = Watch::new(self.limits, |summary| summaries.push((file, summary)));
        for blocks in 1_u64.. {
            let more = capture.next(|frame| {
                counts.frames += 1;
                match segment(&frame) {
                    Ok(segment) => {
                        counts.segments += 1;
                        watch.take(&segment);
                    }
                    Err(Skip::Link) => counts.link += 1,
                    Err(Skip::Other) => counts.other += 1,
                    Err(Skip::Fragment) => counts.fragments += 1,
                    Err(Skip::Short) => counts.short += 1,
                    Err(Skip::Malformed) => counts.malformed += 1,
                }
            })?;
            match more {
                More::Frame | More::Other => {}
                More::Untimed => counts.untimed += 1,
                More::Dropped => counts.dropped += 1,
                More::CutOff => {
                    counts.cut_off += 1;
                    break;
                }
                More::End => break,
            }
            if blocks.is_multiple_of(ASKED_EVERY) && !go_on() {
                return Err(Error::Cancelled);
            }
        }
        watch.finish();
        Ok(())
    }

    /// What was found.
    #[must_use]
    pub fn finish(mut self) -> Found {
        remembered::recall(self.summaries.iter_mut().map(|(_, summary)| summary));
        let mut servers: BTreeMap<IpAddr, Scores> = BTreeMap::new();
        for (_, summary) in &self.summaries {
            let server = &summary.halves[1];
            if !server.events.is_empty() || server.tails > 0 {
                let scores = servers.entry(summary.server.address()).or_default();
                scores.add(&server.events, server.tails, server.linux);
            }
        }
        let (mut connections, mut silences) = (Connections::default(), Silences::default());
        let mut hosts = Labels::default();
        let (mut given_up, mut forgotten) = (0, 0);
        for (number, (file, mut summary)) in (0..).zip(self.summaries) {
            let events = &mut summary.halves[1].events;
            let backoff = match servers.get(&summary.server.address()) {
                Some(scores) => rto::fit(events, scores),
                None => rto::Backoff::None,
            };
            for event in summary.handshakes.iter().chain(&*events) {
                silences.push(number, event);
            }
            connections.push(number, &summary, backoff, file, &mut hosts);
            given_up += u64::from(summary.end == End::GivenUp);
            forgotten += summary.halves[1].counts.forgotten;
        }
        let mut counts = Activity::default();
        let c = self.counts;
        for (name, count) in [
            ("frames", c.frames),
            ("tcp_segments", c.segments),
            ("unknown_link_type", c.link),
            ("not_tcp", c.other),
            ("ip_fragments", c.fragments),
            ("headers_cut_off", c.short),
            ("malformed", c.malformed),
            ("without_time", c.untimed),
            ("dropped_on_link", c.dropped),
            ("files_cut_off", c.cut_off),
            ("connections_given_up", given_up),
            ("silences_given_up", forgotten),
        ] {
            counts.add(name, count);
        }
        Found {
            connections: connections.into_table(&self.files, &hosts),
            silences: silences.into_table(),
            counts,
        }
    }
}
