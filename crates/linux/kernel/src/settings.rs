//! Conversion between settings as text and the words of `struct settings`.

use std::net::Ipv4Addr;

use serde_json::{Value, json};

use crate::error::Error;
use crate::family::{Controller, Kind, SETTING_WORDS, Setting, Words};
use crate::name::option;

/// Reads the given settings by name; the others have their defaults. `hz` is the kernel's ticks per
/// second.
///
/// # Errors
/// Fails for an invalid value, and for a setting that this controller does not have.
pub fn read(controller: Controller, given: &[(&str, String)], hz: u32) -> Result<Words, Error> {
    let settings = controller.family().settings;
    for (name, _) in given {
        if !settings.iter().any(|setting| setting.name == *name) {
            return Err(Error::NotApplicable { controller, option: option(name) });
        }
    }
    let mut words = [0; SETTING_WORDS];
    for (word, setting) in words.iter_mut().zip(settings) {
        let text = given.iter().find(|(name, _)| *name == setting.name).map(|(_, text)| &**text);
        let text = text.unwrap_or_else(|| controller.default_of(setting.name));
        *word = value(setting, text, hz)?;
    }
    check(controller, &words)?;
    Ok(words)
}

fn value(setting: &Setting, text: &str, hz: u32) -> Result<u32, Error> {
    let wrong = |range: String| Error::Setting {
        option: option(setting.name),
        range,
        value: text.to_owned(),
    };
    match setting.kind {
        Kind::Fraction => match text.parse::<f64>() {
            Ok(part) if part > 0.0 && part < 1.0 => Ok(billionths(part)),
            _ => Err(wrong("between 0 and 1".to_owned())),
        },
        Kind::FractionUpToOne => match text.parse::<f64>() {
            Ok(part) if part > 0.0 && part <= 1.0 => Ok(billionths(part)),
            _ => Err(wrong("above 0 and at most 1".to_owned())),
        },
        Kind::Milliseconds => match text.parse::<f64>() {
            Ok(ms) if (0.001..=LONGEST_MS).contains(&ms) => Ok((ms * 1000.0 + 0.5) as u32),
            _ => Err(wrong(format!("a time from 0.001 to {LONGEST_MS} ms"))),
        },
        Kind::Number(least, most) => match text.parse::<u32>() {
            Ok(number) if (least..=most).contains(&number) => Ok(number),
            _ => Err(wrong(format!("a number from {least} to {most}"))),
        },
        Kind::Address => match text.parse::<Ipv4Addr>() {
            Ok(address) => Ok(u32::from_ne_bytes(address.octets())),
            Err(_) => Err(wrong("an IPv4 address".to_owned())),
        },
        Kind::Choice(words) => words
            .iter()
            .position(|word| *word == text)
            .and_then(|attachment| u32::try_from(attachment).ok())
            .ok_or_else(|| wrong(format!("one of {}", words.join(", ")))),
        Kind::Factor => match text.parse::<f64>() {
            Ok(factor) if factor > 0.0 && factor <= 4.0 => Ok(billionths(factor)),
            _ => Err(wrong("above 0 and at most 4".to_owned())),
        },
        Kind::CookieHalf => text.parse().map_err(|_| wrong("a number".to_owned())),
        Kind::Ticks => Ok(hz),
    }
}

/// Checks that no lower setting is above its upper one, and that `most` is above 1.
fn check(controller: Controller, words: &Words) -> Result<(), Error> {
    let word = |name: &str| {
        let attachment =
            controller.family().settings.iter().position(|setting| setting.name == name);
        attachment.map(|attachment| words[attachment])
    };
    for (less, more) in [("least", "high"), ("beta_least", "beta_most")] {
        if let (Some(low), Some(high)) = (word(less), word(more))
            && low > high
        {
            let range = format!("at most {}", option(more));
            let value = (f64::from(low) / 1e9).to_string();
            return Err(Error::Setting { option: option(less), range, value });
        }
    }
    if let Some(most) = word("most").filter(|most| *most <= BILLION) {
        let value = (f64::from(most) / 1e9).to_string();
        return Err(Error::Setting { option: option("most"), range: "above 1".to_owned(), value });
    }
    Ok(())
}

