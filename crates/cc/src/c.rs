//! A controller in C: a `tcp_congestion_ops` as the kernel loads it. The crate knows its file; the
//! caller that runs a scenario compiles the code and sets a [`Maker`].

use alloc::string::String;

use cwnd_schema::{Loaded, RegistryEntry, Schema, SourceFile};

use crate::loaded::Maker;

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry =
    RegistryEntry::new("c", "A `tcp_congestion_ops` in C, the same for the kernel.");

/// A source file in C, and values of its `const volatile` variables.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Params {
    /// Source file with the controller.
    #[required("none")]
    pub path: SourceFile,
    /// Controller, by the `name` in its table; none is the only one of the file.
    #[default(None, "none")]
    pub name: Option<String>,
    /// Values of the file's `const volatile` variables.
    #[loaded]
    pub loaded: Loaded<dyn Maker>,
}

crate::loaded::parameters_of_loaded_code!(Params);
