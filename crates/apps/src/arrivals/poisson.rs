//! Poisson arrivals.

use cwnd_quantity::{Duration, Rng};
use cwnd_schema::{RegistryEntry, Schema};

use super::{Arrival, ArrivalRate, Arriving, Process};

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry =
    RegistryEntry::new("poisson", "Independent of each other: exponential gaps.");

/// Independent arrivals.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Params {
    /// Rate of arrivals.
    #[flatten(ArrivalRate::default())]
    pub pace: ArrivalRate,
}

impl Arriving for Params {
    fn process(&self) -> Box<dyn Process> {
        Box::new(self.pace.gaps())
    }
    fn pace(&self) -> Option<&ArrivalRate> {
        Some(&self.pace)
    }
    fn pace_mut(&mut self) -> Option<&mut ArrivalRate> {
        Some(&mut self.pace)
    }
}

/// A Poisson process of arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoissonArrivals {
    /// Mean time between arrivals.
    pub mean: Duration,
}

impl PoissonArrivals {
    /// Draws the time between two arrivals.
    pub fn gap(self, rng: &mut Rng) -> Duration {
        Duration::from_secs_f64(rng.exponential(self.mean.as_secs_f64()))
    }
}

impl Process for PoissonArrivals {
    fn next(&mut self, rng: &mut Rng) -> Option<Arrival> {
        Some(Arrival::after(self.gap(rng)))
    }
}
