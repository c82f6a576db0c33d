//! Invariants of every discipline under any sequence of calls, and the limits of a FIFO in each
//! unit.

use std::collections::BTreeMap;

use crate::{Log, Pkt, fill, link, ms};
use cwnd_aqm::fifo::{Fifo, Params};
use cwnd_aqm::{AnyQdisc, Backlog, Qdisc, QueueParams, Reason};
use cwnd_packet::Ecn;
use cwnd_quantity::{Bytes, Duration, QueueSize, Rng, Time};
use cwnd_schema::{ParamsChoice, Value};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Op {
    Wait(u64),
    Arrive { flow: u64, size: u32, ecn: bool },
    Burst { flow: u64, count: u32 },
    Leave(u32),
    Timer,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        2 => (0u64..200_000_000).prop_map(Op::Wait),
        2 => (0u64..5_000_000).prop_map(Op::Wait),
        4 => (0u64..5, 1u32..2000, any::<bool>())
            .prop_map(|(flow, size, ecn)| Op::Arrive { flow, size, ecn }),
        2 => (0u64..5, 1u32..60).prop_map(|(flow, count)| Op::Burst { flow, count }),
        4 => (1u32..20).prop_map(Op::Leave),
        1 => Just(Op::Timer),
    ]
}

/// Returns every kind and every preset of each, with a small limit in packets and one in bytes.
fn all_params() -> Vec<(String, QueueParams)> {
    let mut all = Vec::new();
    for kind in QueueParams::KINDS {
        let plain = QueueParams::of_kind(kind.name).unwrap();
        let presets: Vec<&str> = plain.params().presets().iter().map(|p| p.name).collect();
        for preset in core::iter::once("").chain(presets) {
            for limit in [QueueSize::Packets(60), QueueSize::Bytes(Bytes(60_000))] {
                let mut params = plain.clone();
                assert!(preset.is_empty() || params.params_mut().apply_preset(preset));
                params.params().check().unwrap();
                params.params_mut().set("limit", &Value::Text(limit.to_string())).unwrap();
                all.push((format!("{} {preset} {limit}", kind.name), params));
            }
        }
    }
    all
}

struct World {
    queue: AnyQdisc<Pkt>,
    log: Log,
    now: Time,
    arrived: BTreeMap<u64, (Pkt, Time)>,
    left: Vec<Pkt>,
    next_id: u64,
}

impl World {
    fn arrive(&mut self, flow: u64, size: u32, ecn: Ecn) {
        let packet = Pkt { id: self.next_id, flow, size, ecn };
        self.next_id += 1;
        self.arrived.insert(packet.id, (packet, self.now));
        self.queue.enqueue(self.now, packet, &mut self.log);
    }

    fn leave(&mut self) -> Option<()> {
        let (packet, entered) = self.queue.dequeue(self.now, &mut self.log)?;
        assert_eq!(entered, self.arrived[&packet.id].1, "the time of entry is that of arrival");
        self.left.push(packet);
        Some(())
    }

    fn timer(&mut self) {
        if let Some(due) = self.queue.next_timer() {
            self.queue.on_timer(self.now);
            let next =
                self.queue.next_timer().expect("a discipline that keeps a clock goes on doing so");
            assert!(next > self.now && next >= due, "the next timer is in the future");
        }
    }

