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

#: Largest width of an image, and width of each half of a pair, in pixels.
WIDTH, _HALF = 900, 640
#: Number of colours up to which others than those of lines are added, and the distance (sum over
#: red, green, blue) that these exceed unless they are areas'.
_COLOURS, _DISTANCE = 16, 90
#: Share of the pixels above which a colour is an area's.
_AREA = 0.01


def palette_png(png: bytes, width: int = WIDTH) -> bytes:
    """Reduces a PNG to a palette and a width.

    The palette has white and the exact colours of lines as far as they occur, and frequent others.

    Raises:
        InputError: Pillow or pyoxipng is not installed.
    """
    try:
        import oxipng
        from PIL import Image
    except ImportError as error:
        raise InputError(f"{error}; `pip install pillow pyoxipng` does it") from error
    image = Image.open(io.BytesIO(png)).convert("RGB")
    colours = _palette(image)
    if image.width > width:
        image = _scaled(image, width)
    palette = Image.new("P", (1, 1))
    # Unused entries repeat the first colour.
    padded = colours + colours[:1] * (256 - len(colours))
    palette.putpalette([value for colour in padded for value in colour])
    written = io.BytesIO()
    image.quantize(palette=palette, dither=Image.Dither.NONE).save(written, "PNG")
    return bytes(oxipng.optimize_from_memory(written.getvalue(), level=4))


def _scaled(image: Any, width: int) -> Any:
    from PIL.Image import Resampling

    return image.resize((width, round(image.height * width / image.width)), Resampling.LANCZOS)


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


def write_images(files: Iterable[Path], folder: Path) -> list[Path]:
    """Writes the PNGs among these files into the folder of a page's images.

    Raises:
        InputError: Pillow or pyoxipng is not installed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pngs = [file for file in files if file.suffix == ".png"]
    for file in pngs:
        write_atomically(folder / file.name, palette_png(file.read_bytes()))
    return [folder / file.name for file in pngs]


def write_half(png: bytes, file: Path, half: int) -> None:
    """Writes a PNG as the left (0) or the right (1) half of an image; the other half stays.

    Raises:
        InputError: Pillow or pyoxipng is not installed.
    """
    drawn = palette_png(png)  # this raises if a library lacks
    from PIL import Image

    mine = _scaled(Image.open(io.BytesIO(drawn)).convert("RGB"), _HALF)
    height = mine.height
    if file.is_file():
        other = Image.open(file).convert("RGB")
        height = max(height, other.height)
    both = Image.new("RGB", (2 * _HALF, height), "white")
    if file.is_file():
        both.paste(other, (0, 0))
    both.paste("white", (half * _HALF, 0, (half + 1) * _HALF, both.height))
    both.paste(mine, (half * _HALF, 0))
    written = io.BytesIO()
    both.save(written, "PNG")
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, palette_png(written.getvalue(), 2 * _HALF))


if __name__ == "__main__":
    Path(sys.argv[2]).write_bytes(palette_png(Path(sys.argv[1]).read_bytes()))
