use std::collections::VecDeque;

use cwnd_scenario::Impairments;
use cwnd_units::{Duration, Rng, Time};

use crate::packet::Packet;

/// Propagation: what enters leaves a constant delay later, in order; and the random faults of a link.
///
/// Order within a pipe is kept, so it needs one pending event however many packets it holds. A packet that is held
/// back for reordering goes through a second, slower pipe.
#[derive(Debug)]
pub struct Pipe {
    delay: Duration,
    ring: VecDeque<(Time, Packet)>,
    last_exit: Time,
    faults: Option<Box<Faults>>,
    counters: PipeCounters,
}

#[derive(Debug)]
struct Faults {
    loss: f64,
    jitter: Duration,
    reorder: f64,
    /// The pipe for packets that are held back.
    late: u32,
    rng: Rng,
}

/// What a pipe counted, over the whole run.
#[derive(Clone, Copy, Debug, Default)]
pub struct PipeCounters {
    /// Packets that came in.
    pub entered: u64,
    /// Those of them with payload.
    pub entered_data: u64,
    /// Packets that were lost.
    pub lost: u64,
    /// Those of them with payload.
    pub lost_data: u64,
    /// Packets that left at the other end.
    pub left: u64,
}

/// What becomes of a packet that enters.
#[derive(Debug)]
pub enum Entry {
    /// It is under way behind others.
    Queued,
    /// It is the first in the pipe and arrives then.
    First(Time),
    /// It is lost.
    Lost,
    /// It is held back: it belongs into this other pipe.
    Late(u32, Packet),
}

impl Pipe {
    /// A pipe that loses nothing.
    pub fn new(delay: Duration) -> Self {
        Self {
            delay,
            ring: VecDeque::new(),
            last_exit: Time::ZERO,
            faults: None,
            counters: PipeCounters::default(),
        }
    }

    /// Adds a link's faults; `late` is the pipe for packets that are held back.
    pub fn with_faults(mut self, impairments: &Impairments, late: u32, rng: Rng) -> Self {
        self.faults = Some(Box::new(Faults {
            loss: impairments.loss,
            jitter: impairments.jitter,
            reorder: impairments.reorder,
            late,
            rng,
        }));
        self
    }

    /// A packet enters.
    #[inline]
    pub fn enter(&mut self, now: Time, packet: Packet) -> Entry {
        let data = u64::from(packet.segment.len > 0);
        self.counters.entered += 1;
        self.counters.entered_data += data;
        let mut exit = now + self.delay;
        if let Some(faults) = &mut self.faults {
            // The draws are made whether they matter or not, so that one fault's setting leaves the others' as they were.
            let (lost, late) = (faults.rng.chance(faults.loss), faults.rng.chance(faults.reorder));
            let jitter = faults.rng.duration_up_to(faults.jitter);
            if lost {
                self.counters.lost += 1;
                self.counters.lost_data += data;
                return Entry::Lost;
            }
            if late {
                return Entry::Late(faults.late, packet);
            }
            exit += jitter;
        }
        exit = exit.max(self.last_exit);
        self.last_exit = exit;
        self.ring.push_back((exit, packet));
        if self.ring.len() == 1 { Entry::First(exit) } else { Entry::Queued }
    }

    /// The first packet leaves.
    #[inline]
    pub fn leave(&mut self) -> Option<Packet> {
        let (_, packet) = self.ring.pop_front()?;
        self.counters.left += 1;
        Some(packet)
    }

    /// When the next packet leaves.
    #[inline]
    pub fn next_exit(&self) -> Option<Time> {
        self.ring.front().map(|&(exit, _)| exit)
    }

    /// Packets inside.
    pub fn held(&self) -> u64 {
        self.ring.len() as u64
    }

    /// What it counted.
    pub const fn counters(&self) -> PipeCounters {
        self.counters
    }

    /// Gives the pipe to another flow with another delay.
    pub const fn set_delay(&mut self, delay: Duration) {
        self.delay = delay;
    }
}
