//! Draws with plotters: axes, grid, lines, intervals, points, texts.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::Color;

use crate::extent::{Axes, along, up};
use crate::figure::{Line, Marker, Panel, Picture};
use crate::layout::{Layout, Place, layout};
use crate::legend::{KEY_PT, Legend};
use crate::sizes::{LINE_PT, MARK_LINE_PT, MARK_PT, MARK_TEXT_PT, TEXT_PT};
use crate::stroke::{Path, bands, clipped, dashed, length, pieces, thinned};
use crate::words::{Anchor, Words};

/// plotters draws in whole units: this many make a point, fine enough that no step is seen.
const UNITS: f64 = 10.0;
const GRID: RGBColor = RGBColor(221, 221, 221);
const GRID_PT: f64 = 0.5;
const AXIS_PT: f64 = 0.6;
/// How far a mark rises from its axis.
const TICK_PT: f64 = 3.0;
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
    let layout = layout(picture);
    let size = (units(layout.width) as u32, units(layout.height) as u32);
    let mut words = Words::default();
    {
        let canvas = SVGBackend::with_string(&mut text, size).into_drawing_area();
        canvas.fill(&WHITE)?;
        paint(picture, &layout, &canvas, &mut words)?;
        canvas.present()?;
    }
    // Its own size is in units, and much too large on a page.
    let drawn = format!("width=\"{}\" height=\"{}\"", size.0, size.1);
    let shown = [layout.width, layout.height].map(|pt| (pt * UNITS).round() / UNITS);
    let shown = format!("width=\"{}pt\" height=\"{}pt\"", shown[0], shown[1]);
    let text = text.replacen(&drawn, &shown, 1);
    let end = text.rfind("</svg>").unwrap_or(text.len());
    Ok(format!("{}{}{}", &text[..end], words.svg(UNITS), &text[end..]))
}

fn paint(
    picture: &Picture,
    layout: &Layout,
    canvas: &Canvas,
    words: &mut Words,
) -> Result<(), Failed> {
    let middle = (layout.width - layout.legend.width) / 2.0;
    paint_legend(canvas, picture, &layout.legend, (middle, layout.legend_top), words)?;
    for (index, place) in layout.places.iter().enumerate() {
        if picture.panels[index].shown {
            paint_panel(canvas, picture, index, place, words)?;
        }
    }
    let (across, up) = layout.middle;
    let bottom = layout.height - 4.0 - layout.x_label.height() * LINE_PT;
    words.block(&layout.x_label, TEXT_PT, LINE_PT, (across, bottom), Anchor::Middle);
    words.upwards(&layout.y_label, TEXT_PT, LINE_PT, (4.0, up), Anchor::Middle);
    Ok(())
}

fn paint_panel(
    canvas: &Canvas,
    picture: &Picture,
    index: usize,
    place: &Place,
    words: &mut Words,
) -> Result<(), Failed> {
    let panel = &picture.panels[index];
    let frame = Frame { place, axes: place.axes };
    paint_grid(canvas, panel, &frame)?;
    for line in &panel.lines {
        paint_line(canvas, panel, line, &frame)?;
    }
    if !panel.bare {
        paint_axes(canvas, &frame, words)?;
    }

    let middle = place.left + place.width / 2.0;
    let title_top = place.top - place.title_rise;
    let (anchor, x) = match panel.title_left {
        true => (Anchor::Start, place.left),
        false => (Anchor::Middle, middle),
    };
    words.block(&place.title, TEXT_PT, LINE_PT, (x, title_top), anchor);
    let corner = (place.left + place.width - place.legend.width, place.top - place.legend.height);
    paint_legend(canvas, picture, &place.legend, corner, words)?;
    let side = (place.left - place.y_room, place.top + place.height / 2.0);
    words.upwards(&place.y_label, TEXT_PT, LINE_PT, side, Anchor::Middle);
    let below = place.top + place.height + place.marks_height();
    words.block(&place.x_label, TEXT_PT, LINE_PT, (middle, below), Anchor::Middle);
    Ok(())
}

/// Lines from the marks through the panel.
fn paint_grid(canvas: &Canvas, panel: &Panel, frame: &Frame) -> Result<(), Failed> {
    let Axes { x: across, y: up } = frame.axes;
    let upright = frame
        .place
        .x_marks
        .marks
        .iter()
        .filter(|_| panel.x_grid)
        .map(|mark| [(mark.at, up.low), (mark.at, up.high)]);
    let marks_up = frame.place.y_marks.iter();
    let level = marks_up.map(|mark| [(across.low, mark.at), (across.high, mark.at)]);
    for ends in upright.chain(level) {
        let path = ends.map(|point| at(frame.point(point))).to_vec();
        canvas.draw(&PathElement::new(path, GRID.stroke_width(units(GRID_PT) as u32)))?;
    }
    Ok(())
}

