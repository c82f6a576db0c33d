//! Records of a run: rows stored as columns, histograms, and a digest of all tables.
#![forbid(unsafe_code)]

mod activity;
mod append;
mod histogram;
mod optional;
mod record;
mod records;
mod rows;
mod sketch;
mod table;
mod values;

pub use activity::Activity;
pub use histogram::Histogram;
pub use optional::Optional;
pub use records::Records;
pub use rows::{
    FlowRow, FlowSampleRow, FlowSamples, Flows, LinkRow, LinkSampleRow, LinkSamples, Links,
    QueueDelayRow, QueueDelays, ReasonRow, Reasons, RequestRow, Requests, SketchRow, Sketches,
    Unrecorded, UnrecordedRow,
};
pub use sketch::{Bucket, Sketch};
pub use table::{Column, ColumnData, Digest, Name, Table};
