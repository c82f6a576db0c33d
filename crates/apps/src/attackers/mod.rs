//! What strangers send to the connections of a group in somebody else's name: a file each.
//!
//! An attacker says when its next packet reaches a connection, and what it is: the simulator makes it arrive.

pub mod quench;

use core::fmt;

use cwnd_units::{Contract, Declares, Rng, Time, params, params_choice};

params_choice! {
    /// Which attacker each connection of a group has, with its parameters.
    pub enum AttackerParams {
        /// None: what arrives was sent by whom it names.
        None(Nobody) = "none",
        /// Source quenches that no router sent (RFC 5927 § 6.1).
        Quench(quench::Params) = "quench",
    }
}

params! {
    /// Nobody.
    pub struct Nobody {}
}

impl Declares for Nobody {
    fn contract(&self) -> Contract {
        Contract::new()
    }
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
    /// The attacker of a connection that begins now, if it has one.
    #[must_use]
    pub fn build(&self, now: Time) -> Option<Box<dyn Attacker>> {
        match self {
            Self::None(_) => None,
            Self::Quench(params) => Some(Box::new(quench::Quench::new(params, now))),
        }
    }
}

impl Declares for AttackerParams {
    fn contract(&self) -> Contract {
        match self {
            Self::None(params) => params.contract(),
            Self::Quench(params) => params.contract(),
        }
    }
}
