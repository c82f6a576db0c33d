use alloc::borrow::ToOwned as _;
use alloc::string::String;
use core::fmt;

use crate::rate::{Bytes, Rate};
use crate::time::Duration;

/// Reason why a text is not the expected quantity: a sentence for the user, which often names the
/// remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError(pub String);

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for ParseError {}

const RATE_UNITS: &[(&str, u64)] = &[
    ("bit/s", 1),
    ("kbit/s", 1_000),
    ("Mbit/s", 1_000_000),
    ("Gbit/s", 1_000_000_000),
    ("Tbit/s", 1_000_000_000_000),
    ("bit", 1),
    ("kbit", 1_000),
    ("Mbit", 1_000_000),
    ("Gbit", 1_000_000_000),
    ("bps", 1),
    ("kbps", 1_000),
    ("Kbps", 1_000),
    ("Mbps", 1_000_000),
    ("Gbps", 1_000_000_000),
];
const TIME_UNITS: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];
const SIZE_UNITS: &[(&str, u64)] = &[
    ("B", 1),
    ("bytes", 1),
    ("byte", 1),
    ("kB", 1_000),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("kiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

/// Splits `"10.5 Mbit/s"` into `"10.5"` and `"Mbit/s"`; underscores group digits (`"10_000 B"`).
///
/// # Errors
/// Fails if the text does not start with a decimal number.
pub fn split_number(text: &str) -> Result<(&str, &str), ParseError> {
    let text = text.trim();
    let end = text
        .char_indices()
        .find(|&(i, c)| {
            !(c.is_ascii_digit() || c == '.' || c == '_' || (i == 0 && "+-".contains(c)))
        })
        .map_or(text.len(), |(i, _)| i);
    let (number, unit) = text.split_at(end);
    let digits = number.trim_start_matches(['+', '-']);
    let well_formed = digits.chars().any(|c| c.is_ascii_digit())
        && digits.matches('.').count() <= 1
        && digits.starts_with(|c: char| c.is_ascii_digit());
    if !well_formed {
        return Err(ParseError(format!("`{text}` does not start with a number")));
    }
    Ok((number, unit.trim()))
}

/// Returns `number · scale` as an exact integer; `what` names the quantity in messages.
fn scaled(number: &str, scale: u64, what: &str) -> Result<u64, ParseError> {
    let (negative, digits) = match number.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, number.strip_prefix('+').unwrap_or(number)),
    };
    let too_large = || ParseError(format!("`{number}` is too large for a {what}"));
    let mut value: u128 = 0;
    let mut fraction_digits: Option<u32> = None;
    for c in digits.chars() {
        match (c, c.to_digit(10)) {
            ('_', _) => {}
            ('.', _) => fraction_digits = Some(0),
            (_, Some(d)) => {
                value = value
                    .checked_mul(10)
                    .and_then(|v| v.checked_add(u128::from(d)))
                    .ok_or_else(too_large)?;
                if let Some(n) = &mut fraction_digits {
                    *n += 1;
                }
            }
            (other, None) => return Err(ParseError(format!("`{other}` in a number"))),
        }
    }
    if negative && value != 0 {
        return Err(ParseError(format!("a {what} can't be negative")));
    }
    let divisor = 10u128.checked_pow(fraction_digits.unwrap_or(0)).ok_or_else(too_large)?;
    let product = value.checked_mul(u128::from(scale)).ok_or_else(too_large)?;
    if product % divisor != 0 {
        return Err(ParseError(format!(
            "`{number}` has more digits than a {what} can hold exactly"
        )));
    }
    u64::try_from(product / divisor).map_err(|_| too_large())
}

fn quantity(
    text: &str,
    units: &[(&str, u64)],
    what: &str,
    example: &str,
) -> Result<u64, ParseError> {
    let (number, unit) = split_number(text)?;
    if unit.is_empty() {
        return Err(ParseError(format!("a {what} needs a unit, such as \"{example}\"")));
    }
    if let Some(&(_, scale)) = units.iter().find(|(name, _)| *name == unit) {
        return scaled(number, scale, what);
    }
    let hint = units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit));
    Err(ParseError(match hint {
        Some((name, _)) => format!("unknown unit `{unit}` for a {what}, did you mean `{name}`?"),
        None => format!("unknown unit `{unit}` for a {what}; write it like \"{example}\""),
    }))
}

