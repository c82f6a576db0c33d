//! No echo, not even ECE.

use cwnd_packet::{Ability, Echo};
use cwnd_quantity::Time;
use cwnd_schema::RegistryEntry;

use super::{DynEcho, EchoPolicy};
use crate::segment::Segment;

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry = RegistryEntry::new(
    "none",
    "Nothing: the receiver was not asked whether it knows ECN (BECN § IV-B needs no negotiation).",
);

/// Ability that a receiver with this echo provides: none.
pub const PROVIDES: Option<Ability> = None;

/// Creates the policy of a new receiver.
pub fn policy() -> Option<Box<dyn DynEcho>> {
    Some(Box::new(Nothing))
}

/// A policy that echoes nothing. Like every policy it replaces ECE.
#[derive(Clone, Copy, Debug, Default)]
struct Nothing;

impl EchoPolicy for Nothing {
    fn on_data(&mut self, _: Time, _: &Segment) -> bool {
        false
    }

    fn take(&mut self) -> Echo {
        Echo::None
    }
}
