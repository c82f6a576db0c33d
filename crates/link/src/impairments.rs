//! Impairments of a link: loss, alone or in bursts, jitter, reordering, steps of the delay.

use cwnd_aqm::Reason;
use cwnd_quantity::{Duration, DurationDist, Rng, Shape, Time};
use cwnd_scenario::{BurstLoss, Impairments};

use crate::timeline::Timeline;

/// Loss by the link's impairments, random or periodic, which is not congestion.
pub const LOSS: Reason = Reason::named("link_loss");

/// Impairments of a link, which act behind its line: loss, jitter, reordering, steps of the delay.
#[derive(Debug)]
pub struct LinkImpairments {
    loss: f64,
    /// Number of packets from one periodic loss to the next, the lost one included. Packets that
    /// are lost at random do not count.
    loss_every: Option<u32>,
    since_loss: u32,
    burst_loss: Option<Box<GilbertElliott>>,
    /// Upper bound of independent uniform jitter.
    uniform_jitter: Duration,
    /// Jitter of another distribution, or with correlation.
    jitter_process: Option<Box<JitterProcess>>,
    reorder: f64,
    reorder_delay: Duration,
    delay_steps: DelaySteps,
    rng: Rng,
    lost: LossCounts,
}

/// Outcome for a packet on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Lost.
    Lost,
    /// Held back by this time beyond the propagation delay, without jitter and delay steps; later
    /// packets may overtake it.
    Late(Duration),
    /// Delayed by this time, jitter and delay step, beyond the propagation delay; the caller keeps
    /// packets in order.
    Delayed(Duration),
}

/// Additional propagation delay over time.
#[derive(Debug)]
struct DelaySteps {
    added: Duration,
    steps: Timeline<Duration>,
}

/// Numbers of lost packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossCounts {
    /// All lost packets.
    pub packets: u64,
    /// Lost packets with payload.
    pub data: u64,
}

impl LinkImpairments {
    /// Creates the impairments with random streams of their own: `faults`, `jitter` unless it is
    /// uniform and independent, and `burst_loss` if there are bursts.
    pub fn new(impairments: &Impairments, random: impl Fn(&str) -> Rng) -> Self {
        let correlation = impairments.jitter_correlation;
        let (upper, jitter_process) = match &impairments.jitter.0 {
            Shape::Constant(upper) if *upper == 0 || correlation == Duration::ZERO => {
                (Duration(*upper), None)
            }
            Shape::Constant(upper) => (Duration::ZERO, Some(Shape::Uniform(0, *upper))),
            other => (Duration::ZERO, Some(other.clone())),
        };
        let jitter_process = jitter_process.map(|shape| {
            Box::new(JitterProcess::new(DurationDist(shape), correlation, random("jitter")))
        });
        let burst_loss = impairments
            .burst_loss
            .map(|of| Box::new(GilbertElliott::new(of, random("burst_loss"))));
        Self {
            loss: impairments.loss,
            loss_every: impairments.loss_every,
            since_loss: 0,
            burst_loss,
            uniform_jitter: upper,
            jitter_process,
            reorder: impairments.reorder,
            reorder_delay: impairments.reorder_delay,
            delay_steps: DelaySteps {
                added: Duration::ZERO,
                steps: Timeline::new(
                    impairments.delay_steps.clone(),
                    impairments.delay_steps_period,
                ),
            },
            rng: random("faults"),
            lost: LossCounts { packets: 0, data: 0 },
        }
    }

    /// Draws the outcome for a packet that enters the link.
    #[inline]
    pub fn apply(&mut self, now: Time, has_payload: bool) -> Fate {
        self.delay_steps.advance(now);
        // All draws are made in any case, so that one setting does not change the draws of another.
        let (lost, late) = (self.rng.chance(self.loss), self.rng.chance(self.reorder));
        let mut jitter = self.rng.duration_up_to(self.uniform_jitter);
        if let Some(process) = &mut self.jitter_process {
            jitter += process.at(now);
        }
        let lost = lost | self.burst_loss.as_mut().is_some_and(|link| link.draw_loss());
        if lost || self.is_periodic_loss() {
            self.lost.packets += 1;
            self.lost.data += u64::from(has_payload);
            Fate::Lost
        } else if late {
            Fate::Late(self.reorder_delay)
        } else {
            Fate::Delayed(jitter + self.delay_steps.added)
        }
    }

