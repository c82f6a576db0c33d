//! What a router writes into packets beside queueing them: a file each.

pub mod adpm;
pub mod mlcp;
pub mod rcp;
pub mod step;
pub mod vcp;
pub mod xcp;

use cwnd_units::{Contract, Declares, LinkFacts, Rng, params_choice};

use crate::meter::Meter;
use crate::none;
use crate::qdisc::Packet;
use adpm::Adpm;
use mlcp::Mlcp;
use rcp::Rcp;
use step::Step;
use vcp::Vcp;
use xcp::Xcp;

params_choice! {
    /// Which meter, with its parameters.
    pub enum MeterParams {
        /// None: packets pass as they came, or as the queue marked them.
        None(none::Params) = "none",
        /// Marks each packet that finds more than a threshold waiting (DCTCP's router).
        Step(step::Params) = "step",
        /// Tells all senders one rate (Dukkipati et al. 2005).
        Rcp(rcp::Params) = "rcp",
        /// Tells each sender by how much its window shall change (Katabi, Handley, Rohrs 2002).
        Xcp(xcp::Params) = "xcp",
        /// Low, high or overload, in the two bits of ECN (Xia et al. 2005).
        Vcp(vcp::Params) = "vcp",
        /// A level of load, in four bits of a header (MLCP).
        Mlcp(mlcp::Params) = "mlcp",
        /// Whether the load factor is above the threshold that a packet stands for (BMCC).
        Adpm(adpm::Params) = "adpm",
    }
}

impl MeterParams {
    /// A meter with these parameters beside the queue of this link, if there is one; `rng` serves those that draw lots.
    #[must_use]
    pub fn build<P: Packet>(&self, link: &LinkFacts, rng: Rng) -> Option<Box<dyn Meter<P>>> {
        match self {
            Self::None(_) => None,
            Self::Step(p) => Some(Box::new(Step::new(p, link))),
            Self::Rcp(p) => Some(Box::new(Rcp::new(p, link))),
            Self::Xcp(p) => Some(Box::new(Xcp::new(p, link))),
            Self::Vcp(p) => Some(Box::new(Vcp::new(p))),
            Self::Mlcp(p) => Some(Box::new(Mlcp::new(p))),
            Self::Adpm(p) => Some(Box::new(Adpm::new(p, rng))),
        }
    }
}

impl Declares for MeterParams {
    fn contract(&self) -> Contract {
        match self {
            Self::None(p) => p.contract(),
            Self::Step(p) => p.contract(),
            Self::Rcp(p) => p.contract(),
            Self::Xcp(p) => p.contract(),
            Self::Vcp(p) => p.contract(),
            Self::Mlcp(p) => p.contract(),
            Self::Adpm(p) => p.contract(),
        }
    }
}
