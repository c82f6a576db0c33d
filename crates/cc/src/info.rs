//! What a kind of controller states of itself, so that nobody else has to know it by name.

use cwnd_units::{Declares, Params, Value};

use crate::controller::Start;
use crate::dynamic::DynController;

/// A mechanism that a controller has besides what it is: what asks for it, and where it shows that it acted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mechanism {
    /// What it is called.
    pub name: &'static str,
    /// The parameter that asks for it, when it is given and is not what `base` is; `None` where it is what the kind is.
    pub key: Option<&'static str>,
    /// The parameter that holds in its place where it is not asked for, if there is one.
    pub base: Option<&'static str>,
    /// Where it shows that it acted.
    pub acts_in: Acts,
    /// Those of the parameters that `cwnd-kernel` takes on Linux; none where it does not do it.
    pub in_cwnd_kernel: &'static [&'static str],
}

/// What counts what a mechanism does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acts {
    /// A column of the table of flows, of windows that it reduced.
    Column(&'static str),
    /// Counters of controllers, and what it means that all of them are zero.
    Counters {
        /// Their names in the activity.
        names: &'static [&'static str],
        /// What did not happen, as a sentence ends that begins with "never acted:".
        silence: &'static str,
    },
}

/// How Linux does what a controller does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnLinux {
    /// The kernel's own controller of this kind.
    pub own: &'static str,
    /// What `cwnd-kernel` is told to load in its place, where the kernel's own does not do it: a name and options.
    pub loaded: Option<Vec<String>>,
    /// What that must know of where it hears of the path.
    pub hears: Hears,
    /// Whether that goes by round trips: by the least of its connection, which Linux tells of each socket, and by those that it is told to
    /// (`--rtt-from`).
    pub by_rtt: bool,
    /// What it counts under the names that the controller has for it.
    pub counters: &'static [&'static str],
}

/// Where a controller that `cwnd-kernel` loads hears of the path, besides ACKs as every controller does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hears {
    /// Nowhere else.
    Acks,
    /// Packets of routers, at the sender's interface.
    Interface,
    /// Packets of data, at the receiver, which tells by the endpoint's `echo`.
    Receiver,
}

impl OnLinux {
    /// One of the kernel's own controllers.
    pub(crate) const fn own(own: &'static str) -> Self {
        Self { own, loaded: None, hears: Hears::Acks, by_rtt: false, counters: &[] }
    }
}

/// A kind of controller: how it is built, and what others must know of it without its name.
pub trait ControllerInfo: Params + Declares {
    /// Builds a controller with these parameters at the start of its connection.
    fn build(&self, start: &Start) -> Box<dyn DynController>;
    /// The mechanisms that it may be asked for.
    fn mechanisms(&self) -> &'static [Mechanism] {
        &[]
    }
    /// `true` if it sees no round-trip time of a segment whose ACK the receiver may have held back,
    /// whatever sets the timer.
    fn ignores_held_acks(&self) -> bool {
        false
    }
    /// `true` if routers tell it of loads by the ECN field of all its data, so that retransmissions
    /// are ECN-capable, too (RFC 3168 § 6.1.5 has them not be; Linux does it for controllers with
    /// `TCP_CONG_NEEDS_ECN`: `tcp_ecn_send`).
    fn reads_ecn_field(&self) -> bool {
        false
    }
    /// How Linux does it; `None` if it can't.
    fn on_linux(&self) -> Option<OnLinux> {
        None
    }
}

impl Mechanism {
    /// What the kind is, so that nothing asks for it.
    pub(crate) const fn of_kind(name: &'static str, acts_in: Acts) -> Self {
        Self { name, key: None, base: None, acts_in, in_cwnd_kernel: &[] }
    }

    /// Whether `cwnd-kernel` does it on Linux.
    #[must_use]
    pub const fn is_in_cwnd_kernel(&self) -> bool {
        !self.in_cwnd_kernel.is_empty()
    }

    /// Whether these parameters ask for it.
    #[must_use]
    pub fn is_asked_for(&self, params: &dyn Params) -> bool {
        let Some(key) = self.key else { return true };
        let none = Value::Text("none".to_owned());
        let value = params.get(key).filter(|value| *value != none);
        value.is_some() && value != self.base.and_then(|base| params.get(base))
    }
}
