//! Facts about a kind of controller, for code that does not know the kind.

use cwnd_packet::HasContract;
use cwnd_schema::{Params, Value};

use crate::controller::Start;
use crate::dynamic::DynController;

/// A mechanism of a controller: the parameter that asks for it, and the counter of its actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mechanism {
    /// Display name.
    pub name: &'static str,
    /// Parameter that asks for it, if that is given and differs from `base`; `None` if the kind
    /// always has it.
    pub key: Option<&'static str>,
    /// Parameter that applies in its place while `key` is not given; `None` if there is none.
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
    /// `true` if an ACK alone may lower its window: by a mark, by its delay or delivery rate, or by
    /// what routers wrote. RFC 5681 raises the window on ACKs and lowers it on losses.
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
