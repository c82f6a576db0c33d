//! Router without input and output: takes packets and the time, and returns packets when they are
//! due.

use cwnd_quantity::{Duration, Time};

use crate::capture::{Capture, Point};
use crate::config::{Config, Side};
use crate::direction::DirectionState;
use crate::live::Live;
use crate::report::{DirectionReport, Report, Work};

/// A router in virtual time. Its time starts at zero and never decreases. After a late call, it
/// does overdue work as of the time when it was due. A late call delays packets, but changes
/// neither rates nor decisions of queues.
#[derive(Debug)]
pub struct Engine {
    /// State of both directions, from A to B and from B to A.
    directions: [DirectionState; 2],
    /// `true` if a direction has a messenger, so that sources may receive messages.
    has_messenger: bool,
    capture: Option<Capture>,
    config: Config,
}

impl Engine {
    /// Creates an empty router.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        let directions = [0, 1].map(|i| DirectionState::new(i, config));
        let has_messenger = directions.iter().any(DirectionState::has_messenger);
        Self { directions, has_messenger, capture: None, config: config.clone() }
    }

    /// Sets the capture of the packets that pass its point or are dropped there.
    #[must_use]
    pub fn with_capture(mut self, capture: Capture) -> Self {
        if capture.point() == Point::Line {
            self.directions.iter_mut().for_each(DirectionState::keep_verdicts);
        }
        Self { capture: Some(capture), ..self }
    }

    /// Sets where to publish each row of the time series.
    #[must_use]
    pub fn with_live(mut self, live: &Live) -> Self {
        self.directions.iter_mut().for_each(|direction| direction.publish(live));
        self
    }

    /// Takes a packet that arrives at a side. It may hold any bytes; what cannot be forwarded is
    /// counted.
    #[inline]
    pub fn arrive(&mut self, now: Time, at: Side, bytes: &[u8]) {
        self.advance(at as usize, now);
        let direction = &mut self.directions[at as usize];
        direction.arrive(now, bytes, on(Point::Line, &mut self.capture));
        if let Some(capture) = on(Point::At(at), &mut self.capture) {
            capture.passed(at as usize, now, bytes, None);
        }
    }

    /// Removes a packet or message that has left at a side by now. Returns when it was due, and its
    /// bytes, which are valid until the next call.
    #[inline]
    pub fn depart(&mut self, now: Time, at: Side) -> Option<(Time, &[u8])> {
        let direction = at.other() as usize;
        self.advance(direction, now);
        let is_message = self.has_messenger && self.message_is_first(now, at);
        let (due, bytes) = if is_message {
            self.directions[at as usize].message()?
        } else {
            self.directions[direction].depart(now)?
        };
        if let Some(capture) = on(Point::At(at), &mut self.capture) {
            capture.passed(direction, now, bytes, None);
        }
        Some((due, bytes))
    }

    /// `true` if the next packet to leave at a side is a message to a source there. At equal times
    /// it comes last, as in the simulator.
    #[cold]
    fn message_is_first(&mut self, now: Time, at: Side) -> bool {
        self.advance(at as usize, now);
        let message = self.directions[at as usize].next_message();
        message <= now && message < self.directions[at.other() as usize].next_arrival()
    }

    /// Advances one direction to `now`. If lines are captured, it advances both in time order,
    /// because a file may have both.
    #[inline]
    fn advance(&mut self, direction: usize, now: Time) {
        match on(Point::Line, &mut self.capture) {
            None => self.directions[direction].advance(now, None),
            Some(capture) => advance_in_order(&mut self.directions, now, capture),
        }
    }

    /// Returns when [`Engine::depart`] must be called again if nothing arrives before.
    #[inline]
    #[must_use]
    pub fn next(&self) -> Time {
        self.directions[0].next_exit().min(self.directions[1].next_exit())
    }

    /// Returns the number of packets and messages inside.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.directions.iter().map(|direction| direction.held() + direction.messages()).sum()
    }

    /// Reports on the run until `end`, and closes the capture. `work` is the account of the loop
    /// around the engine.
    ///
    /// # Errors
    /// Those of the capture's output.
    pub fn finish(mut self, end: Time, work: Work) -> std::io::Result<Report> {
        // Events at the end itself are excluded, as in the simulator.
        let last = Time(end.0.saturating_sub(1));
        (0..self.directions.len()).for_each(|direction| self.advance(direction, last));
        if let Some(capture) = self.capture {
            capture.finish()?;
        }
        let mut samples = Vec::with_capacity(2);
        let directions = [0, 1].map(|i| {
            let direction = &mut self.directions[i];
            let of = &self.config.directions[i];
            samples.push(direction.take_samples());
            let (total, before) = direction.counters(end);
            DirectionReport {
                name: of.name.clone(),
                rate: of.rate.clone(),
                total,
                before,
                counted: direction.counted_by_name(),
                quenches: direction.quenches(),
                qdelay: direction.qdelay(),
                waits: direction.waits().to_vec(),
                queued: direction.queued(),
                held: direction.held() - direction.before_queue(),
                from_far_receivers: direction.before_queue(),
                lateness: work.lateness[i].clone(),
                undelivered: work.undelivered[i],
                lost_before: work.lost_before[i],
            }
        });
        let warmup = Time(self.config.warmup.0).min(end);
        let window: Duration = end.since(warmup);
        Ok(Report::new(directions, samples, &work, window, end, warmup, self.config.limits))
    }
}

#[cold]
fn advance_in_order(directions: &mut [DirectionState; 2], now: Time, capture: &mut Capture) {
    loop {
        let due = [directions[0].due(), directions[1].due()];
        let first = usize::from(due[1] < due[0]);
        if due[first] > now || due[first] == Time::NEVER {
            return;
        }
        directions[first].advance(now.min(due[1 - first]), Some(capture));
    }
}

/// Returns the capture if it is at this point.
#[inline]
fn on(point: Point, capture: &mut Option<Capture>) -> Option<&mut Capture> {
    capture.as_mut().filter(|capture| capture.point() == point)
}
