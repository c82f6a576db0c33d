//! Random streams of a run, and the log of their draws.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;

use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::time::Duration;

/// A named stream of random numbers.
///
/// Its seed derives from the run's seed and the component's name, so that components do not affect
/// each other's draws. Adding a flow leaves the draws of the others unchanged (common random
/// numbers across the arms of a comparison). Transformed draws use `libm`, so that their bits are
/// the same on every machine.
#[derive(Clone, Debug)]
pub struct Rng {
    generator: Xoshiro256PlusPlus,
    /// Log of its draws, if they are logged.
    log: Option<Box<StreamLog>>,
}

/// Name of a stream and the log of its draws.
#[derive(Clone, Debug)]
struct StreamLog {
    stream: Arc<str>,
    log: Arc<dyn DrawLog>,
}

impl Rng {
    /// Creates the stream called `name` of the run with this seed.
    #[must_use]
    pub fn named(mut seed: u64, name: &str) -> Self {
        let seed = splitmix64(&mut seed) ^ fnv1a(name.as_bytes());
        Self { generator: Xoshiro256PlusPlus::seed_from_u64(seed), log: None }
    }

    /// Returns the same stream, called `name`, which writes every draw to `log`.
    pub(crate) fn logged(self, name: &str, log: Arc<dyn DrawLog>) -> Self {
        Self { log: Some(Box::new(StreamLog { stream: name.into(), log })), ..self }
    }

    /// Draws 64 uniform bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        let bits = self.generator.next_u64();
        if self.log.is_some() {
            self.log_bits(bits);
        }
        bits
    }

    #[cold]
    fn log_bits(&self, bits: u64) {
        if let Some(of) = &self.log {
            of.log.add(Draw { stream: Arc::clone(&of.stream), bits });
        }
    }

    /// Draws a uniform number in [0, 1) with 53 bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Draws a uniform number in [low, high); rounding may give `high`.
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// Draws a uniform integer of 0..n by widening multiplication; `n` = 0 gives 0.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }

    /// Draws an exponential number with this mean, by inversion.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.unit())
    }

    /// Draws a Pareto number with this shape α > 1 and mean, by inversion: x_m = mean·(α−1)/α, x =
    /// x_m·u^(−1/α).
    pub fn pareto(&mut self, shape: f64, mean: f64) -> f64 {
        let scale = mean * (shape - 1.0) / shape;
        scale * libm::pow(1.0 - self.unit(), -1.0 / shape)
    }

    /// Draws a normal number with mean 0 and deviation 1 (Box–Muller; the second variate is
    /// discarded).
    pub fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.unit()));
        radius * libm::cos(2.0 * core::f64::consts::PI * self.unit())
    }

    /// Draws a log-normal number whose logarithm has mean `mu` and deviation `sigma` (Box–Muller;
    /// the second variate is discarded).
    pub fn lognormal(&mut self, mu: f64, sigma: f64) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.unit()));
        let angle = 2.0 * core::f64::consts::PI * self.unit();
        libm::exp(mu + sigma * radius * libm::cos(angle))
    }

    /// Draws `true` with probability `p`.
    #[inline]
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// Draws a uniform duration in [0, span].
    pub fn duration_up_to(&mut self, span: Duration) -> Duration {
        Duration(self.below(span.0.saturating_add(1)))
    }
}

/// Hashes bytes by FNV-1a, 64 bits.
fn fnv1a(bytes: &[u8]) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    bytes.iter().fold(OFFSET, |h, &b| (h ^ u64::from(b)).wrapping_mul(PRIME))
}

/// Draws 64 bits by SplitMix64 (Steele, Lea & Flood 2014): a counter and a bijection. Each bit of
/// the counter affects all output bits, so neighbouring seeds give unrelated numbers.
#[inline]
pub const fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Factory of a run's random streams: all derive from one seed, and each name has its own stream.
#[derive(Clone, Debug)]
pub struct Streams {
    seed: u64,
    log: Option<Arc<dyn DrawLog>>,
}

