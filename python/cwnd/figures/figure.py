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

#: A notebook writes in 14 px; the text of figures has 8 points.
_NOTEBOOK_PPI = 120
_POINTS = 72
#: The type of a specification in a notebook.
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
        #: The specification that was drawn last, and its SVG.
        self._drawn = ("", "")

    def svg(self) -> str:
        """The figure as SVG, its texts as texts."""
        return render.with_unit(self._svg())

    def png(self, ppi: float = render.PPI) -> bytes:
        """The figure as PNG with so many pixels in an inch."""
        return render.png(self._svg(), ppi)

    def pdf(self) -> bytes:
        """The figure as PDF; its bytes differ from one call to the next."""
        return render.pdf(self._svg())

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the figure in the format that the name ends with; the file is whole or not there.

        Args:
            path: A name that ends with .svg, .png, .pdf, or .json for the specification.

        Raises:
            InputError: The name ends otherwise.
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
        """The figure as a chart of Altair.

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
        """Pixels of a page that make the text of the figure as large as that around it."""
        return round(self._drawing.width / _POINTS * _NOTEBOOK_PPI)

    def _svg(self) -> str:
        """The figure as SVG whose size has no unit, drawn once for all formats."""
        text = json.dumps(self.spec, ensure_ascii=False)
        if self._drawn[0] != text:
            # A specification that was changed has the size that Vega finds.
            drawing = self._drawing if text == self._written else None
            self._drawn = text, render.svg(text, drawing)
        return self._drawn[1]
