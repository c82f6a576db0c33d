//! CoDel against its control law in closed form and against the pseudo-code of RFC 8289;
//! FQ-CoDel's scheduler: shares, priority of new flows, overload.

use crate::{Log, Pkt, fill, link, ms};
use cwnd_aqm::codel::{CoDelQueue, Params};
use cwnd_aqm::fq_codel::{self, FqCoDel};
use cwnd_aqm::{Backlog, Qdisc, Reason};
use cwnd_packet::Ecn;
use cwnd_quantity::{Bytes, Duration, QueueSize, Rng, Time};
use cwnd_schema::Params as _;
use proptest::prelude::*;

fn codel(params: Params) -> CoDelQueue<Pkt> {
    CoDelQueue::new(&params, &link())
}

/// At least one packet arrives and one leaves every `tick`, with a standing queue of 40: sojourn
/// times are at most 39 ticks, and soon nearly that.
struct Standing {
    queue: CoDelQueue<Pkt>,
    log: Log,
    now: Time,
    tick: Duration,
    next: u64,
}

impl Standing {
    const DEPTH: u64 = 40;

    fn new(tick: Duration) -> Self {
        Self {
            queue: codel(Params::default()),
            log: Log::default(),
            now: Time::ZERO,
            tick,
            next: 0,
        }
    }

    /// Runs one tick: fills the queue up to its depth and lets one packet leave.
    fn step(&mut self, packet: impl Fn(u64) -> Pkt) -> Option<(Pkt, Time)> {
        self.now += self.tick;
        while self.queue.backlog().packets < Self::DEPTH {
            self.queue.enqueue(self.now, packet(self.next), &mut self.log);
            self.next += 1;
        }
        self.queue.dequeue(self.now, &mut self.log)
    }

    fn run_until(&mut self, end: Time, packet: impl Fn(u64) -> Pkt) {
        while self.now < end {
            self.step(&packet);
        }
    }
}

#[test]
fn drops_follow_the_control_law() {
    // A tick of 0.2 ms: the sojourn time becomes nearly 7.8 ms, above the target, and a drop is at
    // most a tick late.
    let mut world = Standing::new(Duration::from_micros(200));
    world.run_until(ms(2000), Pkt::plain);
    let drops: Vec<Time> = world.log.drops.iter().map(|d| d.0).collect();
    assert!(world.log.drops.iter().all(|d| d.2 == cwnd_aqm::codel::REASON));

    // The first sojourn time of 5 ms or more is seen at 5.2 ms; the first drop follows an interval
    // later.
    let first = ms(105) + Duration::from_micros(200);
    assert!(drops[0] >= ms(105) && drops[0] <= first, "{:?}", drops[0]);
    // RFC 8289 § 5.6: drop n+1 is due interval/√n after drop n was due. Each is made at the next
    // dequeue.
    let mut due = drops[0].as_secs_f64();
    for (n, dropped) in (1..).zip(&drops[1..]) {
        due += 0.1 / f64::from(n).sqrt();
        let late = dropped.as_secs_f64() - due;
        assert!((-1e-7..=0.000_201).contains(&late), "drop {n} came {late} s after it was due");
    }
    // None is missing at the end.
    assert!(due + 0.1 / (drops.len() as f64).sqrt() > 1.999_8);
}

#[test]
fn nothing_is_dropped_while_the_delay_stays_above_target_for_less_than_an_interval() {
    let mut world = Standing::new(Duration::from_micros(200));
    world.run_until(ms(104), Pkt::plain);
    // One packet with a short delay restarts the observation.
    while world.queue.dequeue(world.now, &mut world.log).is_some() {}
    world.run_until(ms(208), Pkt::plain);
    assert!(world.log.drops.is_empty());
    world.run_until(ms(211), Pkt::plain);
    assert_eq!(world.log.drops.len(), 1);
}