/// The left and the lower axis with their marks.
fn paint_axes(canvas: &Canvas, frame: &Frame, words: &mut Words) -> Result<(), Failed> {
    let (place, axes) = (frame.place, frame.axes);
    let (left, bottom) = (place.left, place.top + place.height);
    let line = BLACK.stroke_width(units(AXIS_PT) as u32);
    let corner = [(left, place.top), (left, bottom), (left + place.width, bottom)];
    canvas.draw(&PathElement::new(corner.map(at).to_vec(), line))?;
    for mark in &place.x_marks.marks {
        let (x, _) = frame.point((mark.at, axes.y.low));
        canvas.draw(&PathElement::new(vec![at((x, bottom)), at((x, bottom + TICK_PT))], line))?;
        let (size, height) = (MARK_TEXT_PT, MARK_LINE_PT);
        if place.x_written && place.x_marks.upright {
            let left = x - mark.text.height() * height / 2.0;
            words.upwards(&mark.text, size, height, (left, bottom + MARK_PT), Anchor::End);
        } else if place.x_written {
            words.block(&mark.text, size, height, (x, bottom + MARK_PT), Anchor::Middle);
        }
    }
    for mark in &place.y_marks {
        let (_, y) = frame.point((axes.x.low, mark.at));
        canvas.draw(&PathElement::new(vec![at((left, y)), at((left - TICK_PT, y))], line))?;
        if place.y_written {
            let corner = (left - MARK_PT, y - MARK_LINE_PT / 2.0);
            words.block(&mark.text, MARK_TEXT_PT, MARK_LINE_PT, corner, Anchor::End);
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

    fn holds(&self, (x, y): (f64, f64)) -> bool {
        let Axes { x: across, y: up } = self.axes;
        (across.low..=across.high).contains(&x) && (up.low..=up.high).contains(&y)
    }

    /// The parts of a line that are inside.
    fn inside(&self, path: &[(f64, f64)]) -> Vec<Path> {
        let turned = |path: &[(f64, f64)]| path.iter().map(|&(x, y)| (y, x)).collect::<Path>();
        let Axes { x: across, y: up } = self.axes;
        let between = path.iter().all(|&(x, _)| (across.low..=across.high).contains(&x));
        let parts = if between {
            vec![path.to_vec()]
        } else {
            let parts = clipped(&turned(path), across.low, across.high);
            parts.iter().map(|part| turned(part)).collect()
        };
        parts.iter().flat_map(|part| clipped(part, up.low, up.high)).collect()
    }
}

fn paint_line(canvas: &Canvas, panel: &Panel, line: &Line, frame: &Frame) -> Result<(), Failed> {
    let colour = RGBColor(line.colour.0, line.colour.1, line.colour.2);
    let x: Vec<f64> = line.x.iter().map(|&x| along(panel, x)).collect();
    let y: Vec<_> = line.y.iter().map(|y| y.map(|y| up(panel, y))).collect();
    // What lies below all that a logarithmic axis has ends at the axis.
    let end = |y: f64| if panel.y_log && y <= 0.0 { frame.axes.y.low } else { up(panel, y) };
    if let Some((low, high)) = &line.band {
        let [low, high] =
            [low, high].map(|edge| edge.iter().map(|y| y.map(end)).collect::<Vec<_>>());
        let Axes { x: across, y: up } = frame.axes;
        let edge = |path: Path| -> Path {
            let inside = |(x, y): (f64, f64)| {
                frame.point((x.clamp(across.low, across.high), y.clamp(up.low, up.high)))
            };
            thinned(&path.into_iter().map(inside).collect::<Path>(), COLUMN_PT)
        };
        for (low, high) in bands(&x, &low, &high) {
            let around = edge(low).into_iter().chain(edge(high).into_iter().rev());
            let around: Vec<_> = around.map(at).collect();
            canvas.draw(&Polygon::new(around, colour.mix(BAND_ALPHA)))?;
        }
    }
    if line.joined {
        for piece in pieces(&x, &y, line.steps) {
            for part in frame.inside(&piece) {
                let seen = thinned(
                    &part.into_iter().map(|point| frame.point(point)).collect::<Path>(),
                    COLUMN_PT,
                );
                paint_path(canvas, &seen, line, frame.place.width)?;
            }
        }
    }
    for (i, (&x, y)) in x.iter().zip(y).enumerate() {
        let Some(y) = y.filter(|&y| frame.holds((x, y))) else { continue };
        if let Some((low, high)) = line.interval(i).filter(|(low, high)| low < high) {
            let ends = [low, high].map(|y| end(y).clamp(frame.axes.y.low, frame.axes.y.high));
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

fn paint_legend(
    canvas: &Canvas,
    picture: &Picture,
    legend: &Legend,
    (left, top): (f64, f64),
    words: &mut Words,
) -> Result<(), Failed> {
    for entry in &legend.entries {
        let (x, y) = (left + entry.left, top + entry.top);
        words.block(&entry.text, TEXT_PT, LINE_PT, (x + KEY_PT, y), Anchor::Start);
        let Some((panel, line)) = entry.of else { continue };
        let line = &picture.panels[panel].lines[line];
        let (key, y) = (KEY_PT - 4.0, y + LINE_PT / 2.0);
        if line.joined {
            paint_path(canvas, &[(x, y), (x + key, y)], line, key)?;
        }
        if let Some(marker) = line.marker {
            let colour = RGBColor(line.colour.0, line.colour.1, line.colour.2);
            paint_marker(canvas, marker, (x + key / 2.0, y), colour)?;
        }
    }
    Ok(())
}

fn at((x, y): (f64, f64)) -> (i32, i32) {
    (units(x), units(y))
}

fn units(pt: f64) -> i32 {
    (pt * UNITS).round() as i32
}
