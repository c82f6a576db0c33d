//! Line starts of a text, and shortening of long messages.

/// Byte offset of the start of each line.
pub struct Lines(Vec<usize>);

impl Lines {
    /// Indexes the lines of a text.
    pub fn of(text: &str) -> Self {
        let after = text.bytes().enumerate().filter(|&(_, b)| b == b'\n').map(|(i, _)| i + 1);
        Self(core::iter::once(0).chain(after).collect())
    }

    /// Returns the line that contains a byte, counted from 0.
    pub fn line(&self, at: usize) -> usize {
        self.0.partition_point(|&start| start <= at) - 1
    }

    /// Returns the byte offset at which a line starts.
    pub fn start(&self, line: usize) -> usize {
        self.0[line]
    }
}

/// Removes the middle of a message longer than [`MAX_MESSAGE_BYTES`], as a message may quote a
/// whole file.
pub fn cut(text: String) -> String {
    if text.len() <= MAX_MESSAGE_BYTES {
        return text;
    }
    let head = boundary(&text, MAX_MESSAGE_BYTES * 3 / 4);
    let tail = boundary(&text, text.len() - MAX_MESSAGE_BYTES / 8);
    format!("{} … {}", &text[..head], &text[tail..])
}

/// Returns the last character boundary at or before `at`.
pub fn boundary(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Length in bytes up to which messages are kept whole.
const MAX_MESSAGE_BYTES: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_is_in_the_line_that_begins_before_it() {
        let lines = Lines::of("ab\n\nc\n");
        let found: Vec<usize> = (0..=7).map(|at| lines.line(at)).collect();
        assert_eq!(found, [0, 0, 0, 1, 2, 2, 3, 3]);
        assert_eq!((lines.start(0), lines.start(2)), (0, 4));
    }

    #[test]
    fn a_long_text_keeps_its_ends() {
        let text = format!("found `{}`, want a rate", "é".repeat(10_000));
        let cut = cut(text);
        assert!(cut.len() < 1000 && cut.starts_with("found `é") && cut.ends_with("want a rate"));
        assert_eq!(super::cut("short".to_owned()), "short");
    }
}
