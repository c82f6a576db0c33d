//! Times, seed and noise of a run.

use std::sync::LazyLock;

use cwnd_quantity::{Duration, Rng, splitmix64};
use cwnd_schema::file::{Context, Section};
use cwnd_schema::{Choice, SectionKeys};

/// Times and seed of a run.
#[derive(Clone, Debug, PartialEq, SectionKeys)]
#[section(check = check)]
pub struct Run {
    /// Simulated time.
    #[required("none: how long is long enough depends on the question")]
    pub duration: Duration,
    /// Time at the start that is left out of all statistics.
    #[default("0 s", "cwnd: nothing is hidden unless asked")]
    pub warmup: Duration,
    /// Seed of every random stream.
    #[default(1, "cwnd: a fixed seed, so that the same file gives the same bytes")]
    pub seed: u64,
    /// Interval of the time series; `"none"` records none.
    #[default("100 ms", "cwnd: ten points a second show a saw-tooth at the RTTs of most paths")]
    pub sample: Option<Duration>,
    /// Ends the run early once Jain's index reaches this value. The index is that of the data which
    /// the bulk flows, at least two, delivered since the last of them started, evaluated every 10
    /// ms.
    #[default("none", "cwnd: a run lasts as long as it says; 0.95 in ABE § IV-C")]
    #[bounds(
        above 0.0, up_to 1.0;
        "Jain's index is: write 0.95, or \"none\" for a run of its full length"
    )]
    pub until_fair: Option<f64>,
    /// Variation from seed to seed, in addition to the groups' own draws. With `"path"` each flow's
    /// base RTT is uniform within ±0.5 % of the scenario's, drawn by seed and flow. Hosts without a
    /// delay add up to 1 % of their path's delay. In the simulator each host also processes each
    /// packet late, by 35 µs in the median and 300 µs at the 99th percentile; `rtt_base_us` does
    /// not include this.
    #[by_schema("none", "path", "Floyd & Jacobson 1991: phase effects; ns-2's `overhead_`")]
    pub noise: Noise,
}

/// Reports a run or sampling interval of no length, and a warm-up as long as the run.
fn check(found: &PartialRun, section: &Section<'_>, cx: &mut Context<'_>) {
    let PartialRun { duration, warmup, sample, .. } = *found;
    if duration == Some(Duration::ZERO) {
        let message = "a run of no time shows nothing";
        cx.sink.error(section.span_of("duration"), "run.duration", message);
    } else if let (Some(duration), Some(warmup)) = (duration, warmup)
        && warmup >= duration
    {
        let message = format!("a warm-up of {warmup} leaves nothing of a run of {duration}");
        let problem = cx.sink.error(section.span_of("warmup"), "run.warmup", message);
        problem.help("the warm-up must be shorter than the run");
    }
    if sample == Some(Some(Duration::ZERO)) {
        let message = "an interval of no time gives samples without end";
        let problem = cx.sink.error(section.span_of("sample"), "run.sample", message);
        problem.help("write `sample = \"none\"` for no time series");
    }
}

/// Noise added to a run, besides the draws of the scenario itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Noise {
    /// No noise.
    #[name("none")]
    None,
    /// Noise of the base RTT of each flow, uniform within ±0.5 %. In the simulator, hosts also
    /// process packets late: by 35 µs in the median and 300 µs at the 99th percentile.
    #[name("path")]
    Path,
}

impl Noise {
    /// Draws a flow's edge RTT, given the round-trip delays `edge` at its hosts and `links` of its
    /// path.
    ///
    /// The base RTT, the sum of both, is uniform within ±0.5 %. If `edge` is less than 0.5 % of the
    /// sum, the result is uniform between zero and 1 % of the sum. `stream` opens the flow's own
    /// stream for this one draw, so other flows and parameters do not change it.
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

/// Processing delay of packets at one host, random per packet as on real hosts.
///
/// It is lognormal, one draw a packet, which a [`DrawLog`](cwnd_quantity::DrawLog) does not record.
/// The delay in the testbed's router has a median of 35 µs and a 99th percentile of 200 to 450 µs.
/// The testbed's hosts are real, so only the simulator uses this type.
#[derive(Clone, Copy, Debug)]
pub struct Lateness {
    state: u64,
    quantiles: &'static [u32; QUANTILES],
}

impl Lateness {
    /// Creates the lateness of one host, seeded from its own stream.
    #[must_use]
    pub fn new(mut stream: Rng) -> Self {
        Self { state: stream.bits(), quantiles: &LATENESS }
    }

    /// Draws the lateness of the next packet.
    #[inline]
    pub fn draw(&mut self) -> Duration {
        // A table lookup is cheaper than a normal deviate and its exponential.
        let draw = splitmix64(&mut self.state);
        Duration(u64::from(self.quantiles[(draw >> 56) as usize]))
    }
}

const QUANTILES: usize = 256;
const MEDIAN_NS: f64 = 35_000.0;
/// ln(300 / 35) / 2.326, where 2.326 is the 99th percentile of a normal deviate.
const SIGMA: f64 = 0.924;

/// Equally likely quantiles of the lateness, ns.
static LATENESS: LazyLock<[u32; QUANTILES]> = LazyLock::new(|| {
    core::array::from_fn(|i| {
        let below = (i as f64 + 0.5) / QUANTILES as f64;
        (MEDIAN_NS * libm::exp(SIGMA * deviate(below))) as u32
    })
});

/// Quantile of the standard normal distribution at probability `below`, by bisection.
fn deviate(below: f64) -> f64 {
    let (mut low, mut high) = (-8.0, 8.0);
    // 50 halvings of the interval reach 1.4e-14, far below a nanosecond of the quantiles.
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

/// Ratio of the base RTT to the width of its noise. Two seeds then differ by more than the steps of
/// a phase effect (Floyd & Jacobson 1991), and means by less than the reported precision.
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
