use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Sub};

use crate::print::format_scaled;

/// An instant: nanoseconds since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

/// A span of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(pub u64);

const NS_PER_S: u64 = 1_000_000_000;

impl Time {
    /// Start of the run.
    pub const ZERO: Self = Self(0);
    /// Instant after every event: "never".
    pub const NEVER: Self = Self(u64::MAX);

    /// Returns the span from `earlier` to `self`; zero if `earlier` is later.
    #[inline]
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }

    /// Returns the seconds since the start, for output only.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        Duration(self.0).as_secs_f64()
    }
}

impl Duration {
    /// Empty span.
    pub const ZERO: Self = Self(0);
    /// Longest span that can be represented, about 585 years.
    pub const MAX: Self = Self(u64::MAX);

    /// Creates a span of whole seconds.
    #[must_use]
    pub const fn from_secs(s: u64) -> Self {
        Self(s * NS_PER_S)
    }

    /// Creates a span of whole milliseconds.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }

    /// Creates a span of whole microseconds.
    #[must_use]
    pub const fn from_micros(us: u64) -> Self {
        Self(us * 1_000)
    }

    /// Returns the span in nanoseconds.
    #[inline]
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the span in seconds, for formulas and output.
    #[inline]
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NS_PER_S as f64
    }

    /// Returns the whole nanosecond nearest to `s` seconds, to the precision of a 64-bit float;
    /// negative numbers and NaN give zero, overflow gives [`Duration::MAX`].
    #[must_use]
    pub fn from_secs_f64(s: f64) -> Self {
        // `as` saturates and maps NaN to 0.
        Self((s * NS_PER_S as f64 + 0.5) as u64)
    }

    /// Returns `self + other`, at most [`Duration::MAX`].
    #[inline]
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Returns `self − other`, at least zero.
    #[inline]
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Returns `self · factor`, at most [`Duration::MAX`].
    #[inline]
    #[must_use]
    pub const fn saturating_mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl Add<Duration> for Time {
    type Output = Self;
    #[inline]
    fn add(self, d: Duration) -> Self {
        Self(self.0.saturating_add(d.0))
    }
}

impl AddAssign<Duration> for Time {
    #[inline]
    fn add_assign(&mut self, d: Duration) {
        *self = *self + d;
    }
}

impl Add for Duration {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        self.saturating_add(other)
    }
}

impl AddAssign for Duration {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Duration {
    type Output = Self;
    /// Saturates at zero: a span is never negative.
    #[inline]
    fn sub(self, other: Self) -> Self {
        self.saturating_sub(other)
    }
}

impl Mul<u64> for Duration {
    type Output = Self;
    #[inline]
    fn mul(self, factor: u64) -> Self {
        self.saturating_mul(factor)
    }
}

impl Div<u64> for Duration {
    type Output = Self;
    #[inline]
    fn div(self, divisor: u64) -> Self {
        Self(self.0 / divisor)
    }
}

impl fmt::Display for Duration {
    /// Largest unit, at most the span, in which it is exact with at most three decimals: `100 ms`,
    /// `2.5 s`, `120 ns`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        format_scaled(f, self.0, &[(NS_PER_S, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")])
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Duration(self.0).fmt(f)
    }
}
