//! Poisson arrivals in periods, with pauses between them.

use cwnd_quantity::{Duration, DurationDist, Rng};
use cwnd_schema::{PresetOf, Presets, RegistryEntry, Schema};

use super::{Arrival, ArrivalRate, Arriving, PoissonArrivals, Process};

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry = RegistryEntry::new(
    "on-off",
    "Independent of each other while they are on; then there are none for a while.",
);

/// Independent arrivals for a while, then none for a while.
#[derive(Clone, Debug, PartialEq, Schema)]
#[schema(presets)]
pub struct Params {
    /// Rate of arrivals.
    #[flatten(ArrivalRate::default())]
    pub pace: ArrivalRate,
    /// Duration of a period in which connections arrive, drawn each time.
    #[required("none")]
    pub on: DurationDist,
    /// Duration of the pause after it, drawn each time.
    #[required("none")]
    pub off: DurationDist,
}

impl Presets for Params {
    const PRESETS: &'static [PresetOf<Self>] = &[PresetOf::new(
        "flash-crowd",
        "Flash crowds (Mondal & Kuzmanovic 2008, § 4.6): Pareto periods of 16 s and 8 s in the \
             mean, 200 connections a second; the paper has no shape, 1.5 is that of ns-2's Pareto \
             on/off source.",
        || Self {
            pace: ArrivalRate {
                interval: Some(Duration::from_millis(5)),
                ..ArrivalRate::default()
            },
            on: pareto(Duration::from_secs(16)),
            off: pareto(Duration::from_secs(8)),
        },
    )];
}

impl Arriving for Params {
    fn process(&self) -> Box<dyn Process> {
        let (on, off) = (self.on.clone(), self.off.clone());
        Box::new(Bursts { gaps: self.pace.gaps(), on, off, left: None })
    }
    fn pace(&self) -> Option<&ArrivalRate> {
        Some(&self.pace)
    }
    fn pace_mut(&mut self) -> Option<&mut ArrivalRate> {
        Some(&mut self.pace)
    }
    fn on_share(&self) -> f64 {
        let (on, off) = (self.on.0.mean(), self.off.0.mean());
        on / (on + off)
    }
    fn check_interval(&self) -> Result<(), (&'static str, String)> {
        let interval = self.pace.gaps().mean;
        // Up to about `interval / useful` periods pass for each arrival, and each is drawn.
        let useful = self.on.0.limited_mean(interval.0 as f64);
        if useful * MOST_EMPTY < interval.0 as f64 {
            let message = format!(
                "periods of {} are over before a connection arrives, once in {interval}",
                self.on
            );
            return Err(("on", message));
        }
        Ok(())
    }
}

/// Largest mean number of periods for each arrival.
const MOST_EMPTY: f64 = 1_000.0;

fn pareto(mean: Duration) -> DurationDist {
    use cwnd_quantity::dist::{Shape, Width};
    DurationDist(Shape::Pareto(1.5, Width::Mean(mean.0)))
}

/// Poisson arrivals with pauses; the first period has arrivals.
#[derive(Clone, Debug)]
struct Bursts {
    gaps: PoissonArrivals,
    on: DurationDist,
    off: DurationDist,
    /// Rest of the current period; `None` before the first.
    left: Option<Duration>,
}

impl Bursts {
    /// Draws the time to the next arrival, with all pauses that fall into it.
    fn gap(&mut self, rng: &mut Rng) -> Duration {
        let mut left = self.left.take().unwrap_or_else(|| self.on.sample(rng));
        let mut busy = self.gaps.gap(rng);
        let mut gap = Duration::ZERO;
        while busy > left {
            busy = busy.saturating_sub(left);
            gap = gap.saturating_add(left).saturating_add(self.off.sample(rng));
            left = self.on.sample(rng);
            if gap >= NEVER {
                break;
            }
        }
        self.left = Some(left.saturating_sub(busy));
        gap.saturating_add(busy)
    }
}

impl Process for Bursts {
    fn next(&mut self, rng: &mut Rng) -> Option<Arrival> {
        Some(Arrival::after(self.gap(rng)))
    }
}

/// A gap longer than any run.
const NEVER: Duration = Duration(u64::MAX / 2);
