//! Meters, one file each: what a router writes into packets beside queueing them.

use cwnd_packet::{Contract, HasContract};
use cwnd_quantity::{LinkProperties, Rng};
use cwnd_schema::registry;

use crate::meter::{Meter, MeterInfo as _};
use crate::qdisc::Packet;

registry! {
    /// The meters, each with its parameters.
    #[each(each_meter)]
    pub enum MeterParams {
        None(none),
        Step(step),
        Rcp(rcp),
        Xcp(xcp),
        Vcp(vcp),
        Mlcp(mlcp),
        Adpm(adpm),
    }
}

impl MeterParams {
    /// Builds the meter beside the queue of a link, if there is one; `rng` serves meters that draw.
    #[must_use]
    pub fn build<P: Packet>(&self, link: &LinkProperties, rng: Rng) -> Option<Box<dyn Meter<P>>> {
        each_meter!(self, params => params.build(link, rng))
    }
}

impl HasContract for MeterParams {
    fn contract(&self) -> Contract {
        each_meter!(self, params => params.contract())
    }
}
