//! CoDel against its control law in closed form and against the pseudo-code of RFC 8289.

use crate::common::{Log, Pkt, fill, link, ms};
use cwnd_aqm::Qdisc;
use cwnd_aqm::codel::{CoDelQueue, Params};
use cwnd_packet::Ecn;
use cwnd_quantity::{Bytes, Duration, Time};
use proptest::prelude::*;

fn codel(params: Params) -> CoDelQueue<Pkt> {
    CoDelQueue::new(&params, &link())
}

/// One packet arrives and one leaves every `tick`, with a standing queue of 40: every sojourn time
/// is 40 ticks.
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
    // A tick of 0.2 ms: the sojourn time is 8 ms, above the target, and a drop is at most a tick
    // late.
    let mut world = Standing::new(Duration::from_micros(200));
    world.run_until(ms(2000), Pkt::plain);
    let drops: Vec<Time> = world.log.drops.iter().map(|d| d.0).collect();
    assert!(world.log.drops.iter().all(|d| d.2 == cwnd_aqm::codel::REASON));

    // The first sojourn time of 5 ms or more is seen at 5 ms; the first drop follows an interval
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
    // Three small packets are more than one of them, but not more than the MTU.
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
    // The times at which packets without ECN would have been dropped.
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
        let limit = cwnd_quantity::QueueSize::Packets(1_000_000);
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
