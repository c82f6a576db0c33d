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
    count: u64,
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
    /// 3550 § A.3), so that those still on their way do not count. If none arrived, all are lost if
    /// some `must_arrive` by now; else it is not known.
    #[must_use]
    pub fn lost_ratio(&self, before: &Self, must_arrive: bool) -> Option<f64> {
        let (expected, arrived) = (self.highest - before.highest, self.count - before.count);
        match (arrived, expected) {
            (0, _) => must_arrive.then_some(1.0),
            (_, 0) => Some(0.0),
            _ => Some(expected.saturating_sub(arrived) as f64 / expected as f64),
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
        let ratio = |numbers: &[u64]| {
            after(start, numbers.iter().copied()).lost_ratio(&start, true).expect("some arrived")
        };
        assert!(ratio(&[1, 2, 3]).abs() < 1e-12);
        assert!((ratio(&[1, 4, 2]) - 0.25).abs() < 1e-12);
        // The first may be lost, too, and some may arrive twice.
        assert!((ratio(&[2]) - 0.5).abs() < 1e-12);
        assert!(ratio(&[1, 2, 2]).abs() < 1e-12);
        assert_eq!(start.lost_ratio(&start, true), Some(1.0));
        assert_eq!(start.lost_ratio(&start, false), None);
    }

    #[test]
    fn what_was_lost_before_does_not_count() {
        let before = after(Arrivals::default(), [1, 5, 6]);
        let lost = after(before, [7, 8, 10, 11]).lost_ratio(&before, true).expect("some arrived");
        assert!((lost - 0.2).abs() < 1e-12);
        assert_eq!(before.lost_ratio(&before, true), Some(1.0));
        // A late one that was missing before.
        assert_eq!(after(before, [4]).lost_ratio(&before, true), Some(0.0));
    }
}
