//! The runs that a document asks for, as data for the programs that run them.

use cwnd_schema::file::Diagnostics;

use crate::model::Scenario;

/// All runs of a document, with every cell built.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Short name of the scenario.
    pub name: String,
    /// Question that the scenario answers.
    pub description: String,
    /// Names of the sweep's axes, in order.
    pub axes: Vec<String>,
    /// One for each combination of the axes' values and each seed.
    pub cells: Vec<Cell>,
    /// Warnings: settings that are valid but probably not intended.
    pub warnings: Diagnostics,
}

/// One run of a plan.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Position in the plan.
    pub index: usize,
    /// Its value on each axis.
    pub axes: Vec<AxisValue>,
    /// Seed of its random streams.
    pub seed: u64,
    /// Fully resolved scenario of the run.
    pub scenario: Scenario,
    /// The scenario as a file with every default written out; it reads back to an equal `scenario`.
    pub resolved_toml: String,
    /// Hash of `resolved_toml` with the former names of renamed keys, 32 hexadecimal digits.
    pub id: String,
}

/// The value of a cell on one axis.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisValue {
    /// Name of the axis that the value is on.
    pub axis: String,
    /// Label of the value, for display.
    pub label: String,
    /// The value in SI base units, if all values of the axis are quantities of one unit.
    pub value: Option<f64>,
    /// The unit of `value`: `s`, `bit/s`, `B`, `packets`, `BDP`, or none for a plain number.
    pub unit: Option<&'static str>,
}

/// An axis of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Name of the axis, as in `[sweep.axis.NAME]`.
    pub name: String,
    /// Labels of its values, for display.
    pub labels: Vec<String>,
    /// Its values in SI base units, if all of them are quantities of one unit.
    pub values: Option<Vec<f64>>,
    /// The unit of `values`: `s`, `bit/s`, `B`, `packets`, `BDP`, or none for plain numbers.
    pub unit: Option<&'static str>,
    /// Baselines of the axis: a label, and the labels over which its gain is computed.
    pub over: Vec<(String, Vec<String>)>,
}

/// A key that asks for something that a world (simulator or Linux) does not support.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Path of the key, part by part: `["flow", "main", "endpoint", "prr"]`.
    pub key: Vec<String>,
    /// Message that names the unsupported setting.
    pub message: String,
    /// Remedy, such as a supported value.
    pub help: Option<String>,
}
