use core::fmt;

use crate::parse::ParseError;
use crate::queue_size::QueueSize;

/// A value for each level of something, the mildest first: one to eight of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Levels<T>([Option<T>; MOST]);

impl<T: Copy> Levels<T> {
    /// These values; no more than eight count. `None` if there is none.
    #[must_use]
    pub fn of(values: &[T]) -> Option<Self> {
        let mut levels = [None; MOST];
        levels.iter_mut().zip(values).for_each(|(level, &value)| *level = Some(value));
        (!values.is_empty()).then_some(Self(levels))
    }

    /// The value of a level; above the last one that of the last.
    #[must_use]
    pub fn at(&self, level: u8) -> Option<T> {
        self.iter().take(usize::from(level) + 1).last()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        self.0.iter().flatten().copied()
    }
}

impl<T: Copy + PartialOrd> Levels<T> {
    /// Whether each is above the one before.
    #[must_use]
    pub fn rise(&self) -> bool {
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

/// Reads values with commas between.
fn read<T: Copy>(
    text: &str,
    each: impl Fn(&str) -> Result<T, ParseError>,
) -> Result<Levels<T>, ParseError> {
    let values: Vec<T> = text.split(',').map(|part| each(part.trim())).collect::<Result<_, _>>()?;
    match Levels::of(&values) {
        Some(levels) if values.len() <= MOST => Ok(levels),
        _ => {
            let found = values.len();
            Err(ParseError(format!("there are at most {MOST} levels, found {found} values")))
        }
    }
}

/// Parts of something, above 0 and below 1: `"0.8, 0.6, 0.5"`.
pub(crate) fn read_parts(text: &str) -> Result<Levels<f64>, ParseError> {
    read(text, |part| {
        let number = part.parse().map_err(|_| {
            ParseError(format!("`{part}` is not a number; several look like \"0.8, 0.6, 0.5\""))
        })?;
        one_part(number)
    })
}

/// One part.
pub(crate) fn one_part(number: f64) -> Result<f64, ParseError> {
    if number > 0.0 && number < 1.0 {
        Ok(number)
    } else {
        Err(ParseError(format!("{number} is out of range: above 0 and below 1 is expected")))
    }
}

/// Queue sizes: `"10 packets, 20 packets"`.
pub(crate) fn read_sizes(text: &str) -> Result<Levels<QueueSize>, ParseError> {
    read(text, str::parse)
}

/// As many as three bits tell apart.
const MOST: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Param as _, Value};

    type Parts = Option<Levels<f64>>;

    fn parts(text: &str) -> Result<Parts, String> {
        Parts::read(&Value::Text(text.to_owned())).map_err(|e| e.0)
    }

    #[test]
    fn values_are_read_and_written_and_the_last_holds_above() {
        let levels = parts("0.8, 0.6,0.5").unwrap().unwrap();
        assert_eq!([0, 1, 2, 3, 255].map(|n| levels.at(n)), [0.8, 0.6, 0.5, 0.5, 0.5].map(Some));
        assert_eq!(Some(levels).write(), Value::Text("0.8, 0.6, 0.5".to_owned()));
        let one = Parts::read(&Value::Float(0.5)).unwrap();
        assert_eq!(one, Levels::of(&[0.5]));
        assert_eq!(one.write(), Value::Float(0.5));
        assert_eq!(parts("none").unwrap(), None);
        assert_eq!(Parts::write(&None), Value::Text("none".to_owned()));
        assert_eq!(Levels::<f64>::of(&[]), None);
        assert!(Levels::of(&[0.1, 0.2, 0.3]).unwrap().rise());
        assert!(!Levels::of(&[0.1, 0.1]).unwrap().rise());
    }

    #[test]
    fn what_is_no_part_or_one_too_many_is_refused_with_what_it_is() {
        assert!(parts("0.5, 1").unwrap_err().contains("1 is out of range"));
        assert!(parts("0.5, nan").unwrap_err().contains("out of range"));
        assert!(parts("0.5,").unwrap_err().contains("`` is not a number"));
        assert!(parts(&["0.5"; 9].join(",")).unwrap_err().contains("at most 8"));
        assert!(Parts::read(&Value::Integer(1)).is_err());
        assert!(Parts::read(&Value::Bool(true)).is_err());
    }
}
