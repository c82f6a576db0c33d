//! What a document asks to be run, in the words of whoever runs it.

use cwnd_schema::file::Diagnostics;

use crate::model::Scenario;

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

/// An axis of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Its name.
    pub name: String,
    /// Its values, for people.
    pub labels: Vec<String>,
    /// Its values in SI base units, where all of them are quantities of one unit.
    pub values: Option<Vec<f64>>,
    /// The unit of `values`: `s`, `bit/s`, `B`, `packets`, `BDP`, or none for plain numbers.
    pub unit: Option<&'static str>,
    /// Labels that are counted over others, and which.
    pub over: Vec<(String, Vec<String>)>,
}

/// A key that asks for what some world can't provide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Path of the key, part by part: `["flow", "main", "endpoint", "prr"]`.
    pub key: Vec<String>,
    /// What can't be had.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
}
