use alloc::borrow::ToOwned as _;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use crate::parse::{ParseError, parse_bytes, parse_duration, split_number};
use crate::rate::{Bytes, Rate};
use crate::time::Duration;

/// Capacity or threshold of a queue, in the unit in which the user wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueSize {
    /// Packets of any size.
    Packets(u64),
    /// Bytes on the wire.
    Bytes(Bytes),
    /// Bytes that the link sends in this time.
    Time(Duration),
    /// Thousandths of the link's bandwidth-delay product.
    MilliBdp(u64),
}

/// A queue size resolved to packets or bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// Packets of any size.
    Packets(u64),
    /// Bytes on the wire.
    Bytes(u64),
}

/// Properties of a link that resolve queue sizes in time or BDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkProperties {
    /// Rate of the link: the initial one if it changes in steps, the mean over the period if it
    /// repeats or follows a trace.
    pub rate: Rate,
    /// Round-trip time that `BDP` refers to.
    pub bdp_rtt: Duration,
}

impl QueueSize {
    /// Resolves the size to packets or bytes on this link. A time or BDP becomes bytes, at least
    /// one packet of 1500 B.
    #[must_use]
    pub fn resolve(self, link: &LinkProperties) -> QueueLimit {
        const AT_LEAST: u64 = 1500;
        match self {
            Self::Packets(n) => QueueLimit::Packets(n),
            Self::Bytes(b) => QueueLimit::Bytes(b.0),
            Self::Time(d) => QueueLimit::Bytes(link.rate.bytes_in(d).0.max(AT_LEAST)),
            Self::MilliBdp(m) => {
                let bytes = u128::from(link.rate.bytes_in(link.bdp_rtt).0) * u128::from(m) / 1000;
                QueueLimit::Bytes(u64::try_from(bytes).unwrap_or(u64::MAX).max(AT_LEAST))
            }
        }
    }
}

impl FromStr for QueueSize {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (number, unit) = split_number(text)?;
        let size = match unit {
            "packets" | "packet" | "pkts" | "p" => {
                number.replace('_', "").parse().map(Self::Packets).map_err(|_| {
                    ParseError(format!("`{number}` is not a whole number of packets"))
                })?
            }
            "BDP" => Self::MilliBdp(milli(number)?),
            "bdp" | "Bdp" => {
                return Err(ParseError(format!("unknown unit `{unit}`, did you mean `BDP`?")));
            }
            "" => {
                return Err(ParseError(
                    "a queue size needs a unit: \"1000 packets\", \"64 kB\", \
                     \"50 ms\" or \"1 BDP\""
                        .to_owned(),
                ));
            }
            _ => match (parse_bytes(text), parse_duration(text)) {
                (Ok(bytes), _) => Self::Bytes(bytes),
                (_, Ok(span)) => Self::Time(span),
                _ => {
                    return Err(ParseError(format!(
                        "unknown unit `{unit}` for a queue size; write packets, kB, ms or BDP"
                    )));
                }
            },
        };
        match size {
            Self::Packets(0)
            | Self::Bytes(Bytes(0))
            | Self::Time(Duration(0))
            | Self::MilliBdp(0) => Err(ParseError("a queue of size zero holds nothing".to_owned())),
            ok => Ok(ok),
        }
    }
}

/// Reads a decimal with at most three digits after the point, in thousandths.
fn milli(number: &str) -> Result<u64, ParseError> {
    let milliseconds = parse_duration(&format!("{number} us")).map_err(|_| {
        ParseError(format!("`{number}` BDP: write at most three decimals, not negative"))
    })?;
    Ok(milliseconds.as_nanos())
}

impl fmt::Display for QueueSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Packets(n) => write!(f, "{n} packets"),
            Self::Bytes(b) => b.fmt(f),
            Self::Time(d) => d.fmt(f),
            Self::MilliBdp(m) if m % 1000 == 0 => write!(f, "{} BDP", m / 1000),
            Self::MilliBdp(m) => {
                let thousandths = format!("{:03}", m % 1000);
                write!(f, "{}.{} BDP", m / 1000, thousandths.trim_end_matches('0'))
            }
        }
    }
}

/// Values for severity levels, the mildest first: one to eight of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Levels<T>([Option<T>; MAX_LEVELS]);

impl<T: Copy> Levels<T> {
    /// Creates levels from values; those after the eighth are ignored. `None` without values.
    #[must_use]
    pub fn of(values: &[T]) -> Option<Self> {
        let mut levels = [None; MAX_LEVELS];
        levels.iter_mut().zip(values).for_each(|(level, &value)| *level = Some(value));
        (!values.is_empty()).then_some(Self(levels))
    }

    /// Returns the value of a level, counted from 0; levels above the last have the last one's
    /// value.
    #[must_use]
    pub fn at(&self, level: u8) -> Option<T> {
        self.iter().take(usize::from(level) + 1).last()
    }

    /// Iterates over the values, the mildest level first.
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        self.0.iter().flatten().copied()
    }
}

