use cwnd_aqm::Reason;
use cwnd_quantity::{Duration, DurationDist, Rng, Shape, Time};
use cwnd_scenario::Impairments;

use crate::burst_loss::GilbertElliott;
use crate::jitter::JitterProcess;
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

#[cfg(test)]
mod tests {
    use cwnd_scenario::BurstLoss;

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
}
