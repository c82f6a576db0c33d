"""Tables inside a specification."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Significant digits of numbers, which resolve a millisecond in an hour.
_DIGITS = 7


def table(columns: Mapping[str, Sequence[float | str | None]]) -> dict[str, Any]:
    """Writes columns of numbers and texts as CSV, which is a third of the size of JSON rows."""
    texts = {name for name, values in columns.items() if any(isinstance(v, str) for v in values)}
    written = (map(_text if name in texts else _number, v) for name, v in columns.items())
    rows = [",".join(columns), *map(",".join, zip(*written, strict=True))]
    parse = {name: "string" if name in texts else "number" for name in columns}
    return {"values": "\n".join([*rows, ""]), "format": {"type": "csv", "parse": parse}}


def _text(value: float | str | None) -> str:
    return '"' + str(value or "").replace('"', '""') + '"'


def _number(value: float | str | None) -> str:
    return "" if value is None or value != value else f"{value:.{_DIGITS}g}"  # noqa: PLR0124
