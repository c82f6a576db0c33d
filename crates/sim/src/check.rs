//! Check mode: compares two runs of one scenario step by step, including their random draws.

use core::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use cwnd_quantity::{Draw, DrawLog, Streams, Time, splitmix64};
use cwnd_scenario::Scenario;
use cwnd_tables::Records;

use crate::event::Event;
use crate::world::{Cancelled, EVENTS_BETWEEN_CHECKS, World};

/// Draws of step 0 that are hashed between two calls of `go_on`: a million flows draw millions of
/// numbers at the start.
const DRAWS_BETWEEN_CHECKS: usize = 1 << 16;

/// A run that reports each step: its time, its event and its random draws.
#[derive(Debug)]
pub struct Witness {
    world: World,
    log: Arc<Draws>,
    step: Step,
}

/// Draws since the last step.
#[derive(Debug, Default)]
struct Draws(Mutex<Vec<Draw>>);

impl Draws {
    /// Moves them into `into`, in order, replacing its contents.
    fn take(&self, into: &mut Vec<Draw>) {
        into.clear();
        core::mem::swap(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), into);
    }
}

impl DrawLog for Draws {
    /// The lock is never contended, as a run is one thread.
    fn add(&self, draw: Draw) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(draw);
    }
}

/// A step of a run: the building of the world, or one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Number of the step; 0 is the building of the world, 1 the first event.
    pub index: u64,
    /// Simulated time.
    pub at: Time,
    /// Random numbers drawn in the step, in order.
    pub draws: Vec<Draw>,
    /// Hash of this step and all earlier ones.
    pub chain: u64,
    /// Event of the step; `None` for the building of the world.
    event: Option<Event>,
}

/// Result of two equal runs.
#[derive(Clone, Debug)]
pub struct Checked {
    /// Records, equal to those of an unchecked run.
    pub records: Records,
    /// Hash of all steps.
    pub chain: u64,
}

/// Reason for which a check has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckError {
    /// The caller stopped it.
    Cancelled,
    /// The two runs differ.
    Diverged(Box<Divergence>),
}

/// First difference between two runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// Last step that both runs share, without its draws; `None` if the building of the world
    /// differs.
    pub last_common: Option<Step>,
    /// The differing step of each run, `None` for a run that was over. Both are `None` if all steps
    /// agree and only the records differ.
    pub steps: [Option<Step>; 2],
}

/// Runs two witnesses step by step as long as they agree. `go_on` receives the simulated time as in
/// [`Witness::build`], then every 16 steps.
///
/// # Errors
/// [`CheckError::Diverged`] if the runs differ, [`CheckError::Cancelled`] if `go_on` returned
/// `false`.
pub fn compare(
    one: &mut Witness,
    other: &mut Witness,
    mut go_on: impl FnMut(Time) -> bool,
) -> Result<Checked, CheckError> {
    for run in [&mut *one, &mut *other] {
        run.build(&mut go_on).map_err(|Cancelled| CheckError::Cancelled)?;
    }
    let mut before = None;
    // The hash covers all parts of a step.
    while one.step.chain == other.step.chain {
        let step = &one.step;
        if step.index.is_multiple_of(EVENTS_BETWEEN_CHECKS) && !go_on(step.at) {
            return Err(CheckError::Cancelled);
        }
        // The hash stands for the common past; the last common step is kept for the report.
        let (index, at, event, chain) = (step.index, step.at, step.event, step.chain);
        before = Some(Step { index, at, event, chain, draws: Vec::new() });
        match (one.advance(), other.advance()) {
            (true, true) => {}
            (false, false) => return compare_records(one, other, before),
            (a, b) => {
                let steps = [a.then(|| one.step.clone()), b.then(|| other.step.clone())];
                return Err(diverged(before, steps));
            }
        }
    }
    Err(diverged(before, [Some(one.step.clone()), Some(other.step.clone())]))
}

