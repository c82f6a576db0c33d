//! RED against the closed forms of Floyd & Jacobson 1993.

use crate::{Log, Pkt, fill, link, ms};
use cwnd_aqm::red::{Count, Forced, Idle, Mode, Params, Red};
use cwnd_aqm::{Qdisc, Reason};
use cwnd_packet::Ecn;
use cwnd_quantity::{Bytes, QueueSize, Rate, Rng, Time};
use cwnd_schema::Params as _;

fn red(params: &Params) -> Red<Pkt> {
    Red::new(params, &link(), Rng::named(1, "red"))
}

/// Returns RED's average queue length, in the unit of the mode.
fn average(queue: &Red<Pkt>) -> f64 {
    queue.state().expect("RED has an average")
}

/// Returns parameters with distant thresholds, so that nothing is dropped.
fn quiet() -> Params {
    Params {
        min_th: QueueSize::Packets(100_000),
        max_th: QueueSize::Packets(300_000),
        limit: QueueSize::Packets(1_000_000),
        ..Params::default()
    }
}

/// Offers `arrivals` packets to a queue whose length and average are `depth`. Returns the arrivals
/// from each hit to the next, and the log.
fn gaps_between_hits(
    params: &Params,
    depth: u64,
    arrivals: u64,
    packet: impl Fn(u64) -> Pkt,
) -> (Vec<u64>, Log) {
    // With a weight of 1 the average is the length that the last arrival found.
    let mut queue = red(&Params { w_q: 1.0, ..params.clone() });
    let mut log = Log::default();
    while queue.backlog().packets < depth {
        queue.enqueue(ms(0), packet(0), &mut log);
    }
    log = Log::default();
    let (mut last, mut gaps) = (None, Vec::new());
    for n in 0..arrivals {
        let before = log.drops.len() + log.marks.len();
        queue.enqueue(ms(1), packet(n), &mut log);
        if log.drops.len() + log.marks.len() > before {
            gaps.extend(last.map(|last| n - last));
            last = Some(n);
        }
        if queue.backlog().packets > depth {
            queue.dequeue(ms(1), &mut log);
        }
    }
    (gaps, log)
}

/// Checks that `gaps` are uniform over `range` and never outside it.
fn assert_uniform(gaps: &[u64], range: core::ops::RangeInclusive<u64>) {
    let values = range.clone().count() as f64;
    let expected = gaps.len() as f64 / values;
    for value in range.clone() {
        let seen = gaps.iter().filter(|g| **g == value).count() as f64;
        // Five standard deviations of a binomial count.
        let allowed = 5.0 * (expected * (1.0 - 1.0 / values)).sqrt();
        assert!(
            (seen - expected).abs() < allowed,
            "{value} came {seen} times, {expected} expected"
        );
    }
    assert!(gaps.iter().all(|g| range.contains(g)), "{range:?}");
}

#[test]
fn the_average_of_a_constant_queue_follows_the_closed_form() {
    let (mut queue, mut log) = (red(&Params { w_q: 0.002, ..quiet() }), Log::default());
    fill(&mut queue, ms(0), &mut log, (0..100).map(Pkt::plain));
    let start = average(&queue);
    for n in 1..=2000 {
        queue.enqueue(ms(0), Pkt::plain(n), &mut log);
        queue.dequeue(ms(0), &mut log);
        // avg_n = q + (avg_0 − q)(1 − w)^n.
        let expected = 100.0 + (start - 100.0) * (1.0f64 - 0.002).powf(n as f64);
        assert!((average(&queue) - expected).abs() < 1e-9, "after {n}");
    }
}

#[test]
fn the_average_ages_over_idle_time_as_if_packets_had_come_to_an_empty_queue() {
    let (mut queue, mut log) = (red(&Params { w_q: 0.002, ..quiet() }), Log::default());
    fill(&mut queue, ms(0), &mut log, (0..1000).map(Pkt::plain));
    let before = average(&queue);
    while queue.dequeue(ms(500), &mut log).is_some() {}
    // 1500 B take 1.2 ms at 10 Mbit/s; 600 ms are m = 500 packets.
    queue.enqueue(ms(1100), Pkt::plain(0), &mut log);
    let expected = before * (1.0f64 - 0.002).powi(500);
    assert!((average(&queue) / expected - 1.0).abs() < 1e-9);
}

