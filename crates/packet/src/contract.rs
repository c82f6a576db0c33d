//! Needs of the parts of a path, and what they provide: known before any packet is sent.
//!
//! A controller that waits for what no router writes would run into a wall without a word. So each controller, endpoint,
//! echo policy, queue and meter states its [`Contract`], and a scenario is checked along each of its paths.

/// Something that one part of a path can provide and another can need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Ability {
    /// Data is sent as ECN-capable (RFC 3168 § 6.1).
    Ect,
    /// An ECN-echo reduces the window (RFC 3168 § 6.1.2): not the same as sending ECT.
    ObeysEce,
    /// A router's source quench reduces the window.
    ObeysQuench,
    /// Segments carry timestamps (RFC 7323).
    Timestamps,
    /// Round-trip times that the controller sees have no time in them for which the receiver held
    /// an ACK back.
    PromptRtt,
    /// Segments leave at a rate that the controller gives.
    Pacing,
    /// Data carries the identification of its IP header in a way that means something.
    SendsId,
    /// Data carries XCP's header.
    SendsXcp,
    /// Data carries RCP's header.
    SendsRcp,
    /// ACKs carry ECE (RFC 3168 § 6.1.3).
    EchoesEce,
    /// ACKs sum what routers wrote.
    EchoesSum,
    /// ACKs carry what routers wrote last.
    EchoesLast,
    /// ACKs carry the newest ECN code point and how often it changed.
    EchoesChanges,
    /// ACKs count the packets that came with CE.
    EchoesCount,
    /// ACKs carry how long data took one way.
    EchoesDelay,
    /// Packets are marked instead of dropped.
    Marks,
    /// Senders are told of drops or marks by source quenches.
    Quenches,
    /// Routers write a load factor into the ECN field.
    WritesLoad,
    /// Routers fill XCP's header.
    WritesXcp,
    /// Routers fill RCP's header.
    WritesRcp,
    /// Routers say whether their load factor is above the threshold of a packet's identification (ADPM).
    WritesBounds,
    /// ACKs carry the receiver's estimate of a load factor.
    EchoesEstimate,
    /// Data carries a level of load.
    SendsLevel,
    /// Routers raise the level of load that data carries.
    WritesLevel,
    /// ACKs carry the level of load of the newest data.
    EchoesLevel,
}

/// Where on a path something is provided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Where data comes from: controller and endpoint.
    Sender,
    /// Where data goes to: the echo policy.
    Receiver,
    /// By one link on the way at least: what it tells is enough.
    SomeLink,
    /// By each link on the way that has a rate: a link that is silent would be taken for an idle one.
    EveryLink,
}

impl Ability {
    /// All of them: where they are provided, what is said where they are not (of a link what it would do), and how they are had.
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

    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::TABLE.iter().map(|row| row.0)
    }

    /// Where it is provided.
    #[must_use]
    pub fn place(self) -> Place {
        self.row().1
    }

    /// What is said where a sender or a receiver does not provide it; what a link would do that does.
    #[must_use]
    pub fn said(self) -> &'static str {
        self.row().2
    }

    /// How it is had.
    #[must_use]
    pub fn fix(self) -> &'static str {
        self.row().3
    }
}

/// Something that a part asks of the rest of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// What.
    pub ability: Ability,
    /// What it comes to without: "ECN never acts"; of what is needed, what the part does: "waits for feedback".
    pub why: &'static str,
    /// Whether nothing runs without it; else it is a warning, as the part then acts like another.
    pub needed: bool,
}

/// What a part asks of the rest of its path, and what it provides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Contract {
    /// What it asks for.
    pub asks: Vec<Ask>,
    /// What it provides.
    pub provides: Vec<Ability>,
}

impl Contract {
    /// Asks for nothing and provides nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Refuses to run without it.
    pub fn needs(mut self, ability: Ability, why: &'static str) -> Self {
        self.asks.push(Ask { ability, why, needed: true });
        self
    }

    /// Warns without it.
    pub fn wants(mut self, ability: Ability, why: &'static str) -> Self {
        self.asks.push(Ask { ability, why, needed: false });
        self
    }

    /// Provides it.
    pub fn provides(mut self, ability: Ability) -> Self {
        self.provides.push(ability);
        self
    }

    /// As it is with this on top, if it is so.
    pub fn when(self, so: bool, more: impl FnOnce(Self) -> Self) -> Self {
        if so { more(self) } else { self }
    }
}

/// A part of a path that says what it needs and provides: the parameters of each kind do, in the kind's own file.
pub trait Declares {
    /// What it asks for and provides with these parameters.
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
