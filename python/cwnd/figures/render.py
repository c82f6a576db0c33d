"""Rendering of Vega-Lite specifications as SVG, PNG and PDF by vl-convert."""

from __future__ import annotations

import contextlib
import functools
import logging
import re
import signal
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, TypeVar

from cwnd.figures.text import FONT_DIRECTORY

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from cwnd.figures.vega import Drawing

T = TypeVar("T")

#: Resolution of a PNG in pixels per inch.
PPI = 200
#: Version of Vega-Lite that belongs to `vega.SCHEMA`.
_VERSION = "6.4"
#: Heap limit of V8, beyond the need of any figure; V8 would abort the process without it.
_HEAP_MB = 1024
_SIZE = re.compile(r'width="[^"]*" height="[^"]*" viewBox="[^"]*"')
_BACKGROUND = re.compile(r'<rect width="[^"]*" height="[^"]*"')
#: Names of clips and gradients, which Vega numbers over all figures of a process.
_NUMBERED = re.compile(r'(id="|url\(#)(clip|gradient_)(\d+)')
_ORIGIN = re.compile(r'transform="translate\(([-0-9.e]+),\s*([-0-9.e]+)\)"')
#: A small figure with the most frequent marks, drawn by a thread in advance.
_SAMPLE = (
    '{"data":{"values":[{"x":1,"y":2,"line":"a"},{"x":2,"y":3,"line":"b"}]},"concat":[{"layer":'
    '[{"mark":"line"},{"mark":"point"}],"encoding":{"x":{"field":"x","type":"quantitative"},'
    '"y":{"field":"y","type":"quantitative"},"color":{"field":"line","type":"nominal"}}}]}'
)


@functools.cache
def _converter() -> ModuleType:
    """Imports vl-convert and registers the font of the figures."""
    import vl_convert

    vl_convert.register_font_directory(str(FONT_DIRECTORY))
    vl_convert.configure(max_v8_heap_size_mb=_HEAP_MB)
    module: ModuleType = vl_convert
    return module


def warm_up() -> None:
    """Starts loading the converter in a thread during a simulation, which saves 0.1 s at its end.

    The thread does not hold Python's global lock meanwhile; the process ends after it.
    """
    threading.Thread(target=_draw_sample, name="figures").start()


def _draw_sample() -> None:
    # A third drawing is no faster than the second.
    with contextlib.suppress(Exception):  # the drawing of a figure reports the error
        for _ in range(2):
            _converter().vegalite_to_svg(_SAMPLE, vl_version=_VERSION)


def _interruptibly(work: Callable[[], T]) -> T:
    """Runs uninterruptible work of the main thread in another, so that Ctrl-C does not wait."""
    if threading.current_thread() is not threading.main_thread():
        return work()
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, name="figure", daemon=True).start()
    # polars handles SIGINT with SA_RESTART, which would continue the wait after a signal.
    signal.siginterrupt(signal.SIGINT, True)
    return done.result()


def library() -> tuple[str, str]:
    """Returns the script that draws specifications in a browser (`vegaEmbed`), and its versions.

    The versions are those of Vega and Vega-Lite.
    """
    converter = _converter()
    # The bundler of this script logs its progress as errors.
    progress = logging.getLogger("swc_ecma_transforms_optimization")
    progress.addHandler(logging.NullHandler())
    progress.propagate = False
    script: str = _interruptibly(
        lambda: converter.javascript_bundle("window.vegaEmbed = vegaEmbed", vl_version=_VERSION)
    )
    versions = f"Vega {converter.get_vega_version()} and Vega-Lite {_VERSION}"
    return script, versions


def svg(spec: str, drawing: Drawing | None = None) -> str:
    """Draws a specification as SVG in points; `drawing` gives its size and margins.

    Raises:
        ValueError: Vega-Lite cannot draw the specification.
    """
    converter = _converter()
    document: str = _interruptibly(lambda: converter.vegalite_to_svg(spec, vl_version=_VERSION))
    names: dict[str, int] = {}
    document = _NUMBERED.sub(
        lambda m: f"{m[1]}{m[2]}{names.setdefault(m[2] + m[3], len(names))}", document
    )
    origin = _ORIGIN.search(document)
    if drawing is None or origin is None:
        return document
    left, top = (
        round(float(at) - edge, 2) for at, edge in zip(origin.groups(), drawing.corner, strict=True)
    )
    width, height = round(drawing.width, 2), round(drawing.height, 2)
    size = f'width="{width}" height="{height}"'
    document = _SIZE.sub(f'{size} viewBox="{left} {top} {width} {height}"', document, count=1)
    return _BACKGROUND.sub(f'<rect x="{left}" y="{top}" {size}', document, count=1)


def with_unit(document: str) -> str:
    """Adds the unit pt to the size of an SVG, as a page needs it."""
    size = r'width="([-0-9.]+)" height="([-0-9.]+)"'
    return re.sub(size, r'width="\1pt" height="\2pt"', document, count=1)


def png(document: str, ppi: float) -> bytes:
    """Converts an SVG to PNG with `ppi` pixels per inch."""
    converter = _converter()
    content: bytes = _interruptibly(lambda: converter.svg_to_png(document, ppi=ppi))
    return content


def pdf(document: str) -> bytes:
    """Converts an SVG to PDF."""
    converter = _converter()
    content: bytes = _interruptibly(lambda: converter.svg_to_pdf(document))
    return content
