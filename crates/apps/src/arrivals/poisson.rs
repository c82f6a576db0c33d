//! Independent arrivals.

use cwnd_units::{RegistryEntry, Rng, params};

use super::{Arriving, Next, Pace, Process};
use crate::application::PoissonArrivals;

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry =
    RegistryEntry::new("poisson", "Independent of each other: exponential gaps.");

params! {
    /// Independent arrivals.
    pub struct Params {
        /// How often.
        #[flatten()]
        pub pace: Pace = Pace::default(),
    }
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

impl Process for PoissonArrivals {
    fn next(&mut self, rng: &mut Rng) -> Option<Next> {
        Some(Next::after(self.gap(rng)))
    }
}
