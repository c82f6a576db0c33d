use cwnd_quantity::Rng;
use cwnd_scenario::BurstLoss;

/// Gilbert–Elliott loss: the link is in a good or a bad state, and each state has its own loss
/// probability.
///
/// The state machine is that of netem (`loss_gilb_ell` in net/sched/sch_netem.c): the state at a
/// packet's arrival decides on its loss, and may change before the next packet.
#[derive(Debug)]
pub(crate) struct GilbertElliott {
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