#[test]
fn codel_leaves_dropping_when_the_queue_empties() {
    let mut world = Standing::new(Duration::from_micros(200));
    world.run_until(ms(1000), Pkt::plain);
    let before = world.log.drops.len();
    assert!(before > 5);
    while world.queue.dequeue(world.now, &mut world.log).is_some() {}
    assert_eq!(
        world.log.drops.len(),
        before,
        "an emptying queue is not standing: one packet is no backlog"
    );
    // Afterwards it takes a whole interval above the target again.
    let emptied = world.now;
    world.run_until(emptied + Duration::from_millis(100), Pkt::plain);
    assert_eq!(world.log.drops.len(), before);
}

#[test]
fn a_new_dropping_state_goes_on_at_the_rate_of_a_recent_one() {
    let gap_after_reentry = |pause: Duration| {
        let mut world = Standing::new(Duration::from_micros(200));
        world.run_until(ms(1000), Pkt::plain);
        while world.queue.dequeue(world.now, &mut world.log).is_some() {}
        let count = world.log.drops.len();
        world.now += pause;
        world.run_until(world.now + Duration::from_millis(400), Pkt::plain);
        let again: Vec<Time> = world.log.drops[count..].iter().map(|d| d.0).collect();
        (count, again[1].since(again[0]).as_secs_f64())
    };
    // `count` was the number of drops and `lastcount` 1: the next state starts with the difference
    // (RFC 8289 § 5.5).
    let (count, gap) = gap_after_reentry(Duration::ZERO);
    let expected = 0.1 / ((count - 1) as f64).sqrt();
    assert!((gap - expected).abs() <= 0.000_201, "{gap} against {expected} after {count} drops");
    // More than 16 intervals later it starts with one.
    let (_, gap) = gap_after_reentry(Duration::from_millis(1700));
    assert!((gap - 0.1).abs() <= 0.000_201, "{gap}");
}

#[test]
fn a_backlog_of_one_packet_is_never_a_standing_queue() {
    // One packet stays each time; every sojourn time is 10 ms.
    for (mtu, size) in [(1500, 1500), (1500, 9000), (100, 1500), (1500, 700)] {
        let mut queue = codel(Params { mtu: Bytes(mtu), ..Params::default() });
        let mut log = Log::default();
        queue.enqueue(ms(0), Pkt::plain(0).of_size(size), &mut log);
        for n in 1..100 {
            queue.enqueue(ms(10 * n), Pkt::plain(n).of_size(size), &mut log);
            queue.dequeue(ms(10 * n), &mut log);
        }
        assert!(log.drops.is_empty(), "mtu {mtu}, packets of {size}");
    }
    // Two packets of 400 B stay: more than one of them, and than 600 B, but not than 1500 B.
    for (mtu, hit) in [(1500, false), (600, true)] {
        let mut queue = codel(Params { mtu: Bytes(mtu), ..Params::default() });
        let mut log = Log::default();
        fill(&mut queue, ms(0), &mut log, (0..2).map(|n| Pkt::plain(n).of_size(400)));
        for n in 2..100 {
            queue.enqueue(ms(10 * n), Pkt::plain(n).of_size(400), &mut log);
            queue.dequeue(ms(10 * n), &mut log);
        }
        assert_eq!(!log.drops.is_empty(), hit, "mtu {mtu}");
    }
}

#[test]
fn an_ecn_capable_packet_is_marked_and_sent_and_each_call_marks_one() {
    let mut world = Standing::new(Duration::from_micros(200));
    let mut marked = Vec::new();
    while world.now < ms(1000) {
        let (packet, _) = world.step(Pkt::ect).unwrap();
        if packet.ecn == Ecn::Ce {
            marked.push((world.now, packet.id));
        }
    }
    assert!(world.log.drops.is_empty());
    assert_eq!(world.log.marks.iter().map(|m| (m.0, m.1.id)).collect::<Vec<_>>(), marked);
    // As many as would have been dropped without ECN.
    let mut plain = Standing::new(Duration::from_micros(200));
    plain.run_until(ms(1000), Pkt::plain);
    assert_eq!(marked.len(), plain.log.drops.len());
}

