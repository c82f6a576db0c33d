//! All connections of a capture: those that go on, in bounded memory, and what was found of those that are over.

use std::collections::BTreeMap;

use cwnd_quantity::{Duration, Time};

use crate::connection::{Connection, End, Summary};
use crate::headers::{Host, Segment, flag};

/// What bounds the memory.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections that go on at once; the ones that were quiet longest are given up.
    pub connections: usize,
    /// A connection is over when nothing came for so long.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 200_000, idle: Duration::from_secs(600) }
    }
}

/// One of so many connections is given up at once, so that looking for them is rare.
const PORTION: usize = 8;
/// After FIN or RST, what is still under way belongs to the connection for so long.
const LINGER: Duration = Duration::from_secs(10);
/// How often the quiet ones are looked for.
const SWEEP: Duration = Duration::from_secs(10);

type Ends = [Host; 2];

/// The connections of a capture.
#[derive(Debug)]
pub struct Watch<F> {
    limits: Limits,
    places: BTreeMap<Ends, u32>,
    connections: Vec<Option<Connection>>,
    free: Vec<u32>,
    /// The place that was used last: most packets follow one of their own.
    recent: Option<(Ends, u32)>,
    swept: Time,
    over: F,
}

impl<F: FnMut(Summary)> Watch<F> {
    /// No connection yet; `over` is told of each when it is over.
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

    /// Takes a segment in, unless it is a duplicate: the same packet was seen `since` ago. `true`
    /// if it is one.
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
            // What follows the end of a connection does not begin one.
            None if segment.has(flag::RST) => return false,
            None => self.open(ends, segment),
        };
        self.recent = Some((ends, place));
        if let Some(connection) = &mut self.connections[place as usize] {
            connection.take(segment);
        }
        false
    }

    /// No more segments come.
    pub fn finish(mut self) {
        for place in 0..self.connections.len() {
            self.close(place as u32, End::Open);
        }
    }

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

    fn close(&mut self, place: u32, end: End) {
        if let Some(connection) = self.connections[place as usize].take() {
            self.places.remove(&connection.ends);
            self.free.push(place);
            self.recent = None;
            (self.over)(connection.finish(end));
        }
    }

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

    /// The quietest part goes.
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
