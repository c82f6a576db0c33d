//! Attackers that send forged packets to the connections of a group: a file for each kind.
//!
//! An attacker gives contents and arrival time of its next packet. The simulator delivers it.

use core::fmt;

use cwnd_packet::{Contract, HasContract};
use cwnd_quantity::{Rng, Time};
use cwnd_schema::{Params, registry};

registry! {
    /// Kinds of attackers on each connection of a group, with their parameters.
    #[each(each_attacker)]
    pub enum AttackerParams {
        None(none),
        Quench(quench),
    }
}

/// A kind of attacker.
pub trait AttackerInfo: Params + HasContract {
    /// Creates the attacker of a connection that begins now; `None` for the kind `none`.
    fn build(&self, now: Time) -> Option<Box<dyn Attacker>>;
}

/// A packet with a forged sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forged {
    /// Quoted sequence number, relative to the first byte of the connection; `None` for an attacker
    /// that sees packets and quotes outstanding data.
    pub quoted: Option<u32>,
    /// Contents of the packet.
    pub what: Message,
}

/// Contents of a forged packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// A source quench: a router claims congestion.
    Quench {
        /// `true` if it claims to have marked the packet, `false` if to have dropped it.
        marked: bool,
    },
}

/// An attacker on one connection.
pub trait Attacker: fmt::Debug + Send {
    /// Returns arrival time and contents of its next packet, later than the one before; `None` if
    /// none follows.
    fn next(&mut self, rng: &mut Rng) -> Option<(Time, Forged)>;
}

impl AttackerParams {
    /// Creates the attacker of a connection that begins now; `None` without one.
    #[must_use]
    pub fn build(&self, now: Time) -> Option<Box<dyn Attacker>> {
        each_attacker!(self, params => params.build(now))
    }
}

impl HasContract for AttackerParams {
    fn contract(&self) -> Contract {
        each_attacker!(self, params => params.contract())
    }
}
