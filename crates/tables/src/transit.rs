use cwnd_quantity::Duration;

/// Transit time of the last datagram of a flow that arrived.
#[derive(Clone, Copy, Debug)]
pub struct LastTransit(Duration);

/// Value of [`LastTransit`] before the first datagram.
const NONE: Duration = Duration::MAX;

impl Default for LastTransit {
    fn default() -> Self {
        Self(NONE)
    }
}

impl LastTransit {
    /// Takes the transit time of the next datagram; returns its absolute difference to the last,
    /// |D(i−1, i)| of RFC 3550 § 6.4.1, or `None` for the first datagram.
    #[inline]
    pub fn next(&mut self, transit: Duration) -> Option<Duration> {
        let last = core::mem::replace(&mut self.0, transit);
        (last != NONE).then(|| Duration(transit.0.abs_diff(last.0)))
    }
}

/// Datagrams of a flow that arrived; each carries its number, from one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Arrivals {
    /// Datagrams that arrived.
    pub count: u64,
    /// Largest number that arrived.
    highest: u64,
}

impl Arrivals {
    /// Counts a datagram.
    #[inline]
    pub fn add(&mut self, number: u64) {
        self.count += 1;
        self.highest = self.highest.max(number);
    }

    /// Returns the share lost since `before`, of those up to the largest number that arrived (RFC
    /// 3550 § A.3), so that those still on their way do not count. Of `sent` datagrams none of
    /// which arrived all are lost.
    #[must_use]
    pub fn loss_ratio(&self, before: &Self, sent: u64) -> f64 {
        let (expected, arrived) = (self.highest - before.highest, self.count - before.count);
        match (arrived, expected) {
            (0, _) => f64::from(u8::from(sent > 0)),
            (_, 0) => 0.0,
            _ => expected.saturating_sub(arrived) as f64 / expected as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Arrivals;

    fn after(before: Arrivals, numbers: impl IntoIterator<Item = u64>) -> Arrivals {
        numbers.into_iter().fold(before, |mut arrivals, number| {
            arrivals.add(number);
            arrivals
        })
    }

    #[test]
    fn lost_is_what_is_missing_below_the_largest_number() {
        let start = Arrivals::default();
        let ratio = |numbers: &[u64], sent| {
            after(start, numbers.iter().copied()).loss_ratio(&start, sent).to_string()
        };
        assert_eq!(ratio(&[1, 2, 3], 9), "0");
        assert_eq!(ratio(&[1, 4, 2], 9), "0.25");
        // The first may be lost, too, and some may arrive twice.
        assert_eq!(ratio(&[2], 9), "0.5");
        assert_eq!(ratio(&[1, 2, 2], 9), "0");
        assert_eq!(ratio(&[], 9), "1");
        assert_eq!(ratio(&[], 0), "0");
    }

    #[test]
    fn what_was_lost_before_does_not_count() {
        let before = after(Arrivals::default(), [1, 5, 6]);
        assert_eq!(after(before, [7, 8, 10, 11]).loss_ratio(&before, 5).to_string(), "0.2");
        assert_eq!(before.loss_ratio(&before, 5).to_string(), "1");
        // A late one that was missing before.
        assert_eq!(after(before, [4]).loss_ratio(&before, 5).to_string(), "0");
    }
}