#[test]
fn the_average_ages_at_the_rate_that_the_link_had_meanwhile() {
    for (idle, more) in [(Idle::Emptied, 0), (Idle::Unanswered, 1)] {
        let params = Params { w_q: 0.002, idle, ..quiet() };
        let (mut queue, mut log) = (red(&params), Log::default());
        fill(&mut queue, ms(0), &mut log, (0..1000).map(Pkt::plain));
        let before = average(&queue);
        // The queue is not idle yet.
        queue.on_rate(ms(100), Rate::from_mbit(30));
        while queue.dequeue(ms(500), &mut log).is_some() {}
        // 60 ms at 0.4 ms per packet, 600 ms at 1.2 ms, 120 ms at 0.12 ms: 150 + 500 + 1000.
        queue.on_rate(ms(560), Rate::from_mbit(10));
        queue.on_rate(ms(1160), Rate::from_mbit(100));
        queue.enqueue(ms(1280), Pkt::plain(0), &mut log);
        let expected = before * (1.0f64 - 0.002).powi(1650 + more);
        assert!((average(&queue) / expected - 1.0).abs() < 1e-9, "{}", average(&queue) / expected);
        // The earlier idle time is counted only once.
        assert!(queue.dequeue(ms(1280), &mut log).is_some());
        assert!(queue.dequeue(ms(1280), &mut log).is_none());
        queue.enqueue(ms(1292), Pkt::plain(0), &mut log);
        let expected = expected * (1.0f64 - 0.002).powi(100 + more);
        assert!((average(&queue) / expected - 1.0).abs() < 1e-9);
    }
}

#[test]
fn idle_time_may_begin_unanswered_and_count_whole_packets_and_the_arrival() {
    // ns-2's red.cc, enque and deque: m = int(ptc · idle), then the estimator runs m + 1 times.
    let params = Params { w_q: 0.002, idle: Idle::Unanswered, ..quiet() };
    let (mut queue, mut log) = (red(&params), Log::default());
    fill(&mut queue, ms(0), &mut log, (0..1000).map(Pkt::plain));
    let before = average(&queue);
    for _ in 0..1000 {
        assert!(queue.dequeue(ms(400), &mut log).is_some());
    }
    assert!(queue.dequeue(ms(500), &mut log).is_none());
    // 1500 B take 1.2 ms at 10 Mbit/s; from the unanswered request on, 599 ms are 499.2 packets: m
    // = 499.
    queue.enqueue(ms(1099), Pkt::plain(0), &mut log);
    let expected = before * (1.0f64 - 0.002).powi(500);
    assert!((average(&queue) / expected - 1.0).abs() < 1e-9);
}

#[test]
fn the_first_packet_above_the_threshold_may_be_spared() {
    // With w_q = 1 the third arrival is the first above `min_th`, at p_b = 0.5: hit with p_b / (1 −
    // 0 · p_b) = 0.5. ns-2's red.cc admits it (`old` was 0); the fourth finds p_b = 1.
    let drawn = Params {
        w_q: 1.0,
        min_th: QueueSize::Bytes(Bytes(2_250)),
        max_th: QueueSize::Bytes(Bytes(3_750)),
        max_p: 1.0,
        ecn: false,
        ..Params::default()
    };
    let hits = |params: &Params, arrivals: u64| {
        let hits_of = |seed| {
            let mut queue = Red::new(params, &link(), Rng::named(seed, "red"));
            let mut log = Log::default();
            fill(&mut queue, ms(0), &mut log, (0..arrivals).map(Pkt::plain));
            log.drops.len()
        };
        (0..64).map(hits_of).sum::<usize>()
    };
    assert!((16..=48).contains(&hits(&drawn, 3)));
    let spared = Params { exempt_first: true, ..drawn };
    assert_eq!(hits(&spared, 3), 0);
    assert_eq!(hits(&spared, 4), 64);
}

