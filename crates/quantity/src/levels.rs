use core::fmt;
use core::str::FromStr;

use crate::parse::ParseError;
use crate::queue_size::QueueSize;

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
