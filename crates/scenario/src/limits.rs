//! Limits and versions of the scenario file.

/// Limit on the runs of one plan.
pub(crate) const MAX_CELLS: u64 = 1_000_000;
/// Limit on the flows of a run, and on the connections expected to arrive in each of its groups.
pub(crate) const MAX_FLOWS: u64 = 8_000_000;
/// Supported versions of the file format; the last is the newest.
pub(crate) const SCHEMAS: [u64; 2] = [1, 2];
