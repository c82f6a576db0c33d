use core::fmt;

use crate::print::format_scaled;
use crate::time::Duration;

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// A data rate in bits per second. The readers of rates refuse zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(pub u64);

impl Default for Rate {
    /// Lowest rate, 1 bit/s.
    fn default() -> Self {
        Self(1)
    }
}

const NS_PER_S: u64 = 1_000_000_000;
const BITS_PER_BYTE: u64 = 8;

impl Rate {
    /// Creates a rate of whole Mbit/s.
    #[must_use]
    pub const fn from_mbit(mbit: u64) -> Self {
        Self(mbit * 1_000_000)
    }

    /// Returns the rate in bits per second.
    #[inline]
    #[must_use]
    pub const fn bits_per_sec(self) -> u64 {
        self.0
    }

    /// Returns the bytes sent in `d`, rounded down; the bandwidth-delay product if `d` is an RTT.
    #[must_use]
    pub const fn bytes_in(self, d: Duration) -> Bytes {
        let bits = self.0 as u128 * d.0 as u128 / NS_PER_S as u128;
        Bytes((bits / BITS_PER_BYTE as u128) as u64)
    }

    /// Returns the time to send `bytes`, rounded down, at most [`Duration::MAX`]; see
    /// [`Serialiser`] for a stream without drift. Requires a rate above zero.
    #[must_use]
    pub const fn time_for(self, bytes: Bytes) -> Duration {
        // A 64-bit division where it suffices: pacing computes this for each packet.
        if let Some(ns) = bytes.0.checked_mul(BITS_PER_BYTE * NS_PER_S) {
            return Duration(ns / self.0);
        }
        let ns = bytes.0 as u128 * (BITS_PER_BYTE * NS_PER_S) as u128 / self.0 as u128;
        Duration(if ns > u64::MAX as u128 { u64::MAX } else { ns as u64 })
    }
}

/// Serialisation times of packets at one rate, without drift.
///
/// It carries the remainder of each division, so that a back-to-back stream of any length takes
/// `bits / rate` seconds to the nanosecond, from 10 kbit/s to 400 Gbit/s.
#[derive(Clone, Copy, Debug)]
pub struct Serialiser {
    rate: Divisor,
    /// Fraction of a nanosecond carried to the next packet, in units of 1/rate ns; always below
    /// `rate`.
    carry: u64,
}

impl Serialiser {
    /// Creates a serialiser without a remainder.
    #[must_use]
    pub const fn new(rate: Rate) -> Self {
        Self { rate: Divisor::new(rate.0), carry: 0 }
    }

    /// Returns the rate.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        Rate(self.rate.get())
    }

    /// Returns the time that the next packet of `bytes` occupies the link.
    #[inline]
    pub const fn next(&mut self, bytes: u32) -> Duration {
        // The product overflows 64 bits only beyond 2.3 GB, above any packet; the sum needs the
        // check.
        let work = bytes as u64 * (BITS_PER_BYTE * NS_PER_S);
        match work.checked_add(self.carry) {
            Some(total) => {
                let (whole, rest) = self.rate.divide(total);
                self.carry = rest;
                Duration(whole)
            }
            None => {
                let total = work as u128 + self.carry as u128;
                let rate = self.rate.get() as u128;
                self.carry = (total % rate) as u64;
                Duration((total / rate) as u64)
            }
        }
    }

    /// Discards the remainder, as the link goes idle: the next packet starts a new back-to-back
    /// stream.
    #[inline]
    pub const fn reset(&mut self) {
        self.carry = 0;
    }
}

impl fmt::Display for Bytes {
    /// Decimal units, as the readers take them: `999 B`, `1.5 kB`, `1 MB`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        format_scaled(
            f,
            self.0,
            &[(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB"), (1, "B")],
        )
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units =
            [(1_000_000_000, "Gbit/s"), (1_000_000, "Mbit/s"), (1_000, "kbit/s"), (1, "bit/s")];
        format_scaled(f, self.0, &units)
    }
}

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
