//! Controllers behind a vtable.

use core::any::Any;
use core::fmt;

use cwnd_packet::CongestionHeader;
use cwnd_quantity::Time;

use crate::controller::{Controller, DepartureTiming, OutgoingData};

/// Object-safe form of [`Controller`], for a controller of any type.
pub trait DynController: Controller + fmt::Debug + Send + Sync + Any {
    /// Returns a copy in the same state.
    fn boxed_clone(&self) -> Box<dyn DynController>;
    /// Calls [`Controller::undo`] with `before`, a former clone of this controller.
    fn boxed_undo(&mut self, before: Box<dyn Any>, now: Time, after_timeout: bool);
    /// Writes [`Controller::stamp`] into `header` and returns pacing and spacing, all in one call,
    /// as it is made for each packet.
    ///
    /// The header is written in place. A returned header is stored in narrow pieces and loaded in
    /// wide ones, which wait for the stores.
    fn on_departure(
        &mut self,
        data: &OutgoingData,
        header: &mut CongestionHeader,
    ) -> DepartureTiming;
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

    fn on_departure(
        &mut self,
        data: &OutgoingData,
        header: &mut CongestionHeader,
    ) -> DepartureTiming {
        let (pacing, spacing) = (self.pacing(), self.spacing());
        *header = self.stamp(data);
        DepartureTiming { pacing, spacing }
    }
}

impl Clone for Box<dyn DynController> {
    fn clone(&self) -> Self {
        self.as_ref().boxed_clone()
    }
}