const BILLION: u32 = 1_000_000_000;

/// Converts a fraction to billionths, rounded as in crates/cc.
fn billionths(part: f64) -> u32 {
    (part * 1e9 + 0.5) as u32
}

/// Returns the word of a setting as a user would write it.
#[must_use]
pub fn to_json(setting: &Setting, word: u32) -> Value {
    match setting.kind {
        Kind::Fraction | Kind::FractionUpToOne | Kind::Factor => json!(f64::from(word) / 1e9),
        Kind::Milliseconds => json!(f64::from(word) / 1e3),
        Kind::Choice(words) => json!(words.get(word as usize).copied().unwrap_or("unknown")),
        Kind::Address => json!(Ipv4Addr::from(word.to_ne_bytes()).to_string()),
        Kind::Number(..) | Kind::Ticks | Kind::CookieHalf => json!(word),
    }
}

/// Longest time of a setting, ms.
const LONGEST_MS: f64 = 60_000.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_comes_back_as_it_was_given() {
        let given = [("threshold", "12.5".to_owned()), ("delta", "1".to_owned())];
        let words = read(Controller::DelayAimd, &given, 250).unwrap_or_default();
        assert_eq!(words[..4], [12_500, 1_000_000_000, 2, 0]);
        let settings = Controller::DelayAimd.family().settings;
        assert_eq!(to_json(&settings[0], words[0]), json!(12.5));
        assert_eq!(to_json(&settings[1], words[1]), json!(1.0));
        let given = [("address", "192.0.2.7".to_owned())];
        let words = read(Controller::CheatStamps, &given, 250).unwrap_or_default();
        assert_eq!(words[0], 100);
        assert_eq!(words[1].to_ne_bytes(), [192, 0, 2, 7]);
        let settings = Controller::CheatStamps.family().settings;
        assert_eq!(to_json(&settings[1], words[1]), json!("192.0.2.7"));
        let words = read(Controller::AbeReno, &[], 250).unwrap_or_default();
        assert_eq!(words[..4], [800_000_000, 0, 0, 250]);
        let given = [("address", "198.18.0.1".to_owned()), ("syn_backoff_after", "5".to_owned())];
        let words = read(Controller::Tcpstar, &given, 250).unwrap_or_default();
        let settings = Controller::Tcpstar.family().settings;
        assert_eq!(to_json(&settings[3], words[3]), json!("198.18.0.1"));
        assert_eq!((words[0], words[1], words[2], words[4]), (6, 250, 5, 0));
        let words = read(Controller::Tcpstar, &[], 250).unwrap_or_default();
        assert_eq!((words[2], words[3]), (0, 0), "SYNs as data, and any address");
    }

    #[test]
    fn what_is_none_and_what_it_has_not_are_refused() {
        for (controller, name, text) in [
            (Controller::AbeReno, "beta_ecn", "1"),
            (Controller::AbeReno, "threshold", "5"),
            (Controller::DelayAimd, "delta", "0"),
            (Controller::DelayAimd, "threshold", "0"),
            (Controller::DelayAimd, "threshold", "NaN"),
            (Controller::DelayAimd, "least_window", "0"),
            (Controller::DelayAimd, "beta_ecn", "0.5"),
            (Controller::Bmcc, "most", "0.9"),
            (Controller::Bmcc, "least", "0.8"),
            (Controller::Bmcc, "beta_least", "0.9"),
            (Controller::Bmcc, "mi_step", "5"),
            (Controller::Bmcc, "address", "::1"),
            (Controller::Bmcc, "paced", "perhaps"),
            (Controller::Tcpstar, "address", "here"),
            (Controller::Tcpstar, "backoff_after", "0"),
            (Controller::DelayAimd, "rtt_from", "timer"),
            (Controller::CheatStamps, "subtract", "0"),
            (Controller::CheatStamps, "address", "here"),
        ] {
            assert!(read(controller, &[(name, text.to_owned())], 250).is_err(), "{name} {text}");
        }
    }
}
