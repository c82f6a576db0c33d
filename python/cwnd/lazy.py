"""Lazy imports: names of a package, and functions that higher packages register."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: Registered functions of higher packages as `module:function`, by purpose.
_REGISTERED: dict[str, str] = {}


def offers(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Returns `__getattr__` and `__dir__` of a package whose names are imported at first use.

    `homes` maps each module of the package to its public names, separated by spaces.
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
    """Registers functions of higher packages, by purpose, as `module:function`."""
    _REGISTERED.update(functions)


def registered(name: str) -> Any:
    """Imports and returns the function registered for a purpose.

    Raises:
        KeyError: No function is registered for it.
    """
    module, _, function = _REGISTERED[name].partition(":")
    return getattr(import_module(module), function)
