//! Interface of echo policies: rules for the feedback in ACKs.

use core::fmt;

use cwnd_packet::Echo;
use cwnd_quantity::Time;

use crate::segment::Segment;

/// A rule for the feedback that ACKs carry, in place of ECE. An echo is taken only for an ACK that
/// is sent; feedback that arrives meanwhile accumulates or replaces older feedback.
pub trait EchoPolicy {
    /// Reads a data segment that arrived, duplicates included, or a SYN with a header for routers.
    /// Returns `true` if it must be acknowledged at once; the SYN-ACK never waits.
    fn on_data(&mut self, now: Time, segment: &Segment) -> bool;
    /// Takes the echo for the ACK that is sent now.
    fn take(&mut self) -> Echo;
    /// Returns the bytes that this echo adds to the wire size of its ACK; none by default.
    fn bytes_of(&self, _echo: Echo) -> u16 {
        0
    }
}

/// An echo policy behind a pointer (object-safe [`EchoPolicy`] with `Clone`).
pub trait DynEcho: EchoPolicy + fmt::Debug + Send + Sync {
    /// Returns a boxed copy in the same state.
    fn boxed_clone(&self) -> Box<dyn DynEcho>;
}

impl<T: EchoPolicy + Clone + fmt::Debug + Send + Sync + 'static> DynEcho for T {
    fn boxed_clone(&self) -> Box<dyn DynEcho> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn DynEcho> {
    fn clone(&self) -> Self {
        self.as_ref().boxed_clone()
    }
}
