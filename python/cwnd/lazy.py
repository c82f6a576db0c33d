"""What is imported when it is first used: a room's names, and what rooms above do for one below."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: What rooms above do for those below, as `module:function`; `cwnd/__init__.py` says where it is.
_DOORS: dict[str, str] = {}


def offers(
    room: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a room that offers names, by the files that have them.

    Names of a file stand behind each other, with spaces between them.
    """
    home = {name: f"{room}.{file}" for file, names in homes.items() for name in names.split()}

    def find(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        value = getattr(import_module(home[name]), name)
        setattr(sys.modules[room], name, value)
        return value

    return find, lambda: list(home)


def open_doors(doors: Mapping[str, str]) -> None:
    """Says which function of a room above does what."""
    _DOORS.update(doors)


def door(name: str) -> Any:
    """The function of a room above that does this."""
    module, _, function = _DOORS[name].partition(":")
    return getattr(import_module(module), function)
