//! What to run: the scenario file, its defaults, its errors and its sweeps.
//!
//! ```text
//! file ──Document::parse──▶ Document ──with_overrides──▶ Document ──plan──▶ Plan: cells, each with a model::Scenario
//! ```
#![forbid(unsafe_code)]

mod diagnostics;
pub mod dist;
mod document;
mod model;
mod tree;

pub use diagnostics::{Diagnostic, Diagnostics, Severity};
pub use dist::{DurationDist, SizeDist};
pub use document::{AxisValue, Cell, Document, Files, Plan};
pub use model::{FlowGroup, Impairments, Link, LinkRate, Run, Scenario, Workload};
