//! Times and seed of a run.

use cwnd_quantity::Duration;
use cwnd_schema::SectionKeys;
use cwnd_schema::file::{Context, Section};

use crate::noise::Noise;

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
