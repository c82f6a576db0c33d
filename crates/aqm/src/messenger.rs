use core::fmt;

use cwnd_packet::Declares;
use cwnd_quantity::{LinkFacts, Time};
use cwnd_schema::Params;

use crate::qdisc::{Backlog, Context, Reason};

/// What a queue decided about a packet.
#[derive(Clone, Copy, Debug)]
pub struct Verdict<P> {
    /// When.
    pub at: Time,
    /// The packet, as it goes on or ended. What it names stays where it waited until the next packet is put there, so
    /// who wants that reads at once; these words are the reader's for as long as it likes.
    pub packet: P,
    /// What it was.
    pub what: Outcome,
    /// Why.
    pub reason: Reason,
}

/// What becomes of a packet that meets congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was dropped.
    Dropped,
    /// It was marked and goes on.
    Marked {
        /// Whether it carried CE already when it came.
        already: bool,
    },
}

/// A kind of messenger.
pub trait MessengerInfo: Params + Declares {
    /// Builds the messenger at the queue of a link; `None` of the kind that stands for none.
    fn build<P>(&self, link: &LinkFacts) -> Option<Box<dyn Messenger<P>>>;
}

/// Decides of which of its queue's verdicts a router tells the source of the packet: RED's BECN, a source quench.
pub trait Messenger<P>: fmt::Debug + Send {
    /// The queue decided this about a packet of data, and so much waits in it then; whether the packet's source is told now, and
    /// how bad it is, from 0: most know one level. What the packet carries is asked of `context`.
    fn tells(
        &mut self,
        verdict: &Verdict<P>,
        queued: Backlog,
        context: &dyn Context<P>,
    ) -> Option<u8>;
    /// Tells what it counted, each by a name that is its own; the activity has them as they are.
    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        let _ = each;
    }
}
