//! What a router tells the sources of packets: a file each.

pub mod quench;

use cwnd_units::{Contract, Declares, LinkFacts, params_choice};

use crate::messenger::Messenger;
use crate::none;
use quench::Quench;

params_choice! {
    /// Which messenger, with its parameters.
    pub enum MessengerParams {
        /// None: sources hear nothing from routers.
        None(none::Params) = "none",
        /// A source quench for each packet that the queue marks or drops (BECN's router).
        Quench(quench::Params) = "quench",
    }
}

impl MessengerParams {
    /// A messenger with these parameters at the queue of this link, if there is one.
    #[must_use]
    pub fn build<P>(&self, link: &LinkFacts) -> Option<Box<dyn Messenger<P>>> {
        match self {
            Self::None(_) => None,
            Self::Quench(p) => Some(Box::new(Quench::new(p, link))),
        }
    }
}

impl Declares for MessengerParams {
    fn contract(&self) -> Contract {
        match self {
            Self::None(p) => p.contract(),
            Self::Quench(p) => p.contract(),
        }
    }
}
