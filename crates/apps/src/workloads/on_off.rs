//! Transfers on one connection, with pauses between them.

use std::sync::Arc;

use cwnd_quantity::{Duration, DurationDist, Rng, SizeDist, Time};
use cwnd_schema::{RegistryEntry, Schema};

use crate::application::{Actions, Application, Facts, Transport, Workload};

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry =
    RegistryEntry::new("on-off", "Transfers on one connection with pauses between them.");

/// Transfers and pauses in turn.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Params {
    /// Size of each transfer.
    #[required("none")]
    pub size: SizeDist,
    /// Pause from the acknowledgement of one transfer to the start of the next.
    #[required("none")]
    pub off: DurationDist,
}

/// An application that writes a transfer, waits for its acknowledgement, pauses, and starts again.
#[derive(Debug)]
pub struct OnOff(Arc<Params>);

impl Workload for Params {
    type App = OnOff;

    fn facts(&self) -> Facts {
        Facts {
            transport: Transport::Connection,
            arrivals: None,
            client_opens: false,
            can_be_stopped: false,
            shares: false,
        }
    }

    fn application(shared: &Arc<Self>) -> OnOff {
        OnOff(Arc::clone(shared))
    }
}

impl OnOff {
    fn next_transfer(&self, rng: &mut Rng) -> Actions {
        Actions::write(self.0.size.sample(rng).0).and_await_acked()
    }
}

impl Application for OnOff {
    fn start(&mut self, _now: Time, rng: &mut Rng) -> Actions {
        self.next_transfer(rng)
    }

    fn on_acked(&mut self, now: Time, _total: u64, rng: &mut Rng) -> Actions {
        // At least 1 ns, so that no loop runs forever at one instant.
        Actions::wake(now + self.0.off.sample(rng).max(Duration(1)))
    }

    fn on_timer(&mut self, _now: Time, rng: &mut Rng) -> Actions {
        self.next_transfer(rng)
    }
}
