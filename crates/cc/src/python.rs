//! A controller in Python. The crate knows its file, class and arguments; whoever runs a scenario
//! loads the code and sets a [`Maker`].

use cwnd_schema::{ClassName, Loaded, RegistryEntry, Schema};

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

crate::loaded::parameters_of_loaded_code!(Params);
