//! Where the panels and all texts are. A figure becomes higher for what is written on it; its panels keep their size.

use crate::extent::{Axes, Extent, along, axes, log_marks, marks};
use crate::figure::{Panel, Picture, Shared};
use crate::legend::{GAP_PT as KEY_GAP_PT, Legend, legend, names, row_width};
use crate::sizes::{LINE_PT, MARK_LINE_PT, MARK_PT, MARK_TEXT_PT, TEXT_PT};
use crate::text::{Text, width};
use crate::ticks::{Mark, Marks, written};

const MARGIN_PT: f64 = 4.0;
/// Half of what is written at the last mark.
const RIGHT_PT: f64 = 12.0;
/// Between panels side by side, and below each other.
const GAP_PT: f64 = 7.0;
const ROW_GAP_PT: f64 = 10.0;
/// Below the legend above all panels.
const LEGEND_GAP_PT: f64 = 4.0;
/// Above the lines of a title.
const TITLE_GAP_PT: f64 = 1.5;
/// Distances of marks.
const X_MARK_PT: f64 = 32.0;
const Y_MARK_PT: f64 = 18.0;
/// No panel is smaller than this.
const LEAST_PT: f64 = 40.0;
const LEAST_HEIGHT_PT: f64 = 54.0;
/// Lines of a title, and of the name of an axis.
const TITLE_LINES: usize = 8;
const LABEL_LINES: usize = 4;

/// A figure's size and what is where on it.
#[derive(Clone, Debug)]
pub struct Layout {
    /// In points, as all here.
    pub width: f64,
    /// May be more than the figure asked for.
    pub height: f64,
    /// Above all panels, in the middle.
    pub legend: Legend,
    /// Its upper edge.
    pub legend_top: f64,
    /// Of each panel.
    pub places: Vec<Place>,
    /// Below all panels.
    pub x_label: Text,
    /// Left of all panels.
    pub y_label: Text,
    /// Of the panels, across and down.
    pub middle: (f64, f64),
}

/// A panel's place, and what is written around it.
#[derive(Clone, Debug)]
pub struct Place {
    /// Of its axes.
    pub left: f64,
    /// Of its axes.
    pub top: f64,
    /// Of its axes.
    pub width: f64,
    /// Of its axes.
    pub height: f64,
    /// From where to where they go.
    pub axes: Axes,
    /// Above it.
    pub title: Text,
    /// From its upper edge to the end of its title; a legend of its own may be in between.
    pub title_rise: f64,
    /// Of its own, at the right.
    pub legend: Legend,
    /// Below it.
    pub x_label: Text,
    /// Left of it.
    pub y_label: Text,
    /// Along x.
    pub x_marks: Marks,
    /// Along y.
    pub y_marks: Vec<Mark>,
    /// Whether its marks are written along x, and along y; others have the same axis.
    pub x_written: bool,
    /// The same along y.
    pub y_written: bool,
    /// From the figure's edge, or the panel to the left, to the axis.
    pub y_room: f64,
}

/// Lays a figure out.
pub fn layout(picture: &Picture) -> Layout {
    let found = with_y_label(picture, f64::INFINITY);
    let room = found.room_for_y_label();
    // Its lines take room from the panels, but leave them their height.
    if found.y_label.width(TEXT_PT) <= room { found } else { with_y_label(picture, room) }
}

