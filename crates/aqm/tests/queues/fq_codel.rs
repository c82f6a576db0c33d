//! FQ-CoDel's scheduler: shares, priority of new flows, overload.

use crate::common::{Log, Pkt, fill, link, ms};
use cwnd_aqm::fq_codel::{FqCoDel, Params};
use cwnd_aqm::{Backlog, Qdisc, Reason};
use cwnd_quantity::{Bytes, Duration, QueueSize, Rng};
use cwnd_schema::Params as _;

fn fq(params: &Params) -> FqCoDel<Pkt> {
    FqCoDel::new(params, &link(), Rng::named(1, "fq"))
}

#[test]
fn backlogged_flows_share_the_line_by_bytes_whatever_their_packet_size() {
    let (mut queue, mut log) = (fq(&Params::default()), Log::default());
    let sizes = [1500, 300, 700];
    for (flow, size) in (1..).zip(sizes) {
        fill(
            &mut queue,
            ms(0),
            &mut log,
            (0..3000).map(|n| Pkt::plain(n).of_flow(flow).of_size(size)),
        );
    }
    let mut sent = [0u64; 3];
    for _ in 0..3000 {
        let (packet, _) = queue.dequeue(ms(1), &mut log).unwrap();
        sent[packet.flow as usize - 1] += u64::from(packet.size);
    }
    // Deficit round robin (Shreedhar & Varghese 1995): two backlogged flows differ by less than a
    // quantum and one packet each.
    let (least, most) = (sent.iter().min().unwrap(), sent.iter().max().unwrap());
    assert!(most - least <= 1514 + 2 * 1500, "{sent:?}");
    assert!(log.drops.is_empty());
}

#[test]
fn a_packet_of_a_new_flow_goes_before_the_backlog_of_the_others() {
    let (mut queue, mut log) = (fq(&Params::default()), Log::default());
    fill(&mut queue, ms(0), &mut log, (0..100).map(|n| Pkt::plain(n).of_flow(1)));
    // The bulk flow has had its turn as a new one and is old now.
    for n in 0..2 {
        assert_eq!(queue.dequeue(ms(1), &mut log).unwrap().0.id, n);
    }
    queue.enqueue(ms(1), Pkt::plain(7).of_flow(2).of_size(100), &mut log);
    assert_eq!(queue.dequeue(ms(1), &mut log).unwrap().0.flow, 2);
    assert_eq!(queue.dequeue(ms(1), &mut log).unwrap().0.flow, 1);
}

#[test]
fn a_flow_that_comes_and_goes_cannot_starve_the_old_ones() {
    let (mut queue, mut log) = (fq(&Params::default()), Log::default());
    fill(&mut queue, ms(0), &mut log, (0..100).map(|n| Pkt::plain(n).of_flow(1).of_size(700)));
    let mut next = |queue: &mut FqCoDel<Pkt>| queue.dequeue(ms(1), &mut log).unwrap().0.flow;
    assert_eq!([next(&mut queue), next(&mut queue), next(&mut queue)], [1, 1, 1]);
    let sparse = Pkt::plain(0).of_flow(2).of_size(100);
    queue.enqueue(ms(1), sparse, &mut Log::default());
    assert_eq!(next(&mut queue), 2);
    // Its queue is now found empty and moves behind the old ones (RFC 8290 § 4.2). If it returns at
    // once, it is not new again: flow 1 continues with the rest of its turn.
    assert_eq!(next(&mut queue), 1);
    queue.enqueue(ms(1), sparse, &mut Log::default());
    assert_eq!([next(&mut queue), next(&mut queue)], [1, 2]);
}

#[test]
fn the_largest_packet_seen_is_never_a_standing_queue() {
    let (mut queue, mut log) = (fq(&Params::default()), Log::default());
    for n in 0..100 {
        queue.enqueue(ms(10 * n), Pkt::plain(n).of_size(9000), &mut log);
        if n > 0 {
            queue.dequeue(ms(10 * n), &mut log);
        }
    }
    assert!(log.drops.is_empty());
}

#[test]
fn each_queue_has_its_own_codel() {
    // Flow 1 has a standing queue; flow 2 sends a packet now and then and never waits.
    let (mut queue, mut log) = (fq(&Params::default()), Log::default());
    let mut sparse_sent = 0;
    for n in 0..20_000u64 {
        let now = cwnd_quantity::Time(n * 200_000);
        queue.enqueue(now, Pkt::ect(n).of_flow(1), &mut log);
        if n < 40 {
            continue;
        }
        if n % 50 == 0 {
            queue.enqueue(now, Pkt::ect(n).of_flow(2).of_size(100), &mut log);
        }
        let (packet, entered) = queue.dequeue(now, &mut log).unwrap();
        if packet.flow == 2 {
            sparse_sent += 1;
            assert_eq!(entered, now, "a sparse flow is served at once");
        }
    }
    assert!(sparse_sent > 300);
    assert!(log.marks.len() > 10);
    assert!(log.marks.iter().all(|m| m.1.flow == 1 && m.2 == cwnd_aqm::codel::REASON));
    assert!(log.drops.is_empty());
}

