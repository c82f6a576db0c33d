//! A controller in Python. The crate knows its file, class and arguments; whoever runs a scenario
//! loads the code and sets a [`Maker`].

use alloc::boxed::Box;

use cwnd_packet::{Contract, HasContract};
use cwnd_schema::{ClassName, Loaded, RegistryEntry, Schema};

use crate::controller::Start;
use crate::dynamic::{ControllerInfo, DynController};
pub use crate::loaded::Maker;

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry =
    RegistryEntry::new("python", "A class in Python: a controller of one's own.");

/// A class with `on_ack`, `on_signal` and the window of one connection.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Params {
    /// Class.
    #[flatten(ClassName::default())]
    pub class: ClassName,
    /// Arguments of the constructor.
    #[loaded]
    pub loaded: Loaded<dyn Maker>,
}

impl ControllerInfo for Params {
    fn build(&self, start: &Start) -> Box<dyn DynController> {
        crate::loaded::build(&self.loaded, start)
    }

    fn lowers_on_acks(&self) -> bool {
        true
    }
}

/// Unknown before the code is loaded, so nothing is required.
impl HasContract for Params {
    fn contract(&self) -> Contract {
        Contract::default()
    }
}
