//! A link without a meter, the default of a scenario.

use alloc::boxed::Box;

use cwnd_packet::{Contract, HasContract};
use cwnd_quantity::{LinkProperties, Rng};
use cwnd_schema::{RegistryEntry, Schema};

use crate::meters::{Meter, MeterInfo};
use crate::qdisc::Packet;

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry =
    RegistryEntry::new("none", "None: packets pass as they came, or as the queue marked them.");

/// Empty parameters.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Params {}

impl HasContract for Params {
    fn contract(&self) -> Contract {
        Contract::new()
    }
}

impl MeterInfo for Params {
    fn build<P: Packet>(&self, _: &LinkProperties, _: Rng) -> Option<Box<dyn Meter<P>>> {
        None
    }
}
