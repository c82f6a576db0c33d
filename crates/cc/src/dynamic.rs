//! Controllers for code that does not know their kind: behind a vtable, and facts about each kind.

use alloc::borrow::ToOwned as _;
use alloc::boxed::Box;
use core::any::Any;
use core::fmt;

use cwnd_packet::{CongestionHeader, HasContract};
use cwnd_quantity::Time;
use cwnd_schema::{Params, Value};

use crate::controller::{Controller, DepartureTiming, OutgoingData, Start};

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

/// A mechanism of a controller: the parameter that asks for it, and the counter of its actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mechanism {
    /// Display name.
    pub name: &'static str,
    /// Parameter that asks for it, if that is given and differs from `base`; `None` if the kind
    /// always has it.
    pub key: Option<&'static str>,
    /// Parameter whose value, given to `key`, does not ask for it; `None` if there is none.
    pub base: Option<&'static str>,
    /// Counter of its actions.
    pub counted_in: ActionCount,
}

/// Column or counters of the actions of a controller's mechanism, for the note on mechanisms that
/// never acted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionCount {
    /// Column in the table of flows that counts the windows it reduced.
    Column(&'static str),
    /// Counters of the controller, and the meaning of all of them being zero.
    Counters {
        /// Names of the counters in the activity.
        names: &'static [&'static str],
        /// End of the sentence "… never acted: …", for counters that stayed zero.
        if_zero: &'static str,
    },
}

/// Facts about a kind of controller: its constructor, and what other code needs without its name.
pub trait ControllerInfo: Params + HasContract {
    /// Builds a controller with these parameters at the start of its connection.
    fn build(&self, start: &Start) -> Box<dyn DynController>;
    /// `true` if [`Controller::on_ack`] may lower its window or ask for that: by a mark, by a delay
    /// or delivery rate, or by what routers wrote. RFC 5681 only raises the window on ACKs.
    fn lowers_on_acks(&self) -> bool;
    /// Mechanisms that its parameters may ask for.
    fn mechanisms(&self) -> &'static [Mechanism] {
        &[]
    }
    /// Name of Linux's own controller of this kind; `None` if Linux has none, or none that works
    /// without the receiver (DCTCP).
    fn linux_name(&self) -> Option<&'static str> {
        None
    }
}

impl Mechanism {
    /// A mechanism that the kind always has.
    pub(crate) const fn of_kind(name: &'static str, counted_in: ActionCount) -> Self {
        Self { name, key: None, base: None, counted_in }
    }

    /// `true` if these parameters ask for it.
    #[must_use]
    pub fn is_asked_for(&self, params: &dyn Params) -> bool {
        let Some(key) = self.key else { return true };
        let none = Value::Text("none".to_owned());
        let value = params.get(key).filter(|value| *value != none);
        value.is_some() && value != self.base.and_then(|base| params.get(base))
    }
}
