//! Meters of the load: the vectors of `vectors/load.json`, event by event, and invariants under any
//! input.

use cwnd_aqm::load::LoadFactor;
use cwnd_aqm::{Backlog, Context, Meter, MeterParams, Reason};
use cwnd_packet::{CongestionHeader, Ecn, adpm};
use cwnd_quantity::{Duration, LinkProperties, Rate, Streams, Time};
use cwnd_schema::{ParamsChoice as _, Value};
use proptest::prelude::*;
use serde_json::Value as Json;

use crate::Pkt;

/// Relative tolerance of a load factor against the vector's; the file states it, too.
const NEAR: f64 = 1e-12;

/// Context with the header of the one packet that is checked.
#[derive(Default)]
struct One {
    header: CongestionHeader,
    marks: u64,
}

impl Context<Pkt> for One {
    fn ecn(&self, packet: &Pkt) -> Ecn {
        packet.ecn
    }
    fn set_ecn(&mut self, packet: &mut Pkt, ecn: Ecn) {
        packet.ecn = ecn;
    }
    fn header<'a>(&'a mut self, _: &'a mut Pkt) -> Option<&'a mut CongestionHeader> {
        Some(&mut self.header)
    }
    fn dropped(&mut self, _: Time, packet: &Pkt, reason: Reason) {
        panic!("a meter drops nothing: {packet:?}, {reason:?}");
    }
    fn marked(&mut self, _: Time, packet: &Pkt, _: Reason, _: bool) {
        assert_eq!(packet.ecn, Ecn::Ce);
        self.marks += 1;
    }
}

const CODES: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];

fn facts(rate: Rate) -> LinkProperties {
    LinkProperties { rate, bdp_rtt: Duration::ZERO }
}

fn build(params: &MeterParams, rate: Rate) -> Box<dyn Meter<Pkt>> {
    let mut meter = params.build(&facts(rate), Streams::new(1).named("meter")).unwrap();
    meter.on_rate(Time::ZERO, rate);
    meter
}

fn params(case: &Json) -> MeterParams {
    let mut params = MeterParams::of_kind(case["meter"].as_str().unwrap()).unwrap();
    if let Some(preset) = case["preset"].as_str() {
        assert!(params.params_mut().apply_preset(preset), "{preset}");
    }
    for (name, value) in case["parameters"].as_object().unwrap() {
        let (name, value) = match (name.strip_suffix("_ns"), value.as_i64()) {
            (Some(name), Some(ns)) => (name, Value::Text(format!("{} ms", ns / 1_000_000))),
            (_, Some(count)) => (name.as_str(), Value::Integer(count)),
            _ => (name.as_str(), Value::Float(value.as_f64().unwrap())),
        };
        if case["preset"].is_null() {
            params.params_mut().set(name, &value).unwrap();
        }
        assert_eq!(params.params().get(name), Some(value), "{name}");
    }
    params.params().check().unwrap();
    params
}

/// Sends one packet through the meter; returns its ECN field afterwards.
fn pass(meter: &mut dyn Meter<Pkt>, now: Time, packet: Pkt, id: Option<u16>) -> Ecn {
    let mut context =
        One { header: id.map_or(CongestionHeader::None, CongestionHeader::Id), marks: 0 };
    let mut packet = packet;
    meter.arrives(now, &mut packet, Backlog::default(), &mut context);
    meter.leaves(now, &mut packet, Backlog::default(), &mut context);
    packet.ecn
}

/// Sends one packet with a level through the meter; returns its level afterwards.
fn raise(meter: &mut dyn Meter<Pkt>, now: Time, mut packet: Pkt, level: u8) -> u8 {
    let mut context = One { header: CongestionHeader::Level(level), marks: 0 };
    let before = packet.ecn;
    meter.arrives(now, &mut packet, Backlog::default(), &mut context);
    meter.leaves(now, &mut packet, Backlog::default(), &mut context);
    assert_eq!((packet.ecn, context.marks), (before, 0), "levels leave ECN alone");
    let CongestionHeader::Level(level) = context.header else { panic!("{:?}", context.header) };
    level
}

