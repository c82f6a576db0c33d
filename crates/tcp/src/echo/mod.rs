//! Registry of echoes, the feedback that a receiver reports to the sender: marks, headers of
//! routers, and one-way delays.

mod load;

use core::fmt;

use cwnd_packet::{Ability, CongestionHeader, Contract, Echo, Ecn, HasContract, Rate48};
use cwnd_quantity::{ParseError, Time};
use cwnd_schema::{Param, RegistryEntry, Value, ValueType, not_a_choice};

use crate::segment::Segment;
pub use load::{Carried, LoadEcho};

/// A rule for the feedback that ACKs carry, in place of ECE. An echo is taken only for an ACK that
/// is sent; feedback that arrives meanwhile accumulates or replaces older feedback.
pub trait EchoPolicy {
    /// Reads a data segment that arrived, duplicates included, or a SYN with a header for routers.
    /// Returns `true` if it must be acknowledged at once; the SYN-ACK never waits.
    fn on_data(&mut self, now: Time, segment: &Segment) -> bool;
    /// Takes the echo for the ACK that is sent now.
    fn take(&mut self) -> Echo;
    /// Returns the bytes that this echo adds to the wire size of its ACK; none by default.
    fn bytes_of(&self, _echo: Echo) -> u16 {
        0
    }
}

/// An echo policy behind a pointer (object-safe [`EchoPolicy`] with `Clone`).
pub trait DynEcho: EchoPolicy + fmt::Debug + Send + Sync {
    /// Returns a boxed copy in the same state.
    fn boxed_clone(&self) -> Box<dyn DynEcho>;
}

impl<T: EchoPolicy + Clone + fmt::Debug + Send + Sync + 'static> DynEcho for T {
    fn boxed_clone(&self) -> Box<dyn DynEcho> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn DynEcho> {
    fn clone(&self) -> Self {
        self.as_ref().boxed_clone()
    }
}

/// Defines the registry of echoes. A kind has a name and a description in scenarios, the ability
/// that a receiver with it provides, and the policy of a new receiver.
macro_rules! echoes {
    ($( $kind:ident { $name:literal: $doc:literal, $provides:expr, $policy:expr } )+) => {
        /// The echo that ACKs carry.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum EchoKind { $(
            #[doc = $doc]
            $kind,
        )+ }

        impl EchoKind {
            /// Names of all kinds, as in scenarios.
            pub const NAMES: &'static [&'static str] = &[$( $name, )+];
            /// All kinds.
            const ALL: &'static [Self] = &[$( Self::$kind, )+];

            fn entry(self) -> RegistryEntry {
                match self { $( Self::$kind => RegistryEntry::new($name, $doc), )+ }
            }

            fn provides(self) -> Option<Ability> {
                match self { $( Self::$kind => $provides, )+ }
            }

            /// Returns the policy of a new receiver; `None` for classic ECE, which the receiver
            /// implements itself.
            pub(crate) fn policy(self) -> Option<Box<dyn DynEcho>> {
                match self { $( Self::$kind => $policy, )+ }
            }
        }
    };
}

echoes! {
    Classic {
        "classic": "ECE, from a CE mark until CWR (RFC 3168 § 6.1.3).",
        Some(Ability::EchoesEce),
        None
    }
    Sum {
        "sum": "The sum of what routers wrote since the last ACK, as XCP's feedback needs it where \
                ACKs are delayed.",
        Some(Ability::EchoesSum),
        Some(Box::new(Sum::default()))
    }
    Last {
        "last": "What routers wrote into the newest data, as RCP's rate.",
        Some(Ability::EchoesLast),
        Some(Box::new(Last::default()))
    }
    Changes {
        "changes": "The ECN field of the newest data, and how often it has changed; a change is \
                    acknowledged at once.",
        Some(Ability::EchoesChanges),
        Some(Box::new(Changes::default()))
    }
    Level {
        "level": "The level of load in the newest data, and how often it has changed; a change is \
                  acknowledged at once (MLCP).",
        Some(Ability::EchoesLevel),
        Some(Box::new(Changes::of_levels()))
    }
    None {
        "none": "Nothing: the receiver was not asked whether it knows ECN (BECN § IV-B needs no \
                 negotiation).",
        None,
        Some(Box::new(Nothing))
    }
    CeCount {
        "ce-count": "How many data packets came with CE (the counter of RFC 9768 § 3.2, in more \
                     bits).",
        Some(Ability::EchoesCount),
        Some(Box::new(CeCount::default()))
    }
    Delay {
        "delay": "How long the newest data took to arrive, by the clocks of both ends (RFC 6817 \
                  § 2.3).",
        Some(Ability::EchoesDelay),
        Some(Box::new(OneWay::default()))
    }
    Load {
        "load": "The receiver's estimate of the load factor: at once when it changes, then in the \
                 second ACK after, the third after that … (BMCC § VI).",
        Some(Ability::EchoesEstimate),
        Some(Box::new(LoadEcho::new(Carried::Spaced)))
    }
    LoadChanged {
        "load-changed": "The same in the first ACK after a change only (BMCC § VI: non-redundant).",
        Some(Ability::EchoesEstimate),
        Some(Box::new(LoadEcho::new(Carried::Changed)))
    }
    LoadEvery {
        "load-every": "The same in every ACK.",
        Some(Ability::EchoesEstimate),
        Some(Box::new(LoadEcho::new(Carried::Every)))
    }
}