    /// Counts a packet that is not lost at random; returns `true` if it is the one in `loss_every`
    /// that is lost.
    #[inline]
    fn is_periodic_loss(&mut self) -> bool {
        let Some(every) = self.loss_every else { return false };
        self.since_loss += 1;
        let lost = self.since_loss == every;
        if lost {
            self.since_loss = 0;
        }
        lost
    }

    /// Numbers of packets lost until now.
    pub const fn lost(&self) -> LossCounts {
        self.lost
    }
}

impl DelaySteps {
    #[inline]
    fn advance(&mut self, now: Time) {
        // The last step of a period holds until the first one of the next period.
        if self.steps.next().is_some_and(|at| at <= now)
            && let Some(added) = self.steps.catch_up(now)
        {
            self.added = added;
        }
    }
}

/// Gilbert–Elliott loss: the link is in a good or a bad state, and each state has its own loss
/// probability.
///
/// The state machine is that of netem (`loss_gilb_ell` in net/sched/sch_netem.c): the state at a
/// packet's arrival decides on its loss, and may change before the next packet.
#[derive(Debug)]
struct GilbertElliott {
    good: State,
    bad: State,
    is_bad: bool,
    rng: Rng,
}

/// Probabilities per packet in a state: to leave the state, and to be lost.
#[derive(Clone, Copy, Debug)]
struct State {
    p_leave: f64,
    p_loss: f64,
}

impl GilbertElliott {
    /// Creates a link in the good state.
    pub fn new(of: BurstLoss, rng: Rng) -> Self {
        let good = State { p_leave: of.p, p_loss: 1.0 - of.k };
        let bad = State { p_leave: of.r, p_loss: 1.0 - of.h };
        Self { good, bad, is_bad: false, rng }
    }

    /// Draws the loss of the next packet and the next state; `true` if the packet is lost.
    pub fn draw_loss(&mut self) -> bool {
        let State { p_leave, p_loss } = if self.is_bad { self.bad } else { self.good };
        self.is_bad ^= self.rng.chance(p_leave);
        // Probabilities 0 and 1 need no draw.
        p_loss > 0.0 && (p_loss >= 1.0 || self.rng.chance(p_loss))
    }
}

/// A stationary random delay with a given distribution and an exponential correlation, like that of
/// a radio link.
///
/// The basis is a standard normal process x with E[x(t) x(t + h)] = exp(−h / τ), the
/// Ornstein–Uhlenbeck process. It is drawn at the times of packets, without discretisation error:
/// x(t + h) = ρ x(t) + √(1 − ρ²) · N(0, 1), ρ = exp(−h / τ) (Gillespie, Exact numerical simulation
/// of the Ornstein–Uhlenbeck process and its integral, 1996, eq. 1.11). The delay is the quantile
/// of the distribution at the same probability as x.
#[derive(Debug)]
struct JitterProcess {
    of: DurationDist,
    /// Correlation time τ; with zero, delays are independent.
    correlation: Duration,
    /// Time and value of the last deviate; `None` before the first, and always with τ = 0.
    last: Option<(Time, f64)>,
    rng: Rng,
}

impl JitterProcess {
    /// Creates a delay process with this distribution and correlation time.
    pub const fn new(of: DurationDist, correlation: Duration, rng: Rng) -> Self {
        Self { of, correlation, last: None, rng }
    }

    /// Draws the delay at `now`, which must not precede the last call.
    pub fn at(&mut self, now: Time) -> Duration {
        if self.correlation == Duration::ZERO {
            return self.of.sample(&mut self.rng);
        }
        let fresh = self.rng.normal();
        let x = match self.last {
            None => fresh,
            Some((then, x)) => {
                let passed = now.since(then).0 as f64 / self.correlation.0 as f64;
                // √(1 − ρ²) by `expm1`: accurate where ρ is close to 1.
                libm::exp(-passed) * x + libm::sqrt(-libm::expm1(-2.0 * passed)) * fresh
            }
        };
        self.last = Some((now, x));
        // `as` saturates: a delay beyond 64 bits becomes the longest one.
        Duration((self.of.0.at_deviate(x).unwrap_or_default() + 0.5) as u64)
    }
}

