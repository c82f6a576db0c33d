//! No arrivals: flows exist from the start, or arrive as their workload says.

use cwnd_quantity::Rng;
use cwnd_schema::{RegistryEntry, Schema};

use super::{Arrival, Arriving, Process};

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry = RegistryEntry::new(
    "none",
    "None arrives: flows are there from the beginning, or come as their workload says.",
);

/// No arrivals.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Params {}

impl Arriving for Params {
    fn process(&self) -> Box<dyn Process> {
        Box::new(Nothing)
    }

    fn is_none(&self) -> bool {
        true
    }
}

/// A process without arrivals.
#[derive(Debug)]
struct Nothing;

impl Process for Nothing {
    fn next(&mut self, _: &mut Rng) -> Option<Arrival> {
        None
    }
}
