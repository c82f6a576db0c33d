//! Echo of the estimated load factor, in every ACK.

use cwnd_packet::Ability;
use cwnd_schema::RegistryEntry;

use super::DynEcho;
use crate::load_echo::{Carried, LoadEcho};

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry = RegistryEntry::new("load-every", "The same in every ACK.");

/// Ability that a receiver with this echo provides.
pub const PROVIDES: Option<Ability> = Some(Ability::EchoesEstimate);

/// Creates the policy of a new receiver.
pub fn policy() -> Option<Box<dyn DynEcho>> {
    Some(Box::new(LoadEcho::new(Carried::Every)))
}
