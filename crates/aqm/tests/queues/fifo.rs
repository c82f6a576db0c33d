//! The limits of a FIFO, in each unit.

use crate::common::{Log, Pkt, fill, link, ms};
use cwnd_aqm::fifo::{Fifo, Params};
use cwnd_aqm::{Backlog, Qdisc, Reason};
use cwnd_quantity::{Bytes, Duration, QueueSize};

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
