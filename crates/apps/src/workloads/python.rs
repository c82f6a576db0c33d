//! A workload in Python. The crate knows its file, class and arguments; whoever runs a scenario
//! loads the code and sets a [`Maker`].

use core::fmt;
use std::sync::Arc;

use cwnd_quantity::{Rng, Time};
use cwnd_schema::{ClassName, Loaded, RegistryEntry, Schema};

use crate::application::{Actions, Application, Facts, Transport, Workload};

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry =
    RegistryEntry::new("python", "A class in Python: a workload of one's own.");

/// Makes applications of loaded code.
pub trait Maker: fmt::Debug + Send + Sync {
    /// Makes the application of a flow.
    fn make(&self) -> Box<dyn Application>;
}

/// A class whose `next` says how many bytes one connection writes, and when.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Params {
    /// Class.
    #[flatten(ClassName::default())]
    pub class: ClassName,
    /// Arguments of the constructor.
    #[loaded]
    pub loaded: Loaded<dyn Maker>,
}

impl Workload for Params {
    type App = Box<dyn Application>;

    fn facts(&self) -> Facts {
        Facts {
            transport: Transport::Connection,
            arrivals: None,
            client_opens: false,
            can_be_stopped: false,
            shares: false,
        }
    }

    fn application(shared: &Arc<Self>) -> Box<dyn Application> {
        match &shared.loaded.maker {
            Some(maker) => maker.make(),
            None => Box::new(Unloaded),
        }
    }
}

/// The application of code that is not loaded, in scenarios that are read and not run. It never
/// writes.
#[derive(Debug)]
struct Unloaded;

impl Application for Unloaded {
    fn start(&mut self, _: Time, _: &mut Rng) -> Actions {
        Actions::stop()
    }
}
