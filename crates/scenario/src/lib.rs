//! What to run: the scenario file, its defaults, its errors and its sweeps.
#![forbid(unsafe_code)]

pub mod dist;
mod model;

pub use dist::{DurationDist, SizeDist};
pub use model::{FlowGroup, Impairments, Link, LinkRate, Run, Scenario, Workload};
