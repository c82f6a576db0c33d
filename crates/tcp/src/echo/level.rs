//! Echo of the level of load in the newest data (MLCP).

use cwnd_packet::Ability;
use cwnd_schema::RegistryEntry;

use super::DynEcho;
use super::changes::Changes;

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry = RegistryEntry::new(
    "level",
    "The level of load in the newest data, and how often it has changed; a change is \
     acknowledged at once (MLCP).",
);

/// Ability that a receiver with this echo provides.
pub const PROVIDES: Option<Ability> = Some(Ability::EchoesLevel);

/// Creates the policy of a new receiver.
pub fn policy() -> Option<Box<dyn DynEcho>> {
    Some(Box::new(Changes::of_levels()))
}
