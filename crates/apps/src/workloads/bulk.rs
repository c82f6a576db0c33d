//! Long-lived flows without end.

use std::sync::Arc;

use cwnd_quantity::{Rng, Time};
use cwnd_schema::{RegistryEntry, Schema};

use crate::application::{Actions, Application, Facts, Transport, Workload};

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry =
    RegistryEntry::new("bulk", "As much as it can for as long as it may.");

/// A flow without end.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Params {}

/// An application that writes more at its start than a run can carry.
#[derive(Debug)]
pub struct Bulk;

/// Bytes of a flow without end, small enough for sums without overflow.
const ENDLESS: u64 = 1 << 62;

impl Workload for Params {
    type App = Bulk;

    fn facts(&self) -> Facts {
        Facts {
            transport: Transport::Connection,
            arrivals: None,
            client_opens: false,
            can_be_stopped: true,
            shares: true,
        }
    }

    fn application(_shared: &Arc<Self>) -> Bulk {
        Bulk
    }
}

impl Application for Bulk {
    fn start(&mut self, _now: Time, _rng: &mut Rng) -> Actions {
        Actions::write(ENDLESS)
    }
}
