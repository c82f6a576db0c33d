//! The texts of a figure as SVG.

use std::fmt::Write;

use crate::text::Text;

/// From the middle of a line of text to its baseline, in relation to its size: the middle between ascent and descent.
const BASELINE: f64 = 0.35;

/// Which part of a line is at its place.
#[derive(Clone, Copy, Debug)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// Lines of text and where they are.
#[derive(Debug, Default)]
pub struct Words {
    lines: Vec<Line>,
}

#[derive(Debug)]
struct Line {
    text: String,
    whole: Option<String>,
    size: f64,
    /// Of the baseline.
    at: (f64, f64),
    anchor: Anchor,
    upwards: bool,
}

impl Words {
    /// Lines below each other, from their upper edge.
    pub fn block(
        &mut self,
        text: &Text,
        size: f64,
        height: f64,
        (x, top): (f64, f64),
        anchor: Anchor,
    ) {
        for (index, line) in text.lines.iter().enumerate() {
            let y = top + (index as f64 + 0.5) * height + BASELINE * size;
            self.push(text, line, size, (x, y), anchor, false);
        }
    }

    /// Lines that are read from below, from their left edge.
    pub fn upwards(
        &mut self,
        text: &Text,
        size: f64,
        height: f64,
        (left, y): (f64, f64),
        anchor: Anchor,
    ) {
        for (index, line) in text.lines.iter().enumerate() {
            let x = left + (index as f64 + 0.5) * height + BASELINE * size;
            self.push(text, line, size, (x, y), anchor, true);
        }
    }

    fn push(
        &mut self,
        text: &Text,
        line: &str,
        size: f64,
        at: (f64, f64),
        anchor: Anchor,
        upwards: bool,
    ) {
        let (text, whole) = (line.to_owned(), text.whole.clone());
        self.lines.push(Line { text, whole, size, at, anchor, upwards });
    }

    /// As elements, in units of which so many make a point.
    pub fn svg(&self, units: f64) -> String {
        let mut found = String::new();
        for line in &self.lines {
            let [x, y] = [line.at.0, line.at.1].map(|place| (place * units).round());
            let anchor = match line.anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            };
            let turned = match line.upwards {
                true => format!(" transform=\"rotate(270 {x} {y})\""),
                false => String::new(),
            };
            let size = (line.size * units).round();
            let text = escaped(&line.text);
            let whole = line.whole.as_deref().map(escaped);
            let whole = whole.map_or_else(String::new, |whole| format!("<title>{whole}</title>"));
            let _ = writeln!(
                found,
                "<text x=\"{x}\" y=\"{y}\" font-family=\"sans-serif\" font-size=\"{size}\" \
                 text-anchor=\"{anchor}\" fill=\"#000000\"{turned}>{text}{whole}</text>"
            );
        }
        found
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
