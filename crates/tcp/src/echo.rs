//! What a receiver tells the sender of the marks and headers that routers wrote into its data.

mod load;

use core::fmt;

use cwnd_units::{Ability, Contract, Declares, Echo, Ecn, Header, Rate48, Time, param_enum};

use crate::segment::Segment;

pub use load::{Carried, LoadEcho};

param_enum! {
    /// What ACKs echo.
    pub enum EchoKind {
        /// ECE, from a CE mark until CWR (RFC 3168 § 6.1.3).
        Classic = "classic",
        /// The sum of what routers wrote since the last ACK, as XCP's feedback needs it where ACKs are delayed.
        Sum = "sum",
        /// What routers wrote into the newest data, as RCP's rate.
        Last = "last",
        /// The ECN field of the newest data, and how often it has changed; a change is acknowledged at once.
        Changes = "changes",
        /// The level of load in the newest data, and how often it has changed; a change is acknowledged at once (MLCP).
        Level = "level",
        /// Nothing: the receiver was not asked whether it knows ECN (BECN § IV-B needs no negotiation).
        None = "none",
        /// How many data packets came with CE (the counter of RFC 9768 § 3.2, in more bits).
        CeCount = "ce-count",
        /// How long the newest data took to arrive, by the clocks of both ends (RFC 6817 § 2.4).
        Delay = "delay",
        /// The receiver's estimate of the load factor: at once when it changes, then in the second ACK after, the third after that … (BMCC § VI).
        Load = "load",
        /// The same in the first ACK after a change only (BMCC § VI: non-redundant).
        LoadChanged = "load-changed",
        /// The same in every ACK.
        LoadEvery = "load-every",
    }
}

impl Declares for EchoKind {
    fn contract(&self) -> Contract {
        let echoes = match self {
            Self::None => return Contract::new(),
            Self::Classic => Ability::EchoesEce,
            Self::Sum => Ability::EchoesSum,
            Self::Last => Ability::EchoesLast,
            Self::Changes => Ability::EchoesChanges,
            Self::Level => Ability::EchoesLevel,
            Self::CeCount => Ability::EchoesCount,
            Self::Delay => Ability::EchoesDelay,
            Self::Load | Self::LoadChanged | Self::LoadEvery => Ability::EchoesEstimate,
        };
        Contract::new().provides(echoes)
    }
}

/// A rule by which ACKs echo. What an ACK that never goes would have told is told by the next one.
pub trait EchoPolicy {
    /// Data arrived now, be it a duplicate. Whether it is to be acknowledged at once.
    fn on_data(&mut self, now: Time, segment: &Segment) -> bool;
    /// What the ACK that goes now tells.
    fn take(&mut self) -> Echo;
    /// By how many bytes of options this makes the ACK longer.
    fn bytes_of(&self, _echo: Echo) -> u16 {
        0
    }
}

/// Any of the policies.
#[derive(Clone, Debug)]
pub enum AnyEcho {
    /// [`EchoKind::None`].
    Nothing(Nothing),
    /// [`EchoKind::Sum`].
    Sum(Sum),
    /// [`EchoKind::Last`].
    Last(Last),
    /// [`EchoKind::Changes`], [`EchoKind::Level`].
    Changes(Changes),
    /// [`EchoKind::CeCount`].
    CeCount(CeCount),
    /// [`EchoKind::Delay`].
    Delay(OneWay),
    /// [`EchoKind::Load`], [`EchoKind::LoadChanged`], [`EchoKind::LoadEvery`].
    Load(LoadEcho),
    /// One that this crate does not know: a study's own, a test's.
    Own(Box<dyn OwnEcho>),
}

/// An echo policy of somebody's own, behind a pointer.
pub trait OwnEcho: EchoPolicy + fmt::Debug + Send + Sync {
    /// Another in the same state.
    fn boxed_clone(&self) -> Box<dyn OwnEcho>;
}

impl<T: EchoPolicy + Clone + fmt::Debug + Send + Sync + 'static> OwnEcho for T {
    fn boxed_clone(&self) -> Box<dyn OwnEcho> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn OwnEcho> {
    fn clone(&self) -> Self {
        self.as_ref().boxed_clone()
    }
}

