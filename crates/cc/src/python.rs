//! A controller in Python. The crate knows its file, class and arguments; whoever runs a scenario
//! loads the code and sets a [`Maker`].

use core::fmt;

use cwnd_packet::{Contract, HasContract};
use cwnd_schema::{ClassName, Loaded, RegistryEntry, Schema};

use crate::controller::{AckSample, Controller, Path, Request, Signal, Start, Window};
use crate::dynamic::{ControllerInfo, DynController};

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry =
    RegistryEntry::new("python", "A class in Python: a controller of one's own.");

/// Makes controllers of loaded code.
pub trait Maker: fmt::Debug + Send + Sync {
    /// Makes the controller of a connection.
    fn make(&self, start: &Start) -> Box<dyn DynController>;
}

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
        match &self.loaded.maker {
            Some(maker) => maker.make(start),
            None => Box::new(Unloaded(Window::new(start))),
        }
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

/// The controller of code that is not loaded, for the questions that are asked of any controller
/// while a scenario is read. Its window never changes.
#[derive(Clone, Debug)]
struct Unloaded(Window);

impl Controller for Unloaded {
    fn on_ack(&mut self, _: &Path, _: &AckSample) -> Request {
        Request::Nothing
    }

    fn on_signal(&mut self, _: &Path, _: Signal) {}

    fn window(&self) -> Window {
        self.0
    }
}
