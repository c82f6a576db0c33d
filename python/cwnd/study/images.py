"""Images of a page: PNG with a palette, small enough for a repository."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from cwnd.errors import InputError
from cwnd.files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

#: Largest width in pixels, and number of colours.
_WIDTH, _COLOURS = 1200, 32


def palette_png(png: bytes) -> bytes:
    """Reduces a PNG to a palette and to the width of a page.

    Raises:
        InputError: Pillow is not installed.
    """
    try:
        from PIL import Image
    except ImportError as error:
        raise InputError("Pillow is not installed; `pip install pillow` does it") from error
    image = Image.open(io.BytesIO(png)).convert("RGB")
    if image.width > _WIDTH:
        height = round(image.height * _WIDTH / image.width)
        image = image.resize((_WIDTH, height), Image.Resampling.LANCZOS)
    image = image.quantize(_COLOURS, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    written = io.BytesIO()
    image.save(written, "PNG", optimize=True)
    return written.getvalue()


def write_images(files: Iterable[Path], folder: Path) -> list[Path]:
    """Writes the PNGs among these files into the folder of a page's images.

    Raises:
        InputError: Pillow is not installed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pngs = [file for file in files if file.suffix == ".png"]
    for file in pngs:
        write_atomically(folder / file.name, palette_png(file.read_bytes()))
    return [folder / file.name for file in pngs]
