//! Echo of the estimated load factor, in ACKs at growing distances after a change (BMCC § VI).

use cwnd_packet::Ability;
use cwnd_schema::RegistryEntry;

use super::DynEcho;
use crate::load_echo::{Carried, LoadEcho};

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry = RegistryEntry::new(
    "load",
    "The receiver's estimate of the load factor: at once when it changes, then in the second \
     ACK after, the third after that … (BMCC § VI).",
);

/// Ability that a receiver with this echo provides.
pub const PROVIDES: Option<Ability> = Some(Ability::EchoesEstimate);

/// Creates the policy of a new receiver.
pub fn policy() -> Option<Box<dyn DynEcho>> {
    Some(Box::new(LoadEcho::new(Carried::Spaced)))
}