#[test]
fn load_factors_and_what_routers_write_of_them_are_those_of_equation_1() {
    let file: Json = serde_json::from_str(include_str!("../../../../vectors/load.json")).unwrap();
    assert_eq!(file["tolerance"]["factor"], NEAR);
    for case in file["cases"].as_array().unwrap() {
        let rate = Rate(case["rate_bit_per_s"].as_u64().unwrap());
        let params = params(case);
        let mut meter = build(&params, rate);
        let mut load = LoadFactor::new(match &params {
            MeterParams::Vcp(p) => &p.load,
            MeterParams::Mlcp(p) => &p.load,
            MeterParams::Adpm(p) => &p.load,
            other => panic!("{other:?}"),
        });
        load.on_rate(Time::ZERO, rate);
        for (number, row) in case["events"].as_array().unwrap().iter().enumerate() {
            let at = format!("{}, event {number}: {row}", case["name"]);
            let now = Time(row[1].as_u64().unwrap());
            if row[0] == "look" {
                let backlog = Backlog { packets: 1, bytes: row[2].as_u64().unwrap() };
                assert_eq!(meter.next_timer(), Some(now), "{at}");
                meter.on_timer(now, backlog);
                load.on_timer(now, backlog);
                let factor = row[3].as_f64().unwrap();
                assert!((load.factor() - factor).abs() <= NEAR * factor.max(1.0), "{at}");
                continue;
            }
            let size = u32::try_from(row[2].as_u64().unwrap()).unwrap();
            if row[0] == "level" {
                let before = u8::try_from(row[3].as_u64().unwrap()).unwrap();
                load.arrives(size);
                let after = raise(&mut *meter, now, Pkt::plain(0).of_size(size), before);
                assert_eq!(Some(u64::from(after)), row[4].as_u64(), "{at}");
                continue;
            }
            let ecn = CODES[row[3].as_u64().unwrap() as usize];
            let id = row[4].as_u64().map(|id| u16::try_from(id).unwrap());
            load.arrives(size);
            let after = pass(&mut *meter, now, Pkt { ecn, ..Pkt::plain(0) }.of_size(size), id);
            assert_eq!(after, CODES[row[5].as_u64().unwrap() as usize], "{at}");
        }
    }
}

/// A meter on a link of 10 Mbit/s whose load was this part of the rate for one interval.
fn loaded(kind: &str, part: f64) -> Box<dyn Meter<Pkt>> {
    let rate = Rate::from_mbit(10);
    let mut meter = build(&MeterParams::of_kind(kind).unwrap(), rate);
    let bytes = (part * 250_000.0) as u32;
    pass(&mut *meter, Time(1), Pkt::plain(0).of_size(bytes), None);
    while let Some(next) = meter.next_timer().filter(|&next| next <= Time(200_000_000)) {
        meter.on_timer(next, Backlog::default());
    }
    meter
}

const LEVELS: [Ecn; 3] = [Ecn::Ect0, Ecn::Ect1, Ecn::Ce];