impl Streams {
    /// Creates the streams of the run with this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { seed, log: None }
    }

    /// Creates the same streams with logging: every draw is written to `log`.
    #[must_use]
    pub const fn logged(seed: u64, log: Arc<dyn DrawLog>) -> Self {
        Self { seed, log: Some(log) }
    }

    /// Returns the stream of this name, from its beginning.
    #[must_use]
    pub fn named(&self, name: &str) -> Rng {
        let rng = Rng::named(self.seed, name);
        match &self.log {
            None => rng,
            Some(log) => rng.logged(name, Arc::clone(log)),
        }
    }
}

/// One draw from a named stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draw {
    /// Name of the stream.
    pub stream: Arc<str>,
    /// The 64 bits drawn from the generator, before any transformation.
    pub bits: u64,
}

/// Log of the draws of a run's streams, which share it.
pub trait DrawLog: fmt::Debug + Send + Sync {
    /// Adds a draw.
    fn add(&self, draw: Draw);
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Debug, Default)]
    struct Draws(Mutex<Vec<Draw>>);

    impl DrawLog for Draws {
        fn add(&self, draw: Draw) {
            self.0.lock().unwrap().push(draw);
        }
    }

    #[test]
    fn a_stream_is_fixed_by_its_seed_and_name() {
        let draw = |seed, name: &str| Rng::named(seed, name).bits();
        assert_eq!(draw(1, "link.a"), draw(1, "link.a"));
        assert_ne!(draw(1, "link.a"), draw(1, "link.b"));
        assert_ne!(draw(1, "link.a"), draw(2, "link.a"));
    }

    #[test]
    fn splitmix_draws_what_its_authors_program_does() {
        // Vigna, splitmix64.c, from the state 1234567.
        let mut state = 1_234_567;
        let drawn = [splitmix64(&mut state), splitmix64(&mut state)];
        assert_eq!(drawn, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }

    #[test]
    fn distributions_have_the_means_they_are_given() {
        let mut rng = Rng::named(7, "means");
        let n = 200_000;
        let mut mean = |f: &mut dyn FnMut(&mut Rng) -> f64| {
            (0..n).map(|_| f(&mut rng)).sum::<f64>() / f64::from(n)
        };
        assert!((mean(&mut |r| r.exponential(3.0)) - 3.0).abs() < 0.03);
        assert!((mean(&mut |r| r.uniform(2.0, 4.0)) - 3.0).abs() < 0.01);
        assert!((mean(&mut |r| r.pareto(2.5, 3.0)) - 3.0).abs() < 0.1);
        assert!((mean(&mut |r| r.below(10) as f64) - 4.5).abs() < 0.03);
        // Mean of a log-normal: exp(mu + sigma²/2).
        assert!((mean(&mut |r| r.lognormal(0.0, 0.5)) - libm::exp(0.125)).abs() < 0.02);
    }

    #[test]
    fn a_log_changes_no_draw_and_has_them_all_in_order() {
        let log = Arc::new(Draws::default());
        let streams = Streams::logged(5, Arc::clone(&log) as _);
        let (mut a, mut b) = (streams.named("a"), streams.named("b"));
        let found = [a.bits(), b.bits(), a.clone().bits(), a.bits()];
        let (mut plain_a, mut plain_b) = (Rng::named(5, "a"), Streams::new(5).named("b"));
        let first = plain_a.bits();
        let second = plain_a.bits();
        assert_eq!(found, [first, plain_b.bits(), second, second]);

        let take = || core::mem::take(&mut *log.0.lock().unwrap());
        let draws = take();
        let names: Vec<&str> = draws.iter().map(|d| &*d.stream).collect();
        assert_eq!(names, ["a", "b", "a", "a"]);
        assert_eq!(draws.iter().map(|d| d.bits).collect::<Vec<_>>(), found);

        // Draws of all distributions are logged.
        a.lognormal(0.0, 1.0);
        b.below(9);
        assert_eq!(take().len(), 3, "two uniform draws make a log-normal one");
    }
}
