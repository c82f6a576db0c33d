"""Images of a page: PNG with a palette, small enough for a repository.

`python -m cwnd.study.images FROM TO` reduces a PNG.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cwnd.errors import InputError
from cwnd.figures import line_style
from cwnd.files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Largest width in pixels: of an image, and of one beside another in a table.
WIDTH, PAIR_WIDTH = 900, 640
#: Largest number of colours, and least distance between two (sum over red, green, blue).
_COLOURS, _DISTANCE = 16, 90
#: Share of the pixels above which a colour is an area's.
_AREA = 0.01


def palette_png(png: bytes, width: int = WIDTH) -> bytes:
    """Reduces a PNG to a palette and a width.

    The palette has white, the exact colours of lines, and the most frequent others.

    Raises:
        InputError: Pillow is not installed.
    """
    try:
        from PIL import Image
    except ImportError as error:
        raise InputError("Pillow is not installed; `pip install pillow` does it") from error
    image = Image.open(io.BytesIO(png)).convert("RGB")
    colours = _palette(image)
    if image.width > width:
        height = round(image.height * width / image.width)
        image = image.resize((width, height), Image.Resampling.LANCZOS)
    palette = Image.new("P", (1, 1))
    # Unused entries repeat the first colour.
    padded = colours + colours[:1] * (256 - len(colours))
    palette.putpalette([value for colour in padded for value in colour])
    written = io.BytesIO()
    image.quantize(palette=palette, dither=Image.Dither.NONE).save(written, "PNG", optimize=True)
    return written.getvalue()


def _palette(image: Any) -> list[tuple[int, ...]]:
    counts = sorted(image.getcolors(image.width * image.height), reverse=True)
    known = {colour for _, colour in counts}
    lines = (bytes.fromhex(text[1:]) for text in ("#ffffff", *line_style.COLOURS))
    chosen = [colour for colour in map(tuple, lines) if colour in known]
    # Cells of a map are large, and their shades lie near each other.
    areas = [c for n, c in counts if n > _AREA * image.width * image.height]
    for colours, distance in ((areas, _DISTANCE // 6), ([c for _, c in counts], _DISTANCE)):
        for colour in colours:
            apart = (sum(abs(a - b) for a, b in zip(colour, c, strict=True)) for c in chosen)
            if len(chosen) < _COLOURS and min(apart, default=distance + 1) > distance:
                chosen.append(colour)
    return chosen


def write_images(files: Iterable[Path], folder: Path, width: int = WIDTH) -> list[Path]:
    """Writes the PNGs among these files into the folder of a page's images.

    Raises:
        InputError: Pillow is not installed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pngs = [file for file in files if file.suffix == ".png"]
    for file in pngs:
        write_atomically(folder / file.name, palette_png(file.read_bytes(), width))
    return [folder / file.name for file in pngs]


if __name__ == "__main__":
    Path(sys.argv[2]).write_bytes(palette_png(Path(sys.argv[1]).read_bytes()))
