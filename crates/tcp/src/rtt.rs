use cwnd_units::Duration;

/// Smoothed round-trip time and its variation (RFC 6298 § 2), in integer nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct RttEstimator {
    estimate: Option<(Duration, Duration)>,
    min: Option<Duration>,
}

impl RttEstimator {
    /// SRTT and RTTVAR; `None` before the first sample.
    #[inline]
    pub const fn estimate(&self) -> Option<(Duration, Duration)> {
        self.estimate
    }

    /// SRTT.
    #[inline]
    pub fn srtt(&self) -> Option<Duration> {
        self.estimate.map(|(srtt, _)| srtt)
    }

    /// The smallest sample.
    #[inline]
    pub const fn min(&self) -> Option<Duration> {
        self.min
    }

    /// Takes a sample R.
    ///
    /// Departs from RFC 7323 § 4.2, which would have samples weigh less when a round trip gives many: with timestamps
    /// each ACK counts in full (as in Linux and FreeBSD), so that the estimate forgets within a round trip.
    #[inline]
    pub fn sample(&mut self, r: Duration) {
        self.min = Some(self.min.map_or(r, |m| m.min(r)));
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
}
