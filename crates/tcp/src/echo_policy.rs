//! Rules by which ACKs echo.

use core::fmt;

use cwnd_packet::Echo;
use cwnd_quantity::Time;

use crate::segment::Segment;

/// A rule by which ACKs echo. What an ACK that never goes would have told is told by the next one.
pub trait EchoPolicy {
    /// Data arrived now, be it a duplicate. Whether it is to be acknowledged at once.
    fn on_data(&mut self, now: Time, segment: &Segment) -> bool;
    /// Takes the echo of the ACK that goes now.
    fn take(&mut self) -> Echo;
    /// By how many bytes of options this makes the ACK longer.
    fn bytes_of(&self, _echo: Echo) -> u16 {
        0
    }
}

/// An echo policy of any type, behind a pointer.
pub trait DynEcho: EchoPolicy + fmt::Debug + Send + Sync {
    /// Another in the same state.
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