/// Lays a figure out whose lines of the label at its left have this width at most.
fn with_y_label(picture: &Picture, room: f64) -> Layout {
    let axes = axes(picture);
    let columns = picture.columns;
    let count = picture.panels.len();
    let rows = count.div_ceil(columns);
    let legend = match picture.legend_above {
        true => legend(&names(&picture.panels, 0), picture.width_pt - 2.0 * MARGIN_PT),
        false => Legend::default(),
    };
    let legend_top = MARGIN_PT;
    let top =
        MARGIN_PT + legend.height + if legend.entries.is_empty() { 0.0 } else { LEGEND_GAP_PT };

    let heights = heights(picture, rows, !legend.entries.is_empty());
    let y_label = Text::fitted(&picture.y_label, room, TEXT_PT, LABEL_LINES);
    let left = MARGIN_PT + y_label.height() * LINE_PT;
    let mut places: Vec<Place> = (0..count)
        .map(|place| empty_place(picture, place, &axes, heights[place / columns]))
        .collect();
    let edges = Columns::of(picture, &mut places, left);
    let mut y = top;
    for (row, height) in heights.iter().enumerate() {
        let here = row * columns..((row + 1) * columns).min(count);
        for place in here.clone() {
            let (panel, found) = (&picture.panels[place], &mut places[place]);
            found.left = edges.lefts[place % columns];
            found.width = edges.width;
            title(panel, place, !picture.legend_above, found);
            found.x_label = Text::fitted(&panel.x_label, found.width, TEXT_PT, LABEL_LINES);
        }
        y += places[here.clone()].iter().map(|p| p.title_rise).fold(0.0, f64::max);
        for place in here.clone() {
            places[place].top = y;
        }
        y += height + places[here].iter().map(Place::below).fold(0.0, f64::max);
        y += if row + 1 < rows { ROW_GAP_PT } else { 0.0 };
    }
    let right = places.iter().map(|p| p.left + p.width).fold(0.0, f64::max);
    let across =
        if places.is_empty() { edges.total / 2.0 } else { f64::midpoint(places[0].left, right) };
    let room = 2.0 * across.min(edges.total - across) - 2.0 * MARGIN_PT;
    let x_label = Text::fitted(&picture.x_label, room, TEXT_PT, LABEL_LINES);
    let bottom = places.last().map_or(top, |p| p.top + p.height);
    let height = y + x_label.height() * LINE_PT + MARGIN_PT;
    Layout {
        width: edges.total,
        height: if places.is_empty() { height.max(picture.height_pt) } else { height },
        legend,
        legend_top,
        middle: (across, f64::midpoint(places.first().map_or(top, |p| p.top), bottom)),
        places,
        x_label,
        y_label,
    }
}

impl Layout {
    /// How long the label at the left may be: as the panels are high, and more where nothing is above or below.
    fn room_for_y_label(&self) -> f64 {
        let edge = 2.0 * MARGIN_PT + self.y_label.height() * LINE_PT;
        let above =
            if (self.width - self.legend.width) / 2.0 > edge { 0.0 } else { self.legend.height };
        let below = if self.middle.0 - self.x_label.width(TEXT_PT) / 2.0 > edge {
            0.0
        } else {
            self.x_label.height() * LINE_PT
        };
        let (up, down) = (self.middle.1 - above, self.height - below - self.middle.1);
        2.0 * (up.min(down) - MARGIN_PT)
    }
}

impl Place {
    /// From its lower edge to the end of what is written there.
    fn below(&self) -> f64 {
        self.marks_height() + self.x_label.height() * LINE_PT
    }

    /// From its lower edge to the end of what is written at its marks.
    pub fn marks_height(&self) -> f64 {
        if self.x_written { MARK_PT + self.x_marks.height + 1.0 } else { 0.0 }
    }

    /// Where a coordinate is, from the panel's left edge.
    fn across(&self, x: f64) -> f64 {
        let Extent { low, high } = self.axes.x;
        (x - low) / (high - low) * self.width
    }
}

/// Heights of the rows: what the figure's own height leaves them if all texts have one line.
fn heights(picture: &Picture, rows: usize, with_legend: bool) -> Vec<f64> {
    let any = |row: usize, has: fn(&Panel) -> bool| {
        let panels = picture.panels.chunks(picture.columns).nth(row).unwrap_or_default();
        f64::from(panels.iter().any(has))
    };
    let taken = |row: usize| {
        let apart = matches!(picture.shared_x, Shared::Row | Shared::None);
        let marked = row + 1 == rows || apart;
        LINE_PT * (any(row, |p| !p.title.is_empty()) + any(row, |p| !p.x_label.is_empty()))
            + if marked { MARK_PT + LINE_PT } else { 0.0 }
    };
    let legend = if with_legend { LINE_PT + 1.0 + LEGEND_GAP_PT } else { 0.0 };
    let label = if picture.x_label.is_empty() { MARGIN_PT } else { LINE_PT };
    let gaps = ROW_GAP_PT * (rows as f64 - 1.0);
    let taken = MARGIN_PT + legend + label + gaps + (0..rows).map(taken).sum::<f64>();
    let free = picture.height_pt - taken;
    let part = |row: usize| picture.heights.get(row).copied().unwrap_or(1.0);
    let parts: f64 = (0..rows).map(part).sum();
    (0..rows).map(|row| (free * part(row) / parts).max(LEAST_HEIGHT_PT)).collect()
}

