//! PIE against the equations of RFC 8033, computed separately, and the rules of Linux 3.17.

use crate::{Log, Pkt, fill, link, ms};
use cwnd_aqm::pie::{BurstRenewal, Params, Pie};
use cwnd_aqm::{Qdisc, Reason};
use cwnd_packet::Ecn;
use cwnd_quantity::{Bytes, Duration, QueueSize, Rng, Time};
use cwnd_schema::Params as _;

fn pie(params: &Params) -> Pie<Pkt> {
    Pie::new(params, &link(), Rng::named(1, "pie"))
}

fn preset(name: &str) -> Params {
    let mut params = Params::default();
    assert!(params.apply_preset(name));
    params.check().unwrap();
    params
}

/// Gives `queue` a sojourn time of `delay` just before its next update, with one packet left
/// behind, and then updates.
fn update_with(queue: &mut Pie<Pkt>, delay: Duration) {
    let due = queue.next_timer().unwrap();
    let mut log = Log::default();
    while queue.dequeue(due, &mut log).is_some() {}
    if delay > Duration::ZERO {
        let entered = Time(due.0 - delay.0);
        fill(queue, entered, &mut log, (0..2).map(Pkt::plain));
        assert!(queue.dequeue(due, &mut log).is_some(), "a queue of two packets is left alone");
    }
    queue.on_timer(due);
}

/// The equations of RFC 8033 § 4.2 and § 5.5, in its order.
struct Rfc8033 {
    drop_prob: f64,
    qdelay_old: f64,
}

impl Rfc8033 {
    fn calculate(&mut self, current_qdelay: f64) {
        let mut p = 0.125 * (current_qdelay - 0.015) + 1.25 * (current_qdelay - self.qdelay_old);
        p /= match self.drop_prob {
            x if x < 0.000_001 => 2048.0,
            x if x < 0.000_01 => 512.0,
            x if x < 0.000_1 => 128.0,
            x if x < 0.001 => 32.0,
            x if x < 0.01 => 8.0,
            x if x < 0.1 => 2.0,
            _ => 1.0,
        };
        if self.drop_prob >= 0.1 && p > 0.02 {
            p = 0.02;
        }
        self.drop_prob += p;
        if current_qdelay == 0.0 && self.qdelay_old == 0.0 {
            self.drop_prob *= 0.98;
        }
        self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
        self.qdelay_old = current_qdelay;
    }
}

#[test]
fn the_probability_follows_the_equations_of_the_rfc_through_every_step_of_its_table() {
    let mut queue = pie(&Params::default());
    let mut rfc = Rfc8033 { drop_prob: 0.0, qdelay_old: 0.0 };
    let mut steps_seen = [false; 7];
    // Up slowly, up fast, near the target, and down to zero; the clock starts late enough for the
    // longest delay.
    queue.on_timer(ms(2000));
    let up = (0..400u64).map(|n| 15 + n / 8);
    let fast = (0..80u64).map(|n| 65 + 5 * (n % 7));
    let about = (0..200u64).map(|n| 10 + n % 11);
    let down = core::iter::repeat_n(0, 1200);
    for (n, delay) in up.chain(fast).chain(about).chain(down).enumerate() {
        let band =
            [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1].iter().filter(|b| rfc.drop_prob >= **b).count();
        steps_seen[band] = true;
        update_with(&mut queue, Duration::from_millis(delay));
        rfc.calculate(delay as f64 / 1000.0);
        let p = queue.probability().unwrap();
        assert!(
            (p - rfc.drop_prob).abs() <= 1e-12,
            "update {n} at {delay} ms: {p} against {}",
            rfc.drop_prob
        );
    }
    assert_eq!(steps_seen, [true; 7]);
    assert_eq!(rfc.drop_prob, 0.0);
}

/// Raises the probability until it is at least `wanted`.
fn raise(queue: &mut Pie<Pkt>, wanted: f64) {
    queue.on_timer(ms(2000));
    let mut delay = 20;
    while queue.probability().unwrap() < wanted {
        update_with(queue, Duration::from_millis(delay));
        delay = (delay + 1).min(400);
    }
}

