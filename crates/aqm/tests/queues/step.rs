//! Step marking beside queues: only the backlog at arrival decides which packet is marked.

use cwnd_aqm::meters::step;
use cwnd_aqm::{AnyQdisc, MeterParams, Qdisc as _, QueueParams, red};
use cwnd_quantity::{Bytes, Duration, QueueSize, Streams, Time};
use cwnd_schema::ParamsChoice as _;
use proptest::prelude::*;

use crate::common::{Log, Pkt, link};

fn beside(queue: &str, threshold: QueueSize) -> AnyQdisc<Pkt> {
    let random = Streams::new(1);
    let queue = QueueParams::of_kind(queue).unwrap().build(&link(), random.named("queue"));
    let meter = MeterParams::Step(step::Params { threshold });
    queue.with_meter(meter.build(&link(), random.named("meter")).unwrap())
}

proptest! {
    /// RFC 8257 § 3.1: CE if the queue is longer than K on arrival, the packet itself counted.
    #[test]
    fn a_packet_is_marked_where_it_makes_what_waits_longer_than_the_threshold(
        steps in prop::collection::vec((0u32..3, 40u32..1501, any::<bool>()), 1..400),
        packets in 0u64..20,
        bytes in prop::option::of(0u64..20_000),
    ) {
        let threshold = bytes.map_or(QueueSize::Packets(packets), |b| QueueSize::Bytes(Bytes(b)));
        let mut queue = beside("fifo", threshold);
        let mut log = Log::default();
        let (mut waiting, mut expected) = (std::collections::VecDeque::new(), Vec::new());
        for (id, (what, size, capable)) in (0..).zip(steps) {
            let now = Time(id * 1000);
            if what == 0 {
                let left = queue.dequeue(now, &mut log).map(|(p, _)| p.id);
                prop_assert_eq!(left, waiting.pop_front().map(|(id, _)| id));
                continue;
            }
            let packet = if capable { Pkt::ect(id) } else { Pkt::plain(id) }.of_size(size);
            let held: u64 = waiting.iter().map(|&(_, size)| u64::from(size)).sum();
            let above = match bytes {
                Some(most) => held + u64::from(size) > most,
                None => waiting.len() as u64 + 1 > packets,
            };
            if above && capable {
                expected.push(id);
            }
            queue.enqueue(now, packet, &mut log);
            if log.drops.last().is_none_or(|(_, dropped, _)| dropped.id != id) {
                waiting.push_back((id, size));
            }
        }
        let marked: Vec<u64> = log.marks.iter().map(|(_, packet, _)| packet.id).collect();
        prop_assert_eq!(marked, expected);
        prop_assert!(log.marks.iter().all(|(.., reason)| *reason == step::STEP));
    }
}

proptest! {
    /// The switch of DCTCP's paper § 3.1, which is RED with both thresholds at K and no average,
    /// marks as the step does.
    #[test]
    fn red_with_equal_thresholds_and_no_average_marks_as_the_step(
        arrives in prop::collection::vec(any::<bool>(), 1..400),
        packets in 1u64..20,
    ) {
        let threshold = QueueSize::Packets(packets);
        let (min_th, max_th) = (threshold, threshold);
        let params = red::Params { min_th, max_th, w_q: 1.0, ..Default::default() };
        let red = QueueParams::Red(params).build(&link(), Streams::new(1).named("red"));
        let marked = |mut queue: AnyQdisc<Pkt>| {
            let mut log = Log::default();
            for (id, arrives) in (0..).zip(&arrives) {
                match arrives {
                    true => queue.enqueue(Time(id * 1000), Pkt::ect(id), &mut log),
                    false => drop(queue.dequeue(Time(id * 1000), &mut log)),
                }
            }
            (log.marks.iter().map(|(_, packet, _)| packet.id).collect::<Vec<_>>(), log.drops.len())
        };
        prop_assert_eq!(marked(red), marked(beside("fifo", threshold)));
    }
}

#[test]
fn a_threshold_in_time_or_bdp_is_what_the_link_sends_in_it() {
    // 10 ms at 10 Mbit/s are 12.5 kB, as is a tenth of the 125 kB: eight full packets fit, the
    // ninth does not.
    for threshold in [QueueSize::Time(Duration::from_millis(10)), QueueSize::MilliBdp(100)] {
        for kind in ["fifo", "codel", "fq-codel"] {
            let (mut queue, mut log) = (beside(kind, threshold), Log::default());
            for id in 0..12 {
                queue.enqueue(Time::ZERO, Pkt::ect(id), &mut log);
            }
            let marked: Vec<u64> = log.marks.iter().map(|(_, packet, _)| packet.id).collect();
            assert_eq!(marked, [8, 9, 10, 11], "{kind}");
            assert_eq!(log.drops, []);
        }
    }
}
