//! Draws with plotters: axes, grid, lines, intervals, points, texts.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontTransform, IntoFont, TextStyle};

use crate::extent::{Axes, along, axes};
use crate::layout::{
    KEY_GAP_PT, KEY_PT, LINE_PT, MARK_PT, MARK_TEXT_PT, Place, TEXT_PT, legend_rows, places,
    text_width,
};
use crate::stroke::{Path, bands, clipped, dashed, length, pieces, thinned};
use crate::{Line, Marker, Panel, Picture};

/// plotters draws in whole units: this many make a point, fine enough that no step is seen.
const UNITS: f64 = 10.0;
/// plotters divides the size of a font by this.
const FONT_SIZE: f64 = 1.24;
const GRID: RGBColor = RGBColor(221, 221, 221);
const GRID_PT: f64 = 0.5;
const AXIS_PT: f64 = 0.6;
/// Half the size of a marker.
const MARKER_PT: f64 = 2.0;
/// Width of the ends of an interval.
const CAP_PT: f64 = 5.0;
/// How much of what is behind a band is seen.
const BAND_ALPHA: f64 = 0.25;
/// Points of a line that are closer along x cannot be told apart.
const COLUMN_PT: f64 = 0.25;
/// A line this many times as long as its panel is wide is so dense that dashes would not be seen.
const DENSE: f64 = 12.0;

type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Failed = Box<dyn std::error::Error>;

/// The figure as an SVG document; the same figure gives the same bytes.
///
/// # Errors
/// What plotters says; drawing in memory gives it no reason to.
pub fn svg(picture: &Picture) -> Result<String, Failed> {
    let mut text = String::new();
    let size = (units(picture.width_pt) as u32, units(picture.height_pt) as u32);
    {
        let canvas = SVGBackend::with_string(&mut text, size).into_drawing_area();
        canvas.fill(&WHITE)?;
        paint(picture, &canvas)?;
        canvas.present()?;
    }
    // Its own size is in units, and much too large on a page.
    let drawn = format!("width=\"{}\" height=\"{}\"", size.0, size.1);
    let shown = format!("width=\"{}pt\" height=\"{}pt\"", picture.width_pt, picture.height_pt);
    Ok(text.replacen(&drawn, &shown, 1))
}

fn paint(picture: &Picture, canvas: &Canvas) -> Result<(), Failed> {
    let axes = axes(picture);
    let entries = if picture.legend_above { legend(&picture.panels) } else { vec![] };
    let rows = legend_rows(picture, &entries);
    let places = places(picture, &axes, rows.len());
    for (index, row) in rows.iter().enumerate() {
        let width: f64 = row.iter().map(|(_, label)| entry_width(label)).sum();
        let y = (index as f64 + 0.5) * (LINE_PT + 1.0) + 2.0;
        paint_legend(canvas, row, ((picture.width_pt - width + KEY_GAP_PT) / 2.0, y))?;
    }
    for ((panel, place), axes) in picture.panels.iter().zip(&places).zip(&axes) {
        paint_panel(canvas, panel, place, *axes, !picture.legend_above)?;
    }
    let (Some(first), Some(last)) = (places.first(), places.last()) else { return Ok(()) };
    let right = places.iter().map(|p| p.left + p.width).fold(0.0, f64::max);
    let middle = f64::midpoint(first.left, right);
    write(
        canvas,
        &picture.x_label,
        TEXT_PT,
        (middle, picture.height_pt - LINE_PT * 0.6),
        (HPos::Center, VPos::Center),
    )?;
    let height = f64::midpoint(first.top, last.top + last.height);
    write_upwards(canvas, &picture.y_label, (LINE_PT / 2.0 + 2.0, height))
}

fn paint_panel(
    canvas: &Canvas,
    panel: &Panel,
    place: &Place,
    axes: Axes,
    own_legend: bool,
) -> Result<(), Failed> {
    let frame = Frame { place, axes };
    paint_grid(canvas, panel, &frame)?;
    for line in &panel.lines {
        paint_line(canvas, panel, line, &frame)?;
    }
    paint_axes(canvas, &frame)?;

    let (x, y) = (place.left, place.top - LINE_PT / 2.0);
    if panel.title_left {
        write(canvas, &panel.title, TEXT_PT, (x, y), (HPos::Left, VPos::Center))?;
    } else {
        write(
            canvas,
            &panel.title,
            TEXT_PT,
            (x + place.width / 2.0, y),
            (HPos::Center, VPos::Center),
        )?;
    }
    let entries = legend(std::slice::from_ref(panel));
    if own_legend {
        let width: f64 = entries.iter().map(|(_, label)| entry_width(label)).sum();
        paint_legend(canvas, &entries, (x + place.width - width + KEY_GAP_PT, y))?;
    }
    if place.y_written {
        let lines: Vec<&str> = panel.y_label.lines().collect();
        for (index, text) in lines.iter().enumerate() {
            let from_edge = (index as f64 + 0.5) * LINE_PT;
            write_upwards(
                canvas,
                text,
                (x - place.y_room + from_edge, place.top + place.height / 2.0),
            )?;
        }
    }
    let below = place.top + place.height + MARK_PT + LINE_PT * 1.5;
    write(
        canvas,
        &panel.x_label,
        TEXT_PT,
        (x + place.width / 2.0, below),
        (HPos::Center, VPos::Center),
    )
}

