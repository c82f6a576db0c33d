//! A plan whose cells are made when they are asked for, so that a sweep of a million runs takes no memory.

use std::collections::BTreeSet;

use cwnd_quantity::Duration;
use cwnd_schema::file::{Contents, Context, Diagnostics, Sink, Table, locate};

use crate::cell;
use crate::model::Scenario;
use crate::plan::{Axis, Cell, Refusal};
use crate::resolved::{content_hash, resolved};
use crate::sweep::Sweep;
use crate::tables::inlined;

/// Everything that a document asks to be run.
#[derive(Debug)]
pub struct Outline {
    /// Short name of the scenario.
    pub name: String,
    /// What question it answers.
    pub description: String,
    /// The sweep's axes, in order.
    pub axes: Vec<Axis>,
    /// What is probably not meant.
    pub warnings: Diagnostics,
    /// Defaults and departures that readers of the results should know.
    pub notes: Diagnostics,
    pub(crate) blueprint: Blueprint,
}

/// What cells are made from: a document that was found valid in each of its combinations.
#[derive(Debug)]
pub(crate) struct Blueprint {
    /// The file without its sweep.
    pub root: Table,
    /// Its default name.
    pub stem: String,
    pub sweep: Sweep,
    /// Files that it names, as they were when they were checked.
    pub contents: Contents,
    pub points: Vec<Point>,
}

/// What is known of a combination without reading it again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    pub duration: Duration,
}

impl Outline {
    /// How many runs there are: one for each combination of the axes' values and each seed.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.blueprint.points.len() * self.repeat()
    }

    /// How many runs of each combination there are; they are next to each other.
    #[must_use]
    pub fn repeat(&self) -> usize {
        usize::try_from(self.blueprint.sweep.repeat).unwrap_or(usize::MAX)
    }

    /// How long run `index` is; zero if there is none.
    #[must_use]
    pub fn duration(&self, index: usize) -> Duration {
        self.blueprint.points.get(index / self.repeat()).map_or(Duration(0), |p| p.duration)
    }

    /// Makes the cell of run `index`.
    #[must_use]
    pub fn cell(&self, index: usize) -> Option<Cell> {
        let (combination, seed) = (index / self.repeat(), index % self.repeat());
        let read = self.blueprint.read(combination)?;
        Some(self.blueprint.repeat(&read, combination, seed, index))
    }

    /// What a world can't provide of any of the combinations, with the places in the file where it is asked for.
    #[must_use]
    pub fn refused(&self, refuse: impl Fn(&Scenario) -> Vec<Refusal>) -> Diagnostics {
        let mut told = Sink::default();
        let mut known = BTreeSet::new();
        for combination in 0..self.blueprint.points.len() {
            let Some(read) = self.blueprint.read(combination) else { break };
            let refusals = refuse(&read.scenario);
            if refusals.is_empty() {
                continue;
            }
            let mut sink = Sink::default();
            let mut root = self.blueprint.root.clone();
            self.blueprint.sweep.apply(combination, &mut root, &mut sink);
            for Refusal { key, message, help } in refusals {
                // A remedy may name values that an axis sets: the first says enough.
                let span = locate(&root, &key);
                if !known.insert((span, key.clone(), message.clone())) {
                    continue;
                }
                let problem = sink.error(span, key.join("."), message);
                if let Some(help) = help {
                    problem.help(help);
                }
            }
            told.merge(sink);
        }
        self.warnings.beside(told)
    }

    /// Makes all cells.
    #[must_use]
    pub fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::with_capacity(self.runs());
        for combination in 0..self.blueprint.points.len() {
            let Some(read) = self.blueprint.read(combination) else { break };
            for seed in 0..self.repeat() {
                cells.push(self.blueprint.repeat(&read, combination, seed, cells.len()));
            }
        }
        cells
    }
}

impl Blueprint {
    /// Reads a combination again; it was found valid before.
    fn read(&self, combination: usize) -> Option<cell::Read> {
        if combination >= self.points.len() {
            return None;
        }
        let files = |name: &str| Err(format!("{name} was not read before"));
        let mut cx = Context::new(&files, inlined);
        cx.contents = self.contents.clone();
        let mut root = self.root.clone();
        self.sweep.apply(combination, &mut root, &mut cx.sink);
        cell::read(&root, &self.stem, &mut cx)
    }

    fn repeat(&self, read: &cell::Read, combination: usize, seed: usize, index: usize) -> Cell {
        let mut scenario = read.scenario.clone();
        scenario.run.seed += seed as u64;
        let resolved_toml = resolved(&scenario, read.dumbbell);
        Cell {
            index,
            axes: self.sweep.labels(combination),
            seed: scenario.run.seed,
            id: content_hash(&resolved_toml),
            scenario,
            resolved_toml,
        }
    }
}
