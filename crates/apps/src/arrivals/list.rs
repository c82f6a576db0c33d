//! Recorded arrivals.

use cwnd_quantity::{Duration, Rng};
use cwnd_schema::{RegistryEntry, Schema};

use super::{Arrival, Arriving, Process};
use crate::recorded_arrivals::{RecordedArrival, RecordedArrivals};

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
    pub rows: RecordedArrivals,
}

impl Arriving for Params {
    fn process(&self) -> Box<dyn Process> {
        Box::new(Recorded { rows: self.rows.clone(), next: 0 })
    }
    fn rows(&self) -> &[RecordedArrival] {
        self.rows.arrivals()
    }
}

/// Recorded arrivals from row `next` on.
#[derive(Debug)]
struct Recorded {
    rows: RecordedArrivals,
    next: usize,
}

impl Process for Recorded {
    fn next(&mut self, _: &mut Rng) -> Option<Arrival> {
        let row = self.next;
        self.next += 1;
        let rows = self.rows.arrivals();
        let arrivals = rows.get(row)?;
        let before = row.checked_sub(1).map_or(Duration::ZERO, |before| rows[before].at);
        let gap = arrivals.at.saturating_sub(before);
        Some(Arrival { gap, row: Some(row), size: arrivals.size })
    }
}