/// Lines from the marks through the panel.
fn paint_grid(canvas: &Canvas, panel: &Panel, frame: &Frame) -> Result<(), Failed> {
    let Axes { x: across, y: up } = frame.axes;
    let upright = frame
        .place
        .x_marks
        .iter()
        .filter(|_| panel.x_grid)
        .map(|&(x, _)| [(x, up.low), (x, up.high)]);
    let level = frame.place.y_marks.iter().map(|&(y, _)| [(across.low, y), (across.high, y)]);
    for ends in upright.chain(level) {
        let path = ends.map(|point| at(frame.point(point))).to_vec();
        canvas.draw(&PathElement::new(path, GRID.stroke_width(units(GRID_PT) as u32)))?;
    }
    Ok(())
}

/// The left and the lower axis with their marks.
fn paint_axes(canvas: &Canvas, frame: &Frame) -> Result<(), Failed> {
    let (place, axes) = (frame.place, frame.axes);
    let (left, bottom) = (place.left, place.top + place.height);
    let line = BLACK.stroke_width(units(AXIS_PT) as u32);
    let corner = [(left, place.top), (left, bottom), (left + place.width, bottom)];
    canvas.draw(&PathElement::new(corner.map(at).to_vec(), line))?;
    for (value, text) in &place.x_marks {
        let (x, _) = frame.point((*value, axes.y.low));
        canvas.draw(&PathElement::new(
            vec![at((x, bottom)), at((x, bottom + MARK_PT * 0.7))],
            line,
        ))?;
        if place.x_written {
            let y = bottom + MARK_PT + LINE_PT / 2.0;
            write(canvas, text, MARK_TEXT_PT, (x, y), (HPos::Center, VPos::Center))?;
        }
    }
    for (value, text) in &place.y_marks {
        let (_, y) = frame.point((axes.x.low, *value));
        canvas.draw(&PathElement::new(vec![at((left, y)), at((left - MARK_PT * 0.7, y))], line))?;
        if place.y_written {
            write(
                canvas,
                text,
                MARK_TEXT_PT,
                (left - MARK_PT - 1.0, y),
                (HPos::Right, VPos::Center),
            )?;
        }
    }
    Ok(())
}

/// From the coordinates of a panel to those of the figure.
struct Frame<'a> {
    place: &'a Place,
    axes: Axes,
}

impl Frame<'_> {
    fn point(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let Axes { x: across, y: up } = self.axes;
        let right = (x - across.low) / (across.high - across.low);
        let down = (up.high - y) / (up.high - up.low);
        (self.place.left + right * self.place.width, self.place.top + down * self.place.height)
    }

    fn holds(&self, y: f64) -> bool {
        (self.axes.y.low..=self.axes.y.high).contains(&y)
    }
}

fn paint_line(canvas: &Canvas, panel: &Panel, line: &Line, frame: &Frame) -> Result<(), Failed> {
    let colour = RGBColor(line.colour.0, line.colour.1, line.colour.2);
    let x: Vec<f64> = line.x.iter().map(|&x| along(panel, x)).collect();
    if let Some((low, high)) = &line.band {
        let limits = frame.axes.y;
        let edge = |path: Path| -> Path {
            let inside = |(x, y): (f64, f64)| frame.point((x, y.clamp(limits.low, limits.high)));
            thinned(&path.into_iter().map(inside).collect::<Path>(), COLUMN_PT)
        };
        for (low, high) in bands(&x, low, high) {
            let around = edge(low).into_iter().chain(edge(high).into_iter().rev());
            let around: Vec<_> = around.map(at).collect();
            canvas.draw(&Polygon::new(around, colour.mix(BAND_ALPHA)))?;
        }
    }
    if line.joined {
        for piece in pieces(&x, &line.y, line.steps) {
            for part in clipped(&piece, frame.axes.y.low, frame.axes.y.high) {
                let seen = thinned(
                    &part.into_iter().map(|point| frame.point(point)).collect::<Path>(),
                    COLUMN_PT,
                );
                paint_path(canvas, &seen, line, frame.place.width)?;
            }
        }
    }
    for (i, (&x, y)) in x.iter().zip(&line.y).enumerate() {
        let Some(y) = y.filter(|&y| frame.holds(y)) else { continue };
        let half = line.half_width(i);
        if half > 0.0 {
            let ends = [y - half, y + half].map(|y| y.clamp(frame.axes.y.low, frame.axes.y.high));
            let cap = CAP_PT / 2.0;
            let [(x, low), (_, high)] = ends.map(|y| frame.point((x, y)));
            let strokes = [
                [(x, low), (x, high)],
                [(x - cap, low), (x + cap, low)],
                [(x - cap, high), (x + cap, high)],
            ];
            for stroke in strokes {
                let style = colour.stroke_width(units(line.width) as u32);
                canvas.draw(&PathElement::new(stroke.map(at).to_vec(), style))?;
            }
        }
        if let Some(marker) = line.marker {
            paint_marker(canvas, marker, frame.point((x, y)), colour)?;
        }
    }
    Ok(())
}