#[test]
fn the_probability_decays_by_two_per_cent_an_update_once_nothing_waits() {
    // With a target of 1 ns an idle queue is on target, and only the decay is left.
    let mut queue = pie(&Params { target: Duration(1), ..Params::default() });
    queue.on_timer(ms(2000));
    while queue.probability().unwrap() < 0.3 {
        update_with(&mut queue, Duration::from_millis(20));
    }
    update_with(&mut queue, Duration::ZERO);
    let start = queue.probability().unwrap();
    for n in 1..100 {
        update_with(&mut queue, Duration::ZERO);
        let expected = start * 0.98f64.powi(n);
        assert!((queue.probability().unwrap() / expected - 1.0).abs() < 1e-6, "after {n}");
    }
}

#[test]
fn a_late_timer_makes_up_for_all_periods_it_missed() {
    let (mut late, mut punctual) = (pie(&Params::default()), pie(&Params::default()));
    for queue in [&mut late, &mut punctual] {
        fill(queue, ms(0), &mut Log::default(), (0..20).map(Pkt::plain));
        queue.dequeue(ms(100), &mut Log::default());
    }
    late.on_timer(ms(1000));
    for n in 1..=66 {
        assert_eq!(punctual.next_timer(), Some(ms(15 * n)));
        punctual.on_timer(ms(15 * n));
    }
    assert_eq!(late.next_timer(), Some(ms(15 * 67)));
    assert_eq!(late.probability(), punctual.probability());
    assert!(late.probability().unwrap() > 0.0);
}

#[test]
fn a_timer_that_is_late_by_a_lifetime_ends_soon_and_goes_on_from_there() {
    // 4 · 10¹⁸ periods were missed.
    let mut queue = pie(&Params { t_update: Duration(1), ..Params::default() });
    fill(&mut queue, ms(0), &mut Log::default(), (0..20).map(Pkt::plain));
    queue.dequeue(ms(100), &mut Log::default());
    let late = Time(1 << 62);
    queue.on_timer(late);
    assert_eq!(queue.next_timer(), Some(late + Duration(1)));
    // A thousand updates at 100 ms are enough to reach a probability of 1.
    assert_eq!(queue.probability(), Some(1.0));
}

/// Returns a queue with at least the probability `wanted`, no burst allowance, a delay above the
/// target and `packets` waiting.
fn congested(params: &Params, wanted: f64, packets: u64) -> (Pie<Pkt>, f64) {
    let mut queue = pie(params);
    raise(&mut queue, wanted);
    let mut log = Log::default();
    let now = queue.next_timer().unwrap();
    while queue.backlog().packets < packets {
        queue.enqueue(now, Pkt::plain(0), &mut log);
    }
    let p = queue.probability().unwrap();
    (queue, p)
}

#[test]
fn packets_are_hit_with_the_probability() {
    let (mut queue, p) = congested(&Params::default(), 0.05, 10);
    let now = queue.next_timer().unwrap();
    let mut log = Log::default();
    let n = 100_000;
    for id in 0..n {
        queue.enqueue(now, Pkt::ect(id), &mut log);
        queue.dequeue(now, &mut log);
    }
    assert!(log.drops.is_empty());
    assert!(log.marks.iter().all(|m| m.2 == cwnd_aqm::pie::REASON && m.1.ecn == Ecn::Ce));
    // Five standard deviations.
    let allowed = 5.0 * (p * (1.0 - p) / n as f64).sqrt();
    assert!((log.marks.len() as f64 / n as f64 - p).abs() < allowed);
}

#[test]
fn derandomised_hits_come_neither_in_clumps_nor_far_apart() {
    let (mut queue, p) = congested(&Params { derandomise: true, ..Params::default() }, 0.02, 10);
    let now = queue.next_timer().unwrap();
    let mut log = Log::default();
    for id in 0..2_000_000 {
        queue.enqueue(now, Pkt::ect(id), &mut log);
        queue.dequeue(now, &mut log);
    }
    let ids: Vec<u64> = log.marks.iter().map(|m| m.1.id).collect();
    let gaps: Vec<f64> = ids.windows(2).map(|w| (w[1] - w[0]) as f64).collect();
    let (least, most) =
        (gaps.iter().copied().fold(f64::MAX, f64::min), gaps.iter().copied().fold(0.0, f64::max));
    // RFC 8033 § 5.4: hits need 0.85 accumulated, and come at 8.5 at the latest.
    assert!(least >= (0.85 / p).floor() && least <= (0.85 / p).ceil() + 2.0, "{least} with p {p}");
    // Of 20000 geometric intervals some would be longer than that.
    assert!((most - 8.5 / p).abs() <= 1.0, "{most} with p {p}");
    // After 0.85/p packets each is hit with p: the mean is 0.85/p plus that of a geometric time.
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    assert!((mean * p - 1.85).abs() < 0.08, "{}", mean * p);
}

