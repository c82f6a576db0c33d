"""Figures by matplotlib: how they look, and their files."""

from __future__ import annotations

import contextlib
import io
import textwrap
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from cwnd.figures import look
from cwnd.files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

MARKERS, colour = look.MARKERS, look.colour

#: Resolution of the PNG.
DPI = 200
#: The unit of the SVG is the point.
_SVG_DPI = 72

#: What stands for a line in a legend.
_KEY_PT = 20.0
#: The width of a letter in relation to its size; few words of DejaVu Sans are wider.
_LETTER = 0.65

_RC: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.labelpad": 3.0,
    "axes.labelsize": 8,
    "axes.linewidth": 0.6,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlepad": 3.5,
    "axes.titlesize": 8,
    "errorbar.capsize": 2.5,
    "figure.constrained_layout.use": True,
    "figure.labelsize": 8,
    "figure.titlesize": 8,
    "font.family": "sans-serif",
    "font.size": 8,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.5,
    "legend.borderpad": 0.0,
    "legend.columnspacing": 1.5,
    "legend.fontsize": 8,
    "legend.frameon": False,
    # With the space behind it as wide as the key of `cwnd.figures`: 20 points.
    "legend.handlelength": 2.0,
    "legend.handletextpad": 0.5,
    "legend.labelspacing": 0.2,
    "lines.linewidth": 1.2,
    "lines.markersize": 4,
    "savefig.dpi": DPI,
    # The same result gives the same bytes.
    "svg.hashsalt": "cwnd",
    "svg.fonttype": "none",
    "xtick.labelsize": 7,
    "xtick.major.pad": 2.0,
    "xtick.major.size": 3.0,
    "xtick.major.width": 0.6,
    "ytick.labelsize": 7,
    "ytick.major.pad": 2.0,
    "ytick.major.size": 3.0,
    "ytick.major.width": 0.6,
}

_CANVASES = {"png": FigureCanvasAgg, "svg": FigureCanvasSVG}
#: What matplotlib would add to a file and must not.
_METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
}


@contextlib.contextmanager
def styled() -> Iterator[None]:
    """Figures made inside look like all others of cwnd, whatever the user's settings are."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_RC)
        yield


def figure(height: float, width: float = look.WIDTH) -> Figure:
    """An empty figure, sizes in inches; matplotlib finds room for what is on it."""
    new = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(new)
    return new


def dashes(lengths: tuple[float, ...]) -> Any:
    """A style of line from the lengths of its dashes and gaps."""
    return (0, lengths) if lengths else "-"


#: The styles of lines, in the order of `look.DASHES`.
DASHES = tuple(dashes(lengths) for lengths in look.DASHES)


def line(index: int) -> dict[str, Any]:
    """Colour and dashes of the line with this index."""
    return {"color": colour(index), "linestyle": DASHES[index % len(DASHES)]}


def points(index: int) -> dict[str, Any]:
    """Colour, dashes and marker of the line with this index."""
    return {**line(index), "marker": MARKERS[index % len(MARKERS)]}


def legend(figure: Figure, axes: Sequence[Axes], columns: int = 4) -> None:
    """One legend above all panels, if there is more than one thing to tell apart.

    It has as many columns as fit the figure, at most `columns`.
    """
    handles: dict[str, Artist] = {}
    for panel in axes:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if len(handles) < 2:  # noqa: PLR2004
        return
    width = figure.get_size_inches()[0] * 72
    texts = [_wrapped(label, width - _KEY_PT) for label in handles]
    entries = list(zip(handles.values(), texts, strict=True))
    for count in range(min(len(handles), columns), 0, -1):
        # matplotlib fills columns, and people read rows.
        in_rows = [entry for column in range(count) for entry in entries[column::count]]
        made = figure.legend(
            [handle for handle, _ in in_rows],
            [text for _, text in in_rows],
            loc="outside upper center",
            ncols=count,
        )
        if count == 1 or made.get_window_extent().width <= figure.bbox.width - _KEY_PT:
            return
        made.remove()


def _wrapped(text: str, width: float) -> str:
    """A text in lines that are no wider than so many points."""
    letters = max(1, int(width / (_LETTER * _RC["legend.fontsize"])))
    return "\n".join(textwrap.wrap(text, letters))


def png(figure: Figure) -> bytes:
    """The figure as PNG."""
    return render(figure, "png")["png"]


def write(figure: Figure, directory: Path, name: str) -> list[Path]:
    """Writes a figure as PNG and as SVG."""
    directory.mkdir(parents=True, exist_ok=True)
    files = []
    for kind, content in render(figure, "png", "svg").items():
        file = directory / f"{name}.{kind}"
        write_atomically(file, content)
        files.append(file)
    return files


def render(figure: Figure, *formats: str) -> dict[str, bytes]:
    """The figure in these formats, without dates and versions: the same figure, the same bytes."""
    rendered = {}
    with styled():
        # savefig would lay the panels out anew for each format, and draw each of them twice.
        canvas, dpi, layout = figure.canvas, figure.dpi, figure.get_layout_engine()
        if layout is not None:
            layout.execute(figure)
        figure.set_layout_engine("none")
        try:
            for kind in formats:
                out = io.BytesIO()
                figure.dpi = DPI if kind == "png" else _SVG_DPI
                drawn: Any = _CANVASES[kind](figure)
                getattr(drawn, f"print_{kind}")(out, metadata=_METADATA[kind])
                rendered[kind] = out.getvalue()
        finally:
            figure.set_canvas(canvas)
            figure.dpi = dpi
            figure.set_layout_engine(layout)
    return rendered