/// Calls a method of whichever policy it is.
macro_rules! each {
    ($self:expr, $p:ident => $call:expr) => {
        match $self {
            AnyEcho::Nothing($p) => $call,
            AnyEcho::Sum($p) => $call,
            AnyEcho::Last($p) => $call,
            AnyEcho::Changes($p) => $call,
            AnyEcho::CeCount($p) => $call,
            AnyEcho::Delay($p) => $call,
            AnyEcho::Load($p) => $call,
            AnyEcho::Own($p) => $call,
        }
    };
}

impl AnyEcho {
    /// The policy of this kind; the classic one is the receiver's own, which nearly all connections have.
    pub fn new(kind: EchoKind) -> Option<Self> {
        Some(match kind {
            EchoKind::Classic => return None,
            EchoKind::None => Self::Nothing(Nothing),
            EchoKind::Sum => Self::Sum(Sum::default()),
            EchoKind::Last => Self::Last(Last::default()),
            EchoKind::Changes => Self::Changes(Changes::default()),
            EchoKind::Level => Self::Changes(Changes { levels: true, ..Changes::default() }),
            EchoKind::CeCount => Self::CeCount(CeCount::default()),
            EchoKind::Delay => Self::Delay(OneWay::default()),
            EchoKind::Load => Self::Load(LoadEcho::new(Carried::Spaced)),
            EchoKind::LoadChanged => Self::Load(LoadEcho::new(Carried::Changed)),
            EchoKind::LoadEvery => Self::Load(LoadEcho::new(Carried::Every)),
        })
    }
}

impl EchoPolicy for AnyEcho {
    fn on_data(&mut self, now: Time, segment: &Segment) -> bool {
        each!(self, p => p.on_data(now, segment))
    }

    fn take(&mut self) -> Echo {
        each!(self, p => p.take())
    }

    fn bytes_of(&self, echo: Echo) -> u16 {
        each!(self, p => p.bytes_of(echo))
    }
}

/// Echoes nothing, ECE neither.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nothing;

impl EchoPolicy for Nothing {
    fn on_data(&mut self, _: Time, _: &Segment) -> bool {
        false
    }

    fn take(&mut self) -> Echo {
        Echo::None
    }
}

/// Katabi, Handley, Rohrs 2002, § 3.3, for receivers that delay ACKs: every packet's feedback counts once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum {
    delta: i32,
}

impl EchoPolicy for Sum {
    fn on_data(&mut self, _: Time, segment: &Segment) -> bool {
        // A duplicate's too: what a router gives, it takes from what it gives others.
        if let Some(Header::Xcp { delta, .. }) = segment.header() {
            self.delta = self.delta.saturating_add(delta);
        }
        false
    }

    fn take(&mut self) -> Echo {
        Echo::Delta(core::mem::take(&mut self.delta))
    }
}

/// Dukkipati et al. 2005, § 3: the newest rate is the rate.
#[derive(Clone, Copy, Debug, Default)]
pub struct Last {
    rate: Option<Rate48>,
}

impl EchoPolicy for Last {
    fn on_data(&mut self, _: Time, segment: &Segment) -> bool {
        if let Some(Header::Rcp { rate, .. }) = segment.header() {
            self.rate = Some(rate.into());
        }
        false
    }

    fn take(&mut self) -> Echo {
        self.rate.map_or(Echo::None, Echo::Rate)
    }
}

/// A value of few bits that data carries: the two of ECN, or a level of load in a header.
#[derive(Clone, Copy, Debug, Default)]
pub struct Changes {
    levels: bool,
    value: Option<u16>,
    changes: u8,
}

impl EchoPolicy for Changes {
    fn on_data(&mut self, _: Time, segment: &Segment) -> bool {
        let value = match segment.header() {
            _ if !self.levels => Some(segment.ecn as u16),
            Some(Header::Level(level)) => Some(u16::from(level)),
            _ => self.value,
        };
        let changed = self.value.is_some() && value != self.value;
        self.changes = self.changes.wrapping_add(u8::from(changed));
        self.value = value;
        changed
    }

    fn take(&mut self) -> Echo {
        // A level has four bits (MLCP), a code point two.
        let bits = if self.levels { 4 } else { 2 };
        self.value.map_or(Echo::None, |value| Echo::Load { value, bits, changes: self.changes })
    }
}

/// A counter that tells again what lost ACKs told.
#[derive(Clone, Copy, Debug, Default)]
pub struct CeCount {
    packets: u32,
}