    fn check(&self) {
        let gone: Vec<u64> =
            self.left.iter().chain(self.log.drops.iter().map(|d| &d.1)).map(|p| p.id).collect();
        let mut waiting = self.arrived.clone();
        for id in &gone {
            assert!(waiting.remove(id).is_some(), "packet {id} left or was dropped twice");
        }
        let bytes = waiting.values().map(|(p, _)| u64::from(p.size)).sum();
        assert_eq!(self.queue.backlog(), Backlog { packets: waiting.len() as u64, bytes });
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn packets_are_conserved_order_is_kept_and_only_ect_is_marked(
        ops in prop::collection::vec(op(), 1..250),
        seed: u64,
    ) {
        for (name, params) in all_params() {
            let mut world = World {
                queue: params.build(&link(), Rng::named(seed, &name)),
                log: Log::default(),
                now: Time::ZERO,
                arrived: BTreeMap::new(),
                left: Vec::new(),
                next_id: 0,
            };
            for op in &ops {
                match *op {
                    Op::Wait(ns) => world.now += Duration(ns),
                    Op::Arrive { flow, size, ecn } =>
                        world.arrive(flow, size, if ecn { Ecn::Ect0 } else { Ecn::NotEct }),
                    Op::Burst { flow, count } => (0..count).for_each(|n| {
                        world.arrive(flow, 1500, if n % 2 == 0 { Ecn::Ect1 } else { Ecn::NotEct });
                    }),
                    Op::Leave(count) => (0..count).for_each(|_| { world.leave(); }),
                    Op::Timer => world.timer(),
                }
                if let Some(p) = world.queue.probability() {
                    prop_assert!((0.0..=1.0).contains(&p), "{} {}", name, p);
                }
                world.check();
            }
            while world.leave().is_some() {}
            world.check();
            prop_assert_eq!(world.queue.backlog(), Backlog::default(), "{}", &name);

            // Order within each flow.
            let mut last = BTreeMap::new();
            for packet in &world.left {
                let before = last.insert(packet.flow, packet.id);
                prop_assert!(before.is_none_or(|before| before < packet.id));
            }
            // Marks are on packets that were ECN-capable, once each; no other packet carries CE.
            let mut marked: Vec<u64> = world.log.marks.iter().map(|m| m.1.id).collect();
            for id in &marked {
                prop_assert!(world.arrived[id].0.ecn.is_ect(), "{}", &name);
            }
            marked.sort_unstable();
            let twice = marked.windows(2).any(|w| w[0] == w[1]);
            prop_assert!(!twice, "{}: a packet was marked twice", &name);
            for packet in &world.left {
                prop_assert_eq!(packet.ecn == Ecn::Ce, marked.binary_search(&packet.id).is_ok());
            }
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_fate_to_every_packet() {
    for (name, params) in all_params() {
        let run = || {
            let mut queue = params.build(&link(), Rng::named(3, "queue"));
            let mut log = Log::default();
            let mut now = Time::ZERO;
            for n in 0..4000 {
                now += Duration::from_micros(1000);
                if queue.next_timer().is_some_and(|t| t <= now) {
                    queue.on_timer(now);
                }
                queue.enqueue(now, Pkt::ect(n).of_flow(n % 7), &mut log);
                if n % 10 != 0 {
                    queue.dequeue(now, &mut log);
                }
            }
            (log.drops, log.marks)
        };
        assert_eq!(run(), run(), "{name}");
    }
}

fn fifo(limit: QueueSize) -> Fifo<Pkt> {
    Fifo::new(&Params { limit }, &link())
}

#[test]
fn a_limit_in_packets_holds_exactly_so_many_of_any_size() {
    let (mut queue, mut log) = (fifo(QueueSize::Packets(3)), Log::default());
    fill(
        &mut queue,
        ms(0),
        &mut log,
        [40, 1500, 9000, 40].into_iter().map(|s| Pkt::plain(0).of_size(s)),
    );
    assert_eq!(queue.backlog(), Backlog { packets: 3, bytes: 10_540 });
    assert_eq!(log.drops, [(ms(0), Pkt::plain(0).of_size(40), Reason::OVERLIMIT)]);
}

#[test]
fn a_limit_in_bytes_drops_what_would_exceed_it_and_takes_what_still_fits() {
    let (mut queue, mut log) = (fifo(QueueSize::Bytes(Bytes(4000))), Log::default());
    fill(
        &mut queue,
        ms(0),
        &mut log,
        [1500, 1500, 1500, 1000, 1].into_iter().map(|s| Pkt::plain(0).of_size(s)),
    );
    assert_eq!(queue.backlog(), Backlog { packets: 3, bytes: 4000 });
    assert_eq!(log.drops.iter().map(|d| d.1.size).collect::<Vec<_>>(), [1500, 1]);
}

#[test]
fn a_limit_in_time_or_bdp_is_what_the_link_sends_in_it() {
    // 10 Mbit/s · 60 ms = 75 kB = 50 packets of 1500 B; 1 BDP = 125 kB, which is 83 packets and a
    // third.
    for (limit, packets) in [
        (QueueSize::Time(Duration::from_millis(60)), 50),
        (QueueSize::MilliBdp(1000), 83),
        (QueueSize::MilliBdp(1), 1),
    ] {
        let (mut queue, mut log) = (fifo(limit), Log::default());
        fill(&mut queue, ms(0), &mut log, (0..100).map(Pkt::plain));
        assert_eq!(queue.backlog().packets, packets, "{limit}");
        assert_eq!(log.drops.len() as u64, 100 - packets);
    }
}

#[test]
fn a_full_fifo_drops_ecn_capable_packets_too() {
    let (mut queue, mut log) = (fifo(QueueSize::Packets(1)), Log::default());
    fill(&mut queue, ms(0), &mut log, (0..2).map(Pkt::ect));
    assert!(log.marks.is_empty());
    assert_eq!(log.drops[0].2, Reason::OVERLIMIT);
}

#[test]
fn packets_leave_in_order_with_the_time_they_entered() {
    let (mut queue, mut log) = (fifo(QueueSize::Packets(10)), Log::default());
    for id in 0..5 {
        queue.enqueue(ms(id), Pkt::plain(id), &mut log);
    }
    for id in 0..5 {
        assert_eq!(queue.dequeue(ms(100), &mut log), Some((Pkt::plain(id), ms(id))));
    }
    assert_eq!(queue.dequeue(ms(100), &mut log), None);
    assert_eq!(queue.backlog(), Backlog::default());
}