#[test]
fn with_ecn_off_ecn_capable_packets_are_dropped() {
    let mut world = Standing::new(Duration::from_micros(200));
    world.queue = codel(Params { ecn: false, ..Params::default() });
    world.run_until(ms(1000), Pkt::ect);
    assert!(world.log.marks.is_empty() && !world.log.drops.is_empty());
}

/// Pseudo-code of RFC 8289 § 5, with its own names, over a list of arrival times and sizes.
struct Rfc8289 {
    queue: Vec<(u64, u64, u32)>,
    bytes: u64,
    first_above_time: u64,
    drop_next: u64,
    count: u32,
    lastcount: u32,
    dropping: bool,
}

const TARGET: u64 = 5_000_000;
const INTERVAL: u64 = 100_000_000;

impl Rfc8289 {
    fn control_law(t: u64, count: u32) -> u64 {
        t + (INTERVAL as f64 / f64::from(count).sqrt()) as u64
    }

    fn dodequeue(&mut self, now: u64) -> (Option<u64>, bool) {
        if self.queue.is_empty() {
            self.first_above_time = 0;
            return (None, false);
        }
        let (id, tstamp, size) = self.queue.remove(0);
        self.bytes -= u64::from(size);
        let mut ok_to_drop = false;
        if now - tstamp < TARGET || self.bytes <= 1500 {
            self.first_above_time = 0;
        } else if self.first_above_time == 0 {
            self.first_above_time = now + INTERVAL;
        } else if now >= self.first_above_time {
            ok_to_drop = true;
        }
        (Some(id), ok_to_drop)
    }

