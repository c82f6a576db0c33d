//! The front door: a scenario file, the overrides of the command line, and the cells they make.

use crate::diagnostics::{Diagnostics, Sink, Source};
use crate::model::Scenario;
use crate::tree::{self, Table};

/// Reads the text of a file that a scenario names, such as a trace; the error is a sentence.
///
/// This crate touches no file system: whoever does passes this in, and resolves names against the scenario's folder.
pub type Files<'f> = &'f dyn Fn(&str) -> Result<String, String>;

/// A scenario file that is well-formed TOML, with what the command line overrides.
pub struct Document<'f> {
    pub(crate) sources: Vec<Source>,
    pub(crate) root: Table,
    pub(crate) files: Files<'f>,
}

/// Everything that a document asks to be run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Short name of the scenario.
    pub name: String,
    /// What question it answers.
    pub description: String,
    /// Names of the sweep's axes, in order.
    pub axes: Vec<String>,
    /// One for each combination of the axes' values and each seed.
    pub cells: Vec<Cell>,
    /// What is probably not meant.
    pub warnings: Diagnostics,
}

/// One run of a plan.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Position in the plan.
    pub index: usize,
    /// Where it stands on each axis.
    pub axes: Vec<AxisValue>,
    /// The seed of its random streams.
    pub seed: u64,
    /// What to run.
    pub scenario: Scenario,
    /// The same as a scenario file with every default written out; it reads back to an equal `scenario`.
    pub resolved_toml: String,
    /// Hash of `resolved_toml`, 32 hexadecimal digits.
    pub id: String,
}

/// A cell's place on one axis.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisValue {
    /// The axis.
    pub axis: String,
    /// The value, for people.
    pub label: String,
    /// The value in SI base units, where all of the axis's values are quantities of one unit.
    pub value: Option<f64>,
    /// The unit of `value`: `s`, `bit/s`, `B`, `packets`, `BDP`, or none for a plain number.
    pub unit: Option<&'static str>,
}

impl<'f> Document<'f> {
    /// Reads a scenario file's text. `source_name` is its path: errors show it, and its stem is the default name.
    ///
    /// # Errors
    /// If the text is not TOML; all that is wrong with it as a scenario is told by [`Document::plan`].
    pub fn parse(source_name: &str, text: &str, files: Files<'f>) -> Result<Self, Diagnostics> {
        let sources = vec![Source { name: source_name.to_owned(), text: text.to_owned() }];
        let mut sink = Sink::default();
        let root = tree::parse_document(0, text, &mut sink);
        if sink.has_errors() {
            return Err(sink.finish(&sources));
        }
        Ok(Self { sources, root, files })
    }

    /// Overrides keys, each written `path=value` as in `flow.main.rtt=200 ms`. The value is read as TOML if it is
    /// TOML, else as a bare string.
    ///
    /// # Errors
    /// If an override is not of this form or its path leads nowhere.
    pub fn with_overrides<S: AsRef<str>>(self, overrides: &[S]) -> Result<Self, Diagnostics> {
        let _ = overrides;
        Ok(self)
    }

    /// Overrides `run.seed`.
    ///
    /// # Errors
    /// If the seed is above 2^63 − 1, the largest number that TOML can hold.
    pub fn with_seed(self, seed: u64) -> Result<Self, Diagnostics> {
        self.with_overrides(&[format!("run.seed={seed}")])
    }

    /// Everything that is to be run.
    ///
    /// # Errors
    /// All that is wrong with the scenario, in any of its cells.
    pub fn plan(&self) -> Result<Plan, Diagnostics> {
        let mut sink = Sink::default();
        sink.error(Default::default(), "", "sections are not read yet");
        Err(sink.finish(&self.sources))
    }

    /// The cells of [`Document::plan`].
    ///
    /// # Errors
    /// As [`Document::plan`].
    pub fn cells(&self) -> Result<Vec<Cell>, Diagnostics> {
        self.plan().map(|plan| plan.cells)
    }
}
