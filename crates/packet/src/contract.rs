//! Requirements of the parts of a path and the abilities they provide, checked before a run.
//!
//! A controller that waits for feedback that no router writes would stall without a message. So
//! each controller, endpoint, echo policy, attacker, queue, meter and messenger states its
//! [`Contract`], and a scenario is checked along each of its paths.

use alloc::vec::Vec;

/// An ability that one part of a path can provide and another can require.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Ability {
    /// Data is sent as ECN-capable (RFC 3168 § 6.1).
    Ect,
    /// An ECN-echo reduces the window (RFC 3168 § 6.1.2); sending ECT alone does not imply it.
    ObeysEce,
    /// A router's source quench reduces the window.
    ObeysQuench,
    /// Segments carry timestamps (RFC 7323).
    Timestamps,
    /// RTT samples of the controller exclude the time for which the receiver delayed an ACK.
    PromptRtt,
    /// Segments are paced at the controller's rate.
    Pacing,
    /// The IP identification of data carries a value that routers use.
    SendsId,
    /// Data carries XCP's congestion header.
    SendsXcp,
    /// Data carries RCP's congestion header.
    SendsRcp,
    /// ACKs carry ECE (RFC 3168 § 6.1.3).
    EchoesEce,
    /// ACKs carry the sum of XCP's feedback in the data since the last ACK.
    EchoesSum,
    /// ACKs carry RCP's rate in the newest data that has one.
    EchoesLast,
    /// ACKs carry the newest ECN code point and a counter of its changes.
    EchoesChanges,
    /// ACKs carry the count of packets that arrived with CE.
    EchoesCount,
    /// ACKs carry the one-way delay of data.
    EchoesDelay,
    /// A queue or a meter marks packets.
    Marks,
    /// A messenger reports a queue's drops or marks to senders by source quenches.
    Quenches,
    /// Routers write a load factor into the ECN field.
    WritesLoad,
    /// Routers fill XCP's header.
    WritesXcp,
    /// Routers fill RCP's header.
    WritesRcp,
    /// Routers mark whether their load factor is above the threshold of a packet's identification
    /// (ADPM).
    WritesBounds,
    /// ACKs carry the receiver's estimate of a load factor.
    EchoesEstimate,
    /// Data carries a load level.
    SendsLevel,
    /// Routers raise the load level that data carries.
    WritesLevel,
    /// ACKs carry the load level of the newest data.
    EchoesLevel,
}

/// Position on a path at which an ability is provided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At the source of the data: controller and endpoint.
    Sender,
    /// At the destination of the data: the echo policy.
    Receiver,
    /// At one link of the path at least: its signal is enough.
    SomeLink,
    /// At each link of the path that has a rate: a link that writes nothing would be taken for an
    /// idle one.
    EveryLink,
}

