//! Open connections of a capture, in bounded memory.

use std::collections::BTreeMap;

use cwnd_quantity::{Duration, Time};

use crate::connection::{Connection, End, Summary};
use crate::headers::{Host, Segment, flag};
use crate::merge::Consumer;
use crate::traffic::Traffic;

/// Bounds of memory.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of open connections; beyond it, those that were quiet longest are given up.
    pub connections: usize,
    /// Time without packets after which a connection ends.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 200_000, idle: Duration::from_secs(600) }
    }
}

/// Fraction of the connections that is given up at once (1 / 8), so that the search for them is
/// rare.
const GIVE_UP_FRACTION: usize = 8;
/// Time without packets after both FINs or a RST for which late packets still belong to the
/// connection.
const LINGER: Duration = Duration::from_secs(10);
/// Interval between searches for connections that have ended.
const SWEEP_INTERVAL: Duration = Duration::from_secs(10);

type Ends = [Host; 2];

/// Open connections, by their ends.
#[derive(Debug)]
pub struct ConnectionTable {
    limits: Limits,
    indices: BTreeMap<Ends, u32>,
    connections: Vec<Option<Connection>>,
    free: Vec<u32>,
    /// Ends and index of the connection used last: most packets follow one of the same connection.
    recent: Option<(Ends, u32)>,
    last_sweep: Time,
    /// Connections that have ended, in the order of their ends.
    ended: Vec<Summary>,
    /// Measurements for a scenario, if wanted.
    traffic: Option<Traffic>,
}

impl ConnectionTable {
    /// Creates an empty table, which also measures the path if `traffic` is given.
    pub const fn new(limits: Limits, traffic: Option<Traffic>) -> Self {
        Self {
            limits,
            indices: BTreeMap::new(),
            connections: Vec::new(),
            free: Vec::new(),
            recent: None,
            last_sweep: Time::ZERO,
            ended: Vec::new(),
            traffic,
        }
    }

    /// Ends all connections, since the capture is over. Returns the summary of each, and the
    /// measurements.
    pub fn finish(mut self) -> (Vec<Summary>, Option<Traffic>) {
        for index in 0..self.connections.len() {
            self.close(index as u32, End::Open);
        }
        (self.ended, self.traffic)
    }
}

impl Consumer for ConnectionTable {
    #[inline]
    fn on_segment(&mut self, segment: &Segment, since: Option<Duration>) -> bool {
        let ends = if segment.from < segment.to {
            [segment.from, segment.to]
        } else {
            [segment.to, segment.from]
        };
        if segment.at.since(self.last_sweep) > SWEEP_INTERVAL {
            self.sweep(segment.at);
        }
        let index = match self.recent {
            Some((last, index)) if last == ends => Some(index),
            _ => self.indices.get(&ends).copied(),
        };
        let index = match index {
            Some(index) => {
                let of = &mut self.connections[index as usize];
                let copied = |since| of.as_mut().is_some_and(|c| c.is_duplicate(segment, since));
                if since.is_some_and(copied) {
                    return true;
                }
                if of.as_ref().is_some_and(|c| c.is_replaced_by(segment)) {
                    self.close(index, End::Replaced);
                    self.open(ends, segment)
                } else {
                    index
                }
            }
            // A RST after the end of a connection does not begin another one.
            None if segment.has(flag::RST) => return false,
            None => self.open(ends, segment),
        };
        self.recent = Some((ends, index));
        if let Some(connection) = &mut self.connections[index as usize] {
            let placed = connection.on_segment(segment);
            if let Some(traffic) = &mut self.traffic {
                traffic.on_segment(index as usize, connection, segment, placed);
            }
        }
        false
    }
}

impl ConnectionTable {
    /// Opens a connection, and gives others up if there are too many.
    fn open(&mut self, ends: Ends, segment: &Segment) -> u32 {
        if self.indices.len() >= self.limits.connections.max(1) {
            self.give_up();
        }
        let connection = Some(Connection::new(segment));
        let index = match self.free.pop() {
            Some(index) => {
                self.connections[index as usize] = connection;
                index
            }
            None => {
                self.connections.push(connection);
                (self.connections.len() - 1) as u32
            }
        };
        self.indices.insert(ends, index);
        if let Some(traffic) = &mut self.traffic {
            traffic.open(index as usize);
        }
        index
    }

    /// Ends a connection, and passes its summary on.
    fn close(&mut self, index: u32, end: End) {
        if let Some(connection) = self.connections[index as usize].take() {
            self.indices.remove(&connection.ends);
            self.free.push(index);
            self.recent = None;
            self.ended.push(connection.finish(end));
        }
    }

    /// Ends connections that were quiet for too long; [`LINGER`] suffices for those that are over.
    fn sweep(&mut self, now: Time) {
        self.last_sweep = now;
        for index in 0..self.connections.len() {
            let Some(connection) = &self.connections[index] else { continue };
            let quiet = now.since(connection.last);
            if quiet > self.limits.idle || (quiet > LINGER && connection.is_over()) {
                self.close(index as u32, End::Expired);
            }
        }
    }

    /// Gives up the connections that were quiet longest.
    fn give_up(&mut self) {
        let live = self.connections.iter().zip(0..);
        let mut quiet: Vec<(Time, u32)> =
            live.filter_map(|(c, index)| Some((c.as_ref()?.last, index))).collect();
        let portion = (quiet.len() / GIVE_UP_FRACTION).max(1);
        quiet.select_nth_unstable(portion - 1);
        for &(_, index) in &quiet[..portion] {
            self.close(index, End::GivenUp);
        }
    }
}
