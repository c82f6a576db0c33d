//! The noise of a run: variation from seed to seed that a deterministic simulator lacks.

use cwnd_units::{Duration, Rng};

cwnd_units::param_enum! {
    /// The quantity that varies from seed to seed besides what a scenario draws itself.
    pub enum Noise {
        /// Nothing.
        None = "none",
        /// The base RTT of each flow, uniform within ±0.5 %.
        Path = "path",
    }
}

impl Noise {
    /// Draws the part of a flow's base RTT that is at its hosts, from `edge` of it there and
    /// `links` on its way.
    ///
    /// The base RTT is uniform within ±0.5 % of their sum. Hosts with less delay than that have
    /// all the 1 % above nothing. `stream` is the flow's own stream for this one draw, so neither
    /// other flows nor other parameters change it.
    pub fn draw(self, edge: Duration, links: Duration, stream: impl FnOnce() -> Rng) -> Duration {
        match self {
            Self::None => edge,
            Self::Path => {
                let span = (edge + links) / PARTS;
                edge - edge.min(span / 2) + stream().duration_up_to(span)
            }
        }
    }
}

/// The base RTT is so many times the width of its noise. Two seeds then differ by more than the
/// jumps of a phase effect take (Floyd & Jacobson 1991), and means by less than what is reported.
const PARTS: u64 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(edge: Duration, links: Duration) -> Vec<f64> {
        let draw = |seed| Noise::Path.draw(edge, links, || Rng::named(seed, "flow.main.0.noise"));
        let mut drawn: Vec<f64> =
            (0..2000).map(|seed| (draw(seed) + links).as_secs_f64() * 1e3).collect();
        drawn.sort_by(f64::total_cmp);
        drawn
    }

    /// Quantiles of a uniform distribution: of 2,000 draws, each within 0.04 of its width.
    fn is_uniform(drawn: &[f64], low: f64, high: f64) {
        assert!(low <= drawn[0] && drawn[drawn.len() - 1] <= high, "{drawn:?}");
        for tenth in 1..10 {
            let expected = low + (high - low) * f64::from(tenth) / 10.0;
            let found = drawn[drawn.len() * tenth as usize / 10];
            assert!((found - expected).abs() < 0.04 * (high - low), "{found}, not {expected}");
        }
    }

    #[test]
    fn the_base_rtt_is_uniform_within_half_a_percent() {
        is_uniform(&draws(Duration::from_millis(90), Duration::ZERO), 89.55, 90.45);
        is_uniform(&draws(Duration::from_millis(20), Duration::from_millis(80)), 99.5, 100.5);
    }

    #[test]
    fn hosts_without_delay_have_up_to_one_percent_of_the_links() {
        is_uniform(&draws(Duration::ZERO, Duration::from_millis(50)), 50.0, 50.5);
    }

    #[test]
    fn without_noise_nothing_is_drawn() {
        let edge = Duration::from_millis(90);
        let drawn = Noise::None.draw(edge, Duration::ZERO, || panic!("a draw"));
        assert_eq!(drawn, edge);
    }
}