impl Ability {
    /// One row per ability: its place; the text for its absence (for links, the verb phrase of what
    /// is missing); and the remedy.
    const TABLE: [(Self, Place, &'static str, &'static str); 25] = {
        use Ability as A;
        use Place as P;
        [
            (
                A::Ect,
                P::Sender,
                "the packets are not ECN-capable",
                "set `ecn = true` in the group's `endpoint`",
            ),
            (
                A::ObeysEce,
                P::Sender,
                "the sender ignores ECN-echoes",
                "set `ecn = true` and `obey_ece = true` in the group's `endpoint`",
            ),
            (
                A::ObeysQuench,
                P::Sender,
                "the sender ignores source quenches",
                "set `obey_quench = true` in the group's `endpoint`",
            ),
            (
                A::Timestamps,
                P::Sender,
                "segments carry no timestamps",
                "set `timestamps = true` in the group's `endpoint`",
            ),
            (
                A::PromptRtt,
                P::Sender,
                "round-trip times have in them for how long ACKs were held back",
                "set `ack_every = 1`, or `rtt_from = \"newest\"` and `rtt_lone_acks = false`, in \
                the group's `endpoint`",
            ),
            (A::Pacing, P::Sender, "segments are not paced", "run it in the simulator"),
            (
                A::SendsId,
                P::Sender,
                "the identification of data means nothing",
                "use a controller that writes it",
            ),
            (A::SendsXcp, P::Sender, "data has no XCP header", "use a controller that writes one"),
            (A::SendsRcp, P::Sender, "data has no RCP header", "use a controller that writes one"),
            (
                A::EchoesEce,
                P::Receiver,
                "ACKs do not echo marks by ECE",
                "set `echo = \"classic\"` in the group's `endpoint`",
            ),
            (
                A::EchoesSum,
                P::Receiver,
                "ACKs do not sum what routers wrote",
                "set `echo = \"sum\"` in the group's `endpoint`",
            ),
            (
                A::EchoesLast,
                P::Receiver,
                "ACKs do not carry what routers wrote last",
                "set `echo = \"last\"` in the group's `endpoint`",
            ),
            (
                A::EchoesChanges,
                P::Receiver,
                "ACKs do not tell changes of the ECN field",
                "set `echo = \"changes\"` in the group's `endpoint`",
            ),
            (
                A::EchoesCount,
                P::Receiver,
                "ACKs do not count marks",
                "set `echo = \"ce-count\"` in the group's `endpoint`",
            ),
            (
                A::EchoesDelay,
                P::Receiver,
                "ACKs do not tell how long data took",
                "set `echo = \"delay\"` in the group's `endpoint`",
            ),
            (A::Marks, P::SomeLink, "marks packets", "queues that have `ecn = true` mark packets"),
            (
                A::Quenches,
                P::SomeLink,
                "sends source quenches",
                "give a link on the way a queue that sends them",
            ),
            (
                A::WritesLoad,
                P::EveryLink,
                "write a load factor into the ECN field",
                "give the link a meter that does",
            ),
            (A::WritesXcp, P::EveryLink, "fill XCP's header", "give the link a meter that does"),
            (A::WritesRcp, P::EveryLink, "fill RCP's header", "give the link a meter that does"),
            (
                A::WritesBounds,
                P::EveryLink,
                "compare a load factor with the identification of packets",
                "set `meter = \"adpm\"` of the link",
            ),
            (
                A::EchoesEstimate,
                P::Receiver,
                "ACKs do not tell an estimate of the load",
                "set `echo = \"load\"` in the group's `endpoint`",
            ),
            (
                A::SendsLevel,
                P::Sender,
                "data has no level of load",
                "use a controller that writes one",
            ),
            (
                A::WritesLevel,
                P::EveryLink,
                "raise the level of load that data carries",
                "set `meter = \"mlcp\"` of the link",
            ),
            (
                A::EchoesLevel,
                P::Receiver,
                "ACKs do not tell levels of load",
                "set `echo = \"level\"` in the group's `endpoint`",
            ),
        ]
    };

    fn row(self) -> &'static (Self, Place, &'static str, &'static str) {
        &Self::TABLE[self as usize]
    }

    /// Iterates over all abilities.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::TABLE.iter().map(|row| row.0)
    }

    /// Returns the position on the path at which it must be provided.
    #[must_use]
    pub fn place(self) -> Place {
        self.row().1
    }

    /// Returns the phrase for messages: for a sender or a receiver, what is missing; for a link,
    /// the action that it lacks.
    #[must_use]
    pub fn phrase(self) -> &'static str {
        self.row().2
    }

    /// Returns the remedy for messages: how to provide it.
    #[must_use]
    pub fn remedy(self) -> &'static str {
        self.row().3
    }
}

/// A requirement of one part towards the rest of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// Ability that is required.
    pub ability: Ability,
    /// Consequence of its absence, for messages: "ECN never acts"; if `required`, a verb phrase
    /// with the part as subject: "waits for feedback".
    pub why: &'static str,
    /// `true` if the part cannot work without it, so that its absence is an error; otherwise its
    /// absence is a warning.
    pub required: bool,
}

/// Requirements of a part towards the rest of its path, and the abilities that it provides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Contract {
    /// Requirements.
    pub requirements: Vec<Requirement>,
    /// Abilities that the part provides.
    pub provides: Vec<Ability>,
}

impl Contract {
    /// Creates a contract without requirements and abilities.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a requirement whose absence is an error.
    pub fn needs(mut self, ability: Ability, why: &'static str) -> Self {
        self.requirements.push(Requirement { ability, why, required: true });
        self
    }

    /// Adds a requirement whose absence is a warning.
    pub fn wants(mut self, ability: Ability, why: &'static str) -> Self {
        self.requirements.push(Requirement { ability, why, required: false });
        self
    }

    /// Adds an ability that the part provides.
    pub fn provides(mut self, ability: Ability) -> Self {
        self.provides.push(ability);
        self
    }

    /// Applies `more` to the contract if `so`.
    pub fn when(self, so: bool, more: impl FnOnce(Self) -> Self) -> Self {
        if so { more(self) } else { self }
    }
}

/// A part of a path with a contract.
pub trait HasContract {
    /// Returns the contract under these parameters.
    fn contract(&self) -> Contract;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_ability_has_its_own_row() {
        for (i, row) in Ability::TABLE.iter().enumerate() {
            assert_eq!(row.0 as usize, i, "{:?}", row.0);
        }
        assert_eq!(Ability::all().count(), Ability::TABLE.len());
    }
}
