//! Classic ECE (RFC 3168), which the receiver implements itself.

use cwnd_packet::Ability;
use cwnd_schema::RegistryEntry;

use super::DynEcho;

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry =
    RegistryEntry::new("classic", "ECE, from a CE mark until CWR (RFC 3168 § 6.1.3).");

/// Ability that a receiver with this echo provides.
pub const PROVIDES: Option<Ability> = Some(Ability::EchoesEce);

/// Returns no policy: the receiver implements ECE itself.
pub fn policy() -> Option<Box<dyn DynEcho>> {
    None
}