#[test]
fn overload_drops_from_the_head_of_the_longest_queue_in_one_batch() {
    let params = Params { limit: QueueSize::Packets(100), ..Params::default() };
    let (mut queue, mut log) = (fq(&params), Log::default());
    fill(&mut queue, ms(0), &mut log, (0..40).map(|n| Pkt::ect(n).of_flow(1)));
    // More packets, but fewer bytes.
    fill(&mut queue, ms(0), &mut log, (0..60).map(|n| Pkt::ect(n).of_flow(2).of_size(100)));
    assert!(log.drops.is_empty());
    queue.enqueue(ms(1), Pkt::ect(60).of_flow(2).of_size(100), &mut log);
    // Half of 40 packets, oldest first, dropped although they are ECN-capable.
    assert_eq!(
        log.drops.iter().map(|d| (d.1.flow, d.1.id)).collect::<Vec<_>>(),
        (0..20).map(|n| (1, n)).collect::<Vec<_>>()
    );
    assert!(log.drops.iter().all(|d| d.2 == Reason::OVERLIMIT));
    assert!(log.marks.is_empty());
    assert_eq!(queue.backlog(), Backlog { packets: 81, bytes: 20 * 1500 + 61 * 100 });
}

#[test]
fn a_batch_is_at_most_64_packets() {
    let params = Params { limit: QueueSize::Packets(1000), ..Params::default() };
    let (mut queue, mut log) = (fq(&params), Log::default());
    fill(&mut queue, ms(0), &mut log, (0..1001).map(Pkt::plain));
    assert_eq!(log.drops.len(), 64);
}

#[test]
fn a_limit_in_bytes_holds_after_one_huge_packet() {
    let params = Params { limit: QueueSize::Bytes(Bytes(100_000)), ..Params::default() };
    let (mut queue, mut log) = (fq(&params), Log::default());
    fill(&mut queue, ms(0), &mut log, (0..1000).map(|n| Pkt::plain(n).of_flow(n).of_size(100)));
    queue.enqueue(ms(0), Pkt::plain(0).of_flow(5000).of_size(200_000), &mut log);
    assert!(queue.backlog().bytes <= 100_000);
}

#[test]
fn with_one_queue_it_is_codel() {
    use cwnd_aqm::codel::{self, CoDelQueue};
    let mut one = fq(&Params { flows: 1, ..Params::default() });
    let mut codel = CoDelQueue::new(&codel::Params::default(), &link());
    let (mut log_one, mut log_codel) = (Log::default(), Log::default());
    let mut now = ms(0);
    for n in 0..5000u64 {
        now += Duration::from_micros(300);
        one.enqueue(now, Pkt::plain(n).of_flow(n), &mut log_one);
        codel.enqueue(now, Pkt::plain(n).of_flow(n), &mut log_codel);
        if n > 50 {
            assert_eq!(one.dequeue(now, &mut log_one), codel.dequeue(now, &mut log_codel));
        }
    }
    assert_eq!(log_one.drops, log_codel.drops);
    assert!(log_one.drops.len() > 10);
}

#[test]
fn flows_spread_evenly_over_the_queues() {
    // 64 packets of as many flows, one queue each except for collisions, which show in the order of
    // service. The second packet of a queue is served only after a round. With 1024 queues 64 flows
    // have about two collisions (64·63/2/1024 = 1.97).
    let mut collisions = 0;
    for seed in 0..100 {
        let mut queue = FqCoDel::new(&Params::default(), &link(), Rng::named(seed, "fq"));
        let mut log = Log::default();
        for id in 0..2 {
            fill(
                &mut queue,
                ms(0),
                &mut log,
                (0..64).map(|f| Pkt::plain(id).of_flow(f).of_size(1514)),
            );
        }
        let first_round: Vec<u64> =
            (0..64).map(|_| queue.dequeue(ms(0), &mut log).unwrap().0.id).collect();
        collisions += first_round.iter().filter(|id| **id == 1).count();
    }
    // Poisson with mean 197: five standard deviations are 70.
    assert!((127..=267).contains(&collisions), "{collisions}");
}

#[test]
fn nonsense_is_refused() {
    let refused = |change: &dyn Fn(&mut Params)| {
        let mut params = Params::default();
        change(&mut params);
        params.check().unwrap_err().key
    };
    assert_eq!(refused(&|p| p.flows = 0), "flows");
    assert_eq!(refused(&|p| p.quantum = Bytes(0)), "quantum");
    assert_eq!(refused(&|p| p.target = p.interval), "target");
    assert_eq!(refused(&|p| p.interval = Duration::ZERO), "interval");
}
