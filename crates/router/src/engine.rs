//! The router without input or output: packets and the time go in, packets come out when they are due.

use cwnd_units::{Duration, Time};

use crate::capture::Capture;
use crate::config::Config;
use crate::lane::Lane;
use crate::report::{DirectionReport, Report, Work};

/// One of the two sides of a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Where the first direction starts.
    A,
    /// Where it ends.
    B,
}

impl Side {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::A, Self::B];

    /// The other one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }
}

/// A router. Its time starts at zero, never goes back, and may come late: what was due in the meantime is then done as of
/// when it was due, so that a late call delays packets but changes neither rates nor decisions of queues.
#[derive(Debug)]
pub struct Engine {
    /// The first takes what comes from A, the second what comes from B.
    lanes: [Lane; 2],
    capture: Option<Capture>,
    config: Config,
}

impl Engine {
    /// An empty router.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self { lanes: [0, 1].map(|i| Lane::new(i, config)), capture: None, config: config.clone() }
    }

    /// The same router; what passes or ends is written to `capture`.
    #[must_use]
    pub fn with_capture(mut self, capture: Capture) -> Self {
        self.lanes.iter_mut().for_each(Lane::keep_verdicts);
        Self { capture: Some(capture), ..self }
    }

    /// A packet comes in at a side. Anything may be in it; what can't be forwarded is counted.
    #[inline]
    pub fn arrive(&mut self, now: Time, at: Side, bytes: &[u8]) {
        let lane = &mut self.lanes[at as usize];
        lane.advance(now, self.capture.as_mut());
        lane.arrive(now, bytes, self.capture.as_mut());
    }

    /// A packet that leaves at a side, now or before: when it was due, and its bytes until the next call.
    #[inline]
    pub fn depart(&mut self, now: Time, at: Side) -> Option<(Time, &[u8])> {
        let lane = &mut self.lanes[at.other() as usize];
        lane.advance(now, self.capture.as_mut());
        lane.depart(now)
    }

    /// When to ask [`Engine::depart`] again if nothing arrives before.
    #[inline]
    #[must_use]
    pub fn next(&self) -> Time {
        self.lanes[0].next_exit().min(self.lanes[1].next_exit())
    }

    /// Packets inside.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.lanes.iter().map(Lane::held).sum()
    }

    /// What happened before `end`; `work` is what the loop around it says of itself. The capture is ended.
    ///
    /// # Errors
    /// Those of the capture's output.
    pub fn finish(mut self, end: Time, work: Work) -> std::io::Result<Report> {
        for lane in &mut self.lanes {
            // What would happen at the end is behind it, as in the simulator.
            lane.advance(Time(end.0.saturating_sub(1)), self.capture.as_mut());
        }
        if let Some(capture) = self.capture {
            capture.finish()?;
        }
        let mut samples = Vec::with_capacity(2);
        let directions = [0, 1].map(|i| {
            let lane = &mut self.lanes[i];
            let of = &self.config.directions[i];
            samples.push(lane.take_samples());
            let (total, before) = lane.counters(end);
            DirectionReport {
                name: of.name.clone(),
                rate: of.rate.clone(),
                total,
                before,
                counted: lane.counted_by_queue(),
                qdelay: lane.qdelay(),
                queued: lane.queued(),
                held: lane.held(),
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
