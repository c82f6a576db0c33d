//! A plan that builds its cells on demand: the cells of a sweep of a million runs are never all in
//! memory.

use std::collections::BTreeSet;

use cwnd_quantity::Duration;
use cwnd_schema::file::{Contents, Context, Diagnostics, Sink, Table, locate};

use crate::data_files::inlined;
use crate::lower;
use crate::model::Scenario;
use crate::plan::{Axis, Cell, Refusal};
use crate::resolved::resolved;
use crate::sweep::Sweep;

/// A checked document: its axes, diagnostics and number of runs; cells are built on demand.
#[derive(Debug)]
pub struct Outline {
    /// Short name of the checked scenario.
    pub name: String,
    /// Question that the scenario answers.
    pub description: String,
    /// The sweep's axes, in order.
    pub axes: Vec<Axis>,
    /// Warnings: settings that are valid but probably not intended.
    pub warnings: Diagnostics,
    /// Notes on defaults and departures that readers of the results should know.
    pub notes: Diagnostics,
    pub(crate) blueprint: Blueprint,
}

/// Input for building cells: a document that was found valid in each combination of its sweep.
#[derive(Debug)]
pub(crate) struct Blueprint {
    /// The file without `[sweep]`.
    pub root: Table,
    /// Default name of the scenario: the stem of the file's name.
    pub stem: String,
    pub sweep: Sweep,
    /// Contents of the files that it names, as read when they were checked.
    pub contents: Contents,
    pub points: Vec<Point>,
}

/// Facts of a combination that are kept, so that it need not be read again for them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    pub duration: Duration,
}

impl Outline {
    /// Number of runs: one for each combination of the axes' values and each seed.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.blueprint.points.len() * self.repeat()
    }

    /// Number of runs of each combination; their indices are consecutive.
    #[must_use]
    pub fn repeat(&self) -> usize {
        usize::try_from(self.blueprint.sweep.repeat).unwrap_or(usize::MAX)
    }

    /// Simulated time of run `index`; zero if there is no such run.
    #[must_use]
    pub fn duration(&self, index: usize) -> Duration {
        self.blueprint.points.get(index / self.repeat()).map_or(Duration(0), |p| p.duration)
    }

    /// Builds the cell of run `index`; `None` if there is no such run.
    #[must_use]
    pub fn cell(&self, index: usize) -> Option<Cell> {
        let (combination, seed) = (index / self.repeat(), index % self.repeat());
        let read = self.blueprint.read(combination)?;
        Some(self.blueprint.repeat(&read, combination, seed, index))
    }

    /// Returns the requests that a world (simulator or Linux) refuses in any combination, as errors
    /// at the keys that make them, without [`Self::warnings`]. `refuse` lists the refusals of one
    /// scenario.
    #[must_use]
    pub fn refused(&self, refuse: impl Fn(&Scenario) -> Vec<Refusal>) -> Diagnostics {
        let mut problems = Sink::default();
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
                // Later combinations often repeat a refusal with another remedy, as the help may
                // name axis values; only the first is reported.
                let span = locate(&root, &key);
                if !known.insert((span, key.clone(), message.clone())) {
                    continue;
                }
                let problem = sink.error(span, key.join("."), message);
                if let Some(help) = help {
                    problem.help(help);
                }
            }
            problems.merge(sink);
        }
        self.warnings.beside(problems)
    }

    /// Builds all cells.
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
    /// Reads a combination again; the check has already found it valid.
    fn read(&self, combination: usize) -> Option<lower::Lowered> {
        if combination >= self.points.len() {
            return None;
        }
        let files = |name: &str| Err(format!("{name} was not read before"));
        let mut cx = Context::new(&files, inlined);
        cx.contents = self.contents.clone();
        let mut root = self.root.clone();
        self.sweep.apply(combination, &mut root, &mut cx.sink);
        lower::lower(&root, &self.stem, &mut cx)
    }

    fn repeat(&self, read: &lower::Lowered, combination: usize, seed: usize, index: usize) -> Cell {
        let mut scenario = read.scenario.clone();
        scenario.run.seed += seed as u64;
        let (resolved_toml, id) = resolved(&scenario, read.dumbbell);
        Cell {
            index,
            axes: self.sweep.labels(combination),
            seed: scenario.run.seed,
            id,
            scenario,
            resolved_toml,
        }
    }
}
