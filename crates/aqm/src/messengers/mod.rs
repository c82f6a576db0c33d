//! Messengers, one file each: what a router reports to the sources of packets.

use cwnd_packet::{Contract, HasContract};
use cwnd_quantity::LinkProperties;
use cwnd_schema::registry;

use crate::messenger::{Messenger, MessengerInfo as _};

registry! {
    /// The messengers, each with its parameters.
    #[each(each_messenger)]
    pub enum MessengerParams {
        None(none),
        Quench(quench),
    }
}

impl MessengerParams {
    /// Builds the messenger at the queue of a link; `None` if there is none.
    #[must_use]
    pub fn build<P>(&self, link: &LinkProperties) -> Option<Box<dyn Messenger<P>>> {
        each_messenger!(self, params => params.build(link))
    }
}

impl HasContract for MessengerParams {
    fn contract(&self) -> Contract {
        each_messenger!(self, params => params.contract())
    }
}
