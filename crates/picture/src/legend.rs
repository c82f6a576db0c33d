//! What lines are called, in as many columns as have room.

use crate::figure::Panel;
use crate::sizes::{LINE_PT, TEXT_PT};
use crate::text::{Text, width};

/// Room for a dash or a marker.
pub const KEY_PT: f64 = 20.0;
/// Between two columns.
pub const GAP_PT: f64 = 12.0;
/// A name of a line has at most so many lines.
const MOST_LINES: usize = 3;
/// More names than this are counted, not written: nobody tells so many lines apart.
const MOST_ENTRIES: usize = 60;

/// Names in columns, filled one after the other.
#[derive(Clone, Debug, Default)]
pub struct Legend {
    /// Column by column.
    pub entries: Vec<Entry>,
    /// The first ones have one entry more where they are not filled alike.
    pub columns: usize,
    /// In points.
    pub width: f64,
    /// In points.
    pub height: f64,
}

/// A name and where it is, from the legend's corner.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Panel and line that it names; none for what only counts the rest.
    pub of: Option<(usize, usize)>,
    /// The name.
    pub text: Text,
    /// In points.
    pub left: f64,
    /// Where its first line begins.
    pub top: f64,
}

/// The names of lines, the first line of each name; nothing if it is one.
pub fn names(panels: &[Panel], offset: usize) -> Vec<((usize, usize), &str)> {
    let mut found: Vec<((usize, usize), &str)> = Vec::new();
    for (place, panel) in panels.iter().enumerate().filter(|(_, panel)| panel.shown) {
        for (index, line) in panel.lines.iter().enumerate() {
            if let Some(label) = &line.label
                && !label.trim().is_empty()
                && found.iter().all(|(_, known)| known != label)
            {
                found.push(((place + offset, index), label));
            }
        }
    }
    if found.len() > 1 { found } else { vec![] }
}

/// How wide a legend in one row is.
pub fn row_width(names: &[((usize, usize), &str)]) -> f64 {
    let each = names.iter().map(|(_, name)| KEY_PT + width(name, TEXT_PT));
    each.sum::<f64>() + GAP_PT * (names.len() as f64 - 1.0).max(0.0)
}

/// Lays names out in as many columns as fit.
pub fn legend(names: &[((usize, usize), &str)], room: f64) -> Legend {
    let shown = if names.len() > MOST_ENTRIES { MOST_ENTRIES - 1 } else { names.len() };
    let fitted = |text: &str| Text::fitted(text, room - KEY_PT, TEXT_PT, MOST_LINES);
    let mut entries: Vec<Entry> = names[..shown]
        .iter()
        .map(|(of, name)| Entry { of: Some(*of), text: fitted(name), left: 0.0, top: 0.0 })
        .collect();
    if shown < names.len() {
        let text = fitted(&format!("… and {} more", names.len() - shown));
        entries.push(Entry { of: None, text, left: 0.0, top: 0.0 });
    }
    let count = entries.len();
    if count == 0 {
        return Legend::default();
    }
    // The fewest rows: columns that are filled alike.
    let columns = (1..=count).rev().filter(|&n| n == count.div_ceil(count.div_ceil(n)));
    let columns = columns.into_iter().find(|&n| widths(&entries, n).1 <= room).unwrap_or(1);
    let (widths, width) = widths(&entries, columns);
    let mut height: f64 = 0.0;
    let (mut left, mut next) = (0.0, 0);
    for (column, width) in widths.iter().enumerate() {
        let mut top = 0.0;
        for entry in &mut entries[next..next + size(count, columns, column)] {
            (entry.left, entry.top) = (left, top);
            top += entry.text.height() * LINE_PT + 1.0;
            next += 1;
        }
        height = height.max(top);
        left += width + GAP_PT;
    }
    Legend { entries, columns, width, height }
}

/// How many entries a column has: the first ones have one more.
fn size(count: usize, columns: usize, column: usize) -> usize {
    count / columns + usize::from(column < count % columns)
}

/// The widths of the columns, and of all.
fn widths(entries: &[Entry], columns: usize) -> (Vec<f64>, f64) {
    let mut rest = entries;
    let widths: Vec<f64> = (0..columns)
        .map(|column| {
            let (mine, others) = rest.split_at(size(entries.len(), columns, column));
            rest = others;
            mine.iter().map(|e| KEY_PT + e.text.width(TEXT_PT)).fold(0.0, f64::max)
        })
        .collect();
    let all = widths.iter().sum::<f64>() + GAP_PT * (columns as f64 - 1.0);
    (widths, all)
}
