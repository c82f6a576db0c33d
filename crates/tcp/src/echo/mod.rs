//! Registry of echoes, the feedback that a receiver reports to the sender: marks, headers of
//! routers, and one-way delays. Each kind has its own file.

use cwnd_packet::{Ability, Contract, HasContract};
use cwnd_quantity::ParseError;
use cwnd_schema::{Param, RegistryEntry, Value, ValueType, not_a_choice};

pub use crate::echo_policy::{DynEcho, EchoPolicy};

/// Defines the registry of echoes. A line names a variant and its module, which holds `ENTRY`,
/// `PROVIDES` and `policy`; the first is the default.
macro_rules! echoes {
    ($( $kind:ident($module:ident), )+) => {
        $( mod $module; )+

        /// The echo that ACKs carry.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum EchoKind { $(
            #[doc = concat!("`", stringify!($module), "`.")]
            $kind,
        )+ }

        impl EchoKind {
            /// Names of all kinds, as in scenarios.
            pub const NAMES: &'static [&'static str] = &[$( $module::ENTRY.name, )+];
            /// All kinds.
            const ALL: &'static [Self] = &[$( Self::$kind, )+];

            fn entry(self) -> RegistryEntry {
                match self { $( Self::$kind => $module::ENTRY, )+ }
            }

            fn provides(self) -> Option<Ability> {
                match self { $( Self::$kind => $module::PROVIDES, )+ }
            }

            /// Returns the policy of a new receiver; `None` for classic ECE, which the receiver
            /// implements itself.
            pub(crate) fn policy(self) -> Option<Box<dyn DynEcho>> {
                match self { $( Self::$kind => $module::policy(), )+ }
            }
        }
    };
}

echoes! {
    Classic(classic),
    Sum(sum),
    Last(last),
    Changes(changes),
    Level(level),
    None(none),
    CeCount(ce_count),
    Delay(delay),
    Load(load),
    LoadChanged(load_changed),
    LoadEvery(load_every),
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

#[cfg(test)]
mod tests {
    use cwnd_packet::{CongestionHeader, Echo, Ecn};
    use cwnd_quantity::{Rate, Time};

    use super::*;
    use crate::segment::{Body, Flags, Segment};

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