#[test]
fn a_packet_dropped_from_an_idle_queue_does_not_end_the_idleness() {
    let params = Params {
        w_q: 0.002,
        limit: QueueSize::Bytes(Bytes(150_000)),
        min_th: QueueSize::Packets(100_000),
        max_th: QueueSize::Packets(200_000),
        ..Params::default()
    };
    let (mut queue, mut log) = (red(&params), Log::default());
    fill(&mut queue, ms(0), &mut log, (0..100).map(Pkt::plain));
    let before = average(&queue);
    while queue.dequeue(ms(0), &mut log).is_some() {}
    queue.enqueue(ms(300), Pkt::plain(0).of_size(200_000), &mut log);
    assert_eq!(log.drops.len(), 1);
    queue.enqueue(ms(600), Pkt::plain(0), &mut log);
    let expected = before * (1.0f64 - 0.002).powi(500);
    assert!((average(&queue) / expected - 1.0).abs() < 1e-9);
}

#[test]
fn hits_are_spread_evenly_between_one_and_one_over_p_packets() {
    // Halfway from 5 to 15 with max_p 0.2: p_b = 0.1. The count rises before it is used (Fig. 2 of
    // the paper), so the last of the ten chances is never needed.
    let params = Params { max_p: 0.2, ..Params::default() };
    let (gaps, log) = gaps_between_hits(&params, 10, 100_000, Pkt::plain);
    assert_uniform(&gaps, 1..=9);
    assert!(log.drops.iter().all(|d| d.2 == cwnd_aqm::red::EARLY));
}

#[test]
fn with_wait_hits_are_spread_evenly_between_one_and_two_over_p_packets() {
    let params = Params { max_p: 0.2, wait: true, ..Params::default() };
    let (gaps, _) = gaps_between_hits(&params, 10, 100_000, Pkt::plain);
    assert_uniform(&gaps, 10..=19);
}

#[test]
fn in_byte_mode_a_packet_of_half_the_size_has_half_the_probability() {
    let params = Params {
        min_th: QueueSize::Bytes(Bytes(5_000)),
        max_th: QueueSize::Bytes(Bytes(15_000)),
        mean_packet: Bytes(1000),
        mode: Mode::Bytes,
        max_p: 0.2,
        ..Params::default()
    };
    // 10 kB wait in either case: p_b = 0.1 for a packet of 1000 B.
    let (gaps, _) = gaps_between_hits(&params, 10, 100_000, |n| Pkt::plain(n).of_size(1000));
    assert_uniform(&gaps, 1..=9);
    let (gaps, _) = gaps_between_hits(&params, 20, 100_000, |n| Pkt::plain(n).of_size(500));
    assert_uniform(&gaps, 1..=19);
}

#[test]
fn thresholds_are_read_in_any_unit_and_either_mode() {
    // 7.5 kB = 5 packets of 1500 B = 6 ms at 10 Mbit/s = 0.06 BDP.
    let sizes = [
        (QueueSize::Packets(5), QueueSize::Packets(15)),
        (QueueSize::Bytes(Bytes(7_500)), QueueSize::Bytes(Bytes(22_500))),
        (QueueSize::MilliBdp(60), QueueSize::MilliBdp(180)),
    ];
    for mode in [Mode::Packets, Mode::Bytes] {
        for (min_th, max_th) in sizes {
            let params = Params { min_th, max_th, mode, max_p: 0.2, ..Params::default() };
            let (gaps, _) = gaps_between_hits(&params, 10, 20_000, Pkt::plain);
            assert_uniform(&gaps, 1..=9);
        }
    }
}

/// Returns the probability at an average of exactly `depth` packets of 1500 B, made by a single
/// packet of that total size, and the queue.
fn probability_at(params: &Params, depth: u32) -> (f64, Red<Pkt>) {
    let mut queue = red(&Params { w_q: 1.0, mode: Mode::Bytes, ..params.clone() });
    let mut log = Log::default();
    queue.enqueue(ms(0), Pkt::plain(0).of_size(1500 * depth), &mut log);
    assert!(log.drops.is_empty());
    queue.enqueue(ms(0), Pkt::plain(1), &mut log);
    (queue.probability().unwrap(), queue)
}

