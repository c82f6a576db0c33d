//! A router's assumption about the capacity of its link.

use cwnd_quantity::Rate;
use cwnd_schema::Schema;

/// Capacity that a router assumes for its link.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Capacity {
    /// The capacity that the router believes in, as a part of the link's.
    #[default(1.0, "none in the papers, whose routers know it: 1")]
    #[bounds(above 0.0; "a link of no capacity carries nothing")]
    #[was("believed")]
    pub assumed_capacity: f64,
}

impl Capacity {
    /// Returns the assumed capacity of a link of this rate, bytes per second; more than zero also
    /// if the link is down, as it is a divisor.
    pub(crate) fn of(&self, rate: Rate) -> f64 {
        self.assumed_capacity * (rate.0 as f64 / 8.0).max(1.0)
    }
}