#[test]
fn byte_mode_hits_small_packets_less() {
    let (mut queue, p) = congested(&Params { byte_mode: true, ..Params::default() }, 0.08, 10);
    let now = queue.next_timer().unwrap();
    let (mut large, mut small) = (Log::default(), Log::default());
    let n = 100_000;
    for id in 0..n {
        queue.enqueue(now, Pkt::ect(id), &mut large);
        queue.dequeue(now, &mut large);
        queue.enqueue(now, Pkt::ect(id).of_size(150), &mut small);
        if queue.backlog().packets > 10 {
            queue.dequeue(now, &mut small);
        }
    }
    for (log, p) in [(large, p), (small, p / 10.0)] {
        let allowed = 5.0 * (p * (1.0 - p) / n as f64).sqrt();
        assert!((log.marks.len() as f64 / n as f64 - p).abs() < allowed);
    }
}

#[test]
fn a_queue_of_two_packets_and_a_low_delay_are_left_alone() {
    // Every arrival finds two packets: none is hit, however high the probability. With three some
    // are.
    for (waiting, excused) in [(2, true), (3, false)] {
        let (mut queue, _) = congested(&Params::default(), 0.5, waiting);
        let now = queue.next_timer().unwrap();
        let mut log = Log::default();
        for id in 0..1000 {
            queue.enqueue(now, Pkt::ect(id), &mut log);
            if queue.backlog().packets > waiting {
                queue.dequeue(now, &mut log);
            }
        }
        assert_eq!(log.drops.is_empty(), excused, "{waiting} packets");
    }
    // A delay below half the target prevents hits below a probability of 0.2, not above.
    for (wanted, delay, excused) in [(0.3, 7, true), (0.3, 9, false), (0.6, 7, false)] {
        let (mut queue, _) = congested(&Params::default(), wanted, 10);
        let due = queue.next_timer().unwrap();
        update_with(&mut queue, Duration::from_millis(delay));
        let p = queue.probability().unwrap();
        assert!(p > 0.1 && (p < 0.2) == (wanted < 0.5), "{p}");
        let mut log = Log::default();
        fill(&mut queue, due, &mut log, (0..500).map(Pkt::plain));
        assert!(log.drops.iter().all(|d| d.2 == cwnd_aqm::pie::REASON));
        assert_eq!(log.drops.is_empty(), excused, "{delay} ms at {p}");
    }
}

#[test]
fn a_burst_passes_untouched_for_its_allowance() {
    // A gain so high that the probability is 1 soon after the delay is seen: only the allowance
    // prevents drops.
    let params = Params {
        limit: QueueSize::Packets(1_000_000),
        alpha: 1000.0,
        cap_adjustment: false,
        ecn: false,
        ..Params::default()
    };
    let mut queue = pie(&params);
    let mut log = Log::default();
    for n in 0..400u64 {
        queue.on_timer(ms(n));
        queue.enqueue(ms(n), Pkt::plain(n), &mut log);
        // The line starts at 60 ms: from then on every packet waited 60 ms.
        if n >= 60 {
            queue.dequeue(ms(n), &mut log);
        }
    }
    // The first delay is seen right after the update at 60 ms. The ten updates from 75 to 210 ms
    // use up 150 ms.
    assert_eq!(log.drops[0].0, ms(210));
}

