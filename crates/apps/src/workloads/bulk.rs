//! Long-lived flows: as much as it can for as long as it may.

use std::sync::Arc;

use cwnd_quantity::{Rng, Time};
use cwnd_schema::{RegistryEntry, Schema};

use crate::application::{Application, Do, Facts, Transport, Workload};

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry =
    RegistryEntry::new("bulk", "As much as it can for as long as it may.");

/// A flow without end.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Params {}

/// It writes once, more than a run can carry.
#[derive(Debug)]
pub struct Bulk;

/// Far from where sums of it would overflow.
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
    fn start(&mut self, _now: Time, _rng: &mut Rng) -> Do {
        Do::write(ENDLESS)
    }
}
