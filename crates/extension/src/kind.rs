//! Kinds of controllers that a crate of a user's has.

use std::ffi::CString;

use cwnd_cc::{Controller, Start};
use cwnd_schema::{Params, RegistryEntry};

/// Parameters of a kind of controller, which make its controllers.
pub trait Kind: Params + Default + Clone + Send + Sync + 'static {
    /// Name and description in scenarios.
    const ENTRY: RegistryEntry;
    /// Type of its controllers.
    type Controller: Controller + Clone + 'static;
    /// Makes the controller of a new connection.
    fn start(&self, start: &Start) -> Self::Controller;
}

/// Converts a text for C, without its zeros.
pub fn to_c(text: &str) -> CString {
    CString::new(text.replace('\0', "")).unwrap_or_default()
}