/// Returns the time of the first hit. A packet arrives every millisecond from `from` on. The line
/// stops for 60 ms at `stop`, so that packets wait 60 ms from then on.
fn first_hit(burst_renewal: BurstRenewal, from: u64, stop: u64) -> Time {
    let params = Params {
        burst_renewal,
        limit: QueueSize::Packets(1_000_000),
        alpha: 100_000.0,
        cap_adjustment: false,
        ecn: false,
        ..Params::default()
    };
    let mut queue = pie(&params);
    let mut log = Log::default();
    for n in 0..stop + 1000 {
        queue.on_timer(ms(n));
        if n >= from {
            queue.enqueue(ms(n), Pkt::plain(n), &mut log);
        }
        if n < stop || n >= stop + 60 {
            queue.dequeue(ms(n), &mut log);
        }
        if let Some(hit) = log.drops.first() {
            return hit.0;
        }
        // ns-3 keeps the probability at zero for as long as the allowance lasts.
        let holds = burst_renewal == BurstRenewal::Rest && n < from + 150;
        assert!(!holds || queue.probability() == Some(0.0), "at {n} ms");
    }
    panic!("nothing was hit");
}

#[test]
fn a_burst_after_calm_arrivals_has_a_new_allowance_or_none_before_a_rest() {
    // The delay is seen right after the update at 660 ms. By the RFC each calm arrival until then
    // began another allowance; in ns-3 that of the first packet was used up at 150 ms.
    assert_eq!(first_hit(BurstRenewal::Calm, 0, 600), ms(810));
    assert_eq!(first_hit(BurstRenewal::Rest, 0, 600), ms(675));
    // ns-3 counts from the start of the burst, not from when it is seen; one more update then
    // raises the probability.
    assert_eq!(first_hit(BurstRenewal::Calm, 3000, 3000), ms(3210));
    assert_eq!(first_hit(BurstRenewal::Rest, 3000, 3000), ms(3165));
    // There is no congestion from 150 ms on, so that 101 updates later, at 1665 ms, another
    // allowance begins.
    assert_eq!(first_hit(BurstRenewal::Rest, 0, 1610), ms(1830));
    assert_eq!(first_hit(BurstRenewal::Rest, 0, 1530), ms(1605));
}

#[test]
fn above_the_threshold_ecn_capable_packets_are_dropped_unless_it_is_off() {
    for (mark_ecnth, wanted, marked) in
        [(Some(0.1), 0.05, true), (Some(0.1), 0.15, false), (None, 0.15, true), (None, 0.5, true)]
    {
        let (mut queue, _) = congested(&Params { mark_ecnth, ..Params::default() }, wanted, 10);
        let now = queue.next_timer().unwrap();
        let mut log = Log::default();
        fill(&mut queue, now, &mut log, (0..300).map(Pkt::ect));
        assert_eq!((log.drops.is_empty(), log.marks.is_empty()), (marked, !marked), "{wanted}");
    }
}

#[test]
fn a_full_queue_drops_whatever_the_ecn_field_says() {
    let (mut queue, mut log) =
        (pie(&Params { limit: QueueSize::Packets(2), ..Params::default() }), Log::default());
    fill(&mut queue, ms(0), &mut log, (0..3).map(Pkt::ect));
    assert_eq!(log.drops, [(ms(0), Pkt::ect(2), Reason::OVERLIMIT)]);
    assert!(log.marks.is_empty());
}

/// The update of Linux 3.14 to 4.5 in real numbers.
fn linux_step(prob: f64, qdelay: f64, qdelay_old: f64) -> f64 {
    let scale = if prob < 0.01 {
        0.125
    } else if prob < 0.1 {
        0.5
    } else {
        1.0
    };
    let mut delta = scale * (0.125 * (qdelay - 0.02) + 1.25 * (qdelay - qdelay_old));
    if delta > 0.02 && prob >= 0.1 {
        delta = 0.02;
    }
    if qdelay > 0.25 {
        delta += 0.02;
    }
    let mut next = (prob + delta).clamp(0.0, 1.0);
    if qdelay == 0.0 && qdelay_old == 0.0 {
        next *= 0.98;
    }
    next
}