fn paint_path(
    canvas: &Canvas,
    path: &[(f64, f64)],
    line: &Line,
    panel_width: f64,
) -> Result<(), Failed> {
    let style = RGBColor(line.colour.0, line.colour.1, line.colour.2)
        .stroke_width(units(line.width) as u32);
    let pattern: Vec<f64> = line.dashes.iter().map(|part| part * line.width).collect();
    let pattern = if length(path) > DENSE * panel_width { vec![] } else { pattern };
    for dash in dashed(path, &pattern) {
        canvas.draw(&PathElement::new(dash.into_iter().map(at).collect::<Vec<_>>(), style))?;
    }
    Ok(())
}

fn paint_marker(
    canvas: &Canvas,
    marker: Marker,
    (x, y): (f64, f64),
    colour: RGBColor,
) -> Result<(), Failed> {
    let r = MARKER_PT;
    let shape = |corners: &[(f64, f64)]| {
        corners.iter().map(|(dx, dy)| at((x + dx * r, y + dy * r))).collect::<Vec<_>>()
    };
    let corners: &[(f64, f64)] = match marker {
        Marker::Circle => {
            canvas.draw(&Circle::new(at((x, y)), units(r), colour.filled()))?;
            return Ok(());
        }
        Marker::Square => &[(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)],
        Marker::Up => &[(0.0, -1.2), (1.1, 1.0), (-1.1, 1.0)],
        Marker::Down => &[(0.0, 1.2), (1.1, -1.0), (-1.1, -1.0)],
        Marker::Left => &[(-1.2, 0.0), (1.0, -1.1), (1.0, 1.1)],
        Marker::Diamond => &[(0.0, -1.4), (1.4, 0.0), (0.0, 1.4), (-1.4, 0.0)],
        Marker::Plus | Marker::Cross => {
            let ends: [(f64, f64); 4] = if marker == Marker::Plus {
                [(-1.3, 0.0), (1.3, 0.0), (0.0, -1.3), (0.0, 1.3)]
            } else {
                [(-1.0, -1.0), (1.0, 1.0), (-1.0, 1.0), (1.0, -1.0)]
            };
            for arm in ends.chunks(2) {
                canvas.draw(&PathElement::new(shape(arm), colour.stroke_width(units(r) as u32)))?;
            }
            return Ok(());
        }
    };
    canvas.draw(&Polygon::new(shape(corners), colour.filled()))?;
    Ok(())
}

/// What there is to tell apart; nothing if it is one thing.
fn legend(panels: &[Panel]) -> Vec<(&Line, &str)> {
    let mut found: Vec<(&Line, &str)> = Vec::new();
    for line in panels.iter().flat_map(|panel| &panel.lines) {
        if let Some(label) = &line.label
            && !label.is_empty()
            && found.iter().all(|(_, known)| known != label)
        {
            found.push((line, label));
        }
    }
    if found.len() > 1 { found } else { vec![] }
}

fn entry_width(label: &str) -> f64 {
    KEY_PT + text_width(label, TEXT_PT) + KEY_GAP_PT
}

fn paint_legend(
    canvas: &Canvas,
    entries: &[(&Line, &str)],
    (left, y): (f64, f64),
) -> Result<(), Failed> {
    let mut x = left;
    for (line, label) in entries {
        let colour = RGBColor(line.colour.0, line.colour.1, line.colour.2);
        let key = KEY_PT - 4.0;
        if line.joined {
            paint_path(canvas, &[(x, y), (x + key, y)], line, key)?;
        }
        if let Some(marker) = line.marker {
            paint_marker(canvas, marker, (x + key / 2.0, y), colour)?;
        }
        write(canvas, label, TEXT_PT, (x + KEY_PT, y), (HPos::Left, VPos::Center))?;
        x += entry_width(label);
    }
    Ok(())
}

fn write(
    canvas: &Canvas,
    text: &str,
    size: f64,
    place: (f64, f64),
    (h, v): (HPos, VPos),
) -> Result<(), Failed> {
    if text.is_empty() {
        return Ok(());
    }
    let style = style(size).pos(Pos::new(h, v));
    canvas.draw(&Text::new(text.to_owned(), at(place), style))?;
    Ok(())
}

fn write_upwards(canvas: &Canvas, text: &str, place: (f64, f64)) -> Result<(), Failed> {
    if text.is_empty() {
        return Ok(());
    }
    let style = style(TEXT_PT)
        .transform(FontTransform::Rotate270)
        .pos(Pos::new(HPos::Center, VPos::Center));
    canvas.draw(&Text::new(text.to_owned(), at(place), style))?;
    Ok(())
}

fn style(size_pt: f64) -> TextStyle<'static> {
    ("sans-serif", size_pt * UNITS * FONT_SIZE).into_font().color(&BLACK)
}

fn at((x, y): (f64, f64)) -> (i32, i32) {
    (units(x), units(y))
}

fn units(pt: f64) -> i32 {
    (pt * UNITS).round() as i32
}
