//! Open connections of a capture, in bounded memory.

use std::collections::BTreeMap;

use cwnd_quantity::{Duration, Time};

use crate::connection::{Connection, End, Summary};
use crate::headers::{Host, Segment, flag};

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
const PORTION: usize = 8;
/// Time after FIN or RST for which late packets still belong to the connection.
const LINGER: Duration = Duration::from_secs(10);
/// Interval between searches for connections that have ended.
const SWEEP: Duration = Duration::from_secs(10);

type Ends = [Host; 2];

/// Open connections, by their ends.
#[derive(Debug)]
pub struct Watch<F> {
    limits: Limits,
    places: BTreeMap<Ends, u32>,
    connections: Vec<Option<Connection>>,
    free: Vec<u32>,
    /// Ends and index of the connection used last: most packets follow one of the same connection.
    recent: Option<(Ends, u32)>,
    swept: Time,
    over: F,
}

impl<F: FnMut(Summary)> Watch<F> {
    /// Creates a watch without connections; `over` receives the summary of each ended connection.
    pub const fn new(limits: Limits, over: F) -> Self {
        Self {
            limits,
            places: BTreeMap::new(),
            connections: Vec::new(),
            free: Vec::new(),
            recent: None,
            swept: Time::ZERO,
            over,
        }
    }

    /// Processes a segment, and returns `true` if it is only a duplicate of the packet seen `since`
    /// ago.
    #[inline]
    pub fn take(&mut self, segment: &Segment, since: Option<Duration>) -> bool {
        let ends = if segment.from < segment.to {
            [segment.from, segment.to]
        } else {
            [segment.to, segment.from]
        };
        if segment.at.since(self.swept) > SWEEP {
            self.sweep(segment.at);
        }
        let place = match self.recent {
            Some((last, place)) if last == ends => Some(place),
            _ => self.places.get(&ends).copied(),
        };
        let place = match place {
            Some(place) => {
                let of = &mut self.connections[place as usize];
                let copied = |since| of.as_mut().is_some_and(|c| c.is_duplicate(segment, since));
                if since.is_some_and(copied) {
                    return true;
                }
                if of.as_ref().is_some_and(|c| c.is_replaced_by(segment)) {
                    self.close(place, End::Replaced);
                    self.open(ends, segment)
                } else {
                    place
                }
            }
            // A RST after the end of a connection does not begin another one.
            None if segment.has(flag::RST) => return false,
            None => self.open(ends, segment),
        };
        self.recent = Some((ends, place));
        if let Some(connection) = &mut self.connections[place as usize] {
            connection.take(segment);
        }
        false
    }

    /// Ends all connections: the capture is over.
    pub fn finish(mut self) {
        for place in 0..self.connections.len() {
            self.close(place as u32, End::Open);
        }
    }

    /// Opens a connection, and gives others up if there are too many.
    fn open(&mut self, ends: Ends, segment: &Segment) -> u32 {
        if self.places.len() >= self.limits.connections.max(1) {
            self.give_up();
        }
        let connection = Some(Connection::new(segment));
        let place = match self.free.pop() {
            Some(place) => {
                self.connections[place as usize] = connection;
                place
            }
            None => {
                self.connections.push(connection);
                (self.connections.len() - 1) as u32
            }
        };
        self.places.insert(ends, place);
        place
    }

    /// Ends a connection, and passes its summary on.
    fn close(&mut self, place: u32, end: End) {
        if let Some(connection) = self.connections[place as usize].take() {
            self.places.remove(&connection.ends);
            self.free.push(place);
            self.recent = None;
            (self.over)(connection.finish(end));
        }
    }

    /// Ends connections that are over, or were quiet for too long.
    fn sweep(&mut self, now: Time) {
        self.swept = now;
        for place in 0..self.connections.len() {
            let Some(connection) = &self.connections[place] else { continue };
            let quiet = now.since(connection.last);
            if quiet > self.limits.idle || (quiet > LINGER && connection.is_over()) {
                self.close(place as u32, End::Expired);
            }
        }
    }

    /// Gives up the connections that were quiet longest.
    fn give_up(&mut self) {
        let live = self.connections.iter().zip(0..);
        let mut quiet: Vec<(Time, u32)> =
            live.filter_map(|(c, place)| Some((c.as_ref()?.last, place))).collect();
        let portion = (quiet.len() / PORTION).max(1);
        quiet.select_nth_unstable(portion - 1);
        for &(_, place) in &quiet[..portion] {
            self.close(place, End::GivenUp);
        }
    }
}
