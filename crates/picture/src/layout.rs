//! Where the panels are.

use crate::extent::{Axes, along, log_marks, marks};
use crate::{Panel, Picture, Shared};

/// Text sizes in points.
pub const TEXT_PT: f64 = 8.0;
/// Of what is written at marks.
pub const MARK_TEXT_PT: f64 = 7.0;
/// A line of text, with what separates it from the next.
pub const LINE_PT: f64 = 11.0;
/// From an axis to what is written at its marks.
pub const MARK_PT: f64 = 3.0;
/// Room for a dash or a marker in a legend.
pub const KEY_PT: f64 = 20.0;
/// Between two labels of a legend.
pub const KEY_GAP_PT: f64 = 12.0;
const MARGIN_PT: f64 = 4.0;
/// Half of what is written at the last mark.
const RIGHT_PT: f64 = 12.0;
const GAP_PT: f64 = 7.0;
/// The width of a letter in relation to its size. An SVG's reader chooses the font; this is DejaVu Sans, the widest of
/// the usual ones.
const LETTER: f64 = 0.6;
/// Distances of marks.
const X_MARK_PT: f64 = 32.0;
const Y_MARK_PT: f64 = 18.0;

/// A panel's place, and what is written at its axes.
#[derive(Clone, Debug)]
pub struct Place {
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
    pub x_marks: Vec<(f64, String)>,
    pub y_marks: Vec<(f64, String)>,
    /// Whether its marks are written along x, and along y; others have the same axis.
    pub x_written: bool,
    pub y_written: bool,
    /// From the figure's edge, or the panel to the left, to the axis.
    pub y_room: f64,
}

/// How much room a text takes, about.
pub fn text_width(text: &str, size_pt: f64) -> f64 {
    text.chars().count() as f64 * LETTER * size_pt
}

/// The rows of a legend: as many entries side by side as fit.
pub fn legend_rows<'a, T>(picture: &Picture, entries: &'a [(T, &str)]) -> Vec<&'a [(T, &'a str)]> {
    let widest = entries
        .iter()
        .map(|(_, label)| KEY_PT + text_width(label, TEXT_PT) + KEY_GAP_PT)
        .fold(1.0, f64::max);
    entries.chunks(((picture.width_pt / widest) as usize).max(1)).collect()
}

/// The places of all panels.
pub fn places(picture: &Picture, axes: &[Axes], legend_rows: usize) -> Vec<Place> {
    let columns = picture.columns;
    let count = picture.panels.len();
    let rows = count.div_ceil(columns);
    let titled = |row: usize| row_of(picture, row).iter().any(|p| !p.title.is_empty());
    let title = |row: usize| if titled(row) { LINE_PT } else { 0.0 };
    let x_written = |place: usize| match picture.shared_x {
        Shared::All | Shared::Column => place + columns >= count,
        Shared::Row => true,
    };
    let y_written =
        |place: usize| picture.shared_y == Shared::Column || place.is_multiple_of(columns);
    let below = |row: usize| {
        let panels = row_of(picture, row);
        let label = if panels.iter().any(|p| !p.x_label.is_empty()) { LINE_PT } else { 0.0 };
        // Above the place of a panel that is not there what is written has that place.
        let written = row + 1 == rows || picture.shared_x == Shared::Row;
        label + if written { MARK_PT + LINE_PT } else { 0.0 }
    };

    let top = MARGIN_PT + legend_rows as f64 * (LINE_PT + 1.0);
    let bottom = if picture.x_label.is_empty() { MARGIN_PT } else { LINE_PT };
    let taken: f64 = (0..rows).map(|row| title(row) + below(row)).sum();
    let free = picture.height_pt - top - bottom - taken - GAP_PT * (rows as f64 - 1.0);
    let parts: f64 = (0..rows).map(|row| picture.heights.get(row).copied().unwrap_or(1.0)).sum();
    let heights: Vec<f64> = (0..rows)
        .map(|row| free * picture.heights.get(row).copied().unwrap_or(1.0) / parts)
        .collect();

    let y_marks: Vec<_> =
        (0..count).map(|i| marks(axes[i].y, heights[i / columns] / Y_MARK_PT)).collect();
    let y_room: Vec<f64> = (0..columns)
        .map(|column| {
            let here = (column..count).step_by(columns).filter(|&place| y_written(place));
            here.map(|place| y_room(&picture.panels[place], &y_marks[place])).fold(0.0, f64::max)
        })
        .collect();
    let left = MARGIN_PT + if picture.y_label.is_empty() { 0.0 } else { LINE_PT };
    let gaps = GAP_PT * (columns as f64 - 1.0);
    let width =
        (picture.width_pt - left - RIGHT_PT - y_room.iter().sum::<f64>() - gaps) / columns as f64;

    let mut found = Vec::new();
    let mut y = top;
    for (row, &height) in heights.iter().enumerate() {
        y += title(row);
        let mut x = left;
        for (column, &y_room) in y_room.iter().enumerate().take(count - row * columns) {
            let place = row * columns + column;
            x += y_room;
            found.push(Place {
                left: x,
                top: y,
                width,
                height,
                x_marks: x_marks(&picture.panels[place], axes[place], width),
                y_marks: y_marks[place].clone(),
                x_written: x_written(place),
                y_written: y_written(place),
                y_room,
            });
            x += width + GAP_PT;
        }
        y += height + below(row) + GAP_PT;
    }
    found
}

fn row_of(picture: &Picture, row: usize) -> &[Panel] {
    picture.panels.chunks(picture.columns).nth(row).unwrap_or_default()
}

fn x_marks(panel: &Panel, axes: Axes, width: f64) -> Vec<(f64, String)> {
    match &panel.ticks {
        Some(ticks) => ticks.iter().map(|(x, text)| (along(panel, *x), text.clone())).collect(),
        None if panel.x_log => log_marks(axes.x),
        None => marks(axes.x, width / X_MARK_PT),
    }
}

fn y_room(panel: &Panel, marks: &[(f64, String)]) -> f64 {
    let widest = marks.iter().map(|(_, text)| text_width(text, MARK_TEXT_PT)).fold(0.0, f64::max);
    let lines = panel.y_label.lines().count() as f64;
    widest + 2.0 * MARK_PT + lines * LINE_PT
}
