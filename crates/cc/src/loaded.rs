//! Controllers of code that is loaded for a run: their maker, and a stand-in until there is one.

use alloc::boxed::Box;
use core::fmt;

use cwnd_schema::Loaded;

use crate::controller::{AckSample, Controller, Path, Request, Signal, Start, Window};
use crate::dynamic::DynController;

/// Makes controllers of loaded code.
pub trait Maker: fmt::Debug + Send + Sync {
    /// Makes the controller of a connection.
    fn make(&self, start: &Start) -> Box<dyn DynController>;
}

/// Implements what parameters of loaded code, which have a field `loaded`, say of its controllers.
macro_rules! parameters_of_loaded_code {
    ($params:ty) => {
        impl $crate::ControllerInfo for $params {
            fn build(&self, start: &$crate::Start) -> alloc::boxed::Box<dyn $crate::DynController> {
                $crate::loaded::build(&self.loaded, start)
            }

            fn lowers_on_acks(&self) -> bool {
                true
            }
        }

        /// Unknown before the code is loaded, so nothing is required.
        impl cwnd_packet::HasContract for $params {
            fn contract(&self) -> cwnd_packet::Contract {
                cwnd_packet::Contract::default()
            }
        }
    };
}
pub(crate) use parameters_of_loaded_code;

/// Makes the controller of a connection; a stand-in before the code is loaded.
pub(crate) fn build(loaded: &Loaded<dyn Maker>, start: &Start) -> Box<dyn DynController> {
    match &loaded.maker {
        Some(maker) => maker.make(start),
        None => Box::new(Unloaded(Window::new(start))),
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