#[test]
fn the_probability_follows_the_three_lines_of_gentle_red() {
    let gentle = Params { max_p: 0.1, ..Params::default() };
    for (depth, expected) in [
        (4, 0.0),
        (5, 0.0),
        (10, 0.05),
        (15, 0.1),
        (20, 0.1 + 0.9 / 3.0),
        (29, 0.1 + 0.9 * 14.0 / 15.0),
        (30, 1.0),
    ] {
        let (p, _) = probability_at(&gentle, depth);
        assert!((p - expected).abs() < 1e-12, "at {depth}: {p}");
    }
    let steep = Params { gentle: false, ..gentle };
    for (depth, expected) in [(14, 0.09), (15, 1.0)] {
        assert!((probability_at(&steep, depth).0 - expected).abs() < 1e-12);
    }
}

#[test]
fn equal_thresholds_are_a_step_whatever_the_line_above_it_would_be() {
    let step = QueueSize::Packets(10);
    let params = Params { min_th: step, max_th: step, ..Params::default() };
    for (gentle, forced) in [(true, Forced::Drop), (false, Forced::Mark)] {
        let params = Params { gentle, forced, ..params.clone() };
        for (depth, expected) in [(9, 0.0), (10, 1.0), (25, 1.0)] {
            assert_eq!(probability_at(&params, depth).0, expected, "at {depth}");
        }
    }
    // Thresholds in two units may be equal, or in reverse order, on a link.
    for packets in [10, 8] {
        let max_th = QueueSize::Bytes(Bytes(packets * params.mean_packet.0));
        let mixed = Params { max_th, gentle: true, ..params.clone() };
        for (depth, expected) in [(9, 0.0), (10, 1.0)] {
            assert_eq!(probability_at(&mixed, depth).0, expected, "{packets}, at {depth}");
        }
    }
    // Each packet is hit: marked if it is ECN-capable and ns-2's bound on the probability permits
    // it.
    for (ecn, mark_p, marks) in [(true, None, 50), (false, None, 0), (true, Some(1.0), 0)] {
        let (_, mut queue) = probability_at(&Params { ecn, mark_p, ..params.clone() }, 10);
        let mut log = Log::default();
        (0..50).for_each(|id| queue.enqueue(ms(0), Pkt::ect(id), &mut log));
        assert_eq!((log.marks.len(), log.drops.len()), (marks, 50 - marks));
        assert!(log.marks.iter().chain(&log.drops).all(|e| e.2 == cwnd_aqm::red::EARLY));
    }
}

#[test]
fn above_the_upper_threshold_ecn_capable_packets_are_dropped_or_marked_as_asked() {
    for (forced, mark_p, marks) in
        [(Forced::Drop, None, 0), (Forced::Mark, None, 1), (Forced::Mark, Some(0.5), 0)]
    {
        let params = Params { gentle: false, forced, mark_p, ..Params::default() };
        let (_, mut queue) = probability_at(&params, 15);
        let mut log = Log::default();
        queue.enqueue(ms(0), Pkt::ect(0), &mut log);
        assert_eq!((log.marks.len(), log.drops.len()), (marks, 1 - marks));
        assert!(log.marks.iter().chain(&log.drops).all(|e| e.2 == cwnd_aqm::red::FORCED));
    }
}

#[test]
fn between_the_thresholds_ecn_capable_packets_are_marked_up_to_the_bound_on_p() {
    let params = Params { max_p: 0.2, ..Params::default() };
    let (gaps, log) = gaps_between_hits(&params, 10, 10_000, Pkt::ect);
    assert!(log.drops.is_empty());
    assert_eq!(log.marks.len(), gaps.len() + 1);
    // p_b is 0.1 here: ns-2's rule drops from its mark_p on, not below.
    for (mark_p, marked) in [(0.11, true), (0.1, false)] {
        let params = Params { mark_p: Some(mark_p), ..params.clone() };
        let (_, log) = gaps_between_hits(&params, 10, 10_000, Pkt::ect);
        assert_eq!((log.drops.is_empty(), log.marks.is_empty()), (marked, !marked));
    }
}

