//! A link whose routers send no messages to sources.

use alloc::boxed::Box;

use cwnd_quantity::LinkProperties;
use cwnd_schema::RegistryEntry;

use crate::messengers::{Messenger, MessengerInfo};
pub use crate::meters::none::Params;

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry =
    RegistryEntry::new("none", "None: sources hear nothing from routers.");

impl MessengerInfo for Params {
    fn build<P>(&self, _: &LinkProperties) -> Option<Box<dyn Messenger<P>>> {
        None
    }
}
