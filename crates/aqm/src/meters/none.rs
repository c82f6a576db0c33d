//! A link without a meter.

use cwnd_quantity::{LinkProperties, Rng};
use cwnd_schema::RegistryEntry;

use crate::meter::{Meter, MeterInfo};
pub use crate::none::Params;
use crate::qdisc::Packet;

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry =
    RegistryEntry::new("none", "None: packets pass as they came, or as the queue marked them.");

impl MeterInfo for Params {
    fn build<P: Packet>(&self, _: &LinkProperties, _: Rng) -> Option<Box<dyn Meter<P>>> {
        None
    }
}
