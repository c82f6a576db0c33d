"""Names of cells: hashes of a resolved scenario and of the engine that runs it."""

from __future__ import annotations

import hashlib

from cwnd import _core

#: Version of the rule by which cells are named.
_VERSION = 1
_ID_DIGITS = 32


def content(resolved: str) -> str:
    """Returns the part of a resolved scenario that decides its result.

    This is all of it but the lines with its name and description.
    """
    schema, name, description, rest = resolved.split("\n", 3)
    if not (name.startswith("name = ") and description.startswith("description = ")):
        raise ValueError("a resolved scenario begins with its name and description")
    return f"{schema}\n{rest}"


def heading(resolved: str) -> str:
    """Returns the lines with the name and the description."""
    _, name, description, _ = resolved.split("\n", 3)
    return f"{name}\n{description}\n"


def named(text: str, heading: str) -> str:
    """Joins the results of `content` and `heading` to a resolved scenario."""
    schema, rest = text.split("\n", 1)
    return f"{schema}\n{heading}{rest}"


def cell_id(text: str, engine: str = _core.engine) -> str:
    """Names a cell by its content and engine; the seed is part of the content."""
    parts = f"cwnd cell {_VERSION}\n{engine}\n{text}"
    return hashlib.sha256(parts.encode()).hexdigest()[:_ID_DIGITS]