impl Param for EchoKind {
    const VALUE_TYPE: ValueType = ValueType::Choice(Self::NAMES);
    type Bound = Self;
    fn read(value: &Value) -> Result<Self, ParseError> {
        let is = |kind: &&Self| matches!(value, Value::Text(name) if kind.entry().is(name));
        let kind = Self::ALL.iter().find(is).copied();
        kind.ok_or_else(|| not_a_choice(value, Self::NAMES))
    }
    fn write(&self) -> Value {
        Value::Text(self.entry().name.to_owned())
    }
}

impl HasContract for EchoKind {
    fn contract(&self) -> Contract {
        let provided = self.provides();
        provided.map_or_else(Contract::new, |ability| Contract::new().provides(ability))
    }
}

/// Sum of XCP's feedback since the last ACK (Katabi, Handley, Rohrs 2002, § 3.3), for delayed ACKs:
/// the feedback of every packet counts once.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    delta: i32,
}

impl EchoPolicy for Sum {
    fn on_data(&mut self, _: Time, segment: &Segment) -> bool {
        // Duplicates count, too: a router takes the bandwidth that it grants to a packet from other
        // flows.
        if let Some(CongestionHeader::Xcp { delta, .. }) = segment.header() {
            self.delta = self.delta.saturating_add(delta);
        }
        false
    }

    fn take(&mut self) -> Echo {
        Echo::Delta(core::mem::take(&mut self.delta))
    }
}

/// Echo of RCP's rate in the newest data with a header (Dukkipati et al. 2005, § 3); nothing before
/// it.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    rate: Option<Rate48>,
}

impl EchoPolicy for Last {
    fn on_data(&mut self, _: Time, segment: &Segment) -> bool {
        if let Some(CongestionHeader::Rcp { rate, .. }) = segment.header() {
            self.rate = Some(rate.into());
        }
        false
    }

    fn take(&mut self) -> Echo {
        self.rate.map_or(Echo::None, Echo::Rate)
    }
}

/// Newest value that data carried: the ECN field, or a level of load in a header. ACKs echo it with
/// the number of its changes; the ACK of a change is sent at once.
#[derive(Clone, Copy, Debug, Default)]
struct Changes {
    /// `true` for levels of load, `false` for the ECN field.
    reads_level: bool,
    /// Newest value; `None` before the first. Data without a level leaves it.
    value: Option<u16>,
    /// Changes so far, modulo 256.
    changes: u8,
}

impl Changes {
    /// Creates the policy for levels of load.
    fn of_levels() -> Self {
        Self { reads_level: true, ..Self::default() }
    }
}

impl EchoPolicy for Changes {
    fn on_data(&mut self, _: Time, segment: &Segment) -> bool {
        let value = match segment.header() {
            _ if !self.reads_level => Some(segment.ecn as u16),
            Some(CongestionHeader::Level(level)) => Some(u16::from(level)),
            _ => self.value,
        };
        let changed = self.value.is_some() && value != self.value;
        self.changes = self.changes.wrapping_add(u8::from(changed));
        self.value = value;
        changed
    }

    fn take(&mut self) -> Echo {
        // A level has four bits (MLCP), a code point two.
        let bits = if self.reads_level { 4 } else { 2 };
        self.value.map_or(Echo::None, |value| Echo::Load { value, bits, changes: self.changes })
    }
}

/// A policy that echoes nothing. Like every policy it replaces ECE.
#[derive(Clone, Copy, Debug, Default)]
struct Nothing;

impl EchoPolicy for Nothing {
    fn on_data(&mut self, _: Time, _: &Segment) -> bool {
        false
    }

    fn take(&mut self) -> Echo {
        Echo::None
    }
}

/// Counter of data packets with CE, modulo 2^32; cumulative, so that a lost ACK loses no mark.
#[derive(Clone, Copy, Debug, Default)]
struct CeCount {
    packets: u32,
}

impl EchoPolicy for CeCount {
    fn on_data(&mut self, _: Time, segment: &Segment) -> bool {
        // Duplicates count, too (RFC 9768 § 3.2: retransmissions included).
        self.packets = self.packets.wrapping_add(u32::from(segment.ecn == Ecn::Ce));
        false
    }

    fn take(&mut self) -> Echo {
        Echo::Ce { packets: self.packets }
    }
}

