//! Echo of the estimated load factor, in the first ACK after a change.

use cwnd_packet::Ability;
use cwnd_schema::RegistryEntry;

use super::DynEcho;
use crate::load_echo::{Carried, LoadEcho};

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry = RegistryEntry::new(
    "load-changed",
    "The same in the first ACK after a change only (BMCC § VI: non-redundant).",
);

/// Ability that a receiver with this echo provides.
pub const PROVIDES: Option<Ability> = Some(Ability::EchoesEstimate);

/// Creates the policy of a new receiver.
pub fn policy() -> Option<Box<dyn DynEcho>> {
    Some(Box::new(LoadEcho::new(Carried::Changed)))
}
