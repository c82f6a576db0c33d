//! Connections without an attacker.

use cwnd_packet::{Contract, HasContract};
use cwnd_quantity::Time;
use cwnd_schema::{RegistryEntry, Schema};

use super::{Attacker, AttackerInfo};

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry =
    RegistryEntry::new("none", "None: what arrives was sent by whom it names.");

/// No attacker.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Params {}

impl HasContract for Params {
    fn contract(&self) -> Contract {
        Contract::new()
    }
}

impl AttackerInfo for Params {
    fn build(&self, _: Time) -> Option<Box<dyn Attacker>> {
        None
    }
}
