//! Recorded arrivals.

use cwnd_quantity::{Duration, Rng};
use cwnd_schema::{RegistryEntry, Schema};

use super::{Arriving, Next, Process};
use crate::recorded_arrivals::{Listed, Rows};

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry =
    RegistryEntry::new("list", "As they were recorded: when, between whom, how much.");

/// Recorded arrivals.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Params {
    /// A CSV file with the column `time_s` and, where they are known, `server`, `client` and
    /// `size_bytes`; or its rows in the scenario itself, `"0.5 s, server, client, 30 kB; 1 s,
    /// …"`.
    #[required("none")]
    pub rows: Rows,
}

impl Arriving for Params {
    fn process(&self) -> Box<dyn Process> {
        Box::new(Recorded { rows: self.rows.clone(), next: 0 })
    }
    fn rows(&self) -> &[Listed] {
        self.rows.listed()
    }
}

/// Recorded arrivals from row `next` on.
#[derive(Debug)]
struct Recorded {
    rows: Rows,
    next: usize,
}

impl Process for Recorded {
    fn next(&mut self, _: &mut Rng) -> Option<Next> {
        let row = self.next;
        self.next += 1;
        let rows = self.rows.listed();
        let listed = rows.get(row)?;
        let before = row.checked_sub(1).map_or(Duration::ZERO, |before| rows[before].at);
        let gap = listed.at.saturating_sub(before);
        Some(Next { gap, row: Some(row), size: listed.size })
    }
}
