/// A constant divisor: divides by multiplication with its reciprocal, which gives the exact
/// quotient and remainder (Granlund & Montgomery 1994).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Divisor {
    by: u64,
    /// Reciprocal: ⌊(2⁶⁴ − 1) / by⌋.
    reciprocal: u64,
}

impl Divisor {
    /// Prepares division by `by`; zero counts as one.
    #[must_use]
    pub const fn new(by: u64) -> Self {
        let by = if by == 0 { 1 } else { by };
        Self { by, reciprocal: u64::MAX / by }
    }

    /// Returns the divisor.
    #[inline]
    #[must_use]
    pub const fn get(self) -> u64 {
        self.by
    }

    /// Returns quotient and remainder of `n`.
    #[inline]
    #[must_use]
    pub const fn divide(self, n: u64) -> (u64, u64) {
        // n / by − n · reciprocal / 2⁶⁴ lies in [0, 1), so the estimate is exact or too small by
        // one.
        let estimate = ((n as u128 * self.reciprocal as u128) >> u64::BITS) as u64;
        let rest = n - estimate * self.by;
        if rest >= self.by { (estimate + 1, rest - self.by) } else { (estimate, rest) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(n: u64, by: u64) {
        assert_eq!(Divisor::new(by).divide(n), (n / by, n % by), "{n} by {by}");
    }

    #[test]
    fn the_ends_of_the_range_divide_exactly() {
        for by in [1, 2, 3, 7, 1_000_000, 1 << 32, (1 << 63) - 1, 1 << 63, u64::MAX - 1, u64::MAX] {
            for n in [0, 1, 2, by - 1, by, by.saturating_add(1), u64::MAX - 1, u64::MAX] {
                check(n, by);
            }
        }
        assert_eq!(Divisor::new(0).divide(5), (5, 0));
    }

    proptest::proptest! {
        #[test]
        fn quotient_and_remainder_are_those_of_division(
            n: u64,
            by in 1u64..,
            small in 1u64..5000,
            q: u64,
        ) {
            check(n, by);
            check(n, small);
            // Multiples and their neighbours: estimates err there first.
            let multiple = (q / by).wrapping_mul(by);
            check(multiple, by);
            check(multiple.wrapping_sub(1), by);
            check(multiple.wrapping_add(1), by);
        }
    }
}
