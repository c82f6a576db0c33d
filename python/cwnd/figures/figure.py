"""A figure that can be changed, shown and saved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cwnd.errors import InputError
from cwnd.figures import render
from cwnd.figures.vega import draw
from cwnd.files import write_atomically

if TYPE_CHECKING:
    import os

    from cwnd.figures.description import Picture

#: Resolution at which the figure's text of 8 points has 13 px, about a notebook's 14 px.
_NOTEBOOK_PPI = 120
_POINTS = 72
#: MIME type of a specification in a notebook.
_MIME_TYPE = "application/vnd.vegalite.v6+json"


class Figure:
    """A figure as a specification of Vega-Lite, which notebooks show.

    Attributes:
        spec: The specification, a dictionary of JSON values; changes of it are drawn. Its pixels
            are points (1/72 inch).
    """

    def __init__(self, picture: Picture) -> None:
        """Writes the specification of a description."""
        drawing = draw(picture)
        self.spec = drawing.spec
        self._drawing = drawing
        self._written = json.dumps(drawing.spec, ensure_ascii=False)
        #: Last drawn specification, and its SVG.
        self._drawn = ("", "")

    def svg(self) -> str:
        """Draws the figure as SVG, with texts as text elements."""
        return render.with_unit(self._svg())

    def png(self, ppi: float = render.PPI) -> bytes:
        """Draws the figure as PNG with `ppi` pixels per inch."""
        return render.png(self._svg(), ppi)

    def pdf(self) -> bytes:
        """Draws the figure as PDF; its bytes differ from one call to the next."""
        return render.pdf(self._svg())

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the figure atomically, in the format of the name's suffix.

        Args:
            path: A name that ends with .svg, .png, .pdf, or .json for the specification.

        Raises:
            InputError: The name ends otherwise, or is that of a device or a pipe.
        """
        file = Path(path)
        match file.suffix.lower():
            case ".svg":
                content = self.svg().encode()
            case ".png":
                content = self.png()
            case ".pdf":
                content = self.pdf()
            case ".json":
                content = json.dumps(self.spec, ensure_ascii=False).encode()
            case _:
                raise InputError(f"{file}: figures are written as .svg, .png, .pdf or .json")
        write_atomically(file, content)
        return file

    def altair(self) -> Any:
        """Returns the figure as a chart of Altair.

        Raises:
            InputError: Altair is not installed.
        """
        try:
            import altair as alt
        except ImportError as error:
            raise InputError("Altair is not installed; `pip install altair` does it") from error
        return alt.Chart.from_dict(self.spec, validate=False)

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        del include, exclude
        bundle = {"image/png": self.png(), _MIME_TYPE: self.spec}
        return bundle, {"image/png": {"width": self.notebook_width}}

    @property
    def notebook_width(self) -> int:
        """Width in pixels at which the figure's text is as large as the notebook's."""
        return round(self._drawing.width / _POINTS * _NOTEBOOK_PPI)

    def _svg(self) -> str:
        """Draws the figure as SVG without units, once for all formats."""
        text = json.dumps(self.spec, ensure_ascii=False)
        if self._drawn[0] != text:
            # A changed specification has the size that Vega computes.
            drawing = self._drawing if text == self._written else None
            self._drawn = text, render.svg(text, drawing)
        return self._drawn[1]