fn compare_records(
    one: &mut Witness,
    other: &mut Witness,
    last: Option<Step>,
) -> Result<Checked, CheckError> {
    let chain = one.step.chain;
    let (records, others) = (one.world.finish(), other.world.finish());
    if records.digest() == others.digest() {
        Ok(Checked { records, chain })
    } else {
        Err(diverged(last, [None, None]))
    }
}

fn diverged(last_common: Option<Step>, steps: [Option<Step>; 2]) -> CheckError {
    CheckError::Diverged(Box::new(Divergence { last_common, steps }))
}

impl Witness {
    /// Creates a run of a scenario whose world is not built.
    #[must_use]
    pub fn new(scenario: Arc<Scenario>) -> Self {
        let log = Arc::<Draws>::default();
        let random = Streams::logged(scenario.run.seed, Arc::clone(&log) as _);
        Self {
            world: World::with_streams(scenario, random),
            log,
            step: Step { index: 0, at: Time::ZERO, event: None, draws: Vec::new(), chain: 0 },
        }
    }

    /// Takes step 0, which builds the world. `go_on` is called as in [`World::build`], and every
    /// 65,536 draws that are hashed.
    ///
    /// # Errors
    /// [`Cancelled`] if `go_on` returned `false`.
    pub fn build(&mut self, mut go_on: impl FnMut(Time) -> bool) -> Result<(), Cancelled> {
        self.world.build(&mut go_on)?;
        self.note(go_on)
    }

    /// The step that was taken last; step 0, with hash 0, before [`Witness::build`].
    #[must_use]
    pub const fn step(&self) -> &Step {
        &self.step
    }

    /// Takes a step; returns `false` when the run is over.
    pub fn advance(&mut self) -> bool {
        let Some((at, event)) = self.world.next_event() else { return false };
        self.world.handle(at, event);
        self.step.index += 1;
        self.step.at = at;
        self.step.event = Some(event);
        let _never_cancelled = self.note(|_| true);
        true
    }

    fn note(&mut self, mut go_on: impl FnMut(Time) -> bool) -> Result<(), Cancelled> {
        let step = &mut self.step;
        self.log.take(&mut step.draws);
        let event = step.event.map_or(0, Event::code);
        let mut chain = step.chain;
        for word in [step.at.0, event, step.draws.len() as u64] {
            chain = mix(chain ^ word);
        }
        for draws in step.draws.chunks(DRAWS_BETWEEN_CHECKS) {
            if !go_on(step.at) {
                return Err(Cancelled);
            }
            for draw in draws {
                let name = draw.stream.bytes().fold(0, |h, b| mix(h ^ u64::from(b)));
                chain = mix(mix(chain ^ name) ^ draw.bits);
            }
        }
        step.chain = chain;
        Ok(())
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.event {
            None => f.write_str("the world is built")?,
            Some(event) => write!(f, "event {} at {} ns: {event}", self.index, self.at.0)?,
        }
        for (i, draw) in self.draws.iter().enumerate() {
            let lead = if i == 0 { "; drawn: " } else { ", " };
            write!(f, "{lead}{} {:016x}", draw.stream, draw.bits)?;
        }
        Ok(())
    }
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.steps == [None, None] {
            return f.write_str("two runs took the same steps, but what they recorded differs");
        }
        writeln!(f, "two runs of the same scenario and seed differ")?;
        if let Some(step) = &self.last_common {
            writeln!(f, "  last in common: {step}")?;
        }
        let show = |step: &Option<Step>| {
            step.as_ref().map_or_else(|| "the run is over".to_owned(), Step::to_string)
        };
        writeln!(f, "  one run:        {}", show(&self.steps[0]))?;
        write!(f, "  the other:      {}", show(&self.steps[1]))
    }
}

/// A bijection in which each input bit affects all output bits.
const fn mix(mut word: u64) -> u64 {
    splitmix64(&mut word)
}
