//! Inference of server timeouts and of their backoff from captures made at clients (TCP*(n), §
//! 2.4).
//!
//! ```text
//! bytes ──unpacked──▶ Capture ──Frame──▶ segment ──Segment──▶ merged
//! ──▶ ConnectionTable ──▶ Connection ──▶ DirectionState ──Event──▶ rto::fit ──▶
//! tables
//! ```
//! Files are merged in time order, and duplicate packets are removed ([`Input`], `Duplicates`). A
//! [`direction`] is the data that one end sends, as seen from near the other end. Each silence in
//! it becomes an [`event::Event`] with a kind and evidence. [`Limits`] bounds memory; omitted input
//! is counted. [`Packets`] are those of a single connection.

pub mod capture;
mod captured_bytes;
mod captures;
pub mod clock;
pub mod connection;
mod connection_table;
pub mod direction;
pub mod event;
pub mod headers;
mod merge;
mod packets;
mod rows;
pub mod rto;
mod throughput;
mod traffic;

use std::collections::BTreeMap;
use std::net::IpAddr;

use cwnd_tables::{Activity, Table};

pub use capture::{CaptureError, Meter, unpacked};
use captures::captures;
use connection::{End, Summary, apply_tcp_metrics};
use connection_table::ConnectionTable;
pub use connection_table::Limits;
pub use merge::{Bytes, Error, Input};
use merge::{Count, Counts};
pub use packets::{Packets, Selection};
use rows::{Connections, Labels, QueueRows, RateRows, Silences};
use rto::Scores;
pub use throughput::{Window, throughput};
use traffic::Traffic;

/// Tables and counts inferred from captures.
#[derive(Debug)]
pub struct Found {
    /// Table with a row for each connection.
    pub connections: Table,
    /// Table with a row for each silence of a server, and for each repeated SYN and SYN-ACK.
    pub silences: Table,
    /// Table of delivery rates, empty unless the path was measured.
    pub rates: Table,
    /// Table of losses by queueing delay, empty unless the path was measured.
    pub queues: Table,
    /// Counts of frames read, left out, repeated or out of order, of connections and silences given
    /// up, and of files.
    pub counts: Activity,
}

/// Reader of captures that accumulates their connections.
#[derive(Debug, Default)]
pub struct Inference {
    limits: Limits,
    files: Vec<String>,
    summaries: Vec<Summary>,
    counts: Counts,
    traffic: Option<Traffic>,
}

impl Inference {
    /// Creates a reader that has read nothing.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Also measures delivery rates and losses, for a scenario.
    #[must_use]
    pub fn measuring_path(self) -> Self {
        Self { traffic: Some(Traffic::default()), ..self }
    }

    /// Reads files as one capture, merged in time order. Connections do not continue in the next
    /// call.
    ///
    /// Files whose clocks begin at zero are merged only with files of the same directory, as those
    /// of one run are. `go_on` is called every 16,384 blocks of a file; `false` stops the reading.
    ///
    /// # Errors
    /// If a file is no capture, is damaged, cannot be read or sorted, or if `go_on` returned
    /// `false`.
    pub fn read(
        &mut self,
        inputs: &[Input<'_>],
        mut go_on: impl FnMut() -> bool,
    ) -> Result<(), Error> {
        let before = self.files.len();
        self.files.extend(inputs.iter().map(|input| input.name.clone()));
        let measures_path = self.traffic.is_some();
        let table = || ConnectionTable::new(self.limits, measures_path.then(Traffic::default));
        let (tables, counts) = captures(inputs, before, &mut go_on, &table)?;
        self.counts += counts;
        for (summaries, traffic) in tables.into_iter().map(ConnectionTable::finish) {
            self.summaries.extend(summaries);
            if let Some((sum, more)) = self.traffic.as_mut().zip(traffic) {
                sum.add(&more);
            }
        }
        Ok(())
    }

    /// Infers timeouts from all connections read, and returns the tables.
    #[must_use]
    pub fn finish(mut self) -> Found {
        apply_tcp_metrics(self.summaries.iter_mut());
        let mut servers: BTreeMap<IpAddr, Scores> = BTreeMap::new();
        for summary in &self.summaries {
            let server = &summary.directions[1];
            if !server.events.is_empty() || server.tail_probes > 0 {
                let scores = servers.entry(summary.server.address()).or_default();
                scores.add(&server.events, server.tail_probes, server.linux);
            }
        }
        let (mut connections, mut silences) = (Connections::default(), Silences::default());
        let mut hosts = Labels::default();
        let (mut given_up, mut forgotten) = (0, 0);
        for (number, mut summary) in (0..).zip(self.summaries) {
            let events = &mut summary.directions[1].events;
            let backoff = match servers.get(&summary.server.address()) {
                Some(scores) => rto::fit(events, scores),
                None => rto::Backoff::None,
            };
            for event in summary.handshakes.iter().chain(&*events) {
                silences.push(number, event);
            }
            connections.push(number, &summary, backoff, &mut hosts);
            given_up += u64::from(summary.end == End::GivenUp);
            forgotten += summary.directions[1].counts.forgotten;
        }
        let mut counts = Activity::default();
        let more = [
            ("connections_given_up", given_up),
            ("silences_given_up", forgotten),
            ("files", self.files.len() as u64),
        ];
        for (name, count) in Count::NAMES.into_iter().zip(self.counts.0).chain(more) {
            counts.add(name, count);
        }
        let (mut rates, mut queues) = (RateRows::default(), QueueRows::default());
        if let Some(traffic) = &self.traffic {
            traffic.write(&mut rates, &mut queues);
        }
        Found {
            rates: rates.into_table(),
            queues: queues.into_table(),
            connections: connections.into_table(&self.files, &hosts),
            silences: silences.into_table(),
            counts,
        }
    }
}
