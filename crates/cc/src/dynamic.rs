//! Controllers behind a pointer.

use core::any::Any;
use core::fmt;

use cwnd_packet::Header;
use cwnd_quantity::Time;

use crate::controller::{Controller, Departing, Leave};

/// A controller of any type, behind a pointer.
pub trait DynController: Controller + fmt::Debug + Send + Sync + Any {
    /// Another in the same state.
    fn boxed_clone(&self) -> Box<dyn DynController>;
    /// [`Controller::undo`], to a clone of this controller.
    fn boxed_undo(&mut self, before: Box<dyn Any>, now: Time, after_timeout: bool);
    /// [`Controller::stamp`] into `header`, and when the next data may go, in one call: it is for
    /// each packet.
    ///
    /// The header is written where it stays: one that is returned is stored in narrow pieces and
    /// loaded in wide ones, which wait for the stores.
    fn departs(&mut self, data: &Departing, header: &mut Header) -> Leave;
}

impl<T: Controller + Clone + fmt::Debug + Send + Sync + 'static> DynController for T {
    fn boxed_clone(&self) -> Box<dyn DynController> {
        Box::new(self.clone())
    }

    fn boxed_undo(&mut self, before: Box<dyn Any>, now: Time, after_timeout: bool) {
        if let Ok(before) = before.downcast::<T>() {
            self.undo(*before, now, after_timeout);
        }
    }

    fn departs(&mut self, data: &Departing, header: &mut Header) -> Leave {
        let (pacing, spacing) = (self.pacing(), self.spacing());
        *header = self.stamp(data);
        Leave { pacing, spacing }
    }
}

impl Clone for Box<dyn DynController> {
    fn clone(&self) -> Self {
        self.as_ref().boxed_clone()
    }
}
