use cwnd_units::Duration;

/// Smoothed round-trip time and its variation (RFC 6298 § 2).
#[derive(Clone, Debug, Default)]
pub struct RttEstimator {
    estimate: Option<(Duration, Duration)>,
    seen: Seen,
    ticks: Option<Box<Ticks>>,
}

/// What a controller sees.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// The smallest sample; `Duration::MAX` before the first.
    min: Duration,
    /// The newest.
    last: Duration,
}

impl Default for Seen {
    fn default() -> Self {
        Self { min: Duration::MAX, last: Duration::ZERO }
    }
}

/// The estimate of [`RttEstimator::in_ticks`].
#[derive(Clone, Debug)]
struct Ticks {
    tick: Duration,
    /// SRTT in eighths of a tick.
    eighths: u64,
    /// RTTVAR in quarters of a tick.
    quarters: u64,
}

impl RttEstimator {
    /// An estimator that counts in ticks, as Jacobson & Karels 1988, appendix A, do.
    #[must_use]
    pub fn in_ticks(tick: Duration) -> Self {
        // A clock without ticks counts nanoseconds.
        let ticks =
            (tick > Duration::ZERO).then(|| Box::new(Ticks { tick, eighths: 0, quarters: 0 }));
        Self { ticks, ..Self::default() }
    }

    /// SRTT and RTTVAR; `None` before the first sample. In ticks, SRTT is cut off to whole ones.
    #[inline]
    pub const fn estimate(&self) -> Option<(Duration, Duration)> {
        self.estimate
    }

    /// SRTT.
    #[inline]
    pub fn srtt(&self) -> Option<Duration> {
        let (srtt, _) = self.estimate?;
        match &self.ticks {
            Some(ticks) => Some(Duration(ticks.eighths * ticks.tick.0 / 8)),
            None => Some(srtt),
        }
    }

    /// The smallest sample.
    #[inline]
    pub fn min(&self) -> Option<Duration> {
        (self.seen.min != Duration::MAX).then_some(self.seen.min)
    }

    /// The newest sample.
    #[inline]
    pub fn last(&self) -> Option<Duration> {
        (self.seen.min != Duration::MAX).then_some(self.seen.last)
    }

    /// What a controller sees, to be put back where it is not to see the timer's samples.
    pub const fn seen(&self) -> Seen {
        self.seen
    }

    /// Puts that back.
    pub const fn set_seen(&mut self, seen: Seen) {
        self.seen = seen;
    }

    /// A sample that a controller sees.
    #[inline]
    pub fn see(&mut self, r: Duration) {
        self.seen = Seen { min: self.seen.min.min(r), last: r };
    }

    /// Takes a sample R, which a controller sees, too.
    ///
    /// Departs from RFC 7323 § 4.2, which would have samples weigh less when a round trip gives many: with timestamps
    /// each ACK counts in full (as in Linux and FreeBSD), so that the estimate forgets within a round trip.
    #[inline]
    pub fn sample(&mut self, r: Duration) {
        self.see(r);
        if let Some(ticks) = &mut self.ticks {
            self.estimate = Some(ticks.sample(r, self.estimate.is_none()));
            return;
        }
        self.estimate = Some(match self.estimate {
            // (2.2) SRTT ← R, RTTVAR ← R/2
            None => (r, r / 2),
            // (2.3) RTTVAR ← ¾·RTTVAR + ¼·|SRTT − R|, then SRTT ← ⅞·SRTT + ⅛·R
            Some((srtt, rttvar)) => {
                let deviation = srtt.0.abs_diff(r.0);
                (Duration((srtt.0 * 7 + r.0) / 8), Duration((rttvar.0 * 3 + deviation) / 4))
            }
        });
    }
}

impl Ticks {
    /// Jacobson & Karels 1988, appendix A: sa += m − ⌊sa/8⌋, sv += |m − ⌊sa/8⌋| − ⌊sv/4⌋, neither below one. SRTT and RTTVAR.
    #[cold]
    fn sample(&mut self, r: Duration, first: bool) -> (Duration, Duration) {
        let m = (r.0 / self.tick.0).max(1);
        if first {
            (self.eighths, self.quarters) = (8 * m, 2 * m);
        } else {
            let mean = self.eighths / 8;
            self.eighths = (self.eighths + m - mean).max(1);
            self.quarters = (self.quarters + m.abs_diff(mean) - self.quarters / 4).max(1);
        }
        let tick = self.tick.0;
        (Duration(self.eighths / 8 * tick), Duration((self.quarters * tick).div_ceil(4)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_smoothed_as_rfc_6298_says() {
        let ms = Duration::from_millis;
        let mut rtt = RttEstimator::default();
        rtt.sample(ms(100));
        assert_eq!(rtt.estimate(), Some((ms(100), ms(50))));
        rtt.sample(ms(180));
        // RTTVAR = ¾·50 + ¼·80 = 57.5; SRTT = ⅞·100 + ⅛·180 = 110
        assert_eq!(rtt.estimate(), Some((ms(110), Duration::from_micros(57_500))));
        assert_eq!(rtt.min(), Some(ms(100)));
    }

    #[test]
    fn in_ticks_the_variation_never_falls_below_three_quarters_of_a_tick() {
        let ms = Duration::from_millis;
        let mut rtt = RttEstimator::in_ticks(ms(100));
        // sa = 16, sv = 4; then m − ⌊16/8⌋ = 1: sa = 17, sv = 4 + 1 − 1 = 4; from there m = 2 each time: sv = 3 and stays.
        rtt.sample(ms(200));
        assert_eq!(rtt.estimate(), Some((ms(200), ms(100))));
        rtt.sample(ms(300));
        assert_eq!(rtt.estimate(), Some((ms(200), ms(100))));
        assert_eq!(rtt.srtt(), Some(Duration::from_micros(212_500)));
        for _ in 0..100 {
            rtt.sample(ms(200));
        }
        assert_eq!(rtt.estimate(), Some((ms(200), ms(75))));
    }
}