#[cfg(test)]
mod tests {
    use cwnd_quantity::Rng;
    use cwnd_schema::{Param as _, Value};
    use proptest::prelude::*;

    use super::*;

    fn impaired(impairments: &Impairments) -> LinkImpairments {
        LinkImpairments::new(impairments, |name| Rng::named(3, name))
    }

    #[test]
    fn one_packet_in_so_many_is_lost() {
        let mut link = impaired(&Impairments { loss_every: Some(4), ..Impairments::default() });
        // Every second lost packet has payload.
        let lost: Vec<u64> =
            (1..=13).filter(|i| link.apply(Time::ZERO, i % 8 == 0) == Fate::Lost).collect();
        assert_eq!(lost, [4, 8, 12]);
        assert_eq!(link.lost(), LossCounts { packets: 3, data: 1 });
    }

    #[test]
    fn a_packet_is_held_back_for_as_long_as_was_asked_and_others_for_less_than_the_jitter() {
        let (jitter, reorder_delay) = (Duration(1000), Duration(77));
        let mut link = impaired(&Impairments {
            jitter: DurationDist::constant(jitter),
            reorder: 0.3,
            reorder_delay,
            ..Impairments::default()
        });
        let mut late = 0;
        for _ in 0..1000 {
            match link.apply(Time::ZERO, true) {
                Fate::Late(by) => {
                    late += 1;
                    assert_eq!(by, reorder_delay);
                }
                Fate::Delayed(by) => assert!(by <= jitter),
                Fate::Lost => panic!("nothing is to be lost"),
            }
        }
        assert!((250..350).contains(&late), "{late}");
    }

    #[test]
    fn one_impairment_leaves_the_draws_of_the_others_as_they_were() {
        let lost = |shape: Shape, reorder: f64, correlation: u64| -> Vec<u64> {
            let mut link = impaired(&Impairments {
                loss: 0.1,
                jitter: DurationDist(shape),
                jitter_correlation: Duration(correlation),
                reorder,
                reorder_delay: Duration(1),
                ..Impairments::default()
            });
            (0..1000).filter(|_| link.apply(Time::ZERO, true) == Fate::Lost).collect()
        };
        let without = lost(Shape::Constant(0), 0.0, 0);
        for correlation in [0, 1_000_000] {
            assert_eq!(without, lost(Shape::Constant(5_000_000), 0.5, correlation));
            assert_eq!(without, lost(Shape::LogNormal(5_000_000, 0.8), 0.5, correlation));
        }
    }

    #[test]
    fn bursts_come_on_top_of_independent_losses() {
        let bursts = Some(BurstLoss { p: 0.02, r: 0.25, h: 0.0, k: 1.0 });
        let lost = |loss: f64, burst_loss| -> Vec<bool> {
            let mut link = impaired(&Impairments { loss, burst_loss, ..Impairments::default() });
            (0..10_000).map(|_| link.apply(Time::ZERO, true) == Fate::Lost).collect()
        };
        let (alone, burst, both) = (lost(0.1, None), lost(0.0, bursts), lost(0.1, bursts));
        let either: Vec<bool> = alone.iter().zip(&burst).map(|(a, b)| a | b).collect();
        assert_eq!(both, either);
        assert_ne!(alone, either);
    }

    #[test]
    fn a_link_is_longer_from_each_step_on() {
        let ms = Duration::from_millis;
        let at = |n| Time::ZERO + ms(n);
        let delay_steps = vec![(at(10), ms(50)), (at(20), ms(80)), (at(21), ms(7))];
        let mut link = impaired(&Impairments { delay_steps, ..Impairments::default() });
        let times = [0, 9, 10, 19, 22, 500];
        let added = times.map(|n| link.apply(at(n), true));
        assert_eq!(added, [0, 0, 50, 50, 7, 7].map(|n| Fate::Delayed(ms(n))));
    }

