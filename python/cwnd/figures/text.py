"""Sizes of letters, widths of texts, and their division into lines."""

from __future__ import annotations

import functools
import struct
import unicodedata
from array import array
from dataclasses import dataclass
from pathlib import Path

#: Font size of titles, labels of axes and legends.
TEXT_PT = 8.0
#: Font size of ticks' labels.
TICK_TEXT_PT = 7.0
#: Height of a line of text, with its leading.
LINE_PT = 11.0
#: Height of a line of a tick's label.
TICK_LINE_PT = 9.5
#: Distance from an axis to the labels of its ticks.
TICK_PT = 5.0

#: Folder of the font of all figures, which is part of the package: the Latin, Greek, Cyrillic and
#: mathematical letters of DejaVu Sans, without hints (`pyftsubset --no-hinting`).
FONT_DIRECTORY = Path(__file__).with_name("fonts")
FONT_FILE = FONT_DIRECTORY / "DejaVuSans.ttf"
#: Width of a letter that the font lacks, relative to the font size: in the basic plane, and beyond.
_OTHER, _BEYOND = 1.15, 1.4
_BASIC_PLANE = 0xFFFF
#: Factor of the width in SVG viewers that move letters to whole pixels.
_MARGIN = 1.01
#: Length of the longest unit of a quantity: `Mbit/s),`.
_LONGEST_UNIT = 8
#: A text that Vega parses as part of its expression language if it stands alone.
KEYWORD = "if"


@dataclass(frozen=True)
class Text:
    """A text divided into lines."""

    lines: tuple[str, ...] = ()
    #: The whole text if the lines omit a part of it.
    whole: str | None = None

    @classmethod
    @functools.lru_cache(4096)  # figures of a sweep repeat the labels of its points
    def fitted(cls, text: str, width: float, size: float, max_lines: int) -> Text:
        """Fits a text in `max_lines` lines of `width` points; `…` replaces its middle if needed."""
        text = _cleaned(text)
        if not text.strip():
            return cls()
        lines = wrapped(text, width, size)
        if len(lines) <= max_lines:
            return cls(tuple(lines))
        letters = text.strip().replace("\n", " ")

        def kept(count: int) -> list[str]:
            tail = count // 2
            head, end = letters[: count - tail], letters[len(letters) - tail :]
            return wrapped(f"{head.rstrip()}…{end.lstrip()}", width, size)

        fits, too_many = 0, len(letters)
        while too_many - fits > 1:
            middle = (fits + too_many) // 2
            fits, too_many = (
                (middle, too_many) if len(kept(middle)) <= max_lines else (fits, middle)
            )
        return cls(tuple(kept(fits)), letters)

    @property
    def height(self) -> int:
        """Number of lines."""
        return len(self.lines)

    def width(self, size: float) -> float:
        """Width of the widest line in points, for a font size."""
        return max((width(line, size) for line in self.lines), default=0.0)

    def written(self) -> str | list[str]:
        """Returns the text as Vega-Lite expects it: a string, or a list of lines."""
        lines = [f"{line} " if line == KEYWORD else line for line in self.lines]
        return lines[0] if len(lines) == 1 else lines


def width(text: str, size: float) -> float:
    """Width of a line of text in points, for a font size."""
    return sum(map(_advance, text)) * size * _MARGIN


def is_in_font(letter: str) -> bool:
    """`True` if the font of the figures has a letter."""
    return ord(letter) in _font()[0]


def wrapped(text: str, room: float, size: float) -> list[str]:
    """Divides a text into lines of at most `room` points.

    Lines are broken at newlines and between the members of a list, else between words. Words that
    are too long are broken after punctuation, or anywhere.
    """
    lines: list[str] = []
    for paragraph in text.split("\n"):
        line = ""
        for member in _members(paragraph):
            if (joined := _joined(line, member, room, size)) is not None:
                line = joined
                continue
            if line:
                lines.append(line)
            line = ""
            for word in _words(member):
                if (joined := _joined(line, word, room, size)) is not None:
                    line = joined
                    continue
                if line:
                    lines.append(line)
                line = ""
                for part in _parts(word, room, size):
                    if line and width(line, size) + width(part, size) > room:
                        lines.append(line)
                        line = ""
                    line += part
        if line:
            lines.append(line)
    return lines


