"""Identifiers of cells: hashes of a resolved scenario and of the engine that runs it."""

from __future__ import annotations

import hashlib

from cwnd import _core

#: Version of the naming rule.
_VERSION = 1
_ID_DIGITS = 32


def content(resolved: str) -> str:
    """Returns the part of a resolved scenario that determines its result.

    This is the whole text except the lines with its name and description.

    Raises:
        ValueError: The text does not begin with schema, name and description.
    """
    schema, name, description, rest = resolved.split("\n", 3)
    if not (name.startswith("name = ") and description.startswith("description = ")):
        raise ValueError("a resolved scenario begins with its name and description")
    return f"{schema}\n{rest}"


def heading(resolved: str) -> str:
    """Returns the lines of a resolved scenario with its name and description."""
    _, name, description, _ = resolved.split("\n", 3)
    return f"{name}\n{description}\n"


def named(text: str, heading: str) -> str:
    """Joins the results of `content` and `heading` to a resolved scenario."""
    schema, rest = text.split("\n", 1)
    return f"{schema}\n{heading}{rest}"


def cell_id(text: str, engine: str = _core.engine) -> str:
    """Computes the identifier of a cell from its content, with the seed, and its engine."""
    parts = f"cwnd cell {_VERSION}\n{engine}\n{text}"
    return hashlib.sha256(parts.encode()).hexdigest()[:_ID_DIGITS]
