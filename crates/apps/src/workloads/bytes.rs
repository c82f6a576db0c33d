//! One transfer of a given size.

use std::sync::Arc;

use cwnd_quantity::dist::Shape;
use cwnd_quantity::{Bytes, Rng, SizeDist, Time};
use cwnd_schema::{RegistryEntry, Schema};

use crate::application::{Actions, Application, Facts, Transport, Volume, Workload};

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry =
    RegistryEntry::new("bytes", "One transfer, then the connection closes.");

/// A transfer.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Params {
    /// Size of the transfer.
    #[required("none")]
    pub size: SizeDist,
}

/// An application that writes the whole transfer at its start.
#[derive(Debug)]
pub struct Transfer(Arc<Params>);

impl Workload for Params {
    type App = Transfer;

    fn facts(&self) -> Facts {
        Facts {
            transport: Transport::Connection,
            arrivals: None,
            client_opens: false,
            can_be_stopped: false,
            shares: false,
        }
    }

    fn application(shared: &Arc<Self>) -> Transfer {
        Transfer(Arc::clone(shared))
    }

    fn of_size(size: Bytes) -> Option<Transfer> {
        Some(Transfer(Arc::new(Self { size: SizeDist(Shape::Constant(size.0)) })))
    }

    fn volume(&self, segment: Bytes) -> Option<Volume> {
        Some(Volume::of(&self.size, segment))
    }
}

impl Application for Transfer {
    fn start(&mut self, _now: Time, rng: &mut Rng) -> Actions {
        Actions::write(self.0.size.sample(rng).0).and_finish()
    }
}