/// What is known of a place before its width is.
fn empty_place(picture: &Picture, place: usize, all: &[Axes], height: f64) -> Place {
    let (panel, axes) = (&picture.panels[place], all[place]);
    let columns = picture.columns;
    let below = picture.panels.get(place + columns);
    let x_written = match picture.shared_x {
        Shared::All | Shared::Column => {
            below.is_none_or(|panel| !panel.shown) || !panel.x_label.is_empty()
        }
        Shared::Row | Shared::None => true,
    };
    // Marks are written once where neighbours have the same.
    let y_written = match picture.shared_y {
        _ if place.is_multiple_of(columns) => true,
        Shared::All | Shared::Row => false,
        Shared::Column => true,
        Shared::None => {
            axes.y != all[place - 1].y || panel.y_log != picture.panels[place - 1].y_log
        }
    };
    let x_written = x_written && panel.shown && !panel.bare;
    let y_written = y_written && panel.shown && !panel.bare;
    let about = height / Y_MARK_PT;
    let y_marks = if panel.y_log { log_marks(axes.y, about) } else { marks(axes.y, about) };
    let y_marks: Vec<Mark> = y_marks
        .into_iter()
        .filter(|_| !panel.bare)
        .map(|(at, text)| Mark { at, text: Text { lines: vec![text], whole: None } })
        .collect();
    let y_label = Text::fitted(&panel.y_label, height + GAP_PT, TEXT_PT, LABEL_LINES);
    let widest = y_marks.iter().map(|m| m.text.width(MARK_TEXT_PT)).fold(0.0, f64::max);
    let y_room = widest + MARK_PT + 1.0 + y_label.height() * LINE_PT;
    Place {
        left: 0.0,
        top: 0.0,
        width: 0.0,
        height,
        axes,
        title: Text::default(),
        title_rise: 0.0,
        legend: Legend::default(),
        x_label: Text::default(),
        y_label: if y_written { y_label } else { Text::default() },
        x_marks: Marks::default(),
        y_marks,
        x_written,
        y_written,
        y_room: if y_written { y_room } else { 0.0 },
    }
}

/// Where columns of panels are.
struct Columns {
    lefts: Vec<f64>,
    width: f64,
    /// What each needs below it, left and right of the panel.
    beyond: Vec<(f64, f64)>,
    /// Of the whole figure.
    total: f64,
}

impl Columns {
    /// Finds the width of the panels and writes their marks along x; what is written there needs room between them.
    fn of(picture: &Picture, places: &mut [Place], left: f64) -> Self {
        let columns = picture.columns;
        let room: Vec<f64> = (0..columns)
            .map(|c| places.iter().skip(c).step_by(columns).map(|p| p.y_room).fold(0.0, f64::max))
            .collect();
        for (index, place) in places.iter_mut().enumerate() {
            place.y_room = room[index % columns];
        }
        let nothing = vec![(0.0, 0.0); columns];
        let mut found =
            Self { lefts: vec![], width: 0.0, beyond: nothing.clone(), total: picture.width_pt };
        // Marks need room that the panels give up, which may have fewer marks then.
        for _ in 0..3 {
            found.place(&room, left);
            let mut beyond = nothing.clone();
            for (index, place) in places.iter_mut().enumerate() {
                place.width = found.width;
                place.x_marks = x_marks(&picture.panels[index], place);
                if place.x_written {
                    let (column, (l, r)) = (index % columns, place.x_marks.beyond);
                    let seen: &mut (f64, f64) = &mut beyond[column];
                    *seen = (seen.0.max(l), seen.1.max(r));
                }
            }
            if found.holds(&beyond) {
                break;
            }
            found.beyond = beyond;
        }
        // What still has no room is not written.
        for (index, place) in places.iter_mut().enumerate() {
            let (l, r) = found.room_beyond(index % columns);
            let edges = (-l, place.width + r);
            let mut marks = std::mem::take(&mut place.x_marks);
            for mark in &mut marks.marks {
                let across = if marks.upright {
                    mark.text.height() * MARK_LINE_PT
                } else {
                    mark.text.width(MARK_TEXT_PT)
                };
                let middle = place.across(mark.at);
                if middle - across / 2.0 < edges.0 || middle + across / 2.0 > edges.1 {
                    mark.text = Text::default();
                }
            }
            place.x_marks = marks;
        }
        found
    }

