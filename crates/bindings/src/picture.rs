//! Figures, as Python describes them: objects whose attributes have the names of the fields.

use cwnd_picture::{Line, Marker, Panel, Picture, Shared, colour};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// Paints a figure as an SVG document.
#[pyfunction]
pub fn draw_svg(picture: &Bound<'_, PyAny>) -> PyResult<String> {
    cwnd_picture::svg(&read(picture)?).map_err(|error| PyRuntimeError::new_err(error.to_string()))
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
        x_tight: from.getattr("x_tight")?.extract()?,
        x_limits: from.getattr("x_limits")?.extract()?,
        y_limits: from.getattr("y_limits")?.extract()?,
        ticks: from.getattr("ticks")?.extract()?,
        x_grid: from.getattr("x_grid")?.extract()?,
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
        half_widths: from.getattr("half_widths")?.extract()?,
        band: from.getattr("band")?.extract()?,
    })
}

fn shared(name: &Bound<'_, PyAny>) -> PyResult<Shared> {
    let name: String = name.extract()?;
    Shared::named(&name).ok_or_else(|| PyValueError::new_err("axes are shared by all, row or col"))
}
