//! Records of a run: rows stored as columns, histograms, and a digest of all tables.
#![forbid(unsafe_code)]

mod histogram;
mod records;
mod rows;
mod table;
mod transit;
mod values;

pub use histogram::{Bucket, Buckets, Histogram, Sketch};
pub use records::{Activity, Records};
pub use rows::{
    DelayRow, Delays, FlowRow, FlowSampleRow, FlowSamples, Flows, LinkRow, LinkSampleRow,
    LinkSamples, Links, PacketRow, Packets, QueueDelayRow, QueueDelays, ReasonRow, Reasons,
    RequestRow, Requests, SketchRow, Sketches, Unrecorded, UnrecordedRow,
};
pub use table::{Column, ColumnData, Digest, Name, Optional, Table};
pub use transit::{Arrivals, LastTransit};