    fn dequeue(&mut self, now: u64, dropped: &mut Vec<u64>) -> Option<u64> {
        let (mut packet, mut ok_to_drop) = self.dodequeue(now);
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
            }
            while now >= self.drop_next && self.dropping {
                dropped.push(packet.unwrap());
                (packet, ok_to_drop) = self.dodequeue(now);
                if ok_to_drop {
                    self.count += 1;
                    self.drop_next = Self::control_law(self.drop_next, self.count);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok_to_drop {
            dropped.push(packet.unwrap());
            (packet, _) = self.dodequeue(now);
            self.dropping = true;
            let delta = self.count.wrapping_sub(self.lastcount);
            self.count = 1;
            if delta > 1 && (now as i64 - self.drop_next as i64) < 16 * INTERVAL as i64 {
                self.count = delta;
            }
            self.drop_next = Self::control_law(now, self.count);
            self.lastcount = self.count;
        }
        packet
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Phases of arrivals and departures at random rates: overload, drain and idle time, in every
    /// order.
    #[test]
    fn codel_does_what_the_pseudo_code_of_the_rfc_does(
        phases in prop::collection::vec((1u64..4000, 1u64..4000, 50u64..600, 40u32..1501), 1..12)
    ) {
        let limit = QueueSize::Packets(1_000_000);
        let mut ours = codel(Params { limit, ..Params::default() });
        let mut rfc = Rfc8289 {
            queue: Vec::new(),
            bytes: 0,
            first_above_time: 0,
            drop_next: 0,
            count: 0,
            lastcount: 0,
            dropping: false,
        };
        let (mut log, mut dropped) = (Log::default(), Vec::new());
        let (mut now, mut id) = (1_000, 0);
        for (arrival_us, service_us, length_ms, size) in phases {
            let end = now + length_ms * 1_000_000;
            let (mut arrival, mut service) = (now, now);
            while arrival < end || service < end {
                now = arrival.min(service);
                if arrival <= service {
                    ours.enqueue(Time(now), Pkt::plain(id).of_size(size), &mut log);
                    rfc.queue.push((id, now, size));
                    rfc.bytes += u64::from(size);
                    id += 1;
                    arrival += arrival_us * 1000;
                } else {
                    let sent = ours.dequeue(Time(now), &mut log).map(|(p, _)| p.id);
                    prop_assert_eq!(sent, rfc.dequeue(now, &mut dropped));
                    service += service_us * 1000;
                }
            }
        }
        prop_assert_eq!(log.drops.iter().map(|d| d.1.id).collect::<Vec<_>>(), dropped);
    }
}

fn fq(params: &fq_codel::Params) -> FqCoDel<Pkt> {
    FqCoDel::new(params, &link(), Rng::named(1, "fq"))
}

#[test]
fn backlogged_flows_share_the_line_by_bytes_whatever_their_packet_size() {
    let (mut queue, mut log) = (fq(&fq_codel::Params::default()), Log::default());
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
    let (mut queue, mut log) = (fq(&fq_codel::Params::default()), Log::default());
    fill(&mut queue, ms(0), &mut log, (0..100).map(|n| Pkt::plain(n).of_flow(1)));
    // The bulk flow has used up its turn as a new one.
    for n in 0..2 {
        assert_eq!(queue.dequeue(ms(1), &mut log).unwrap().0.id, n);
    }
    queue.enqueue(ms(1), Pkt::plain(7).of_flow(2).of_size(100), &mut log);
    assert_eq!(queue.dequeue(ms(1), &mut log).unwrap().0.flow, 2);
    assert_eq!(queue.dequeue(ms(1), &mut log).unwrap().0.flow, 1);
}

#[test]
fn a_flow_that_comes_and_goes_cannot_starve_the_old_ones() {
    let (mut queue, mut log) = (fq(&fq_codel::Params::default()), Log::default());
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
    let (mut queue, mut log) = (fq(&fq_codel::Params::default()), Log::default());
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
    let (mut queue, mut log) = (fq(&fq_codel::Params::default()), Log::default());
    let mut sparse_sent = 0;
    for n in 0..20_000u64 {
        let now = Time(n * 200_000);
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
    let params = fq_codel::Params { limit: QueueSize::Packets(100), ..fq_codel::Params::default() };
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
    let params =
        fq_codel::Params { limit: QueueSize::Packets(1000), ..fq_codel::Params::default() };
    let (mut queue, mut log) = (fq(&params), Log::default());
    fill(&mut queue, ms(0), &mut log, (0..1001).map(Pkt::plain));
    assert_eq!(log.drops.len(), 64);
}

#[test]
fn a_limit_in_bytes_holds_after_one_huge_packet() {
    let params =
        fq_codel::Params { limit: QueueSize::Bytes(Bytes(100_000)), ..fq_codel::Params::default() };
    let (mut queue, mut log) = (fq(&params), Log::default());
    fill(&mut queue, ms(0), &mut log, (0..1000).map(|n| Pkt::plain(n).of_flow(n).of_size(100)));
    queue.enqueue(ms(0), Pkt::plain(0).of_flow(5000).of_size(200_000), &mut log);
    assert!(queue.backlog().bytes <= 100_000);
}

#[test]
fn with_one_queue_it_is_codel() {
    let mut one = fq(&fq_codel::Params { flows: 1, ..fq_codel::Params::default() });
    let mut codel = CoDelQueue::new(&Params::default(), &link());
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
    // Two packets of each of 64 flows, one queue each except for collisions, which show in the
    // order of service. The second packet of a queue is served only after a round. With 1024 queues
    // 64 flows have about two collisions (64·63/2/1024 = 1.97).
    let mut collisions = 0;
    for seed in 0..100 {
        let mut queue = FqCoDel::new(&fq_codel::Params::default(), &link(), Rng::named(seed, "fq"));
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
    let refused = |change: &dyn Fn(&mut fq_codel::Params)| {
        let mut params = fq_codel::Params::default();
        change(&mut params);
        params.check().unwrap_err().key
    };
    assert_eq!(refused(&|p| p.flows = 0), "flows");
    assert_eq!(refused(&|p| p.quantum = Bytes(0)), "quantum");
    assert_eq!(refused(&|p| p.target = p.interval), "target");
    assert_eq!(refused(&|p| p.interval = Duration::ZERO), "interval");
}