    #[test]
    fn steps_begin_anew_after_their_period_however_long_nothing_came() {
        let ms = Duration::from_millis;
        let at = |n| Time::ZERO + ms(n);
        let delay_steps = vec![(at(10), ms(50)), (at(20), ms(80))];
        let delay_steps_period = Some(ms(30));
        let mut link =
            impaired(&Impairments { delay_steps, delay_steps_period, ..Impairments::default() });
        let times = [0, 29, 30, 39, 40, 50, 59, 60, 3_000_009, 3_000_010];
        let added = times.map(|n| link.apply(at(n), true));
        assert_eq!(added, [0, 80, 80, 80, 50, 80, 80, 80, 80, 50].map(|n| Fate::Delayed(ms(n))));
    }

    const PACKETS: usize = 1_000_000;

    fn verdicts(of: BurstLoss) -> impl Iterator<Item = bool> {
        let mut link = GilbertElliott::new(of, Rng::named(3, "test"));
        (0..PACKETS).map(move |_| link.draw_loss())
    }

    fn assert_close(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 0.02, "{found}, expected {expected}");
    }

    /// Gilbert 1960; Elliott 1963: the bad state has the share p / (p + r) of the packets.
    #[test]
    fn the_share_of_lost_packets_is_the_stationary_one() {
        for (p, r, h, k) in [
            (0.01, 0.25, 0.0, 1.0),
            (0.05, 0.1, 0.3, 0.99),
            (0.2, 0.9, 0.5, 1.0),
            (1.0, 1.0, 0.2, 0.9),
        ] {
            let lost = verdicts(BurstLoss { p, r, h, k }).filter(|lost| *lost).count();
            let (found, bad) = (lost as f64 / PACKETS as f64, p / (p + r));
            let expected = bad * (1.0 - h) + (1.0 - bad) * (1.0 - k);
            // The states of consecutive packets have correlation 1 - p - r; the loss draws are
            // independent.
            let states = (k - h).powi(2) * bad * (1.0 - bad) * (2.0 - p - r) / (p + r);
            let error = ((states + expected * (1.0 - expected)) / PACKETS as f64).sqrt();
            assert!((found - expected).abs() < 4.0 * error, "{found}, expected {expected}");
        }
    }

    #[test]
    fn bursts_last_1_over_r_packets_in_the_mean_and_what_lies_between_them_1_over_p() {
        let (p, r) = (0.02, 0.2);
        let lost: Vec<bool> = verdicts(BurstLoss { p, r, h: 0.0, k: 1.0 }).collect();
        let runs = |of: bool| -> Vec<usize> {
            lost.chunk_by(|a, b| a == b).filter(|run| run[0] == of).map(<[bool]>::len).collect()
        };
        let mean = |runs: &[usize]| runs.iter().sum::<usize>() as f64 / runs.len() as f64;
        let bursts = runs(true);
        assert_close(mean(&bursts), 1.0 / r);
        assert_close(mean(&runs(false)), 1.0 / p);
        // The lengths of bursts are geometric.
        let longer = bursts.iter().filter(|length| **length > 5).count();
        assert_close(longer as f64 / bursts.len() as f64, (1.0 - r).powi(5));
    }

    /// `loss_gilb_ell`, with `a1` to `a4` as `tc` computes them: p, r, h and 1 - k; it loses in the
    /// bad state by draws above `a3`, which has the same probability as draws below 1 - h.
    #[test]
    fn states_and_losses_are_those_of_netem() {
        let (p, r, h, k) = (0.05, 0.3, 0.4, 0.9);
        let mut random = Rng::named(3, "test");
        let mut good = true;
        let netem = (0..PACKETS).map(|_| {
            if good {
                if random.unit() < p {
                    good = false;
                }
                random.unit() < 1.0 - k
            } else {
                if random.unit() < r {
                    good = true;
                }
                random.unit() < 1.0 - h
            }
        });
        assert!(netem.eq(verdicts(BurstLoss { p, r, h, k })));
    }

    fn jitter(of: &str, correlation: Duration, seed: u64) -> JitterProcess {
        let of = DurationDist::read(&Value::Text(of.to_owned())).unwrap();
        JitterProcess::new(of, correlation, Rng::named(seed, "test"))
    }

    /// Delays in milliseconds at equal intervals.
    fn series(mut jitter: JitterProcess, step: Duration, n: u64) -> Vec<f64> {
        (0..n).map(|i| jitter.at(Time::ZERO + step * i).0 as f64 / 1e6).collect()
    }

    fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
        let n = values.len() as f64;
        values.sum::<f64>() / n
    }

    /// Autocorrelation of the values at this lag.
    fn correlation(values: &[f64], lag: usize) -> f64 {
        let m = mean(values.iter().copied());
        let variance = mean(values.iter().map(|v| (v - m) * (v - m)));
        let pairs = values.iter().zip(&values[lag..]);
        mean(pairs.map(|(a, b)| (a - m) * (b - m))) / variance
    }

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn lognormal_delays_forget_as_the_closed_form_says() {
        // With a deviation as large as the mean, σ² = ln 2. The correlation of exp(σ x) at h is
        // (exp(σ² ρ) − 1) / (exp(σ²) − 1) = 2^ρ − 1, ρ = exp(−h / τ).
        let values = series(jitter("lognormal(10 ms, 0.832554611)", MS * 50, 1), MS * 5, 2_000_000);
        for lag in [1, 4, 10, 20, 40] {
            let rho = libm::exp(-5.0 * lag as f64 / 50.0);
            let expected = libm::exp2(rho) - 1.0;
            let found = correlation(&values, lag);
            assert!((found - expected).abs() < 0.01, "{lag}: {found} and {expected}");
        }
    }

    #[test]
    fn uniform_delays_forget_as_the_closed_form_says() {
        // Uniform numbers under a normal copula: 6/π · asin(ρ / 2).
        let values = series(jitter("uniform(0 ms, 30 ms)", MS * 20, 2), MS * 2, 1_000_000);
        for lag in [1, 5, 10, 30] {
            let rho = libm::exp(-2.0 * lag as f64 / 20.0);
            let expected = 6.0 / core::f64::consts::PI * libm::asin(rho / 2.0);
            let found = correlation(&values, lag);
            assert!((found - expected).abs() < 0.01, "{lag}: {found} and {expected}");
        }
    }

    #[test]
    fn the_process_is_the_same_however_often_it_is_looked_at() {
        // The distribution after a time does not depend on the number of packets before.
        let after = |steps: u64| {
            let at_end = (0..4000).map(|seed| {
                let of = jitter("exponential(10 ms)", MS * 100, seed);
                series(of, MS * (200 / steps), steps + 1).pop().unwrap()
            });
            let mut values: Vec<f64> = at_end.collect();
            values.sort_by(f64::total_cmp);
            [400, 2000, 3600].map(|i| values[i])
        };
        for (few, many) in after(1).into_iter().zip(after(50)) {
            assert!((few / many - 1.0).abs() < 0.12, "{few} and {many}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn mean_and_deviation_are_those_asked_for_and_draws_those_of_the_seed(
            mean_ms in 1_u32..60, sigma in 0.1_f64..0.7, tau_ms in 0_u64..40, seed: u64,
        ) {
            let of = format!("lognormal({mean_ms} ms, {sigma})");
            let of = || jitter(&of, MS * tau_ms, seed);
            let values = series(of(), MS * 20, 60_000);
            prop_assert_eq!(&values[..100], &series(of(), MS * 20, 100)[..]);
            let half = sigma * sigma / 2.0;
            let expected = f64::from(mean_ms) * half.exp();
            let found = mean(values.iter().copied());
            prop_assert!((found / expected - 1.0).abs() < 0.05, "mean {} and {}", found, expected);
            let deviation = mean(values.iter().map(|v| (v - found) * (v - found))).sqrt();
            let wanted = expected * (2.0 * half).exp_m1().sqrt();
            let error = (deviation / wanted - 1.0).abs();
            prop_assert!(error < 0.15, "deviation {} and {}", deviation, wanted);
        }
    }
}
