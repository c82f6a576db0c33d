//! Poisson arrivals of connections with one transfer each, as of many independent users.
//!
//! It is short for the workload `bytes` with `arrivals` of the group.

use std::sync::Arc;

use cwnd_quantity::{Bytes, Duration, Rng, SizeDist, Time};
use cwnd_schema::{RegistryEntry, Schema};

use crate::application::{Actions, Application, Facts, Transport, Volume, Workload};
use crate::arrivals::PoissonArrivals;

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry =
    RegistryEntry::new("poisson", "New connections arrive at random, each with one transfer.");

/// Transfers that arrive.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Params {
    /// Mean time between arrivals.
    #[required("none")]
    #[bounds(above Duration::ZERO; "arrivals with no time between them would have no end")]
    pub interval: Duration,
    /// Size of each connection's transfer.
    #[required("none")]
    pub size: SizeDist,
}

/// An application that writes its whole transfer at its start.
#[derive(Debug)]
pub struct Arrival(Arc<Params>);

impl Workload for Params {
    type App = Arrival;

    fn facts(&self) -> Facts {
        Facts {
            transport: Transport::Connection,
            arrivals: Some(PoissonArrivals { mean: self.interval }),
            client_opens: false,
            can_be_stopped: false,
            shares: false,
        }
    }

    fn application(shared: &Arc<Self>) -> Arrival {
        Arrival(Arc::clone(shared))
    }

    fn volume(&self, segment: Bytes) -> Option<Volume> {
        Some(Volume::of(&self.size, segment))
    }
}

impl Application for Arrival {
    fn start(&mut self, _now: Time, rng: &mut Rng) -> Actions {
        Actions::write(self.0.size.sample(rng).0).and_finish()
    }
}
