//! What strangers send to the connections of a group in somebody else's name: a file each.
//!
//! An attacker says when its next packet reaches a connection, and what it is: the simulator makes it arrive.

use core::fmt;

use cwnd_packet::{Contract, Declares};
use cwnd_quantity::{Rng, Time};
use cwnd_schema::{Params, registry};

registry! {
    /// The attackers that each connection of a group may have, with their parameters.
    #[each(each_attacker)]
    pub enum AttackerParams {
        None(none),
        Quench(quench),
    }
}

/// A kind of attacker.
pub trait AttackerInfo: Params + Declares {
    /// Builds the attacker of a connection that begins now; `None` of the kind that stands for
    /// none.
    fn build(&self, now: Time) -> Option<Box<dyn Attacker>>;
}

/// A packet that reaches a connection and is not what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forged {
    /// The sequence number of the data that it is said to be about, less that of the connection's first byte; `None` for one
    /// who sees the packets and names what is outstanding.
    pub quoted: Option<u32>,
    /// What it tells.
    pub what: Message,
}

/// What a forged packet tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// That a router met congestion there.
    Quench {
        /// Whether it says that it marked the packet; else that it dropped it.
        marked: bool,
    },
}

/// Attacks one connection.
pub trait Attacker: fmt::Debug + Send {
    /// The next packet of it that reaches the connection, later than the one before; `None` if no more comes.
    fn next(&mut self, rng: &mut Rng) -> Option<(Time, Forged)>;
}

impl AttackerParams {
    /// Builds the attacker of a connection that begins now, if it has one.
    #[must_use]
    pub fn build(&self, now: Time) -> Option<Box<dyn Attacker>> {
        each_attacker!(self, params => params.build(now))
    }
}

impl Declares for AttackerParams {
    fn contract(&self) -> Contract {
        each_attacker!(self, params => params.contract())
    }
}
