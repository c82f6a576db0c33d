"""The playground as a widget, which needs anywidget."""

from __future__ import annotations

from pathlib import Path

import anywidget
import traitlets


class Playground(anywidget.AnyWidget):
    """The page in a frame of the notebook."""

    _esm = Path(__file__).parent / "assets" / "widget.js"
    #: The page, in HTML.
    page = traitlets.Unicode().tag(sync=True)
    #: Height of the frame, as in CSS.
    height = traitlets.Unicode().tag(sync=True)
    #: Texts of the scenarios of set-up A and, if it is shown, B, as they are in the page.
    scenarios = traitlets.List(traitlets.Unicode()).tag(sync=True)
    #: Runs of their sweeps that are shown.
    indices = traitlets.List(traitlets.Int()).tag(sync=True)
