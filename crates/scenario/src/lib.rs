//! The scenario language: file format, defaults, diagnostics and parameter sweeps.
//!
//! ```text
//! file ──Document::parse──▶ Document ──with_overrides──▶ Document
//!      ──outline──▶ Outline ──cell──▶ Cell with a Scenario
//! ```
#![forbid(unsafe_code)]

mod arrivals;
mod data_files;
mod document;
mod file;
mod flow_keys;
mod flow_paths;
mod flows;
mod given_classes;
mod headers;
mod impairments;
mod key_path;
mod link_rate;
mod links;
mod lower;
mod model;
mod pairs;
mod reference;
pub mod requirements;
mod resolved;
mod routes;
mod run;
mod stack;
mod sweep;
mod value_forms;

pub use cwnd_apps::WorkloadParams;
pub use cwnd_quantity::{DurationDist, SizeDist};
pub use cwnd_schema::file::{Diagnostic, Diagnostics, Files, MAX_SHOWN, Severity};
pub use document::{Document, MAX_SCENARIO_BYTES, MAX_TRACE_BYTES, Outline};
pub use given_classes::GivenClass;
pub use headers::NOT_THERE;
pub use impairments::{BurstLoss, Impairments, Tampering};
pub use link_rate::LinkRate;
pub use model::{
    Axis, AxisValue, Cell, Ends, FlowGroup, FlowPath, Link, NodePosition, Plan, Record, Refusal,
    Scenario, Shares, Stack,
};
pub use reference::{json_schema, reference_markdown};
pub use routes::Routes;
pub use run::{Lateness, Noise, Run};
pub use stack::StackParts;
pub use value_forms::{KindInfo, kinds};
