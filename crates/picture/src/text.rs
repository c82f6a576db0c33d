//! Texts that fit: how wide they are, where they are broken, what is left out of those that are too long.

use crate::advances::advance;

/// A text in lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    /// What is written.
    pub lines: Vec<String>,
    /// The whole text, where something is left out of the lines.
    pub whole: Option<String>,
}

impl Text {
    /// The text in lines of at most this width; if they were more than `most`, its middle is left out.
    pub fn fitted(text: &str, width: f64, size: f64, most: usize) -> Self {
        let text = cleaned(text);
        if text.trim().is_empty() {
            return Self::default();
        }
        let lines = wrapped(&text, width, size);
        if lines.len() <= most {
            return Self { lines, whole: None };
        }
        let letters: Vec<char> = text.trim().replace('\n', " ").chars().collect();
        let kept = |count: usize| {
            let tail = count / 2;
            let head = letters[..count - tail].iter().collect::<String>();
            let tail = letters[letters.len() - tail..].iter().collect::<String>();
            wrapped(&format!("{}…{}", head.trim_end(), tail.trim_start()), width, size)
        };
        // The most letters that fit.
        let (mut fits, mut too_many) = (0, letters.len());
        while too_many - fits > 1 {
            let middle = usize::midpoint(fits, too_many);
            if kept(middle).len() <= most { fits = middle } else { too_many = middle }
        }
        Self { lines: kept(fits), whole: Some(letters.into_iter().collect()) }
    }

    /// Whether nothing is written.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// How wide its widest line is.
    pub fn width(&self, size: f64) -> f64 {
        self.lines.iter().map(|line| width(line, size)).fold(0.0, f64::max)
    }

    /// How many lines it has.
    pub fn height(&self) -> f64 {
        self.lines.len() as f64
    }
}

/// Painters that move letters to whole pixels make lines wider by this at most.
const PIXELS: f64 = 1.03;

/// `Mbit/s),`
const LONGEST_UNIT: usize = 8;

/// How wide a line of text is in a font of this size.
pub fn width(text: &str, size: f64) -> f64 {
    text.chars().map(advance).sum::<f64>() * size * PIXELS
}

/// Without what is no text: control characters, which XML forbids, become spaces.
fn cleaned(text: &str) -> String {
    let readable = |letter: char| match letter {
        '\n' => '\n',
        '\u{FFFE}' | '\u{FFFF}' => ' ',
        letter if letter.is_control() => ' ',
        letter => letter,
    };
    text.chars().map(readable).collect()
}

/// Lines that are broken between the members of a list, else between words; in words that are too long after
/// punctuation, or anywhere.
pub fn wrapped(text: &str, most: f64, size: f64) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for member in members(paragraph) {
            if joins(&mut line, &member, most, size) {
                continue;
            }
            if !line.is_empty() {
                lines.push(std::mem::take(&mut line));
            }
            for word in words(&member) {
                if joins(&mut line, &word, most, size) {
                    continue;
                }
                if !line.is_empty() {
                    lines.push(std::mem::take(&mut line));
                }
                for part in parts(&word, most, size) {
                    if !line.is_empty() && width(&line, size) + width(&part, size) > most {
                        lines.push(std::mem::take(&mut line));
                    }
                    line.push_str(&part);
                }
            }
        }
        if !line.is_empty() {
            lines.push(line);
        }
    }
    lines
}

/// Writes a text behind a line if it has room there.
fn joins(line: &mut String, text: &str, most: f64, size: f64) -> bool {
    let joined = if line.is_empty() { text.to_owned() } else { format!("{line} {text}") };
    let fits = width(&joined, size) <= most;
    if fits {
        *line = joined;
    }
    fits
}

