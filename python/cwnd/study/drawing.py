"""Parts of papers' figures: curves, means over the seeds, files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from cwnd import plots
from cwnd.errors import InputError
from cwnd.figures import Figure, Line, Picture, line_style
from cwnd.results import Estimate, interval_ends

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from cwnd.results import Axis, Run

#: Height and width of a figure with one panel, in inches.
ONE_PANEL = (2.8, 4.5)


def labels(run: Run, axis: str) -> list[str]:
    """Labels of an axis of a sweep.

    Raises:
        InputError: There is no such axis.
    """
    return run_axis(run, axis).labels


def run_axis(run: Run, name: str) -> Axis:
    """Finds an axis of a sweep.

    Raises:
        InputError: There is no such axis.
    """
    for each in run.axes:
        if each.name == name:
            return each
    known = ", ".join(each.name for each in run.axes) or "none"
    raise InputError(f"{run.name} has no axis `{name}`; it has {known}")


def curve(x: Iterable[float], y: Iterable[float | None], index: int, **how: Any) -> Line:
    """Builds a line with the colour and the dashes of its index."""
    return Line(
        list(x),
        list(y),
        **{"colour": line_style.colour(index), "dashes": line_style.dashes(index)} | how,
    )


def marks(
    points: Iterable[tuple[float, Iterable[float]]],
    index: int,
    label: str | None = None,
    *,
    joined: bool = True,
) -> Line:
    """Builds a line of means with their 95 % intervals, and a marker by index.

    Args:
        points: x, and the values of the seeds there.
        index: Index of colour, dashes and marker.
        label: The name in the legend.
        joined: `True` joins the points.
    """
    xs, columns = [], []
    for x, values in points:
        xs.append(x)
        columns.append(values)
    found, ends = means(columns)
    shape = line_style.marker(index)
    return curve(xs, found, index, marker=shape, joined=joined, label=label, interval=ends)


def means(
    columns: Iterable[Iterable[float]],
) -> tuple[list[float], tuple[list[float], list[float]]]:
    """Means of the seeds' values, and both ends of their 95 % intervals."""
    estimates = []
    for values in columns:
        estimate = Estimate.of([float(value) for value in values])
        assert estimate is not None, "a mean needs the value of a seed"
        estimates.append(estimate)
    return [each.mean for each in estimates], interval_ends(estimates)


def across(
    columns: Iterable[Iterable[float]], index: int, label: str | None = None, shift: float = 0.0
) -> Line:
    """Builds a line of means along x with 95 % intervals, one in each row of `row_ticks`.

    Args:
        columns: The values of the seeds in each row, from the top.
        index: Index of colour and marker.
        label: The name in the legend.
        shift: Offset below the row, in distances between rows.
    """
    found, ends = means(columns)
    return Line(
        found,
        [-row - shift for row in range(len(found))],
        line_style.colour(index),
        joined=False,
        marker=line_style.marker(index),
        label=label,
        x_interval=ends,
    )


def row_ticks(names: Iterable[str]) -> list[tuple[float, str]]:
    """Names of rows as ticks along y, the first at the top."""
    return [(-float(row), name) for row, name in enumerate(names)]


def first_seed(table: pl.DataFrame) -> pl.DataFrame:
    """Selects the rows of the smallest seed."""
    return table.filter(pl.col("seed") == pl.col("seed").min())


def seeds_along(
    rows: pl.DataFrame, x: str, y: str, scale: float = 1.0
) -> Sequence[tuple[float, list[float]]]:
    """Groups the values of the seeds by their position along x."""
    parts = rows.sort(x).group_by([x], maintain_order=True)
    return [(float(at), [float(v) * scale for v in part[y]]) for (at,), part in parts]


def save(picture: object, directory: Path, name: str) -> list[Path]:
    """Draws a figure, and writes it as PNG and SVG.

    Raises:
        InputError: It is no figure.
    """
    if isinstance(picture, Picture):
        picture = Figure(picture)
    if not isinstance(picture, Figure):
        kind = type(picture).__name__
        raise InputError(f"it is a cwnd.figures.Picture, or the Figure of `run.plot`, not {kind}")
    return plots.save(picture, directory, name)
