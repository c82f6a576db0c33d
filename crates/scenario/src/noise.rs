//! The noise of a run: variation from seed to seed that a deterministic simulator lacks.

use std::sync::LazyLock;

use cwnd_quantity::{Duration, Rng, splitmix64};
use cwnd_schema::Choice;

/// The quantity that varies from seed to seed besides what a scenario draws itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Noise {
    /// Nothing.
    #[name("none")]
    None,
    /// The base RTT of each flow, uniform within ±0.5 %, and in the simulator how late a host
    /// takes a packet: 35 µs in the median and 300 µs at the 99th percentile.
    #[name("path")]
    Path,
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

/// Lateness of the packets at one host: real hosts take a time that varies from packet to packet.
///
/// Lognormal, one draw a packet, which a [`DrawLog`](cwnd_quantity::DrawLog) does not record. The
/// testbed's router is late by 35 µs in the median and 200 to 450 µs at the 99th percentile; its
/// hosts are real already, so this is for the simulator only.
#[derive(Clone, Copy, Debug)]
pub struct Lateness {
    state: u64,
    quantiles: &'static [u32; QUANTILES],
}

impl Lateness {
    /// The lateness of a host, from a stream of its own.
    #[must_use]
    pub fn new(mut stream: Rng) -> Self {
        Self { state: stream.bits(), quantiles: &LATENESS }
    }

    /// Draws how late the next packet is.
    #[inline]
    pub fn draw(&mut self) -> Duration {
        // A table and two multiplications in place of a normal deviate and its exponential.
        let draw = splitmix64(&mut self.state);
        Duration(u64::from(self.quantiles[(draw >> 56) as usize]))
    }
}

const QUANTILES: usize = 256;
const MEDIAN_NS: f64 = 35_000.0;
/// ln(300 / 35) / 2.326, where 2.326 is the 99th percentile of a normal deviate.
const SIGMA: f64 = 0.924;

/// Quantiles of the lateness, each as likely as the others, ns.
static LATENESS: LazyLock<[u32; QUANTILES]> = LazyLock::new(|| {
    core::array::from_fn(|i| {
        let below = (i as f64 + 0.5) / QUANTILES as f64;
        (MEDIAN_NS * libm::exp(SIGMA * deviate(below))) as u32
    })
});

/// The normal deviate that a deviate is below with this probability, by bisection.
fn deviate(below: f64) -> f64 {
    let (mut low, mut high) = (-8.0, 8.0);
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        if libm::erfc(-middle / core::f64::consts::SQRT_2) / 2.0 < below {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
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
    fn packets_are_late_by_the_testbeds_quantiles() {
        let mut lateness = Lateness::new(Rng::named(1, "flow.main.0.late"));
        let mut drawn: Vec<f64> = (0..100_000).map(|_| lateness.draw().0 as f64 / 1e3).collect();
        drawn.sort_by(f64::total_cmp);
        let quantile = |part: f64| drawn[(drawn.len() as f64 * part) as usize];
        assert!((34.0..36.0).contains(&quantile(0.5)), "{} µs", quantile(0.5));
        assert!((280.0..320.0).contains(&quantile(0.99)), "{} µs", quantile(0.99));
    }

    #[test]
    fn without_noise_nothing_is_drawn() {
        let edge = Duration::from_millis(90);
        let drawn = Noise::None.draw(edge, Duration::ZERO, || panic!("a draw"));
        assert_eq!(drawn, edge);
    }
}