/// The members of a list: what ends with a comma outside of brackets.
fn members(text: &str) -> Vec<String> {
    let mut found: Vec<String> = vec![];
    let (mut depth, mut ended) = (0_i32, true);
    for word in text.split_whitespace() {
        match found.last_mut() {
            Some(last) if !ended => {
                last.push(' ');
                last.push_str(word);
            }
            _ => found.push(word.to_owned()),
        }
        let opened = word.matches(['(', '[', '{']).count() as i32;
        depth += opened - word.matches([')', ']', '}']).count() as i32;
        ended = depth <= 0 && word.ends_with([',', ';']);
    }
    found
}

/// Words; a number and its unit are one.
fn words(text: &str) -> Vec<String> {
    let mut found: Vec<String> = vec![];
    for word in text.split_whitespace() {
        let unit = word.starts_with(char::is_alphabetic) && word.len() <= LONGEST_UNIT;
        match found.last_mut() {
            Some(last) if unit && last.ends_with(|c: char| c.is_ascii_digit()) => {
                last.push(' ');
                last.push_str(word);
            }
            _ => found.push(word.to_owned()),
        }
    }
    found
}

/// The parts of a word that a line may end with.
fn parts(word: &str, most: f64, size: f64) -> Vec<String> {
    let ends = |letter: char| letter.is_ascii_punctuation() && !"\"'(.".contains(letter);
    let fitting = |part: &str| {
        if width(part, size) <= most {
            return vec![part.to_owned()];
        }
        part.chars().map(String::from).collect()
    };
    word.split_inclusive(ends).flat_map(fitting).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_those_of_the_font() {
        // DejaVu Sans: digits are 1303 of 2048 units wide, `i` 569, `W` 2025.
        let exactly = 2.0 * 8.0 * 1303.0 / 2048.0;
        assert!((width("10", 8.0) - exactly * PIXELS).abs() < 1e-9);
        assert!(width("iii", 8.0) < width("WWW", 8.0) / 3.0);
        assert!(width("漢字", 8.0) >= 16.0, "what the table lacks is wide");
    }

    #[test]
    fn lines_are_broken_between_words_and_no_line_is_too_long() {
        let text = "uniform(10 ms, 40 ms), uniform(10 ms, 40 ms)";
        let whole = width(text, 8.0);
        assert_eq!(Text::fitted(text, whole + 1.0, 8.0, 1).lines, [text]);
        let half = Text::fitted(text, whole / 2.0, 8.0, 3);
        assert_eq!(half.lines, ["uniform(10 ms, 40 ms),", "uniform(10 ms, 40 ms)"]);
        assert_eq!(half.whole, None);
        let list = "pie target=10 ms, uniform(10 ms, 40 ms)";
        assert_eq!(wrapped(list, 90.0, 8.0), ["pie target=10 ms,", "uniform(10 ms,", "40 ms)"]);
        for most in [20.0, 35.0, 80.0, 150.0] {
            for line in wrapped(text, most, 8.0) {
                assert!(width(&line, 8.0) <= most, "{line} is wider than {most}");
            }
        }
    }

    #[test]
    fn a_word_that_is_too_long_is_broken_after_punctuation_or_anywhere() {
        assert_eq!(wrapped("first_part-second", 60.0, 8.0), ["first_part-", "second"]);
        let letters = wrapped(&"m".repeat(30), 60.0, 8.0);
        assert_eq!(letters.concat(), "m".repeat(30));
    }

    #[test]
    fn the_middle_of_a_text_that_is_far_too_long_is_left_out() {
        let text = Text::fitted("the beginning of a long story and its end", 100.0, 8.0, 1);
        let [line] = &text.lines[..] else { panic!("one line") };
        assert!(
            line.starts_with("the be") && line.ends_with("end") && line.contains('…'),
            "{line}"
        );
        assert_eq!(text.whole.as_deref(), Some("the beginning of a long story and its end"));
    }

    #[test]
    fn what_xml_forbids_is_no_part_of_a_text() {
        assert_eq!(Text::fitted("a\u{1}b\tc\u{FFFF}", 100.0, 8.0, 1).lines, ["a b c"]);
        assert!(Text::fitted(" \u{2}", 100.0, 8.0, 1).is_empty());
    }
}
