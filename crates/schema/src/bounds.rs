//! Ranges of parameter values, stated once at the parameter and used by reader, JSON Schema and
//! reference.

use alloc::string::String;
use core::fmt;

use cwnd_quantity::{Bytes, Duration};

/// A value in the unit that a bound is compared in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quantity {
    /// A whole number.
    Count(u64),
    /// A number without a unit.
    Number(f64),
    /// A size in bytes.
    Size(Bytes),
    /// A span of time.
    Span(Duration),
}

impl Quantity {
    /// `true` if both are of one kind and `self` is below `other`.
    fn is_below(self, other: Self) -> bool {
        match (self, other) {
            (Self::Count(a), Self::Count(b)) => a < b,
            (Self::Number(a), Self::Number(b)) => a < b,
            (Self::Size(a), Self::Size(b)) => a < b,
            (Self::Span(a), Self::Span(b)) => a < b,
            _ => false,
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(n) => n.fmt(f),
            Self::Number(x) => x.fmt(f),
            Self::Size(b) => b.fmt(f),
            Self::Span(d) => d.fmt(f),
        }
    }
}

/// One end of a range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Edge {
    /// Value at the end.
    pub at: Quantity,
    /// `true` if this value itself is in the range.
    pub included: bool,
}

/// A range; an absent end is unbounded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Lower end.
    pub lower: Option<Edge>,
    /// Upper end.
    pub upper: Option<Edge>,
    /// Consequence of a value outside, as a clause for messages. It may be empty.
    pub reason: &'static str,
}

impl Bounds {
    /// A range without ends.
    pub const NONE: Self = Self { lower: None, upper: None, reason: "" };

    /// The largest 32-bit number. An upper end there only reflects the type, so text leaves it out.
    pub const WORD: Quantity = Quantity::Count(0xffff_ffff);

    /// Sets the lower end, inclusive.
    #[must_use]
    pub const fn from(self, at: Quantity) -> Self {
        Self { lower: Some(Edge { at, included: true }), ..self }
    }

    /// Sets the lower end, exclusive.
    #[must_use]
    pub const fn above(self, at: Quantity) -> Self {
        Self { lower: Some(Edge { at, included: false }), ..self }
    }

    /// Sets the upper end, inclusive.
    #[must_use]
    pub const fn up_to(self, at: Quantity) -> Self {
        Self { upper: Some(Edge { at, included: true }), ..self }
    }

    /// Sets the upper end, exclusive.
    #[must_use]
    pub const fn below(self, at: Quantity) -> Self {
        Self { upper: Some(Edge { at, included: false }), ..self }
    }

    /// Sets the reason for the range.
    #[must_use]
    pub const fn because(self, reason: &'static str) -> Self {
        Self { reason, ..self }
    }

    /// `true` if the value lies within the range; one of another kind than an end does not.
    #[must_use]
    pub fn contains(&self, value: Quantity) -> bool {
        let above = self
            .lower
            .is_none_or(|edge| edge.at.is_below(value) || (edge.included && edge.at == value));
        let below = self
            .upper
            .is_none_or(|edge| value.is_below(edge.at) || (edge.included && edge.at == value));
        above && below
    }

    /// Returns an error message for a value outside the range; `None` for one within.
    #[must_use]
    pub fn violation(&self, value: Quantity) -> Option<String> {
        if self.contains(value) {
            return None;
        }
        let why = if self.reason.is_empty() { String::new() } else { format!("; {}", self.reason) };
        Some(format!("{value} is out of range: it must be {self}{why}"))
    }
}

/// Formats the range in words: "from 1 to 65536", "above 0 and below 1"; nothing if it has no ends
/// besides [`Bounds::WORD`].
impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.lower, self.upper.filter(|upper| upper.at != Self::WORD)) {
            (None, None) => Ok(()),
            (Some(Edge { at, included: true }), None) => write!(f, "at least {at}"),
            (Some(Edge { at, included: false }), None) => write!(f, "above {at}"),
            (None, Some(Edge { at, included: true })) => write!(f, "at most {at}"),
            (None, Some(Edge { at, included: false })) => write!(f, "below {at}"),
            (Some(low), Some(high)) => {
                match (low.included, high.included) {
                    (true, true) => return write!(f, "from {} to {}", low.at, high.at),
                    (true, false) => write!(f, "at least {}", low.at)?,
                    (false, _) => write!(f, "above {}", low.at)?,
                }
                let up = if high.included { "up to" } else { "below" };
                write!(f, " and {up} {}", high.at)
            }
        }
    }
}

/// A bound with the type of its parameter, so that a bound of another type does not compile.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Typed<T>(pub T);

macro_rules! typed {
    ($($ty:ty, |$value:ident| $quantity:expr;)+) => {$(
        impl Typed<$ty> {
            /// Returns the untyped quantity.
            #[doc(hidden)]
            #[must_use]
            pub const fn quantity(self) -> Quantity {
                let $value = self.0;
                $quantity
            }
        }
    )+};
}
typed! {
    u32, |n| Quantity::Count(n as u64);
    u64, |n| Quantity::Count(n);
    f64, |x| Quantity::Number(x);
    Bytes, |b| Quantity::Size(b);
    Duration, |d| Quantity::Span(d);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_holds_its_included_ends_and_no_others() {
        use Quantity::Number;
        let part = Bounds::NONE.above(Number(0.0)).up_to(Number(1.0));
        for (value, within) in
            [(-0.1, false), (0.0, false), (1e-300, true), (1.0, true), (1.1, false)]
        {
            assert_eq!(part.contains(Number(value)), within, "{value}");
        }
        let open = Bounds::NONE.from(Number(0.0)).below(Number(1.0));
        assert!(open.contains(Number(0.0)) && !open.contains(Number(1.0)));
        assert!(!part.contains(Number(f64::NAN)));
    }

    #[test]
    fn a_range_is_said_in_words_with_units() {
        use Quantity::{Count, Number, Size};
        let none = Bounds::NONE;
        for (bounds, text) in [
            (none, ""),
            (none.from(Count(1)), "at least 1"),
            (none.from(Count(1)).up_to(Bounds::WORD), "at least 1"),
            (none.above(Number(0.0)), "above 0"),
            (none.up_to(Number(0.5)), "at most 0.5"),
            (none.above(Number(0.0)).below(Number(1.0)), "above 0 and below 1"),
            (none.above(Number(0.0)).up_to(Number(1.0)), "above 0 and up to 1"),
            (none.from(Number(0.0)).below(Number(1.0)), "at least 0 and below 1"),
            (none.from(Size(Bytes(1))).up_to(Size(Bytes(2000))), "from 1 B to 2 kB"),
        ] {
            assert_eq!(bounds.to_string(), text);
        }
        let why = none.from(Count(1)).because("nothing would be sent").violation(Count(0)).unwrap();
        assert_eq!(why, "0 is out of range: it must be at least 1; nothing would be sent");
        assert!(none.from(Count(1)).violation(Count(1)).is_none());
    }
}
