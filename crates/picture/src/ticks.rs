//! What is written at the marks along x: level, in lines, upright, or at some of the marks only.

use crate::sizes::{MARK_LINE_PT, MARK_TEXT_PT};
use crate::text::Text;

/// Between two texts.
const GAP_PT: f64 = 4.0;
/// Level texts have at most so many lines, upright ones are at most so long.
const MOST_LINES: usize = 4;
const UPRIGHT_PT: f64 = 120.0;
const MOST_UPRIGHT: usize = 3;

/// A mark of an axis and what is written there; nothing where there is no room.
#[derive(Clone, Debug)]
pub struct Mark {
    /// In the coordinate that is drawn.
    pub at: f64,
    /// What is written there.
    pub text: Text,
}

/// The marks along x.
#[derive(Clone, Debug, Default)]
pub struct Marks {
    /// In the order of the axis's own.
    pub marks: Vec<Mark>,
    /// Texts are read from below.
    pub upright: bool,
    /// How high what is written is.
    pub height: f64,
    /// How far texts reach beyond the axis, left and right.
    pub beyond: (f64, f64),
}

/// Writes texts at marks; `places` are where they are from the axis's beginning, in points.
pub fn written(marks: Vec<(f64, String)>, places: &[f64], width: f64) -> Marks {
    let spacing = spacing(places, width);
    let texts = |most_width: f64, most_lines: usize| -> Vec<Text> {
        let fit =
            |(_, text): &(f64, String)| Text::fitted(text, most_width, MARK_TEXT_PT, most_lines);
        marks.iter().map(fit).collect()
    };
    let numbers = marks.iter().all(|(_, text)| text.trim().parse::<f64>().is_ok());
    let level = texts(f64::INFINITY, 1);
    let apart = |texts: &[Text]| texts.iter().all(|t| t.width(MARK_TEXT_PT) + GAP_PT <= spacing);
    if numbers || apart(&level) || marks.len() < 2 && width > UPRIGHT_PT {
        let level = if numbers { level } else { texts(width.max(spacing), MOST_LINES) };
        return placed(&marks, level, places, width, false);
    }
    // Words are broken only where there is no other way.
    let in_lines = texts(spacing - GAP_PT, MOST_LINES);
    let whole_words = marks.iter().zip(&in_lines).all(|((_, text), fitted)| {
        let words = text.split_whitespace().count();
        fitted.whole.is_none()
            && fitted.lines.iter().map(|l| l.split_whitespace().count()).sum::<usize>() == words
    });
    if whole_words && apart(&in_lines) {
        return placed(&marks, in_lines, places, width, false);
    }
    let lines = (spacing / MARK_LINE_PT) as usize;
    placed(&marks, texts(UPRIGHT_PT, lines.clamp(1, MOST_UPRIGHT)), places, width, true)
}

/// The least distance between two marks.
fn spacing(places: &[f64], width: f64) -> f64 {
    let mut sorted = places.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.windows(2).map(|pair| pair[1] - pair[0]).fold(width, f64::min)
}

/// Leaves texts away that would touch the one before them.
fn placed(
    marks: &[(f64, String)],
    texts: Vec<Text>,
    places: &[f64],
    width: f64,
    upright: bool,
) -> Marks {
    let mut found = Marks { upright, ..Marks::default() };
    let mut order: Vec<usize> = (0..marks.len()).collect();
    order.sort_by(|&a, &b| places[a].total_cmp(&places[b]));
    let mut written: Vec<Text> = vec![Text::default(); marks.len()];
    let mut end = f64::NEG_INFINITY;
    for index in order {
        let text = &texts[index];
        let (across, down) = extents(text, upright);
        let gap = if upright { 0.0 } else { GAP_PT };
        if text.is_empty() || places[index] - across / 2.0 < end + gap {
            continue;
        }
        end = places[index] + across / 2.0;
        found.height = found.height.max(down);
        found.beyond.0 = found.beyond.0.max(across / 2.0 - places[index]);
        found.beyond.1 = found.beyond.1.max(end - width);
        written[index].clone_from(text);
    }
    found.marks = marks.iter().zip(written).map(|((at, _), text)| Mark { at: *at, text }).collect();
    found
}

/// How wide and how high a text is as it is written.
fn extents(text: &Text, upright: bool) -> (f64, f64) {
    let (along, lines) = (text.width(MARK_TEXT_PT), text.height() * MARK_LINE_PT);
    if upright { (lines, along + 2.0) } else { (along, lines) }
}