impl EchoPolicy for CeCount {
    fn on_data(&mut self, _: Time, segment: &Segment) -> bool {
        // RFC 9768 § 3.2.2: of every packet that arrives, duplicates too.
        self.packets = self.packets.wrapping_add(u32::from(segment.ecn == Ecn::Ce));
        false
    }

    fn take(&mut self) -> Echo {
        Echo::Ce { packets: self.packets }
    }
}

/// LEDBAT's feedback: data has the time when it went, and its receiver takes that from its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct OneWay {
    us: Option<u32>,
}

impl EchoPolicy for OneWay {
    fn on_data(&mut self, now: Time, segment: &Segment) -> bool {
        // In a circle, so that clocks that are apart are no matter: only differences are read.
        self.us = Some((now.0.wrapping_sub(segment.ts.0) / 1000) as u32);
        false
    }

    fn take(&mut self) -> Echo {
        self.us.map_or(Echo::None, |us| Echo::Delay { us })
    }
}

#[cfg(test)]
mod tests {
    use cwnd_units::Rate;

    use super::*;
    use crate::segment::{Body, Flags};

    fn data(header: Header, ecn: Ecn) -> Segment {
        let body = Body::Data { header, again: false };
        Segment { seq: 0, ts: Time::ZERO, len: 1, wire: 41, flags: Flags::default(), ecn, body }
    }

    fn told(kind: EchoKind, arrivals: &[Segment]) -> Vec<(bool, Echo)> {
        let mut policy = AnyEcho::new(kind).unwrap();
        arrivals.iter().map(|s| (policy.on_data(Time(7_000), s), policy.take())).collect()
    }

    #[test]
    fn sums_are_told_once_and_do_not_overflow() {
        let xcp = |delta| data(Header::Xcp { cwnd: 1, rtt_us: 1, delta }, Ecn::NotEct);
        let mut policy = AnyEcho::new(EchoKind::Sum).unwrap();
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
        let rcp = |bits| data(Header::Rcp { rate: Rate(bits), rtt_us: 0 }, Ecn::NotEct);
        let plain = data(Header::None, Ecn::NotEct);
        let rate = |bits| (false, Echo::Rate(Rate(bits).into()));
        let arrivals = [plain, rcp(8), plain, rcp(10_000_000_019)];
        let expected = [(false, Echo::None), rate(8), rate(8), rate(10_000_000_019)];
        assert_eq!(told(EchoKind::Last, &arrivals), expected);
    }

    #[test]
    fn a_change_is_told_at_once_and_counted() {
        let arrivals = [Ecn::Ect0, Ecn::Ect0, Ecn::Ce, Ecn::Ect1].map(|e| data(Header::None, e));
        let load = |now, ecn, changes| (now, Echo::Load { value: ecn as u16, bits: 2, changes });
        let expected = [
            load(false, Ecn::Ect0, 0),
            load(false, Ecn::Ect0, 0),
            load(true, Ecn::Ce, 1),
            load(true, Ecn::Ect1, 2),
        ];
        assert_eq!(told(EchoKind::Changes, &arrivals), expected);
    }

    #[test]
    fn levels_are_told_as_code_points_are_and_data_without_one_changes_nothing() {
        let arrivals = [Header::None, Header::Level(3), Header::None, Header::Level(9)];
        let arrivals = arrivals.map(|header| data(header, Ecn::NotEct));
        let load = |now, value, changes| (now, Echo::Load { value, bits: 4, changes });
        let expected =
            [(false, Echo::None), load(false, 3, 0), load(false, 3, 0), load(true, 9, 1)];
        assert_eq!(told(EchoKind::Level, &arrivals), expected);
    }

    #[test]
    fn marks_are_counted_and_nothing_is_forgotten() {
        let arrivals = [Ecn::Ce, Ecn::Ect0, Ecn::Ce].map(|ecn| data(Header::None, ecn));
        let counts = [1, 1, 2].map(|packets| (false, Echo::Ce { packets }));
        assert_eq!(told(EchoKind::CeCount, &arrivals), counts);
    }

    #[test]
    fn the_newest_delay_is_told() {
        let at = |ns| Segment { ts: Time(ns), ..data(Header::None, Ecn::NotEct) };
        let delay = |us| (false, Echo::Delay { us });
        assert_eq!(told(EchoKind::Delay, &[at(1_000), at(6_999)]), [delay(6), delay(0)]);
    }
}
