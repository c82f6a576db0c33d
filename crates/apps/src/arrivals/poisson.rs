//! Poisson arrivals.

use cwnd_quantity::{Duration, Rng};
use cwnd_schema::{RegistryEntry, Schema};

use super::{Arriving, Next, Pace, Process};

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry =
    RegistryEntry::new("poisson", "Independent of each other: exponential gaps.");

/// Independent arrivals.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Params {
    /// Rate of arrivals.
    #[flatten(Pace::default())]
    pub pace: Pace,
}

impl Arriving for Params {
    fn process(&self) -> Box<dyn Process> {
        Box::new(self.pace.gaps())
    }
    fn pace(&self) -> Option<&Pace> {
        Some(&self.pace)
    }
    fn pace_mut(&mut self) -> Option<&mut Pace> {
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
    fn next(&mut self, rng: &mut Rng) -> Option<Next> {
        Some(Next::after(self.gap(rng)))
    }
}