/// Runs a saturated line of one full packet every 1.2 ms with `depth(t)` packets kept waiting.
/// Returns the probability after each update with the backlog in bytes at that time, and the log.
fn saturated(
    params: &Params,
    duration: Time,
    depth: impl Fn(Time) -> u64,
) -> (Vec<(f64, u64)>, Log) {
    let mut queue = pie(params);
    let mut log = Log::default();
    let (mut now, mut seen) = (Time::ZERO, Vec::new());
    while now < duration {
        now += Duration::from_micros(1200);
        while queue.next_timer().unwrap() <= now {
            let due = queue.next_timer().unwrap();
            let backlog = queue.backlog().bytes;
            queue.on_timer(due);
            seen.push((queue.probability().unwrap(), backlog));
        }
        while queue.backlog().packets < depth(now) {
            queue.enqueue(now, Pkt::ect(0), &mut log);
        }
        queue.dequeue(now, &mut log);
    }
    (seen, log)
}

#[test]
fn linux_3_17_takes_the_delay_from_the_backlog_and_the_departure_rate() {
    let mut params = preset("abe");
    params.limit = QueueSize::Packets(10_000);
    let (seen, _) = saturated(&params, ms(3000), |t| if t < ms(2500) { 34 } else { 260 });
    let (mut rate, mut prob, mut old, mut measured) = (0.0, 0.0, 0.0, 0);
    for (n, (p, backlog)) in seen.iter().enumerate() {
        // Packet 25n leaves at the time of update n, after it. A count of 10 kB is seven packets.
        // The first count begins with a packet that takes no time, so that seven seem to leave in
        // the time of six.
        while (measured + 1) * 7 < 25 * (n + 1) {
            rate = if measured == 0 { 7.0 / 6.0 } else { rate + 0.125 * (1.0 - rate) };
            measured += 1;
        }
        let qdelay = *backlog as f64 / (rate * 1_250_000.0);
        prob = linux_step(prob, qdelay, old);
        old = qdelay;
        // Delays are whole nanoseconds; the trend has a weight of 1.25 each time.
        assert!((p - prob).abs() < 1e-6, "update {n}: {p} against {prob}");
    }
    assert!(
        seen.iter().any(|(_, b)| *b as f64 / 1_250_000.0 > 0.25),
        "the rule for 250 ms was tried"
    );
}

#[test]
fn linux_3_17_grants_a_new_burst_after_calm_and_counts_it_down_by_departures() {
    // A gain on the trend that makes the probability 1 at the first update that sees the backlog.
    let params = Params { beta: 1000.0, ..preset("abe") };
    let calm = |t: Time| ms(500) <= t && t < ms(1500);
    let (_, log) = saturated(&params, ms(2000), |t| if calm(t) { 2 } else { 34 });
    // The first count of seven packets ends 7.2 ms after the first of them left, each later one 8.4
    // ms after the one before. The thirteenth completes 100 ms, after 108 ms; the packet that
    // arrives 1.2 ms later is hit.
    for first_left in [Time(1_200_000), ms(1500)] {
        let hit = log.marks.iter().map(|m| m.0).find(|t| *t >= first_left).unwrap();
        assert_eq!(hit.since(first_left), Duration::from_micros(109_200));
    }
}

#[test]
fn linux_3_17_is_what_the_paper_says() {
    let params = preset("abe");
    assert_eq!(params.target, Duration::from_millis(20));
    assert_eq!(params.t_update, Duration::from_millis(30));
    assert_eq!((params.alpha, params.beta), (0.125, 1.25));
    assert_eq!(params.max_burst, Duration::from_millis(100));
    assert!(!params.byte_mode);
    assert_eq!(params.limit, QueueSize::Packets(1000));
    assert_eq!(params.mark_ecnth, None);
    assert_eq!(preset("linux-3.17").mark_ecnth, Some(0.1));
}

#[test]
fn nonsense_is_refused() {
    let refused = |change: &dyn Fn(&mut Params)| {
        let mut params = Params::default();
        change(&mut params);
        params.check().unwrap_err().key
    };
    assert_eq!(refused(&|p| p.t_update = Duration::ZERO), "t_update");
    assert_eq!(refused(&|p| p.target = Duration::ZERO), "target");
    assert_eq!(refused(&|p| p.alpha = -1.0), "alpha");
    assert_eq!(refused(&|p| p.dq_weight = 0.0), "dq_weight");
    assert_eq!(refused(&|p| p.dq_threshold = Bytes(0)), "dq_threshold");
    assert_eq!(refused(&|p| p.mark_ecnth = Some(1.5)), "mark_ecnth");
}
