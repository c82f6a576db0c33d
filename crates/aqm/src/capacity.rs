//! What a router takes the capacity of its link for.

use cwnd_quantity::Rate;
use cwnd_schema::Schema;

/// Capacity that a router assumes for its link.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Capacity {
    /// The capacity that the router believes in, as a part of the link's.
    #[default(1.0, "none in the papers, whose routers know it: 1")]
    #[bounds(above 0.0; "a link of no capacity carries nothing")]
    pub believed: f64,
}

impl Capacity {
    /// What it believes a link of this rate to carry, bytes a second; of one that is down more than nothing, so that it divides.
    pub(crate) fn of(&self, rate: Rate) -> f64 {
        self.believed * (rate.0 as f64 / 8.0).max(1.0)
    }
}
