//! Users in a closed loop: a connection, a pause, the next.

use cwnd_quantity::{Duration, DurationDist, Rng};
use cwnd_schema::{RegistryEntry, Schema};

use super::{Arrival, Arriving, Process};

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry =
    RegistryEntry::new("closed", "Users in a closed loop: a connection, a pause, the next.");

/// Users in a closed loop: each opens a connection, and the next when that one is over and a
/// pause has passed.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Params {
    /// Time from the end of a connection, its last acknowledgement or its failure, to the next one,
    /// drawn each time.
    #[required("none")]
    pub pause: DurationDist,
}

impl Arriving for Params {
    fn process(&self) -> Box<dyn Process> {
        Box::new(Loop { pause: self.pause.clone(), begun: false })
    }
    fn waits(&self) -> bool {
        true
    }
}

/// Consecutive connections of one user.
#[derive(Debug)]
struct Loop {
    /// Distribution of the time from the end of a connection to the next.
    pause: DurationDist,
    /// `true` after the first connection.
    begun: bool,
}

impl Process for Loop {
    fn next(&mut self, _: &mut Rng) -> Option<Arrival> {
        let first = !self.begun;
        self.begun = true;
        first.then(|| Arrival::after(Duration::ZERO))
    }

    fn on_end(&mut self, rng: &mut Rng) -> Option<Arrival> {
        // At least 1 ns, so that no loop runs forever at one instant.
        Some(Arrival::after(self.pause.sample(rng).max(Duration(1))))
    }

    fn awaits_ends(&self) -> bool {
        true
    }
}
