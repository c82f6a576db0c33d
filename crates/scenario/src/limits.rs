//! Limits and versions of the scenario file.

/// Runs that fit a plan.
pub(crate) const MOST_CELLS: u64 = 1_000_000;
/// Flows that can be simulated at a time.
pub(crate) const MOST_FLOWS: u64 = 8_000_000;
/// The versions of the file format; the last is the newest.
pub(crate) const SCHEMAS: [u64; 2] = [1, 2];