#[test]
fn a_mark_tells_whether_the_packet_was_marked_before() {
    let params = Params { gentle: false, forced: Forced::Mark, ..Params::default() };
    let (_, mut queue) = probability_at(&params, 15);
    let mut log = Log::default();
    for ecn in [Ecn::Ect0, Ecn::Ce, Ecn::Ect1, Ecn::Ce] {
        queue.enqueue(ms(0), Pkt { ecn, ..Pkt::plain(0) }, &mut log);
    }
    assert_eq!((log.marks.len(), log.marked_again), (4, 2));
}

#[test]
fn a_full_queue_drops_whatever_the_ecn_field_says() {
    let (mut queue, mut log) =
        (red(&Params { limit: QueueSize::Packets(3), ..quiet() }), Log::default());
    fill(&mut queue, ms(0), &mut log, (0..4).map(Pkt::ect));
    assert_eq!(log.drops, [(Time::ZERO, Pkt::ect(3), Reason::OVERLIMIT)]);
}

/// Returns parameters with p_b = 0.1 at ten packets and no hit for ten packets after the last one.
fn waiting_ten() -> Params {
    Params {
        max_p: 0.2,
        wait: true,
        w_q: 1.0,
        limit: QueueSize::Bytes(Bytes(100_000)),
        ..Params::default()
    }
}

#[test]
fn a_drop_for_lack_of_space_counts_as_a_hit() {
    let (mut queue, mut log) = (red(&waiting_ten()), Log::default());
    fill(&mut queue, ms(0), &mut log, (0..10).map(Pkt::plain));
    for n in 0..2000 {
        // Every ninth packet does not fit.
        let size = if n % 9 == 0 { 200_000 } else { 1500 };
        queue.enqueue(ms(1), Pkt::plain(n).of_size(size), &mut log);
        if queue.backlog().packets > 10 {
            queue.dequeue(ms(1), &mut log);
        }
    }
    assert!(log.drops.iter().all(|d| d.2 == Reason::OVERLIMIT && d.1.size == 200_000));
}

#[test]
fn below_the_lower_threshold_the_count_starts_over() {
    let (mut queue, mut log) = (red(&waiting_ten()), Log::default());
    for _ in 0..500 {
        // Up to ten packets, a few more arrivals, and down again before ten of them were above the
        // threshold.
        fill(&mut queue, ms(0), &mut log, (0..10).map(Pkt::plain));
        for n in 0..4 {
            queue.enqueue(ms(0), Pkt::plain(n), &mut log);
            queue.dequeue(ms(0), &mut log);
        }
        while queue.dequeue(ms(0), &mut log).is_some() {}
    }
    assert!(log.drops.is_empty());
}

#[test]
fn a_short_queue_is_spared_only_where_that_is_asked() {
    // 30 kB per packet, which counts as 20: the average is above both thresholds from the second
    // arrival on.
    let giants = Params { w_q: 1.0, gentle: false, mean_packet: Bytes(1500), ..Params::default() };
    let admitted = |params: &Params| {
        let (mut queue, mut log) = (red(params), Log::default());
        fill(&mut queue, ms(0), &mut log, (0..9).map(|n| Pkt::plain(n).of_size(30_000)));
        queue.backlog().packets
    };
    let bytes = Params { mode: Mode::Bytes, ..giants.clone() };
    assert_eq!(admitted(&bytes), 1);
    // Any byte that waits is a queue of more than one byte.
    assert_eq!(admitted(&Params { exempt_short_queue: true, ..bytes }), 1);

    // In packets, with thresholds of up to one packet: the second and last one admitted finds one
    // waiting.
    let low = Params {
        min_th: QueueSize::Bytes(Bytes(150)),
        max_th: QueueSize::Bytes(Bytes(1_500)),
        ..giants
    };
    assert_eq!(admitted(&low), 1);
    assert_eq!(admitted(&Params { exempt_short_queue: true, ..low }), 2);
}