impl<T: Copy + PartialOrd> Levels<T> {
    /// `true` if each value exceeds the one before.
    #[must_use]
    pub fn is_increasing(&self) -> bool {
        self.iter().zip(self.iter().skip(1)).all(|(a, b)| a < b)
    }
}

impl<T: Copy + fmt::Display> fmt::Display for Levels<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, value) in self.iter().enumerate() {
            write!(f, "{}{value}", if n > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}

/// Reads comma-separated values.
fn read<T: Copy>(
    text: &str,
    each: impl Fn(&str) -> Result<T, ParseError>,
) -> Result<Levels<T>, ParseError> {
    let values: Vec<T> = text.split(',').map(|part| each(part.trim())).collect::<Result<_, _>>()?;
    match Levels::of(&values) {
        Some(levels) if values.len() <= MAX_LEVELS => Ok(levels),
        _ => {
            let found = values.len();
            Err(ParseError(format!("there are at most {MAX_LEVELS} levels, found {found} values")))
        }
    }
}

/// Fractions above 0 and below 1: `"0.8, 0.6, 0.5"`.
impl FromStr for Levels<f64> {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        read(text, |part| {
            let number = part.parse().map_err(|_| {
                ParseError(format!("`{part}` is not a number; several look like \"0.8, 0.6, 0.5\""))
            })?;
            in_range(number)
        })
    }
}

impl Levels<f64> {
    /// Creates a single level, whose fraction then holds for all.
    ///
    /// # Errors
    /// Fails if the fraction is not above 0 and below 1; the text is a sentence for the user.
    pub fn of_fraction(number: f64) -> Result<Self, ParseError> {
        let mut levels = [None; MAX_LEVELS];
        levels[0] = Some(in_range(number)?);
        Ok(Self(levels))
    }
}

fn in_range(part: f64) -> Result<f64, ParseError> {
    if part > 0.0 && part < 1.0 {
        Ok(part)
    } else {
        Err(ParseError(format!("{part} is out of range: above 0 and below 1 is expected")))
    }
}

/// Queue sizes: `"10 packets, 20 packets"`.
impl FromStr for Levels<QueueSize> {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        read(text, str::parse)
    }
}

/// Number of levels: those of three bits.
const MAX_LEVELS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_size_is_read_in_four_units_and_reads_back() {
        for (text, size) in [
            ("1000 packets", QueueSize::Packets(1000)),
            ("64 kB", QueueSize::Bytes(Bytes(64_000))),
            ("50 ms", QueueSize::Time(Duration::from_millis(50))),
            ("0.05 BDP", QueueSize::MilliBdp(50)),
            ("1 BDP", QueueSize::MilliBdp(1000)),
        ] {
            assert_eq!(text.parse::<QueueSize>().unwrap(), size);
            assert_eq!(size.to_string(), text);
        }
        assert!("10".parse::<QueueSize>().unwrap_err().0.contains("needs a unit"));
        assert!("0 packets".parse::<QueueSize>().is_err());
        assert!("-1 BDP".parse::<QueueSize>().is_err());
    }

    #[test]
    fn a_bdp_is_rate_times_rtt() {
        let link =
            LinkProperties { rate: Rate::from_mbit(10), bdp_rtt: Duration::from_millis(100) };
        assert_eq!(QueueSize::MilliBdp(500).resolve(&link), QueueLimit::Bytes(62_500));
        assert_eq!(
            QueueSize::Time(Duration::from_millis(20)).resolve(&link),
            QueueLimit::Bytes(25_000)
        );
    }

    fn parts(text: &str) -> Result<Levels<f64>, String> {
        text.parse().map_err(|e: ParseError| e.0)
    }

    #[test]
    fn values_are_read_and_written_and_the_last_holds_above() {
        let levels = parts("0.8, 0.6,0.5").unwrap();
        assert_eq!([0, 1, 2, 3, 255].map(|n| levels.at(n)), [0.8, 0.6, 0.5, 0.5, 0.5].map(Some));
        assert_eq!(levels.to_string(), "0.8, 0.6, 0.5");
        assert_eq!(Levels::of_fraction(0.5).ok(), Levels::of(&[0.5]));
        assert_eq!(Levels::<f64>::of(&[]), None);
        assert!(Levels::of(&[0.1, 0.2, 0.3]).unwrap().is_increasing());
        assert!(!Levels::of(&[0.1, 0.1]).unwrap().is_increasing());
    }

    #[test]
    fn what_is_no_part_or_one_too_many_is_refused_with_what_it_is() {
        assert!(parts("0.5, 1").unwrap_err().contains("1 is out of range"));
        assert!(parts("0.5, nan").unwrap_err().contains("out of range"));
        assert!(parts("0.5,").unwrap_err().contains("`` is not a number"));
        assert!(parts(&["0.5"; 9].join(",")).unwrap_err().contains("at most 8"));
        assert!(Levels::of_fraction(1.0).is_err());
    }
}