proptest! {
    /// § II-B, § 3.1: the most loaded of several links prevails, whatever their order; marks of
    /// others stay.
    #[test]
    fn the_order_of_links_is_of_no_matter(
        first in 0.0..1.5_f64,
        second in 0.0..1.5_f64,
        id in any::<u16>(),
        before in 0..4_usize,
        adpm in any::<bool>(),
    ) {
        let kind = if adpm { "adpm" } else { "vcp" };
        let before = CODES[before];
        let through = |loads: &[f64]| {
            loads.iter().fold(before, |ecn, &part| {
                let packet = Pkt { ecn, ..Pkt::plain(0) };
                pass(&mut *loaded(kind, part), Time(200_000_001), packet, Some(id))
            })
        };
        let both = through(&[first, second]);
        prop_assert_eq!(both, through(&[second, first]));
        if before == Ecn::NotEct || before == Ecn::Ce {
            prop_assert_eq!(both, before);
        } else {
            let level = |ecn| LEVELS.iter().position(|&each| each == ecn).unwrap();
            let alone = [&[first], &[second]].map(|loads| level(through(loads)));
            prop_assert_eq!(level(both), alone[0].max(alone[1]));
        }
    }

    /// The same for levels: a higher level stays, wherever it comes from.
    #[test]
    fn the_highest_level_is_written(
        first in 0.0..1.5_f64,
        second in 0.0..1.5_f64,
        came in any::<u8>(),
    ) {
        let through = |loads: &[f64], came| {
            loads.iter().fold(came, |level, &part| {
                raise(&mut *loaded("mlcp", part), Time(200_000_001), Pkt::plain(0), level)
            })
        };
        let both = through(&[first, second], came);
        prop_assert_eq!(both, through(&[second, first], came));
        prop_assert_eq!(both, through(&[first], 0).max(through(&[second], 0)).max(came));
        // A packet without a level is left alone.
        let ecn = pass(&mut *loaded("mlcp", first), Time(200_000_001), Pkt::ect(0), Some(7));
        prop_assert_eq!(ecn, Ecn::Ect0);
    }

    /// A late timer gives a factor over the time that has passed, and counts no interval twice.
    #[test]
    fn a_late_clock_measures_what_has_passed(
        late in prop::collection::vec(0u64..900_000_000, 1..30),
        part in 0.1..2.0_f64,
    ) {
        let rate = Rate::from_mbit(8);
        let p = cwnd_aqm::load::Params { queue_weight: 0.0, ..cwnd_aqm::load::Params::default() };
        let mut load = LoadFactor::new(&p);
        load.on_rate(Time::ZERO, rate);
        // 8 Mbit/s are one byte per microsecond.
        let until = |at: Time| (at.0 as f64 / 1000.0 * part) as u64;
        let (mut last, mut began) = (Time::ZERO, Time::ZERO);
        for late in late {
            let now = load.next_timer() + Duration(late);
            load.arrives((until(now) - until(last)) as u32);
            last = now;
            if load.on_timer(now, Backlog::default()) {
                // Arrivals are whole bytes; an interval may be short after a late one.
                let byte = 1000.0 / now.since(began).0 as f64;
                began = now;
                let factor = load.factor();
                prop_assert!((factor - part).abs() < 1.01 * byte, "{factor} {part}");
            }
            prop_assert!(load.next_timer() > now);
        }
    }
}

#[test]
fn a_link_whose_rate_changes_is_loaded_by_what_it_could_carry() {
    let mut load = LoadFactor::new(&cwnd_aqm::load::Params::default());
    load.on_rate(Time::ZERO, Rate::from_mbit(10));
    // Half of the interval at 10 Mbit/s, half at 2: 1.2 Mbit, 150 kB.
    load.on_rate(Time(100_000_000), Rate::from_mbit(2));
    load.arrives(75_000);
    while !load.on_timer(load.next_timer(), Backlog::default()) {}
    assert!((load.factor() - 0.5).abs() < 1e-12);
    // A link that is down carries nothing: any arrival is overload, and no arrival is no load.
    load.on_rate(Time(200_000_000), Rate(0));
    load.arrives(40);
    while !load.on_timer(load.next_timer(), Backlog::default()) {}
    assert_eq!(load.factor(), f64::INFINITY);
    while !load.on_timer(load.next_timer(), Backlog::default()) {}
    assert_eq!(load.factor(), 0.0);
}

#[test]
fn a_router_that_believes_in_half_of_its_capacity_finds_twice_the_load() {
    let p = cwnd_aqm::load::Params {
        capacity: cwnd_aqm::load::Capacity { assumed_capacity: 0.5 },
        ..cwnd_aqm::load::Params::default()
    };
    let mut load = LoadFactor::new(&p);
    load.on_rate(Time::ZERO, Rate::from_mbit(10));
    load.arrives(100_000);
    while !load.on_timer(load.next_timer(), Backlog::default()) {}
    assert!((load.factor() - 0.8).abs() < 1e-12, "{}", load.factor());
}

#[test]
fn half_of_the_packets_tell_of_a_load_between_one_and_u() {
    // § II-B: ¼ of the thresholds is below η, ¼ up to 1, half up to u. At 1.1 three quarters are
    // below the load.
    let mut meter = loaded("adpm", 1.1);
    let marked = (0..=u16::MAX)
        .filter(|&id| {
            pass(&mut *meter, Time(200_000_001), Pkt::ect(0).of_size(0), Some(id)) == Ecn::Ect1
        })
        .count() as f64;
    assert!((marked / f64::from(adpm::THRESHOLDS) - 0.75).abs() < 1e-3, "{marked}");
}
