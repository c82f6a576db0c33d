//! The scenario language: file format, defaults, diagnostics and parameter sweeps.
//!
//! ```text
//! file ──Document::parse──▶ Document ──with_overrides──▶ Document
//!      ──outline──▶ Outline ──cell──▶ Cell with a Scenario
//! ```
#![forbid(unsafe_code)]

mod arrivals;
mod columns;
mod data_files;
mod document;
mod endpoint;
mod ends;
mod file;
mod flow_keys;
mod flow_paths;
mod flows;
mod impairments;
mod key_path;
mod kinds;
mod limits;
mod link_rate;
mod links;
mod lower;
mod model;
mod nodes;
mod noise;
mod outline;
mod pairs;
mod parts;
mod peers;
mod plan;
mod rates;
mod raw;
mod reference;
mod replaced_values;
pub mod requirements;
mod resolved;
mod routes;
mod run;
mod schema;
mod stack;
mod steps;
mod sweep;
mod value_forms;

pub use cwnd_apps::WorkloadParams;
pub use cwnd_quantity::{DurationDist, SizeDist};
pub use cwnd_schema::file::{Diagnostic, Diagnostics, Files, MAX_SHOWN, Severity};
pub use document::{Document, MAX_SCENARIO_BYTES, MAX_TRACE_BYTES};
pub use ends::Ends;
pub use impairments::{BurstLoss, Impairments, Tampering};
pub use kinds::{KindInfo, kinds};
pub use link_rate::LinkRate;
pub use model::{FlowGroup, FlowPath, Link, NodePosition, Record, Scenario, Shares, Stack};
pub use noise::{Lateness, Noise};
pub use outline::Outline;
pub use plan::{Axis, AxisValue, Cell, Plan, Refusal};
pub use reference::reference_markdown;
pub use routes::Routes;
pub use run::Run;
pub use schema::json_schema;
pub use stack::StackParts;