    fn place(&mut self, room: &[f64], left: f64) {
        let (columns, beyond) = (room.len(), self.beyond.clone());
        let gap = |c: usize| {
            let needed = beyond[c].1 + beyond[c + 1].0 + 2.0 * MARGIN_PT - room[c + 1];
            needed.max(GAP_PT)
        };
        let first = (left + room[0]).max(beyond[0].0 + MARGIN_PT);
        let last = (beyond[columns - 1].1 + MARGIN_PT).max(RIGHT_PT);
        let between: f64 = (0..columns - 1).map(|c| gap(c) + room[c + 1]).sum();
        let free = self.total - first - last - between;
        self.width = (free / columns as f64).max(LEAST_PT);
        self.total = self.total.max(first + last + between + self.width * columns as f64);
        self.lefts = vec![first];
        for c in 0..columns - 1 {
            let next = self.lefts[c] + self.width + gap(c) + room[c + 1];
            self.lefts.push(next);
        }
    }

    /// Whether all that is written below the panels has room.
    fn holds(&self, beyond: &[(f64, f64)]) -> bool {
        (0..beyond.len()).all(|column| {
            let (left, right) = self.room_beyond(column);
            beyond[column].0 <= left && beyond[column].1 <= right
        })
    }

    /// How far what is written below a panel may reach beyond it.
    fn room_beyond(&self, column: usize) -> (f64, f64) {
        let right_of = |c: usize| self.lefts[c] + self.width;
        // What neighbours do not need is halved between them.
        let spare = |c: usize| {
            let needed = self.beyond[c].1 + self.beyond[c + 1].0;
            (self.lefts[c + 1] - right_of(c) - needed) / 2.0 - 1.0
        };
        let left = match column {
            0 => self.lefts[0] - MARGIN_PT / 2.0,
            _ => self.beyond[column].0 + spare(column - 1),
        };
        let last = column + 1 == self.lefts.len();
        let end = self.total - right_of(column) - MARGIN_PT / 2.0;
        (left, if last { end } else { self.beyond[column].1 + spare(column) })
    }
}

/// The marks along x with what is written there.
fn x_marks(panel: &Panel, place: &Place) -> Marks {
    let write = |marks: Vec<(f64, String)>| {
        let marks: Vec<(f64, String)> = marks
            .into_iter()
            .filter(|(x, _)| (place.axes.x.low..=place.axes.x.high).contains(x))
            .collect();
        let places: Vec<f64> = marks.iter().map(|(x, _)| place.across(*x)).collect();
        written(marks, &places, place.width)
    };
    if let Some(ticks) = &panel.ticks {
        return write(ticks.iter().map(|(x, text)| (along(panel, *x), text.clone())).collect());
    }
    let mut about = (place.width / X_MARK_PT).max(1.0);
    loop {
        let marks = match panel.x_log {
            true => log_marks(place.axes.x, about),
            false => marks(place.axes.x, about),
        };
        let found = write(marks);
        // Fewer marks rather than marks without a number.
        if about <= 1.0 || panel.x_log || found.marks.iter().all(|mark| !mark.text.is_empty()) {
            return found;
        }
        about = (about * 0.8).max(1.0);
    }
}

/// The title of a panel, and its legend: beside the title if both have room there, else below it.
fn title(panel: &Panel, place: usize, own_legend: bool, found: &mut Place) {
    let entries = match own_legend {
        true => names(std::slice::from_ref(panel), place),
        false => vec![],
    };
    found.title = Text::fitted(&panel.title, found.width, TEXT_PT, TITLE_LINES);
    found.legend = legend(&entries, found.width);
    let beside = row_width(&entries) + KEY_GAP_PT;
    let left_over = found.width - width(&panel.title, TEXT_PT);
    let left_over = if panel.title_left { left_over } else { left_over / 2.0 };
    let gap = if found.title.is_empty() { 0.0 } else { TITLE_GAP_PT };
    let lines = found.title.height() * LINE_PT + gap;
    found.title_rise = if found.legend.columns == entries.len() && beside <= left_over {
        lines.max(found.legend.height)
    } else {
        lines + found.legend.height
    };
}
