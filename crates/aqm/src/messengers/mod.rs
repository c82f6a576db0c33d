//! Messengers, one file each: what a router reports to the sources of packets.

use alloc::boxed::Box;
use core::fmt;

use cwnd_packet::{Contract, HasContract};
use cwnd_quantity::{LinkProperties, Time};
use cwnd_schema::{Params, registry};

use crate::qdisc::{Backlog, Context, Reason};

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

/// Decision of a queue about a packet.
#[derive(Clone, Copy, Debug)]
pub struct Verdict<P> {
    /// Time of the decision.
    pub at: Time,
    /// Packet after the decision. The data that it refers to stays in its slot only until another
    /// packet takes the slot, so a reader reads it at once. This value itself may be kept.
    pub packet: P,
    /// Outcome for the packet.
    pub what: Outcome,
    /// Reason of the queue.
    pub reason: Reason,
}

/// Outcome for a packet that meets congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The packet was dropped.
    Dropped,
    /// The packet was marked and goes on.
    Marked {
        /// `true` if it already carried CE.
        already: bool,
    },
}

/// Facts about a kind of messenger.
pub trait MessengerInfo: Params + HasContract {
    /// Builds the messenger at the queue of a link; `None` for the kind without one.
    fn build<P>(&self, link: &LinkProperties) -> Option<Box<dyn Messenger<P>>>;
}

/// Decides which drops and marks of its queue a router reports to the packet's source: BECN's
/// source quenches.
pub trait Messenger<P>: fmt::Debug + Send {
    /// Takes a decision of the queue about a data packet, and the backlog then. Returns the level
    /// of congestion, from 0, if the packet's source gets a message now. The packet's fields are
    /// read through `context`.
    fn on_verdict(
        &mut self,
        verdict: &Verdict<P>,
        queued: Backlog,
        context: &dyn Context<P>,
    ) -> Option<u8>;
    /// Reports its counters, each by a unique name that the activity uses unchanged.
    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        let _ = each;
    }
}
