use cwnd_aqm::Reason;
use cwnd_scenario::Impairments;
use cwnd_units::{Duration, Rng, Time};

/// Random loss on the link, not congestion.
pub const LOSS: Reason = Reason::named("link_loss");

/// The random faults of a link, which come behind its line: loss, jitter, packets that are held back.
#[derive(Debug)]
pub struct Faults {
    loss: f64,
    /// How many packets pass from one loss to the next, that one included.
    loss_every: Option<u32>,
    since_loss: u32,
    jitter: Duration,
    reorder: f64,
    reorder_delay: Duration,
    /// By how much the link is longer now, and later: the next last.
    added: Duration,
    delay_steps: Vec<(Time, Duration)>,
    rng: Rng,
    lost: Losses,
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is lost.
    Lost,
    /// It is held back for so long on top of the propagation, and others pass it.
    Late(Duration),
    /// It takes so much longer, but passes no other packet and lets none pass.
    Delayed(Duration),
}

/// How many packets were lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// All of them.
    pub packets: u64,
    /// Those with payload.
    pub data: u64,
}

impl Faults {
    /// These faults, drawn from `rng`.
    pub fn new(impairments: &Impairments, rng: Rng) -> Self {
        Self {
            loss: impairments.loss,
            loss_every: impairments.loss_every,
            since_loss: 0,
            jitter: impairments.jitter,
            reorder: impairments.reorder,
            reorder_delay: impairments.reorder_delay,
            added: Duration::ZERO,
            delay_steps: impairments.delay_steps.iter().rev().copied().collect(),
            rng,
            lost: Losses { packets: 0, data: 0 },
        }
    }

    /// A packet comes, with payload or without: what becomes of it?
    #[inline]
    pub fn strike(&mut self, now: Time, has_payload: bool) -> Fate {
        while let Some((_, added)) = self.delay_steps.pop_if(|(at, _)| *at <= now) {
            self.added = added;
        }
        // The draws are made whether they matter or not, so that one fault's setting leaves the others' as they were.
        let (lost, late) = (self.rng.chance(self.loss), self.rng.chance(self.reorder));
        let jitter = self.rng.duration_up_to(self.jitter);
        if lost || self.turn_to_be_lost() {
            self.lost.packets += 1;
            self.lost.data += u64::from(has_payload);
            Fate::Lost
        } else if late {
            Fate::Late(self.reorder_delay)
        } else {
            Fate::Delayed(jitter + self.added)
        }
    }

    /// Counts a packet; whether it is one in so many.
    #[inline]
    fn turn_to_be_lost(&mut self) -> bool {
        let Some(every) = self.loss_every else { return false };
        self.since_loss += 1;
        let lost = self.since_loss == every;
        if lost {
            self.since_loss = 0;
        }
        lost
    }

    /// What was lost.
    pub const fn lost(&self) -> Losses {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(impairments: &Impairments) -> Faults {
        Faults::new(impairments, Rng::named(3, "test"))
    }

    #[test]
    fn one_packet_in_so_many_is_lost() {
        let mut faults = faults(&Impairments { loss_every: Some(4), ..Impairments::default() });
        // Every other one has payload.
        let lost: Vec<u64> =
            (1..=13).filter(|i| faults.strike(Time::ZERO, i % 8 == 0) == Fate::Lost).collect();
        assert_eq!(lost, [4, 8, 12]);
        assert_eq!(faults.lost(), Losses { packets: 3, data: 1 });
    }

    #[test]
    fn a_packet_is_held_back_for_as_long_as_was_asked_and_others_for_less_than_the_jitter() {
        let (jitter, reorder_delay) = (Duration(1000), Duration(77));
        let mut faults =
            faults(&Impairments { jitter, reorder: 0.3, reorder_delay, ..Impairments::default() });
        let mut late = 0;
        for _ in 0..1000 {
            match faults.strike(Time::ZERO, true) {
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
    fn one_faults_setting_leaves_the_draws_of_the_others_as_they_were() {
        let lost = |jitter: u64, reorder: f64| -> Vec<u64> {
            let mut faults = faults(&Impairments {
                loss: 0.1,
                loss_every: None,
                jitter: Duration(jitter),
                reorder,
                reorder_delay: Duration(1),
                delay_steps: Vec::new(),
            });
            (0..1000).filter(|_| faults.strike(Time::ZERO, true) == Fate::Lost).collect()
        };
        assert_eq!(lost(0, 0.0), lost(5_000_000, 0.5));
    }

    #[test]
    fn a_link_is_longer_from_each_step_on() {
        let ms = Duration::from_millis;
        let at = |n| Time::ZERO + ms(n);
        let delay_steps = vec![(at(10), ms(50)), (at(20), ms(80)), (at(21), ms(7))];
        let mut faults = faults(&Impairments { delay_steps, ..Impairments::default() });
        let times = [0, 9, 10, 19, 22, 500];
        let added = times.map(|n| faults.strike(at(n), true));
        assert_eq!(added, [0, 0, 50, 50, 7, 7].map(|n| Fate::Delayed(ms(n))));
    }
}