/// Reads a data rate: `bit/s`, `kbit/s`, `Mbit/s`, `Gbit/s`, `Tbit/s`; `Mbit` and `Mbps` and the
/// like are bit/s, too.
///
/// # Errors
/// Fails if the number or unit is missing or unknown, zero, negative, too large, or not a whole
/// number of bit/s. Fails for lower-case `mbps` and `gbps`, too: tc reads them as bytes per second,
/// others as bits.
pub fn parse_rate(text: &str) -> Result<Rate, ParseError> {
    let (_, unit) = split_number(text)?;
    if matches!(unit, "mbps" | "gbps") {
        return Err(ParseError(format!(
            "`{unit}` is ambiguous: tc reads it as bytes per second; \
             write \"Mbit/s\" or \"Gbit/s\" (bits)"
        )));
    }
    match quantity(text, RATE_UNITS, "rate", "10 Mbit/s")? {
        0 => Err(ParseError("a rate of zero never sends anything".to_owned())),
        bits => Ok(Rate(bits)),
    }
}

/// Reads a duration: `ns`, `us` or `µs`, `ms`, `s`, `min`, `h`.
///
/// # Errors
/// Fails if the number or unit is missing or unknown, negative, too large, or finer than a
/// nanosecond.
pub fn parse_duration(text: &str) -> Result<Duration, ParseError> {
    quantity(text, TIME_UNITS, "time", "100 ms").map(Duration)
}

/// Reads a size: `B`, decimal `kB`, `MB`, `GB`, `TB`, binary `KiB`, `MiB`, `GiB`.
///
/// # Errors
/// Fails if the number or unit is missing or unknown, negative, too large, or not a whole number of
/// bytes.
pub fn parse_bytes(text: &str) -> Result<Bytes, ParseError> {
    quantity(text, SIZE_UNITS, "size", "64 kB").map(Bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_read_exactly() {
        assert_eq!(parse_rate("10 Mbit/s").unwrap(), Rate(10_000_000));
        assert_eq!(parse_rate("2.5Gbit/s").unwrap(), Rate(2_500_000_000));
        assert_eq!(parse_rate("10 Mbps").unwrap(), Rate(10_000_000));
        assert_eq!(parse_duration("0.1 ms").unwrap(), Duration(100_000));
        assert_eq!(parse_bytes("64 kB").unwrap(), Bytes(64_000));
        assert_eq!(parse_bytes("64 KiB").unwrap(), Bytes(65_536));
    }

    #[test]
    fn what_is_ambiguous_or_bare_is_refused_with_a_sentence() {
        assert!(parse_rate("10 mbps").unwrap_err().0.contains("ambiguous"));
        assert!(parse_rate("10").unwrap_err().0.contains("needs a unit"));
        assert!(parse_rate("-1 Mbit/s").unwrap_err().0.contains("negative"));
        assert!(parse_rate("0 Mbit/s").unwrap_err().0.contains("zero"));
        assert!(parse_duration("1 MS").unwrap_err().0.contains("did you mean `ms`"));
        assert!(parse_duration("0.1 ns").unwrap_err().0.contains("digits"));
        assert!(parse_bytes("99999999999 TB").unwrap_err().0.contains("too large"));
        assert!(parse_bytes("fast").is_err());
    }

    #[test]
    fn what_is_printed_reads_back_to_the_same_value() {
        for ns in [0, 1, 999, 1_000, 1_500, 1_234_567, 100_000_000, 2_500_000_000, u64::MAX] {
            assert_eq!(parse_duration(&Duration(ns).to_string()).unwrap(), Duration(ns), "{ns}");
        }
        for bits in [1, 9_600, 10_000_000, 1_544_000, 400_000_000_000] {
            assert_eq!(parse_rate(&Rate(bits).to_string()).unwrap(), Rate(bits), "{bits}");
        }
    }
}