/// LEDBAT's feedback (RFC 6817 § 2.3): arrival time of the newest data less its timestamp, µs;
/// nothing before the first.
#[derive(Clone, Copy, Debug, Default)]
struct OneWay {
    us: Option<u32>,
}

impl EchoPolicy for OneWay {
    fn on_data(&mut self, now: Time, segment: &Segment) -> bool {
        // Modulo 2^32 µs, so that an offset between the clocks does not matter: only differences
        // are read.
        self.us = Some((now.0.wrapping_sub(segment.ts.0) / 1000) as u32);
        false
    }

    fn take(&mut self) -> Echo {
        self.us.map_or(Echo::None, |us| Echo::Delay { us })
    }
}

#[cfg(test)]
mod tests {
    use cwnd_packet::{CongestionHeader, Ecn};
    use cwnd_quantity::Rate;

    use super::*;
    use crate::segment::{Body, Flags};

    fn data(header: CongestionHeader, ecn: Ecn) -> Segment {
        let body = Body::Data { header, again: false };
        Segment { seq: 0, ts: Time::ZERO, len: 1, wire: 41, flags: Flags::default(), ecn, body }
    }

    fn echoes(kind: EchoKind, arrivals: &[Segment]) -> Vec<(bool, Echo)> {
        let mut policy = kind.policy().unwrap();
        arrivals.iter().map(|s| (policy.on_data(Time(7_000), s), policy.take())).collect()
    }

    #[test]
    fn sums_are_told_once_and_do_not_overflow() {
        let xcp = |delta| data(CongestionHeader::Xcp { cwnd: 1, rtt_us: 1, delta }, Ecn::NotEct);
        let mut policy = EchoKind::Sum.policy().unwrap();
        for delta in [300, -100, 7] {
            assert!(!policy.on_data(Time::ZERO, &xcp(delta)));
        }
        assert_eq!(policy.take(), Echo::Delta(207));
        assert_eq!(policy.take(), Echo::Delta(0));
        for _ in 0..3 {
            policy.on_data(Time::ZERO, &xcp(i32::MIN));
        }
        assert_eq!(policy.take(), Echo::Delta(i32::MIN));
    }

    #[test]
    fn the_newest_rate_is_told_until_there_is_a_newer_one() {
        let rcp = |bits| data(CongestionHeader::Rcp { rate: Rate(bits), rtt_us: 0 }, Ecn::NotEct);
        let plain = data(CongestionHeader::None, Ecn::NotEct);
        let rate = |bits| (false, Echo::Rate(Rate(bits).into()));
        let arrivals = [plain, rcp(8), plain, rcp(10_000_000_019)];
        let expected = [(false, Echo::None), rate(8), rate(8), rate(10_000_000_019)];
        assert_eq!(echoes(EchoKind::Last, &arrivals), expected);
    }

    #[test]
    fn a_change_is_told_at_once_and_counted() {
        let arrivals =
            [Ecn::Ect0, Ecn::Ect0, Ecn::Ce, Ecn::Ect1].map(|e| data(CongestionHeader::None, e));
        let load = |now, ecn, changes| (now, Echo::Load { value: ecn as u16, bits: 2, changes });
        let expected = [
            load(false, Ecn::Ect0, 0),
            load(false, Ecn::Ect0, 0),
            load(true, Ecn::Ce, 1),
            load(true, Ecn::Ect1, 2),
        ];
        assert_eq!(echoes(EchoKind::Changes, &arrivals), expected);
    }

    #[test]
    fn levels_are_told_as_code_points_are_and_data_without_one_changes_nothing() {
        let arrivals = [
            CongestionHeader::None,
            CongestionHeader::Level(3),
            CongestionHeader::None,
            CongestionHeader::Level(9),
        ];
        let arrivals = arrivals.map(|header| data(header, Ecn::NotEct));
        let load = |now, value, changes| (now, Echo::Load { value, bits: 4, changes });
        let expected =
            [(false, Echo::None), load(false, 3, 0), load(false, 3, 0), load(true, 9, 1)];
        assert_eq!(echoes(EchoKind::Level, &arrivals), expected);
    }

    #[test]
    fn marks_are_counted_and_nothing_is_forgotten() {
        let arrivals = [Ecn::Ce, Ecn::Ect0, Ecn::Ce].map(|ecn| data(CongestionHeader::None, ecn));
        let counts = [1, 1, 2].map(|packets| (false, Echo::Ce { packets }));
        assert_eq!(echoes(EchoKind::CeCount, &arrivals), counts);
    }

    #[test]
    fn the_newest_delay_is_told() {
        let at = |ns| Segment { ts: Time(ns), ..data(CongestionHeader::None, Ecn::NotEct) };
        let delay = |us| (false, Echo::Delay { us });
        assert_eq!(echoes(EchoKind::Delay, &[at(1_000), at(6_999)]), [delay(6), delay(0)]);
    }
}
