//! Users in a closed loop: a connection, a pause, the next.

use cwnd_quantity::{Duration, DurationDist, Rng};
use cwnd_schema::{RegistryEntry, Schema};

use super::{Arriving, Next, Process};

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry =
    RegistryEntry::new("closed", "Users in a closed loop: a connection, a pause, the next.");

/// Users in a closed loop: each opens a connection, and the next when that one is over and a
/// pause has passed.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Params {
    /// From the end of a connection, its last acknowledgement or where it was given up, to the
    /// next, drawn each time.
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

/// Connections one after the other.
#[derive(Debug)]
struct Loop {
    /// From the end of each to the next.
    pause: DurationDist,
    /// `true` once the first has come.
    begun: bool,
}

impl Process for Loop {
    fn next(&mut self, _: &mut Rng) -> Option<Next> {
        let first = !self.begun;
        self.begun = true;
        first.then(|| Next::after(Duration::ZERO))
    }

    fn over(&mut self, rng: &mut Rng) -> Option<Next> {
        // Time passes in every pause.
        Some(Next::after(self.pause.sample(rng).max(Duration(1))))
    }

    fn hears(&self) -> bool {
        true
    }
}
