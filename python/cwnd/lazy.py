"""Imports at first use: names of a package, and functions that packages above register."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: Functions of packages above, as `module:function`, by what they do.
_REGISTERED: dict[str, str] = {}


def offers(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package, from the names that each of its files offers.

    Names are separated by spaces.
    """
    home = {name: f"{package}.{file}" for file, names in homes.items() for name in names.split()}

    def find(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(home[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return find, lambda: list(home)


def register(functions: Mapping[str, str]) -> None:
    """Registers functions for packages below theirs."""
    _REGISTERED.update(functions)


def registered(name: str) -> Any:
    """The function that was registered for this."""
    module, _, function = _REGISTERED[name].partition(":")
    return getattr(import_module(module), function)