#[test]
fn the_becn_preset_is_the_setting_of_the_paper() {
    let mut params = Params::default();
    assert!(params.apply_preset("becn"));
    params.check().unwrap();
    params.w_q = 1.0;
    let (mut queue, mut log) = (red(&params), Log::default());
    let packet = |n| Pkt::plain(n).of_size(1000);
    // 15 packets of 1000 B are admitted; the sixteenth finds 15 KB and p_b = 0; at 45 KB all are
    // dropped.
    fill(&mut queue, ms(0), &mut log, (0..16).map(packet));
    assert!(log.drops.is_empty());
    assert_eq!(queue.probability(), Some(0.0));
    fill(&mut queue, ms(0), &mut log, (16..1000).map(packet));
    assert_eq!(queue.backlog().bytes, 45_000);
    assert_eq!(queue.probability(), Some(1.0));
    // Below that the probability rises to 0.1 over 30 KB.
    queue.dequeue(ms(1), &mut log);
    queue.dequeue(ms(1), &mut log);
    queue.enqueue(ms(1), packet(0), &mut log);
    assert!((queue.probability().unwrap() - 0.1 * 28.0 / 30.0).abs() < 1e-12);
}

#[test]
fn contradictory_parameters_are_refused() {
    let refused = |change: &dyn Fn(&mut Params)| {
        let mut params = Params::default();
        change(&mut params);
        params.check().unwrap_err().key
    };
    assert_eq!(refused(&|p| p.max_th = QueueSize::Packets(4)), "max_th");
    assert_eq!(refused(&|p| p.max_p = 0.0), "max_p");
    assert_eq!(refused(&|p| p.w_q = 1.5), "w_q");
    assert_eq!(refused(&|p| p.mean_packet = Bytes(0)), "mean_packet");
    assert_eq!(refused(&|p| p.mark_p = Some(2.0)), "mark_p");
}

#[test]
fn a_small_packet_that_follows_a_drop_is_let_in_where_bytes_are_counted() {
    // ns-2's red.cc, modify_p: 40 B after a drop are less than a packet, so that count · p_b is 0;
    // a packet of the mean size is one.
    let params = Params {
        w_q: 1.0,
        min_th: QueueSize::Bytes(Bytes(1_000)),
        max_th: QueueSize::Bytes(Bytes(3_000)),
        mode: Mode::Bytes,
        mean_packet: Bytes(1000),
        gentle: false,
        wait: true,
        exempt_first: true,
        count: Count::Bytes,
        forced: Forced::Spaced,
        ..Params::default()
    };
    let dropped_of = |params: &Params, size: u32| {
        let (mut queue, mut log) = (red(params), Log::default());
        fill(&mut queue, ms(0), &mut log, (0..9).map(|id| Pkt { size: 1000, ..Pkt::plain(id) }));
        let mut dropped = 0;
        for id in 0..100 {
            // Until a packet of 1000 B is dropped; the packet under test is next.
            let before = log.drops.len();
            while log.drops.len() == before {
                queue.enqueue(ms(1), Pkt { size: 1000, ..Pkt::plain(id) }, &mut log);
            }
            let before = log.drops.len();
            queue.enqueue(ms(1), Pkt { size, ..Pkt::plain(id) }, &mut log);
            dropped += log.drops.len() - before;
        }
        assert!(log.drops.iter().skip(8).all(|(_, _, reason)| reason.name() == "red_forced"));
        dropped
    };
    assert_eq!((dropped_of(&params, 40), dropped_of(&params, 1000)), (0, 100));
    for (count, forced) in [(Count::Packets, Forced::Spaced), (Count::Bytes, Forced::Drop)] {
        let dropped = dropped_of(&Params { count, forced, ..params.clone() }, 40);
        assert_eq!(dropped == 100, forced == Forced::Drop, "{count:?}");
    }
}
