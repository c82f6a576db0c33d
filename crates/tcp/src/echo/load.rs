//! A receiver's estimate from adaptive deterministic marks, and the ACKs that carry it (BMCC,
//! § II-B and § VI).

use cwnd_packet::{CongestionHeader, Echo, Ecn, adpm};
use cwnd_quantity::Time;

use super::EchoPolicy;
use crate::segment::Segment;

/// Bytes of the TCP option with an estimate: kind, length, and the place of a threshold in 16 bits.
const OPTION_BYTES: u16 = 4;

/// Schedule of the ACKs that carry the estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried {
    /// Every ACK.
    Every,
    /// The first ACK, and the first after a change of the estimate ("non-redundant").
    Changed,
    /// The first ACK, at the start or after a change, then the second after that, the third after
    /// that, and so on (BMCC's).
    Spaced,
}

/// Estimate f̂ of the load factor at the most loaded link, as the place of a threshold ([`adpm`]).
#[derive(Clone, Copy, Debug)]
pub struct LoadEcho {
    carried: Carried,
    /// f̂: the place of the last threshold that tightened the estimate; the highest after CE, 0 at
    /// first.
    place: u16,
    /// Changes of the estimate, modulo 256.
    changes: u8,
    /// § VI: the counter i, "reset to 1 each time the price changes and incremented by 1 each time
    /// f̂ is sent".
    i: u32,
    /// ACKs sent since the last one that carried the estimate, or since a later change.
    without: u32,
}

impl LoadEcho {
    /// Creates an estimate at place 0: "New flows initially estimate f̂ = η₀" (§ III a).
    #[must_use]
    pub const fn new(carried: Carried) -> Self {
        Self { carried, place: 0, changes: 0, i: 1, without: 0 }
    }

    /// Returns f̂ after a packet (§ II-B): ECT(1) bounds it from below by the packet's threshold,
    /// ECT(0) from above, and CE gives the maximum. Not-ECT, and ECT without an identification,
    /// leave the estimate.
    fn updated(&self, ecn: Ecn, header: Option<CongestionHeader>) -> u16 {
        let threshold = match header {
            Some(CongestionHeader::Id(id)) => Some(adpm::hash(id)),
            _ => None,
        };
        match (ecn, threshold) {
            (Ecn::Ce, _) => adpm::MAX_PLACE,
            (Ecn::Ect0, Some(h)) => self.place.min(h),
            (Ecn::Ect1, Some(h)) => self.place.max(h),
            (Ecn::Ect0 | Ecn::Ect1, None) | (Ecn::NotEct, _) => self.place,
        }
    }
}

impl EchoPolicy for LoadEcho {
    fn on_data(&mut self, _: Time, segment: &Segment) -> bool {
        let place = self.updated(segment.ecn, segment.header());
        let changed = place != self.place;
        if changed {
            self.place = place;
            self.changes = self.changes.wrapping_add(1);
            (self.i, self.without) = (1, 0);
        }
        // § VI: "send the estimate immediately after it changes".
        changed
    }

    fn take(&mut self) -> Echo {
        self.without += 1;
        let carries = match self.carried {
            Carried::Every => true,
            Carried::Changed => self.i == 1,
            Carried::Spaced => self.without >= self.i,
        };
        if !carries {
            return Echo::None;
        }
        self.without = 0;
        self.i = self.i.saturating_add(1);
        Echo::Load { value: self.place, bits: u16::BITS as u8, changes: self.changes }
    }

    fn bytes_of(&self, echo: Echo) -> u16 {
        if echo == Echo::None { 0 } else { OPTION_BYTES }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::{Body, Flags};

    fn data(place: u16, ecn: Ecn) -> Segment {
        let id = (0..=u16::MAX).find(|&id| adpm::hash(id) == place).unwrap();
        let body = Body::Data { header: CongestionHeader::Id(id), again: false };
        Segment { seq: 0, ts: Time::ZERO, len: 1, wire: 41, flags: Flags::default(), ecn, body }
    }

    #[test]
    fn a_tighter_bound_moves_the_estimate_and_no_other_does() {
        let mut policy = LoadEcho::new(Carried::Every);
        let mut place = |segment: &Segment| {
            policy.on_data(Time::ZERO, segment);
            match policy.take() {
                Echo::Load { value, changes, .. } => (value, changes),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(place(&data(500, Ecn::Ect0)), (0, 0), "below 500, and so is the first estimate");
        assert_eq!(place(&data(500, Ecn::Ect1)), (500, 1));
        assert_eq!(place(&data(400, Ecn::Ect1)), (500, 1));
        assert_eq!(place(&data(600, Ecn::Ect0)), (500, 1));
        assert_eq!(place(&data(450, Ecn::Ect0)), (450, 2));
        assert_eq!(place(&data(7, Ecn::Ce)), (u16::MAX, 3));
        assert_eq!(place(&data(9, Ecn::NotEct)), (u16::MAX, 3), "a retransmission tells nothing");
        assert_eq!(place(&data(40_000, Ecn::Ect0)), (40_000, 4));
        let unknown = Segment { body: Body::DATA, ..data(1, Ecn::Ect1) };
        assert_eq!(place(&unknown), (40_000, 4), "no identification, no threshold");
    }

    /// Checks the estimate after each packet of `vectors/load.json` (§ II-B).
    #[test]
    fn the_estimate_is_that_of_the_vectors() {
        let text = include_str!("../../../../vectors/load.json");
        let file: serde_json::Value = serde_json::from_str(text).unwrap();
        for case in file["cases"].as_array().unwrap() {
            let mut policy = LoadEcho::new(Carried::Every);
            for row in case["events"].as_array().unwrap().iter().filter(|row| row[0] == "packet") {
                let ecn = match row[5].as_u64().unwrap() {
                    0 => Ecn::NotEct,
                    1 => Ecn::Ect1,
                    2 => Ecn::Ect0,
                    _ => Ecn::Ce,
                };
                let header = row[4]
                    .as_u64()
                    .map_or(CongestionHeader::None, |id| CongestionHeader::Id(id as u16));
                let body = Body::Data { header, again: false };
                policy.on_data(Time::ZERO, &Segment { body, ..data(0, ecn) });
                let Echo::Load { value, .. } = policy.take() else { panic!("{row}") };
                assert_eq!(Some(u64::from(value)), row[6].as_u64(), "{}: {row}", case["name"]);
            }
        }
    }

    #[test]
    fn each_schedule_carries_the_acks_that_it_says() {
        let carried = |carried| {
            let mut policy = LoadEcho::new(carried);
            policy.on_data(Time::ZERO, &data(9, Ecn::Ect1));
            let acks = |policy: &mut LoadEcho, n: usize| -> Vec<usize> {
                (1..=n).filter(|_| policy.take() != Echo::None).collect()
            };
            let first = acks(&mut policy, 16);
            policy.on_data(Time::ZERO, &data(10, Ecn::Ect1));
            (first, acks(&mut policy, 4))
        };
        assert_eq!(carried(Carried::Every), ((1..=16).collect(), vec![1, 2, 3, 4]));
        assert_eq!(carried(Carried::Changed), (vec![1], vec![1]));
        assert_eq!(carried(Carried::Spaced), (vec![1, 3, 6, 10, 15], vec![1, 3]));
    }
}