def _joined(line: str, text: str, room: float, size: float) -> str | None:
    joined = f"{line} {text}" if line else text
    return joined if width(joined, size) <= room else None


def _members(text: str) -> list[str]:
    """Splits a text after commas and semicolons outside of brackets."""
    found: list[str] = []
    depth, ended = 0, True
    for word in text.split():
        if ended:
            found.append(word)
        else:
            found[-1] += f" {word}"
        depth += sum(letter in "([{" for letter in word) - sum(letter in ")]}" for letter in word)
        ended = depth <= 0 and word.endswith((",", ";"))
    return found


def _words(text: str) -> list[str]:
    """Splits a text into words; a number and its unit are one word."""
    found: list[str] = []
    for word in text.split():
        if found and word[0].isalpha() and len(word) <= _LONGEST_UNIT and found[-1][-1].isdigit():
            found[-1] += f" {word}"
        else:
            found.append(word)
    return found


def _parts(word: str, room: float, size: float) -> list[str]:
    """Splits a word at the positions where a line may be broken."""
    parts = [""]
    for letter in word:
        parts[-1] += letter
        if letter.isascii() and not letter.isalnum() and letter not in "\"'(.":
            parts.append("")
    return [
        piece
        for part in parts
        for piece in ([part] if width(part, size) <= room else list(part))
        if piece
    ]


def _cleaned(text: str) -> str:
    """Replaces characters of `_NO_TEXT` except newlines by blanks; XML forbids some of them."""
    return "".join(
        letter if letter == "\n" or unicodedata.category(letter) not in _NO_TEXT else " "
        for letter in text
    )


#: Categories of control characters, surrogates, unassigned code points, and separators of lines and
#: paragraphs.
_NO_TEXT = frozenset({"Cc", "Cs", "Cn", "Zl", "Zp"})


@functools.cache
def _advance(letter: str) -> float:
    """Width of a letter relative to the font size."""
    glyphs, advances, em = _font()
    code = ord(letter)
    if code in glyphs:
        return advances[min(glyphs[code], len(advances) - 1)] / em
    return _OTHER if code <= _BASIC_PLANE else _BEYOND


@functools.cache
def _font() -> tuple[dict[int, int], array[int], int]:
    """Reads glyphs by code point, advances by glyph, and units per em from the font.

    Source: OpenType 1.9.1, tables `head`, `hhea`, `hmtx` and `cmap` format 4.
    """
    data = FONT_FILE.read_bytes()
    tables = {}
    for index in range(struct.unpack_from(">H", data, 4)[0]):
        tag, _, offset, _ = struct.unpack_from(">4sIII", data, 12 + 16 * index)
        tables[tag.decode()] = offset
    em = struct.unpack_from(">H", data, tables["head"] + 18)[0]
    count = struct.unpack_from(">H", data, tables["hhea"] + 34)[0]
    advances = array("H", struct.unpack_from(">" + "Hh" * count, data, tables["hmtx"])[::2])
    cmap = tables["cmap"]
    subtables = struct.unpack_from(">H", data, cmap + 2)[0]
    for index in range(subtables):
        table = cmap + struct.unpack_from(">HHI", data, cmap + 4 + 8 * index)[2]
        if struct.unpack_from(">H", data, table)[0] == 4:  # noqa: PLR2004 - the basic plane
            return _glyphs(data, table), advances, em
    raise ValueError(f"{FONT_FILE} has no table of letters in format 4")


def _glyphs(data: bytes, table: int) -> dict[int, int]:
    count = struct.unpack_from(">H", data, table + 6)[0] // 2
    ends, starts, deltas, offsets = (
        struct.unpack_from(f">{count}H", data, table + 14 + 2 * (part * count + (part > 0)))
        for part in range(4)
    )
    found = {}
    for segment, (start, end) in enumerate(zip(starts, ends, strict=True)):
        for code in range(start, end + 1):
            glyph = code
            if offsets[segment]:
                place = table + 16 + 2 * (3 * count + segment) + offsets[segment]
                glyph = struct.unpack_from(">H", data, place + 2 * (code - start))[0]
                if glyph == 0:
                    continue
            found[code] = (glyph + deltas[segment]) & 0xFFFF
    return found
