//! Random streams of a run, and the log of their draws.

use crate::draws::DrawLog;
use crate::rng::Rng;

/// Factory of a run's random streams: all derive from one seed, and each name has its own stream.
#[derive(Clone, Debug)]
pub struct Streams {
    seed: u64,
    log: Option<DrawLog>,
}

impl Streams {
    /// Creates the streams of the run with this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { seed, log: None }
    }

    /// Creates the same streams with logging: every draw is written to `log`.
    #[must_use]
    pub const fn logged(seed: u64, log: DrawLog) -> Self {
        Self { seed, log: Some(log) }
    }

    /// Returns the stream of this name, from its beginning.
    #[must_use]
    pub fn named(&self, name: &str) -> Rng {
        let rng = Rng::named(self.seed, name);
        match &self.log {
            None => rng,
            Some(log) => rng.logged(name, log.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_changes_no_draw_and_has_them_all_in_order() {
        let log = DrawLog::default();
        let streams = Streams::logged(5, log.clone());
        let (mut a, mut b) = (streams.named("a"), streams.named("b"));
        let found = [a.bits(), b.bits(), a.clone().bits(), a.bits()];
        let (mut plain_a, mut plain_b) = (Rng::named(5, "a"), Streams::new(5).named("b"));
        let first = plain_a.bits();
        let second = plain_a.bits();
        assert_eq!(found, [first, plain_b.bits(), second, second]);

        let mut draws = Vec::new();
        log.take(&mut draws);
        let names: Vec<&str> = draws.iter().map(|d| &*d.stream).collect();
        assert_eq!(names, ["a", "b", "a", "a"]);
        assert_eq!(draws.iter().map(|d| d.bits).collect::<Vec<_>>(), found);

        // Draws of all distributions are logged.
        a.lognormal(0.0, 1.0);
        b.below(9);
        log.take(&mut draws);
        assert_eq!(draws.len(), 3, "two uniform draws make a log-normal one");
        log.take(&mut draws);
        assert!(draws.is_empty(), "what was taken is not there again");
    }
}
