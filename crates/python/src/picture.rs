//! Figures, as Python describes them: objects whose attributes have the names of the fields.

use cwnd_picture::{
    Layout, Legend, Line, Mark, Marker, Panel, Picture, Place, Shared, Text, colour, value,
};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// Paints a figure as an SVG document.
#[pyfunction]
pub fn draw_svg(picture: &Bound<'_, PyAny>) -> PyResult<String> {
    cwnd_picture::svg(&read(picture)?).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

/// Where everything on a figure is, for another painter.
#[pyfunction]
pub fn lay_out(picture: &Bound<'_, PyAny>) -> PyResult<Laid> {
    let picture = read(picture)?;
    Ok(Laid::of(&picture, &cwnd_picture::layout(&picture)))
}

/// A figure: sizes in points, from its upper left corner.
#[derive(IntoPyObject)]
pub struct Laid {
    width: f64,
    height: f64,
    legend: LaidLegend,
    panels: Vec<LaidPanel>,
    x_label: String,
    y_label: String,
    middle: (f64, f64),
}

/// Names of lines: panel, line and name; neither for what counts the rest.
#[derive(IntoPyObject)]
struct LaidLegend {
    entries: Vec<(Option<(usize, usize)>, String)>,
    columns: usize,
    height: f64,
}

/// A panel; marks and limits are numbers of its axes.
#[derive(IntoPyObject)]
struct LaidPanel {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
    title: String,
    title_rise: f64,
    legend: LaidLegend,
    x_label: String,
    y_label: String,
    y_room: f64,
    x_marks: Vec<(f64, String)>,
    y_marks: Vec<(f64, String)>,
    x_limits: (f64, f64),
    y_limits: (f64, f64),
    x_upright: bool,
    x_written: bool,
    y_written: bool,
    x_marks_height: f64,
}

impl Laid {
    fn of(picture: &Picture, layout: &Layout) -> Self {
        let panels = picture.panels.iter().zip(&layout.places);
        Self {
            width: layout.width,
            height: layout.height,
            legend: LaidLegend::of(&layout.legend),
            panels: panels.map(|(panel, place)| LaidPanel::of(panel, place)).collect(),
            x_label: joined(&layout.x_label),
            y_label: joined(&layout.y_label),
            middle: layout.middle,
        }
    }
}

impl LaidLegend {
    fn of(legend: &Legend) -> Self {
        let entries = legend.entries.iter().map(|entry| (entry.of, joined(&entry.text))).collect();
        Self { entries, columns: legend.columns, height: legend.height }
    }
}

impl LaidPanel {
    fn of(panel: &Panel, place: &Place) -> Self {
        let marks = |marks: &[Mark], value: &dyn Fn(f64) -> f64| {
            marks.iter().map(|mark| (value(mark.at), joined(&mark.text))).collect()
        };
        let along = |x: f64| value(panel.x_log, x);
        let up = |y: f64| value(panel.y_log, y);
        let (x, y) = (place.axes.x, place.axes.y);
        Self {
            left: place.left,
            top: place.top,
            width: place.width,
            height: place.height,
            title: joined(&place.title),
            title_rise: place.title_rise,
            legend: LaidLegend::of(&place.legend),
            x_label: joined(&place.x_label),
            y_label: joined(&place.y_label),
            y_room: place.y_room,
            x_marks: marks(&place.x_marks.marks, &along),
            y_marks: marks(&place.y_marks, &up),
            x_limits: (along(x.low), along(x.high)),
            y_limits: (up(y.low), up(y.high)),
            x_upright: place.x_marks.upright,
            x_written: place.x_written,
            y_written: place.y_written,
            x_marks_height: place.marks_height(),
        }
    }
}

fn joined(text: &Text) -> String {
    text.lines.join("\n")
}

fn read(from: &Bound<'_, PyAny>) -> PyResult<Picture> {
    Ok(Picture {
        width_pt: from.getattr("width_pt")?.extract()?,
        height_pt: from.getattr("height_pt")?.extract()?,
        columns: from.getattr("columns")?.extract()?,
        heights: from.getattr("heights")?.extract()?,
        panels: from
            .getattr("panels")?
            .try_iter()?
            .map(|panel| read_panel(&panel?))
            .collect::<PyResult<_>>()?,
        x_label: from.getattr("x_label")?.extract()?,
        y_label: from.getattr("y_label")?.extract()?,
        shared_x: shared(&from.getattr("shared_x")?)?,
        shared_y: shared(&from.getattr("shared_y")?)?,
        legend_above: from.getattr("legend_above")?.extract()?,
    })
}

fn read_panel(from: &Bound<'_, PyAny>) -> PyResult<Panel> {
    Ok(Panel {
        title: from.getattr("title")?.extract()?,
        title_left: from.getattr("title_left")?.extract()?,
        x_label: from.getattr("x_label")?.extract()?,
        y_label: from.getattr("y_label")?.extract()?,
        x_log: from.getattr("x_log")?.extract()?,
        y_log: from.getattr("y_log")?.extract()?,
        x_tight: from.getattr("x_tight")?.extract()?,
        x_limits: from.getattr("x_limits")?.extract()?,
        y_limits: from.getattr("y_limits")?.extract()?,
        ticks: from.getattr("ticks")?.extract()?,
        x_grid: from.getattr("x_grid")?.extract()?,
        bare: from.getattr("bare")?.extract()?,
        shown: from.getattr("shown")?.extract()?,
        lines: from
            .getattr("lines")?
            .try_iter()?
            .map(|line| read_line(&line?))
            .collect::<PyResult<_>>()?,
    })
}

fn read_line(from: &Bound<'_, PyAny>) -> PyResult<Line> {
    let name: String = from.getattr("colour")?.extract()?;
    let marker: Option<char> = from.getattr("marker")?.extract()?;
    let unknown = |what: &str| PyValueError::new_err(format!("no {what} of a line"));
    Ok(Line {
        x: from.getattr("x")?.extract()?,
        y: from.getattr("y")?.extract()?,
        colour: colour(&name).ok_or_else(|| unknown("colour"))?,
        width: from.getattr("width")?.extract()?,
        dashes: from.getattr("dashes")?.extract()?,
        joined: from.getattr("joined")?.extract()?,
        steps: from.getattr("steps")?.extract()?,
        marker: marker.map(|m| Marker::named(m).ok_or_else(|| unknown("marker"))).transpose()?,
        label: from.getattr("label")?.extract()?,
        interval: from.getattr("interval")?.extract()?,
        band: from.getattr("band")?.extract()?,
    })
}

fn shared(name: &Bound<'_, PyAny>) -> PyResult<Shared> {
    let name: String = name.extract()?;
    Shared::named(&name)
        .ok_or_else(|| PyValueError::new_err("axes are shared by all, row, col or none"))
}
